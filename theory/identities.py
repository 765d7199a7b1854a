"""Deciding whether an expression is identically zero: equal, different, or undecided.

"Equal" rests on an exact normal form (:mod:`theory.normal_form`), "different" on a rational point at which ball
arithmetic encloses the value away from zero. Everything else is "undecided".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NoReturn

import sympy
from sympy import Basic, Expr, Lambda, Rational, Symbol

from theory.algebra import OutsideDomainError
from theory.converter import Converter
from theory.domain import leaves_out
from theory.errors import GradlineError
from theory.inputs import SignCondition, check_names, conditions, exact
from theory.normal_form import NormalForm, convert, convert_checked
from theory.strata import at_place, own_conditions, places
from theory.witnesses import Separation, admits, decimal_bounds, generic, holds, instance, mapping, points, separate

__all__ = ["Decision", "NormalForm", "UndecidedError", "compare", "is_zero", "normal_form", "prove_zero"]

_FIRST_POINTS = 3
_FIRST_BITS = (128,)
_POINTS = 40
_BITS = (64, 256, 1024)
_MAX_STRATA = 4


class UndecidedError(GradlineError):
    """Neither a proof nor a counterexample was found."""


@dataclass(frozen=True)
class Decision:
    """The answer to "is this expression zero wherever it is defined?".

    ``answer`` is ``"equal"``, ``"different"`` or ``"undecided"``. If different, ``witness`` maps symbols to
    rational numbers and ``enclosure`` holds decimal bounds of the nonzero value there. ``assumptions`` lists the
    signs that the proof relied on; ``reason`` says in one line how the answer was found, or why there is none.
    An expression with undefined functions is zero if it is so for all of them; ``functions`` maps each to the
    ``Lambda`` for which it is not.
    """

    answer: Literal["equal", "different", "undecided"]
    reason: str
    witness: Mapping[Symbol, Rational] = field(default_factory=lambda: MappingProxyType({}))
    enclosure: tuple[str, str] | None = None
    assumptions: tuple[str, ...] = ()
    functions: Mapping[Any, Lambda] = field(default_factory=lambda: MappingProxyType({}))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a Decision has three answers; compare decision.answer with 'equal', 'different' or 'undecided'"
        )


def prove_zero(expr: Expr, assumptions: Iterable[Basic] = ()) -> Decision:
    """Decide whether an expression is zero wherever it is defined.

    ``expr = 0`` for all real values of its symbols that satisfy their SymPy assumptions, ``M >= 2`` and the
    given ``assumptions``.

    Parameters: ``expr``, a real scalar expression with exact numbers; ``assumptions``, SymPy inequalities.
    Returns: a Decision.
    Raises: ValueError or TypeError for input that is no exact real scalar (a float, ``I``, an infinity, two
    symbols of one name); GradlineError naming what is not supported (``Piecewise``).
    Source: Ax's theorem (exponentials of independent exponents are independent); Arb's ball arithmetic.

    >>> from sympy import exp
    >>> from theory.symbols import M, m, n, mu_QK
    >>> share = m * exp(mu_QK) / (m * exp(mu_QK) + n)
    >>> prove_zero(exp(share) * exp(1 - share) - exp(1)).answer
    'equal'
    >>> prove_zero((M - 1) ** n - M**n + 1).answer
    'different'
    """
    expr, given = exact(expr), conditions(assumptions)
    if given:
        check_names([expr, *(condition.expr for condition in given)])
    try:
        return _decide(expr, given)
    except OutsideDomainError as error:
        return Decision("undecided", f"no real value anywhere: {error}")


def compare(a: Expr, b: Expr, assumptions: Iterable[Basic] = ()) -> Decision:
    """Decide whether two expressions agree wherever both are defined.

    ``a - b = 0``, as in :func:`prove_zero`.

    Parameters: ``a`` and ``b``, real scalar expressions; ``assumptions``, SymPy inequalities.
    Returns: a Decision; its enclosure is of ``a - b``.
    Raises: as :func:`prove_zero`.
    Source: :func:`prove_zero`.

    >>> from sympy import Abs, Symbol, sqrt
    >>> x = Symbol("x", real=True)
    >>> compare(sqrt(x**2), x).answer, compare(sqrt(x**2), x, [x > 0]).answer
    ('different', 'equal')
    """
    return prove_zero(_difference(exact(a), exact(b)), assumptions)


def _difference(a: Expr, b: Expr) -> Expr:
    """``a - b``, where a part that both have does not cancel: it tells where they are defined."""
    return sympy.Add(a, sympy.Mul(-1, b, evaluate=False), evaluate=False)


def is_zero(expr: Expr) -> bool:
    """Whether an expression is identically zero, or an error if that can't be decided.

    ``expr = 0``, as in :func:`prove_zero`.

    Parameters: ``expr``, a real scalar expression.
    Returns: True if equal, False if different.
    Raises: UndecidedError if neither is proved; otherwise as :func:`prove_zero`.
    Source: :func:`prove_zero`.

    >>> from sympy import Symbol, exp
    >>> x = Symbol("x", real=True)
    >>> is_zero(exp(2 * x) - exp(x) ** 2), is_zero(exp(2 * x) - exp(x))
    (True, False)
    """
    decision = prove_zero(expr)
    if decision.answer == "undecided":
        raise UndecidedError(f"is {expr} zero? {decision.reason}; add assumptions, or use prove_zero")
    return decision.answer == "equal"


def normal_form(expr: Expr, assumptions: Iterable[Basic] = ()) -> NormalForm:
    """The expression as a fraction of polynomials over independent exponentials, logarithms, roots and functions.

    ``expr = numerator/denominator``; equal normal forms mean equal expressions.

    Parameters: ``expr``, a real scalar expression; ``assumptions``, SymPy inequalities.
    Returns: a NormalForm; ``.to_expr()`` is the expression rewritten.
    Raises: as :func:`prove_zero`; GradlineError also for an expression without any real value.
    Source: :func:`prove_zero`.

    >>> from sympy import Symbol, exp
    >>> x = Symbol("x", real=True)
    >>> normal_form((exp(2 * x) - 1) / (exp(x) - 1)).to_expr()
    exp(x) + 1
    """
    converter, value = convert(expr, assumptions)
    tower = converter.tower
    return NormalForm(tower.to_expr(value.num), tower.to_expr(value.den), _used(converter), converter.left_out)


def _decide(expr: Expr, given: Sequence[SignCondition]) -> Decision:
    """The decision, or OutsideDomainError if the expression is proved to have no real value."""
    put, functions = instance(expr)
    probe, replaced = generic(put)
    inside = False
    for found in _separations(probe, given, _FIRST_POINTS, _FIRST_BITS):
        inside = True
        if found.nonzero and not replaced:
            return _different(found, given, functions)
    try:
        converter, value = convert_checked(expr, given)
    except OutsideDomainError:
        if not inside:
            raise
        return Decision("undecided", "the proof and the values disagree on where the expression is defined")
    except GradlineError as error:
        return _by_points(probe, given, functions, replaced, str(error))
    if not value.num.is_zero():
        return _by_points(
            probe,
            given,
            functions,
            replaced,
            "the normal form is not zero, and no point was found where the value is not",
        )
    if not inside and next(_separations(probe, given, _POINTS, _BITS), None) is None:
        return Decision("undecided", "no point was found at which the expression is defined")
    return _check_strata(expr, converter, given)


def _used(converter: Converter) -> tuple[str, ...]:
    return converter.atoms.signs.texts()


def _separations(expr: Expr, given: Sequence[SignCondition], count: int, bits: Sequence[int]) -> Iterator[Separation]:
    names = expr.free_symbols.union(*(condition.expr.free_symbols for condition in given))
    for point in points(tuple(names), given, count):
        found = separate(expr, point, bits)
        if found is not None:
            yield found


def _text(condition: SignCondition) -> str:
    return f"{condition.expr} {condition.relation} 0"


def _different(found: Separation, given: Sequence[SignCondition], functions: Mapping[Any, Lambda]) -> Decision:
    witness = MappingProxyType(dict(mapping(found.point)))
    low, high = decimal_bounds(found.ball)
    where = ", ".join(f"{symbol} = {value}" for symbol, value in witness.items())
    text = tuple(_text(condition) for condition in given)
    chosen = " and ".join(f"{f}({', '.join(map(str, law.variables))}) = {law.expr}" for f, law in functions.items())
    reason = f"{f'for {chosen}, ' if chosen else ''}the value at {where or 'no symbols'} is in [{low}, {high}]"
    return Decision("different", reason, witness, (low, high), text, functions)


def _by_points(
    probe: Expr, given: Sequence[SignCondition], functions: Mapping[Any, Lambda], replaced: bool, reason: str
) -> Decision:
    if replaced:
        return Decision("undecided", f"{reason} (it contains a function without an enclosure)")
    for found in _separations(probe, given, _POINTS, _BITS):
        if found.nonzero:
            return _different(found, given, functions)
    return Decision("undecided", reason)


def _check_strata(expr: Expr, converter: Converter, given: Sequence[SignCondition]) -> Decision:
    """The proof left out places, such as those where the argument of ``sign`` vanishes: decide them too."""
    used = set(_used(converter))
    if len(converter.left_out) > _MAX_STRATA:
        return Decision("undecided", "the sign of too many expressions that may vanish")
    for argument, found in _strata(converter, given):
        if found is None:
            return Decision("undecided", f"the proof needs {argument} != 0, and where it vanishes could not be decided")
        for symbol, value in found:
            decision = _on_stratum(expr, symbol, value, given)
            if decision.answer != "equal":
                return decision
            used.update(decision.assumptions)
    return Decision("equal", "the normal form is zero", assumptions=tuple(sorted(used)))


def _strata(
    converter: Converter, given: Sequence[SignCondition]
) -> Iterator[tuple[Expr, list[tuple[Symbol, Expr]] | None]]:
    """What was left out and where it vanishes, by facts that hold there too; None where that is not known."""
    safe = [condition for condition in given if not leaves_out(condition.expr)]
    if not converter.atoms.hints.strata and len(safe) == len(given):
        for a in converter.strata:
            yield converter.tower.fraction_expr(a), places(converter, a)
        return
    for argument in converter.left_out:
        inside = argument.free_symbols & converter.bound
        try:
            found = None if inside else places(*convert_checked(argument, safe))
        except GradlineError:
            found = None
        yield argument, found


def _on_stratum(expr: Expr, symbol: Symbol, value: Expr, given: Sequence[SignCondition]) -> Decision:
    """The decision where ``symbol = value``; equal where the place is outside the domain."""
    relations = own_conditions(symbol, value)
    try:
        for condition in given:
            try:
                there = at_place(condition.expr, symbol, value)
            except OutsideDomainError:
                return Decision("equal", "an assumption is false", assumptions=(_text(condition),))
            relations.append(SignCondition(there, condition.relation))
            if there.is_Rational and not holds(relations[-1], {}):
                return Decision("equal", "an assumption is false", assumptions=(_text(condition),))
        decision = _decide(exact(at_place(expr, symbol, value)), relations)
    except OutsideDomainError:
        return Decision("equal", "no real value")
    except GradlineError as error:
        return Decision("undecided", str(error))
    return _lifted(expr, symbol, value, given, decision) if decision.answer == "different" else decision


def _lifted(expr: Expr, symbol: Symbol, value: Expr, given: Sequence[SignCondition], decision: Decision) -> Decision:
    """A witness of the whole expression from one on a stratum, where the expression may have a smaller domain."""
    symbols = expr.free_symbols.union(*(condition.expr.free_symbols for condition in given))
    missing = symbols - {symbol, *decision.witness}
    put, functions = instance(expr)
    for rest in points(tuple(missing), (), _POINTS):
        point = {**rest, **decision.witness}
        point[symbol] = sympy.cancel(value.xreplace(point))
        if not admits(symbol, point[symbol]) or not all(holds(condition, point) for condition in given):
            continue
        found = separate(put, point, _BITS)
        if found is not None and found.nonzero:
            return _different(found, given, functions)
    return Decision("undecided", f"no point with {symbol} = {value} was found where the value is defined and not zero")
