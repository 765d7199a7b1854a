"""Counterexamples: a small point where a statement fails, both values there, and a snippet that shows it.

A point is searched among small rational numbers of the domain and shrunk: integers before halves before thirds,
sizes as small as they can be. Values are enclosed by ball arithmetic, so that a counterexample is a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from flint import ctx
from sympy import Basic, Dummy, Expr, Integer, Rational, Symbol

from theory.balls import enclose
from theory.blocks import BlockMatrix
from theory.errors import GradlineError
from theory.identities import Decision
from theory.inputs import SignCondition, conditions, symbol_range
from theory.snippets import matrix_snippet, scalar_snippet
from theory.witnesses import decimal_bounds, functions_put, holds, points
from theory.word_instances import Instance, evaluate, find_instance, letters
from theory.words import Words, matrix

if TYPE_CHECKING:
    from theory.registry import Claim, Outcome

__all__ = ["Counterexample", "Side", "counterexample", "lost_value", "nonpositive", "shrink"]

Point = Mapping[Symbol, Rational]

_BITS = 256
_POINTS = 80
_LARGEST = 4096  # bits of an exponent of two: a larger value says nothing to a reader
#: Values to try for a symbol, the simplest first.
_VALUES = (
    *(Integer(v) for v in (1, 2, -1, 0, 3, -2, 4, -3, 5, 6, 8, 10)),
    *(Rational(v, 2) for v in (1, -1, 3, -3)),
    *(Rational(v, 3) for v in (1, -1, 2, -2)),
    *(Rational(*v) for v in ((1, 4), (3, 4), (1, 5), (1, 10))),
)


@dataclass(frozen=True)
class Side:
    """One side of a comparison: what it is, its text, and decimal bounds of its value (equal texts for a matrix)."""

    what: str
    text: str
    low: str
    high: str

    def __str__(self) -> str:
        value = self.low if self.low == self.high else f"[{self.low}, {self.high}]"
        return f"{self.what} {value}"


@dataclass(frozen=True)
class Counterexample:
    """Where a statement fails.

    ``obligation`` names what fails; ``point`` maps symbols to rational numbers, undefined functions to a ``Lambda``,
    or letters to matrices; ``stated`` and ``derived`` are both sides there; ``snippet`` is code that prints them.
    """

    obligation: str
    point: Mapping[Any, Any]
    stated: Side
    derived: Side
    snippet: str

    @property
    def where(self) -> str:
        """The point in words."""
        return ", ".join(f"{k}={_rows(v)}" for k, v in self.point.items())

    def __str__(self) -> str:
        return f"{self.obligation}: {self.stated}, {self.derived}{f' at {self.where}' if self.where else ''}"


def _rows(value: Any) -> str:
    return str(value.tolist() if hasattr(value, "tolist") else value)


# ---- points ------------------------------------------------------------------------------------------------


def _inside(symbol: Symbol, value: Rational) -> bool:
    bound = symbol_range(symbol)
    if (symbol.is_integer and not value.is_Integer) or (bound.nonzero and value == 0):
        return False
    low, high = bound.low, bound.high
    above = low is None or (value > low if bound.low_strict else value >= low)
    return bool(above and (high is None or (value < high if bound.high_strict else value <= high)))


def shrink(point: Point, fails: Callable[[Point], bool]) -> dict[Symbol, Rational]:
    """Make the values of a point simpler, one symbol at a time, as long as it stays a counterexample.

    Parameters: ``point``, symbol -> rational number; ``fails``, whether a point is a counterexample.
    Returns: a point for which ``fails`` holds, no value of which can be made simpler alone.

    >>> from sympy import Symbol
    >>> x = Symbol("x", real=True)
    >>> shrink({x: Rational(17, 5)}, lambda p: p[x] > 2)
    {x: 3}
    """
    best = dict(point)
    for _ in range(3):
        before = dict(best)
        for symbol in sorted(best, key=lambda s: str(s.name)):
            for value in _VALUES:
                if value == best[symbol]:
                    break
                if _inside(symbol, value) and fails({**best, symbol: value}):
                    best[symbol] = value
                    break
        if best == before:
            break
    return best


def _holds(given: Sequence[SignCondition], point: Point) -> bool:
    return all(holds(condition, dict(point)) for condition in given)


def _names(given: Sequence[SignCondition], *expressions: Expr) -> list[Symbol]:
    found = set().union(*(e.free_symbols for e in expressions), *(c.expr.free_symbols for c in given))
    return sorted(found, key=lambda s: str(s.name))


def _value(expr: Expr, point: Point) -> Any:
    """The enclosure at a point; None where there is none or none that a reader can use."""
    try:
        ball = enclose(expr, {s: point[s] for s in expr.free_symbols}, _BITS)
    except GradlineError:
        return None
    if not ball.is_finite() or any(abs(int(end.man_exp()[1])) > _LARGEST for end in (ball.lower(), ball.upper())):
        return None
    return ball


def _bounds(ball: Any) -> tuple[str, str]:
    with ctx.workprec(_BITS):
        return decimal_bounds(ball)


def _wide_points(symbols: Sequence[Symbol], given: Sequence[SignCondition]) -> Iterator[Point]:
    """Small points first, then points with one large or small coordinate."""
    found = list(points(symbols, given, _POINTS))
    yield from found
    for point in found[:8]:
        for symbol in symbols:
            for value in (Integer(100), Rational(1, 100), Integer(-100), Integer(20)):
                moved = {**point, symbol: value}
                if _inside(symbol, value) and _holds(given, moved):
                    yield moved


def _decision(expr: Expr, point: Point, ball: Any, given: Sequence[SignCondition], what: str) -> Decision:
    witness = MappingProxyType({s: point[s] for s in sorted(point, key=lambda s: str(s.name))})
    low, high = _bounds(ball)
    where = ", ".join(f"{s} = {v}" for s, v in witness.items()) or "no symbols"
    texts = tuple(f"{c.expr} {c.relation} 0" for c in given)
    return Decision("different", f"{what} at {where} is in [{low}, {high}]", witness, (low, high), texts)


def nonpositive(expr: Expr, assumptions: Iterable[Basic] = ()) -> Decision | None:
    """Search a point of the domain where an expression is enclosed at or below 0: it is not positive everywhere.

    Parameters: ``expr``, a real scalar expression; ``assumptions``, SymPy inequalities that the point satisfies.
    Returns: a `Decision` ``"different"`` with the shrunk point and the enclosure, or None if no point was found.

    >>> from theory.symbols import M, b
    >>> nonpositive(M - b).witness, nonpositive(M - 1)
    (mappingproxy({M: 2, b: 2}), None)
    """
    given = conditions(assumptions)

    def fails(point: Point) -> bool:
        ball = _value(expr, point) if _holds(given, point) else None
        return ball is not None and bool(ball <= 0)

    for point in _wide_points(_names(given, expr), given):
        if fails(point):
            small = shrink(point, fails)
            return _decision(expr, small, _value(expr, small), given, "the value")
    return None


def _undefined(expr: Any, point: Point) -> bool:
    """Whether an expression is proved to have no real value at a point: a root or logarithm of a negative number."""
    for node in expr.args:
        if _undefined(node, point):
            return True
    kind = type(expr).__name__
    partial = expr.is_Pow and not expr.exp.is_Integer
    if kind not in ("log", "LambertW") and not partial and not (expr.is_Pow and expr.exp.is_negative):
        return False
    ball = _value(expr.args[0], point)
    if ball is None:
        return False
    if kind == "LambertW":
        return bool(ball < Rational(-1, 2))
    zero = ball.is_exact() and ball.is_zero()
    if expr.is_Pow and expr.exp.is_Rational and (expr.exp.is_Integer or expr.exp.q % 2):
        return bool(zero and expr.exp.is_negative)
    return bool(ball < 0) or bool(zero and (kind == "log" or expr.exp.is_negative))


def lost_value(
    original: Expr, changed: Expr, assumptions: Iterable[Basic] = (), others: Sequence[Expr] = ()
) -> dict[Symbol, Rational] | None:
    """Search a point where one expression has a real value and another is proved to have none.

    Parameters: ``original`` and ``changed``, real scalar expressions; ``assumptions``, SymPy inequalities; ``others``,
    expressions that have a value at the point too.
    Returns: the shrunk point, or None if none was found.

    >>> from sympy import log
    >>> from theory.symbols import mu_OV
    >>> lost_value(mu_OV, log(mu_OV)), lost_value(mu_OV, log(mu_OV), [mu_OV > 0])
    ({mu_OV: -1}, None)
    """
    given = conditions(assumptions)

    def fails(point: Point) -> bool:
        valued = _holds(given, point) and all(_value(e, point) is not None for e in (original, *others))
        return valued and _undefined(changed, point)

    for point in points(_names(given, original, changed, *others), given, 24):
        if fails(point):
            return shrink(point, fails)
    return None


# ---- both sides --------------------------------------------------------------------------------------------


def counterexample(claim: Claim | None, outcome: Outcome) -> Counterexample | None:
    """The counterexample of a refuted obligation, as simple as it gets.

    Parameters: ``claim``, a claim (None: only what is left of the obligation is shown, beside 0); ``outcome``,
    one of its refuted obligations, as `theory.registry.prove` gives it.
    Returns: a `Counterexample`; None if the obligation was refuted without a point.

    >>> from theory.registry import find, prove
    >>> from theory.symbols import M, b
    >>> wrong = find("noise-correction").with_stated(per_class=1 + b)
    >>> print(counterexample(wrong, next(o for o in prove(wrong) if o.answer == "refuted")))
    d mu_QK/dt, finite over infinite N [per_class]: stated 2, derived 1.5 at N=2, b=1
    """
    obligation = outcome.obligation
    if isinstance(obligation.value, Words):
        return _of_words(claim, outcome)
    if isinstance(obligation.value, BlockMatrix):
        found = (_of_scalar(claim, outcome, c, None) for c in obligation.value.coefficients() if c != 0)
        return next((c for c in found if c is not None), None)
    return _of_scalar(claim, outcome, obligation.value, _sides(claim, outcome))


def _sides(claim: Claim | None, outcome: Outcome) -> tuple[Expr, Expr] | None:
    """Stated and derived, where the obligation is their difference: the stated formula put in as a symbol shows it."""
    value, name = outcome.obligation.value, outcome.obligation.name
    for key, formula in claim.stated.items() if claim is not None else ():
        if hasattr(formula, "gts"):
            if key == name:
                return formula.gts, formula.lts
        elif getattr(formula, "is_Equality", False):
            if key == name:
                return formula.lhs, formula.rhs
        elif isinstance(formula, Expr):
            place = Dummy("stated", real=True)
            other = _same_obligation(claim, key, place, name)
            if other is None or not other.has(place):
                continue
            derived = place - other
            if not derived.has(place) and (value + derived).free_symbols <= value.free_symbols | derived.free_symbols:
                return value + derived, derived
    return None


def _same_obligation(claim: Claim | None, key: str, formula: Any, name: str) -> Any:
    if claim is None:
        return None
    try:
        for obligation in claim.with_stated(**{key: formula}).obligations({**claim.stated, key: formula}):
            if obligation.name == name:
                return obligation.value
    except (GradlineError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return None


def _of_scalar(
    claim: Claim | None, outcome: Outcome, value: Expr, sides: tuple[Expr, Expr] | None
) -> Counterexample | None:
    chosen = outcome.decision.functions if outcome.decision is not None else {}
    if chosen:
        value, sides = functions_put(value, chosen), sides and tuple(functions_put(s, chosen) for s in sides)
    given = conditions(outcome.obligation.assumptions)
    above = outcome.obligation.relation == "> 0"

    def fails(point: Point) -> bool:
        ball = _value(value, point) if _holds(given, point) else None
        if ball is None or (sides is not None and None in (_value(sides[0], point), _value(sides[1], point))):
            return False
        return bool(ball <= 0) if above else not ball.contains(0)

    names = _names(given, value, *(sides or ()))
    known = outcome.decision.witness if outcome.decision is not None else {}
    starts = [known] if set(names) <= set(known) else []
    found = next((p for p in (*starts, *_wide_points(names, given)) if fails(p)), None)
    if found is None:
        return None if sides is None else _of_scalar(claim, outcome, value, None)
    small = shrink({s: found[s] for s in names}, fails)
    small = {s: small[s] for s in sorted(small, key=lambda s: str(s.name))}
    left, right = sides or (Integer(0), value)
    first = _side("stated", left, small) if sides else Side("stated above" if above else "stated", "0", "0", "0")
    second = _side("derived", right, small)
    return Counterexample(
        outcome.obligation.name,
        MappingProxyType({**small, **chosen}),
        first,
        second,
        scalar_snippet(left, right, small),
    )


def _side(what: str, expr: Expr, point: Point) -> Side:
    low, high = _bounds(_value(expr, point))
    return Side(what, str(expr), low, high)


def _of_words(claim: Claim | None, outcome: Outcome) -> Counterexample | None:
    value, name = outcome.obligation.value, outcome.obligation.name
    stated, derived = Words.of({}), value
    for key, formula in claim.stated.items() if claim is not None else ():
        if isinstance(formula, Words):
            other = _same_obligation(claim, key, matrix("stated"), name)
            if isinstance(other, Words) and "stated" not in letters(matrix("stated") - other):
                derived = matrix("stated") - other
                stated = value + derived
                break
    found = find_instance(value, outcome.obligation.hypotheses, (stated, derived))
    return None if found is None else _word_sides(name, stated, derived, found)


def _word_sides(name: str, stated: Words, derived: Words, found: Instance) -> Counterexample:
    left, right = (_rows(evaluate(w, found)) for w in (stated, derived))
    return Counterexample(
        name,
        MappingProxyType({**found.scalars, **found.matrices}),
        Side("stated", str(stated), left, left),
        Side("derived", str(derived), right, right),
        matrix_snippet(stated, derived, found.matrices, found.scalars),
    )
