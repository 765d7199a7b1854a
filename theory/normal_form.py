"""From a SymPy expression to a fraction of polynomials over independent atoms.

Internal to :mod:`theory.identities`, which decides with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction as Rational
from typing import Any

import sympy
from sympy import Basic, Expr

from theory.algebra import Fraction, OutsideDomainError, Restart, Tower
from theory.converter import Converter
from theory.domain import Hints, leaves_out
from theory.errors import GradlineError
from theory.field import Field
from theory.inputs import SignCondition, check_names, conditions, exact
from theory.signs import Fact, Range, Signs

__all__ = ["NormalForm", "convert", "convert_checked"]

_MAX_ATTEMPTS = 60


@dataclass(frozen=True)
class NormalForm:
    """A fraction over atoms: ``numerator/denominator``, with the signs that its rewritings relied on.

    Two expressions with equal normal forms are equal where both are defined. ``strata`` lists the arguments of
    ``sign`` that were taken to be nonzero.
    """

    numerator: Expr
    denominator: Expr
    assumptions: tuple[str, ...]
    strata: tuple[Expr, ...] = ()

    @property
    def is_zero(self) -> bool:
        """Whether the numerator is the zero polynomial."""
        return bool(self.numerator == 0)

    def to_expr(self) -> Expr:
        """The normal form as a SymPy expression."""
        return sympy.Mul(self.numerator, sympy.Pow(self.denominator, -1))


def convert(expr: Expr, assumptions: Iterable[Basic] = ()) -> tuple[Converter, Fraction]:
    """Check and convert an expression.

    Raises ValueError or TypeError for input that is no exact real scalar, GradlineError for what the method can't do.
    """
    given = conditions(assumptions)
    expr = exact(expr)
    if given:
        check_names([expr, *(condition.expr for condition in given)])
    return convert_checked(expr, given)


def convert_checked(expr: Expr, given: Sequence[SignCondition]) -> tuple[Converter, Fraction]:
    """Convert an expression; start again with finer atoms until the conversion goes through."""
    hints = Hints()
    for _ in range(_MAX_ATTEMPTS):
        try:
            converter = _prepare(expr, given, hints)
            result = _attempt(converter, expr)
        except Restart as restart:
            if restart.args == ("capacity",):
                hints.capacity *= 2
            continue
        if not _learn(converter):
            return converter, result
    raise GradlineError(
        f"normal form of {expr}: no common refinement after {_MAX_ATTEMPTS} attempts; split the expression"
    )


def _attempt(converter: Converter, expr: Expr) -> Fraction:
    atoms = converter.atoms
    atoms.found.clear()
    atoms.beside.clear()
    try:
        return converter.convert(expr)
    except OutsideDomainError as error:
        if atoms.hints.strata or (converter.strata and leaves_out(atoms.parts[-1])):
            raise GradlineError(f"{error}; beside a place that has to be looked at by itself") from error
        raise


def _learn(converter: Converter) -> bool:
    """Hand the facts that were found to the next attempt: first those that hold on the whole domain."""
    atoms, hints = converter.atoms, converter.atoms.hints
    news = [fact for fact in atoms.found if fact not in hints.facts]
    beside = [fact for fact in atoms.beside if fact not in hints.facts]
    if beside and not (news and converter.strata):
        news += beside
        strata = (converter.tower.fraction_expr(a) for a in converter.strata)
        hints.strata.extend(dict.fromkeys(s for s in strata if s not in hints.strata))
    hints.facts.extend(dict.fromkeys(news))
    return bool(news)


def _prepare(expr: Expr, given: Sequence[SignCondition], hints: Hints) -> Converter:
    tower = Tower(hints.capacity)
    converter = Converter(Field(tower, Signs(tower), hints))
    try:
        _assume_all(converter, expr, given)
    except OutsideDomainError as error:
        if hints.strata or any(leaves_out(condition.expr) for condition in given):
            raise GradlineError(f"{error}; beside a place that has to be looked at by itself") from error
        raise
    return converter


def _assume_all(converter: Converter, expr: Expr, given: Sequence[SignCondition]) -> None:
    names = expr.free_symbols.union(*(c.expr.free_symbols for c in given))
    converter.free = frozenset(names)
    for symbol in sorted(names, key=lambda s: str(s.name)):
        converter.convert(symbol)
    for condition in [*given, *(SignCondition(e, relation) for e, relation in converter.atoms.hints.facts)]:
        _assume(converter, condition)


def _assume(converter: Converter, condition: SignCondition) -> None:
    """Turn ``expr > 0`` (``>=``, ``!=``) into the range of a symbol or a fact about a polynomial."""
    signs, tower = converter.atoms.signs, converter.tower
    a = converter.convert(condition.expr)
    _possible(converter, condition, a)
    if a.num.is_zero():
        return
    top, bottom, factors = tower.factors(a)
    direction = 1 if top * bottom > 0 else -1
    open_factors = []
    for poly, k in factors:
        sign = signs.of_factor(poly)
        if sign is not None and sign.strict and sign.direction:
            direction *= sign.direction if k % 2 else 1
        else:
            open_factors.append((poly, k))
    if condition.relation == "!=":
        signs.facts.extend(Fact(f, "!=", f"{tower.to_expr(f)} != 0") for f, k in open_factors if k > 0)
    elif len(open_factors) == 1 and open_factors[0][1] % 2:
        poly = open_factors[0][0] if direction > 0 else -open_factors[0][0]
        signs.facts.append(Fact(poly, condition.relation, f"{tower.to_expr(poly)} {condition.relation} 0"))
        _tighten(converter, poly, condition.relation == ">")
    signs.cache.clear()


def _possible(converter: Converter, condition: SignCondition, a: Fraction) -> None:
    """OutsideDomainError if the condition is proved to be false everywhere."""
    if converter.strata:
        return
    sign = converter.atoms.signs.of_fraction(a)
    if sign is None or (sign.direction and (condition.relation == "!=" or sign.direction > 0)):
        return
    if (sign.strict and (sign.direction or condition.relation != ">=")) or condition.relation == ">":
        raise OutsideDomainError(f"the assumption {condition.expr} {condition.relation} 0 is false everywhere")


def _tighten(converter: Converter, poly: Any, strict: bool) -> None:
    used = converter.tower.variables(poly)
    if len(used) != 1 or max(poly.degrees()) != 1:
        return
    index = used[0]
    parts = converter.tower.coefficients(poly, index)
    slope = int(parts[1].leading_coefficient())
    bound = Rational(-int(parts[0].leading_coefficient()) if 0 in parts else 0, slope)
    old = converter.atoms.signs.ranges.get(index, Range())
    low, low_strict, high, high_strict = old.low, old.low_strict, old.high, old.high_strict
    if slope > 0 and (low is None or bound > low or (bound == low and strict)):
        low, low_strict = bound, strict
    if slope < 0 and (high is None or bound < high or (bound == high and strict)):
        high, high_strict = bound, strict
    converter.atoms.signs.ranges[index] = Range(low, high, low_strict, high_strict, old.nonzero)
