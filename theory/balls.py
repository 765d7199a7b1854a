"""Rigorous enclosures of exact expressions at rational points, by ball arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sympy
from flint import arb, ctx, fmpq
from sympy import Basic, Expr, Rational, Symbol

from theory.errors import GradlineError
from theory.quadrature import has_enclosure, integral_ball

__all__ = ["enclose", "supported"]

Ball = Any


class _UndefinedError(Exception):
    """A subexpression has no finite real value that could be enclosed."""


def enclose(expr: Expr, values: Mapping[Symbol, Rational], bits: int = 256) -> Ball:
    """Enclose the value of an expression at a rational point.

    ``value in ball``; a ball that is not finite means that the value is undefined, not real, or needs more bits.

    Parameters: ``expr``, a real scalar expression; ``values``, symbol -> rational number for each free symbol;
    ``bits``, the working precision.
    Returns: a ``flint.arb``.
    Raises: ValueError for a symbol without a value, a value that is not rational, or a float in ``expr``;
    GradlineError naming a function that has no enclosure.
    Source: Arb's functions (midpoint-radius arithmetic), by way of python-flint.

    >>> from sympy import Rational, Symbol, exp
    >>> x = Symbol("x", real=True)
    >>> ball = enclose(exp(x) - 1 - x, {x: Rational(1, 1000)}, bits=64)
    >>> bool(ball > 0), ball.is_finite()
    (True, True)
    """
    known: dict[Basic, Ball] = {}
    saved = ctx.prec
    ctx.prec = bits
    try:
        for symbol, value in values.items():
            number = sympy.Rational(value) if isinstance(value, int) else value
            if not getattr(number, "is_Rational", False):
                raise ValueError(f"value {value} of {symbol}: a rational number expected")
            known[symbol] = arb(fmpq(int(number.p), int(number.q)))
        return _evaluate(expr, known)
    except _UndefinedError:
        return arb("nan")
    finally:
        ctx.prec = saved


def supported(node: Basic) -> bool:
    """Whether the outermost operation of an expression has an enclosure."""
    if node.is_Rational or node.is_Symbol or node.is_Add or node.is_Mul or node.is_Pow:
        return True
    if isinstance(node, sympy.Integral):
        return has_enclosure(node, supported)
    return node in _CONSTANTS or type(node).__name__ in _FUNCTIONS


def _evaluate(expr: Any, known: dict[Basic, Ball]) -> Ball:
    if expr not in known:
        ball = _apply(expr, known)
        if not ball.is_finite():
            raise _UndefinedError
        known[expr] = ball
    return known[expr]


def _apply(expr: Any, known: dict[Basic, Ball]) -> Ball:
    if expr.is_Rational:
        return arb(fmpq(int(expr.p), int(expr.q)))
    if expr.is_Symbol:
        raise ValueError(f"symbol {expr} has no value; expected one for each of {sorted(map(str, expr.free_symbols))}")
    if expr.is_Float:
        raise ValueError(f"floating-point number {expr} in the expression; rationals expected")
    if expr.is_Add:
        total = arb(0)
        for arg in expr.args:
            total += _evaluate(arg, known)
        return total
    if expr.is_Mul:
        total = arb(1)
        for arg in expr.args:
            total *= _evaluate(arg, known)
        return total
    if expr.is_Pow:
        return _power(_evaluate(expr.base, known), expr.exp, known)
    if expr in _CONSTANTS:
        return _CONSTANTS[expr]()
    if isinstance(expr, sympy.Integral):
        return integral_ball(expr, known, _evaluate)
    rule = _FUNCTIONS.get(type(expr).__name__)
    if rule is None:
        raise GradlineError(f"enclosure of {type(expr).__name__} in {expr}: no ball arithmetic; replace it by a symbol")
    return rule(*(_evaluate(arg, known) for arg in expr.args))


def _power(base: Ball, exponent: Any, known: dict[Basic, Ball]) -> Ball:
    if exponent.is_Rational and exponent.q <= 64:
        root = base if exponent.q == 1 else base.sqrt() if exponent.q == 2 else _root(base, int(exponent.q))
        return root ** int(exponent.p)
    power = _evaluate(exponent, known)
    whole = power.unique_fmpz() if power.is_exact() else None
    if whole is not None and power == arb(whole):
        return base ** int(whole)
    if not base > 0:
        raise _UndefinedError
    return (power * base.log()).exp()


def _root(base: Ball, order: int) -> Ball:
    if not base >= 0:
        raise _UndefinedError
    return base.root(order)


def _lambert(x: Ball, branch: Ball | None = None) -> Ball:
    if branch is None or branch == 0:
        return x.lambertw()
    if branch == -1:
        return x.lambertw(-1)
    raise GradlineError(f"enclosure of LambertW on branch {branch}: only the real branches 0 and -1; restate it")


def _log(x: Ball, base: Ball | None = None) -> Ball:
    return x.log() if base is None else x.log() / base.log()


_CONSTANTS: dict[Basic, Callable[[], Ball]] = {
    sympy.pi: arb.pi,
    sympy.E: arb.const_e,
    sympy.EulerGamma: arb.const_euler,
    sympy.Catalan: arb.const_catalan,
    sympy.GoldenRatio: lambda: (1 + arb(5).sqrt()) / 2,
}


def _maximum(*balls: Ball) -> Ball:
    result = balls[0]
    for ball in balls[1:]:
        result = result.max(ball)
    return result


_FUNCTIONS: dict[str, Callable[..., Ball]] = {
    "exp": lambda x: x.exp(),
    "log": _log,
    "Abs": abs,
    "sign": lambda x: x.sgn(),
    "floor": lambda x: x.floor(),
    "ceiling": lambda x: x.ceil(),
    "Max": _maximum,
    "Min": lambda *balls: -_maximum(*(-ball for ball in balls)),
    "LambertW": _lambert,
    "Ei": lambda x: x.ei(),
    "li": lambda x: x.li(),
    "Si": lambda x: x.si(),
    "Ci": lambda x: x.ci(),
    "Shi": lambda x: x.shi(),
    "Chi": lambda x: x.chi(),
    "erf": lambda x: x.erf(),
    "erfc": lambda x: x.erfc(),
    "erfi": lambda x: x.erfi(),
    "gamma": lambda x: x.gamma(),
    "loggamma": lambda x: x.lgamma(),
    "factorial": lambda x: (x + 1).gamma(),
    **{
        name: (lambda x, name=name: getattr(x, name)())
        for name in (
            "sin",
            "cos",
            "tan",
            "cot",
            "sec",
            "csc",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "coth",
            "sech",
            "csch",
            "asinh",
            "acosh",
            "atanh",
        )
    },
}
