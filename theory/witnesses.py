"""Small rational points of the domain of an expression; internal to :mod:`theory.identities`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from random import Random
from types import MappingProxyType
from typing import Any

import sympy
from sympy import Basic, Expr, Lambda, Rational, Symbol
from sympy.core.function import AppliedUndef

from theory.balls import enclose, supported
from theory.inputs import SignCondition, symbol_range
from theory.signs import Range

__all__ = ["Point", "admits", "decimal_bounds", "functions_put", "generic", "holds", "instance", "points", "separate"]

Point = dict[Symbol, Rational]

_OFFSETS = tuple(Fraction(*pair) for pair in ((1, 2), (1, 1), (2, 1), (1, 3), (3, 2), (3, 1), (2, 3), (5, 1), (1, 5)))
_INSIDE = tuple(Fraction(*pair) for pair in ((1, 2), (1, 3), (2, 3), (1, 4), (3, 4), (1, 5), (2, 5), (1, 7)))
_FAR = 4  # beyond this a bound is so far from 0 that numbers on the other side of 0 are tried too
_LARGEST = 20_000  # bits of an exponent of two: beyond this a value is no readable witness


@dataclass(frozen=True)
class Separation:
    """A point with an enclosure of the value there; ``nonzero`` if the enclosure excludes 0."""

    point: Point
    ball: Any
    nonzero: bool


def points(symbols: Sequence[Symbol], given: Sequence[SignCondition], count: int) -> Iterator[Point]:
    """Points that satisfy the assumptions of the symbols and the given conditions, small numbers first."""
    ordered = sorted(symbols, key=lambda s: str(s.name))
    choices = [[v for v in _choices(s, _range(s, given)) if admits(s, v)] for s in ordered]
    if not all(choices):
        return
    random = Random(20260806)
    found = 0
    for attempt in range(20 * count):
        if attempt < 3:
            point = {s: c[(i + attempt) % len(c)] for i, (s, c) in enumerate(zip(ordered, choices, strict=True))}
        else:
            point = {s: random.choice(c) for s, c in zip(ordered, choices, strict=True)}
        if all(holds(condition, point) for condition in given):
            found += 1
            yield point
            if found >= count or not ordered:
                return


def admits(symbol: Symbol, value: Any) -> bool:
    """Whether a value is a rational number that the assumptions of a symbol and its bounds allow."""
    if not getattr(value, "is_Rational", False):
        return False
    if any(getattr(value, f"is_{name}", None) not in (None, said) for name, said in symbol.assumptions0.items()):
        return False
    bound, number = symbol_range(symbol), Fraction(int(value.p), int(value.q))
    above = bound.low is None or number > bound.low or (number == bound.low and not bound.low_strict)
    return above and (bound.high is None or number < bound.high or (number == bound.high and not bound.high_strict))


def _choices(symbol: Symbol, bound: Range) -> list[Rational]:
    if symbol.is_integer:
        return _integers(symbol, bound)
    if bound.low is not None and bound.high is not None:
        values = [bound.low + (bound.high - bound.low) * share for share in _INSIDE]
    elif bound.low is not None:
        values = [bound.low + offset for offset in _OFFSETS]
        values += [offset for offset in _OFFSETS[:3] if bound.low <= -_FAR]
        values += [] if bound.low_strict else [bound.low]
    elif bound.high is not None:
        values = [bound.high - offset for offset in _OFFSETS]
        values += [-offset for offset in _OFFSETS[:3] if bound.high >= _FAR]
        values += [] if bound.high_strict else [bound.high]
    else:
        values = [sign * offset for offset in _OFFSETS for sign in (1, -1)]
        values += [] if bound.nonzero else [Fraction(0)]
    return [Rational(v.numerator, v.denominator) for v in values]


def _integers(symbol: Symbol, bound: Range) -> list[Rational]:
    if bound.low is not None:
        low = -(-bound.low.numerator // bound.low.denominator)
        low += 1 if bound.low_strict and low == bound.low else 0
        values = [low + 1, low, low + 2, low + 4, low + 3, low + 6, low + 9]
    elif bound.high is not None:
        high = bound.high.numerator // bound.high.denominator
        high -= 1 if bound.high_strict and high == bound.high else 0
        values = [high - 1, high, high - 2, high - 3, high - 5]
    else:
        values = [2, 1, -1, 3, -2, 0, 5, -3]
    if bound.high is not None:
        values = [v for v in values if v <= bound.high] or values
    if symbol.is_even or symbol.is_odd:
        values = [2 * v + (1 if symbol.is_odd else 0) for v in values]
    return [sympy.Integer(v) for v in values if v or not bound.nonzero]


def _range(symbol: Symbol, given: Sequence[SignCondition]) -> Range:
    """The range of a symbol, narrowed by conditions that are linear in it alone."""
    bound = symbol_range(symbol)
    for condition in given:
        if condition.relation == "!=" or condition.expr.free_symbols != {symbol}:
            continue
        if not condition.expr.is_polynomial(symbol) or (p := sympy.Poly(condition.expr, symbol)).degree() != 1:
            continue
        slope, constant = p.all_coeffs()
        if not (slope.is_Rational and constant.is_Rational):
            continue
        value = -Fraction(int(constant.p), int(constant.q)) / Fraction(int(slope.p), int(slope.q))
        strict = condition.relation == ">"
        if slope > 0 and (bound.low is None or value > bound.low):
            bound = Range(value, bound.high, strict, bound.high_strict, bound.nonzero)
        elif slope < 0 and (bound.high is None or value < bound.high):
            bound = Range(bound.low, value, bound.low_strict, strict, bound.nonzero)
    return bound


def holds(condition: SignCondition, point: Point) -> bool:
    """Whether a condition is proved to hold at a point."""
    ball = enclose(condition.expr, point, 128)
    if not ball.is_finite():
        return False
    if condition.relation == ">=":
        return bool(ball >= 0)
    return bool(ball > 0) if condition.relation == ">" else not ball.contains(0)


def separate(expr: Expr, point: Point, precisions: Sequence[int]) -> Separation | None:
    """Enclose the value at a point, at growing precision until 0 is excluded; None where it is undefined."""
    result = None
    for bits in precisions:
        ball = enclose(expr, point, bits)
        if not ball.is_finite():
            continue
        result = Separation(point, ball, False)
        if not ball.contains(0):
            return Separation(point, ball, _readable(ball)) if _readable(ball) else result
        if ball.is_exact():
            return result
    return result


def _readable(ball: Any) -> bool:
    return all(abs(int(end.man_exp()[1])) < _LARGEST for end in (ball.lower(), ball.upper()))


def decimal_bounds(ball: Any, digits: int = 20) -> tuple[str, str]:
    """Decimal numbers ``lo <= ball <= hi``, rounded outward."""
    return _decimal(ball.lower(), digits, ROUND_FLOOR), _decimal(ball.upper(), digits, ROUND_CEILING)


def _decimal(end: Any, digits: int, rounding: str) -> str:
    mantissa, exponent = (int(part) for part in end.man_exp())
    top, bottom = (mantissa << exponent, 1) if exponent >= 0 else (mantissa, 1 << -exponent)
    return str(Context(prec=digits, rounding=rounding, Emax=10**6, Emin=-(10**6)).divide(Decimal(top), Decimal(bottom)))


def instance(expr: Expr) -> tuple[Expr, Mapping[Any, Lambda]]:
    """The expression with polynomials for undefined functions, and these polynomials by function.

    What is false for one choice of functions is no identity. Functions with assumptions beyond being real are left as
    they are: a polynomial need not satisfy them.
    """
    nodes = expr.atoms(AppliedUndef)
    if any(getattr(node, f"is_{kind}") is not None for node in nodes for kind in _SPECIAL):
        return expr, MappingProxyType({})
    chosen: dict[Any, Lambda] = {}
    for node in sorted(nodes, key=lambda node: (str(node.func), len(node.args))):
        if node.func not in chosen:
            chosen[node.func] = _polynomial(len(chosen), len(node.args))
    put = functions_put(expr, chosen)
    return put, MappingProxyType(chosen)


_SPECIAL = ("rational", "irrational", "algebraic", "noninteger", "extended_nonnegative", "extended_nonpositive", "zero")


def _polynomial(position: int, count: int) -> Lambda:
    """``1/(3 + p) + sum(u_i**2 + (3 + i + p)*u_i)``: another one for each position."""
    names = [Symbol("u" if count == 1 else f"u{i + 1}") for i in range(count)]
    terms = (u**2 + (3 + i + position) * u for i, u in enumerate(names))
    return Lambda(tuple(names), sympy.Add(Rational(1, 3 + position), *terms))


def functions_put(expr: Expr, functions: Mapping[Any, Lambda]) -> Expr:
    """The expression with undefined functions replaced, and derivatives of them carried out."""
    if not functions:
        return expr

    def walk(node: Any) -> Any:
        if not node.has(AppliedUndef):
            return node
        args = [walk(arg) for arg in node.args]
        if isinstance(node, AppliedUndef):
            return functions[node.func](*args)
        result = _rebuilt(node, args)
        return result.doit(integrals=False) if isinstance(result, sympy.Derivative | sympy.Subs) else result

    return walk(expr)


def _rebuilt(node: Any, args: Sequence[Any]) -> Any:
    """The node with other arguments; nothing cancels or is split, so that the domain remains."""
    keeps = node.is_Add or node.is_Mul or node.is_Pow or isinstance(node, sympy.Function)
    return node.func(*args, evaluate=False) if keeps else node.func(*args)


def generic(expr: Expr) -> tuple[Expr, bool]:
    """The expression with every node that has no enclosure replaced by a symbol, and whether there was any."""
    names: dict[Basic, Symbol] = {}

    def walk(node: Any) -> Any:
        if not supported(node):
            return names.setdefault(node, Symbol(f"_opaque{len(names)}", real=True))
        if not node.args or isinstance(node, sympy.Integral):
            return node
        args = [walk(arg) for arg in node.args]
        return node if all(a is b for a, b in zip(args, node.args, strict=True)) else _rebuilt(node, args)

    return walk(expr), bool(names)


def mapping(point: Mapping[Symbol, Rational]) -> Mapping[Symbol, Rational]:
    """The point in the order of the symbols' names."""
    return {symbol: point[symbol] for symbol in sorted(point, key=lambda s: str(s.name))}
