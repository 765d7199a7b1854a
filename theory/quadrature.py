"""Rigorous enclosures of definite integrals of analytic integrands; internal to :mod:`theory.balls`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import sympy
from flint import acb, arb
from sympy import Basic

from theory.errors import GradlineError

__all__ = ["has_enclosure", "integral_ball"]

_EVALUATIONS = 4000  # of the integrand, at most; the enclosure is wide if they do not suffice

_HALVINGS = 200  # of the interval, at most, in the proof that an integrand is real

Ball = Any
Evaluate = Callable[[Any, dict[Basic, Ball]], Ball]


def has_enclosure(expr: Any, supported: Callable[[Any], bool]) -> bool:
    """Whether an integral has one variable, two limits and an integrand that can be enclosed."""
    if len(expr.limits) != 1 or len(expr.limits[0]) != 3:
        return False
    variable, low, high = expr.limits[0]
    nodes = [*sympy.preorder_traversal(low), *sympy.preorder_traversal(high), *sympy.preorder_traversal(expr.function)]
    return all(_node_supported(node, variable, supported) for node in nodes)


def _node_supported(node: Any, variable: Basic, supported: Callable[[Any], bool]) -> bool:
    if not node.has(variable) or node == variable or node.is_Add or node.is_Mul or node.is_Pow:
        return supported(node)
    return type(node).__name__ in _ANALYTIC


@dataclass(frozen=True)
class _Integrand:
    """A function of one complex variable; subexpressions without it are enclosed once, by ``evaluate``."""

    variable: Basic
    known: dict[Basic, Ball]
    evaluate: Evaluate

    def __call__(self, expr: Any, z: Ball, analytic: bool) -> Ball:
        if expr == self.variable:
            return z
        if not expr.has(self.variable):
            return acb(self.evaluate(expr, self.known))
        parts = (self(arg, z, analytic) for arg in expr.args)
        if expr.is_Add:
            return sum(parts, acb(0))
        if expr.is_Mul:
            return prod(parts, start=acb(1))
        if expr.is_Pow and expr.base is not sympy.E:
            return _complex_power(next(parts), expr.exp, lambda: next(parts), analytic)
        rule = _ANALYTIC.get(type(expr).__name__)
        if rule is None:
            raise GradlineError(
                f"enclosure of an integral over {type(expr).__name__} in {expr}: no complex ball arithmetic"
            )
        return rule(self(expr.args[-1], z, analytic), analytic)


def integral_ball(expr: Any, known: dict[Basic, Ball], evaluate: Evaluate) -> Ball:
    """Enclose ``Integral(f, (s, a, b))``: one real variable, ``f`` made of the functions in ``_ANALYTIC``."""
    if len(expr.limits) != 1 or len(expr.limits[0]) != 3:
        raise GradlineError(f"enclosure of {expr}: only one variable with two limits; iterate or split it")
    variable, low, high = expr.limits[0]
    body = expr.function
    outer = {key: value for key, value in known.items() if not key.has(variable)}
    function = _Integrand(variable, outer, evaluate)
    start, end = evaluate(low, known), evaluate(high, known)
    function(body, acb(start), False)  # an unknown function is reported here, not inside the callback
    if not all(_nonnegative(function, arg, start, end) for arg in _real_arguments(body, variable)):
        return arb("nan")
    result = acb.integral(lambda z, analytic: function(body, z, analytic), start, end, eval_limit=_EVALUATIONS)
    return result.real if result.is_finite() else arb("nan")


def _real_arguments(body: Any, variable: Any) -> list[Any]:
    """What must not be negative for the integrand to be real: arguments of logarithms, bases of roots and powers."""
    nodes = [node for node in sympy.preorder_traversal(body) if node.has(variable)]
    powers = [node.base for node in nodes if node.is_Pow and not node.exp.is_Integer and node.base is not sympy.E]
    found = [*powers, *(node.args[0] for node in nodes if isinstance(node, sympy.log))]
    return [arg for arg in dict.fromkeys(found) if arg.has(variable)]


def _nonnegative(function: _Integrand, arg: Any, start: Ball, end: Ball) -> bool:
    """Whether it is proved to be nonnegative between the ends, by halving; at an end it may be 0 and rise."""
    slope = sympy.diff(arg, function.variable)
    low, high = (start, end) if start < end else (end, start)
    parts, effort = [(low, high)], 0
    while parts:
        left, right = parts.pop()
        effort += 1
        inside = acb(left.union(right))
        if function(arg, inside, False).real >= 0:
            continue
        if left is low and _rises(function, arg, slope, low, inside, 1):
            continue
        if right is high and _rises(function, arg, slope, high, inside, -1):
            continue
        middle = ((left + right) / 2).mid()
        if effort > _HALVINGS or not (left < middle < right):
            return False
        parts += [(left, middle), (middle, right)]
    return True


def _rises(function: _Integrand, arg: Any, slope: Any, end: Ball, inside: Ball, direction: int) -> bool:
    return bool(function(arg, acb(end), False).real >= 0 and direction * function(slope, inside, False).real >= 0)


def _complex_power(base: Ball, exponent: Any, power: Callable[[], Ball], analytic: bool) -> Ball:
    if exponent.is_Integer:
        return base ** int(exponent)
    if exponent == sympy.Rational(1, 2):
        return base.sqrt(analytic=analytic)
    if exponent == sympy.Rational(-1, 2):
        return 1 / base.sqrt(analytic=analytic)
    return base.pow(power(), analytic=analytic)


_ANALYTIC: dict[str, Callable[[Ball, bool], Ball]] = {
    "exp": lambda z, _: z.exp(),
    "log": lambda z, analytic: z.log(analytic=analytic),
    "sin": lambda z, _: z.sin(),
    "cos": lambda z, _: z.cos(),
    "sinh": lambda z, _: z.sinh(),
    "cosh": lambda z, _: z.cosh(),
    "tanh": lambda z, _: z.tanh(),
}
