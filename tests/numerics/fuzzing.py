"""Random expressions over the whitelist, and a running error bound for their programs.

The bound is ball arithmetic: each operation of a program widens its ball by the error that a backend's operation may
have. What a backend returns must lie in the last ball, and so must the exact value of the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import sympy
from flint import arb, ctx, fmpq
from sympy import Integer, Rational, Symbol

from numerics.ir import Program

__all__ = ["SYMBOLS", "draw", "enclosures", "points"]

x, y = sympy.symbols("x y", real=True)
p = Symbol("p", positive=True)
SYMBOLS = (x, y, p)
BITS = 256
EPS = arb(2) ** -52
#: Half the smallest subnormal number, ten times over: what underflow takes away.
UNDERFLOW = arb(2) ** -1071
LARGEST = arb(2) ** 1024

_CONSTANTS = [Integer(1), Integer(2), Integer(3), Integer(-1), Rational(1, 2), Rational(-2, 3), Rational(1, 10)]
_IRRATIONAL = [sympy.pi, sympy.E, sympy.sqrt(2), sympy.log(2), sympy.exp(2)]
_UNARY: list[Callable[[Any], Any]] = [
    sympy.exp, sympy.sin, sympy.cos, sympy.tan, sympy.atan, sympy.sinh, sympy.cosh, sympy.tanh, sympy.asinh,
    sympy.Abs, sympy.sign, lambda e: 1 / (1 + sympy.exp(e)), lambda e: sympy.log(1 + sympy.exp(e)),
    lambda e: sympy.exp(e) - 1, lambda e: sympy.log(1 + e**2), lambda e: sympy.sqrt(1 + e**2),
    lambda e: sympy.LambertW(sympy.exp(e)), lambda e: sympy.LambertW(e**2), sympy.Ei,
    lambda e: sympy.exp(e) * sympy.Ei(-e), lambda e: sympy.exp(e) / (2 + sympy.exp(e)) ** 2,
    lambda e: sympy.log(3 + sympy.exp(-e)), lambda e: sympy.log(e**2 + Rational(1, 100)), sympy.log, sympy.sqrt,
    sympy.LambertW, lambda e: p**e, lambda e: 1 / e,
]  # fmt: skip


def draw(random: Random, depth: int = 4) -> Any:
    """A random expression of at most this depth."""
    kind = random.random()
    if depth == 0 or kind < 0.15:
        return random.choice(SYMBOLS) if random.random() < 0.75 else random.choice(_CONSTANTS + _IRRATIONAL)
    if kind < 0.5:
        return random.choice(_UNARY)(draw(random, depth - 1))
    if kind < 0.6:
        return draw(random, depth - 1) ** random.choice([2, 3, 5, -1, -2, 7])
    first, second = draw(random, depth - 1), draw(random, depth - 1)
    rule = random.randrange(6)
    if rule < 2:
        return first + second if rule == 0 else first - second
    if rule < 4:
        return first * second
    if rule == 4:
        return first / second
    try:
        return random.choice([sympy.Max, sympy.Min])(first, second)
    except ValueError:  # one of them is complex
        return first


def points(random: Random, count: int) -> list[dict[Symbol, float]]:
    """States: plain, small, large, and special ones."""
    special = [0.0, 1.0, -1.0, 0.5, 1e-9, -1e-9, 30.0, -30.0, 710.0]

    def number() -> float:
        kind = random.random()
        if kind < 0.15:
            return random.choice(special)
        size = 10 ** random.uniform(-6, 1.5) if kind < 0.4 else random.uniform(0, 4)
        return random.choice([-1, 1]) * size

    return [{x: number(), y: number(), p: 10 ** random.uniform(-3, 2)} for _ in range(count)]


def _exactly(value: Fraction | Decimal | None) -> Any:
    fraction = Fraction(value or 0)
    ball = arb(fmpq(fraction.numerator, fraction.denominator))
    return ball if Fraction(float(fraction)) == fraction else _widened(ball, 1)


def _widened(ball: Any, ulps: float) -> Any:
    return ball + (abs(ball) * EPS * ulps + UNDERFLOW) * arb(0, 1)


def _maximum(a: Any, b: Any) -> Any:
    return a.max(b)


def _power(base: Any, exponent: Any) -> Any:
    whole = exponent.unique_fmpz()
    if whole is not None and exponent == arb(whole):
        return base ** int(whole)
    return (exponent * base.log()).exp() if base > 0 else arb("nan")


def _softplus(a: Any, _: Any) -> Any:
    return a.max(arb(0)) + (-abs(a)).exp().log1p()


def _logaddexp(a: Any, b: Any) -> Any:
    return a.max(b) + (-abs(a - b)).exp().log1p()


def _omega(a: Any) -> Any:
    return a.exp().lambertw() if a < 10**4 else arb("nan")


#: Operation -> (its value on balls, error in eps that any backend may make).
_OPERATIONS: Mapping[str, tuple[Callable[..., Any], float]] = {
    "neg": (lambda a: -a, 0),
    "add": (lambda a, b: a + b, 0.5),
    "sub": (lambda a, b: a - b, 0.5),
    "mul": (lambda a, b: a * b, 0.5),
    "div": (lambda a, b: a / b, 0.5),
    "pow": (_power, 4),
    "sqrt": (lambda a: a.sqrt(), 0.5),
    "decay": (lambda a: (-abs(a)).exp(), 4),
    "sigmoid": (lambda a, _: 1 / (1 + (-a).exp()), 8),
    "softplus": (_softplus, 8),
    "sigmoid_minus": (lambda a, _: 1 / (1 + a.exp()), 8),
    "softplus_minus": (lambda a, _: _softplus(-a, _), 8),
    "logaddexp": (_logaddexp, 8),
    "max": (_maximum, 0),
    "min": (lambda a, b: -_maximum(-a, -b), 0),
    "sign": (lambda a: a.sgn(), 0),
    "abs": (abs, 0),
    "lambertw": (lambda a: a.lambertw(), 8),
    "wrightomega": (_omega, 12),
    "ei": (lambda a: a.ei(), 8),
    "scaled_ei": (lambda a: (-a).exp() * a.ei(), 8),
    **{
        n: (lambda a, n=n: getattr(a, n)(), 4)
        for n in ("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh")
    },
}


def enclosures(program: Program, point: Mapping[str, float]) -> Iterator[Any]:
    """A ball for each output that holds what any backend may return; not finite where there is no bound."""
    saved, ctx.prec = ctx.prec, BITS
    try:
        done: list[Any] = []
        for value in program.values:
            if value.op == "arg":
                done.append(arb(fmpq(*float(point[str(value.argument)]).as_integer_ratio())))
                continue
            if value.op == "const":
                done.append(_exactly(value.constant))
                continue
            operands = [done[i] for i in value.operands]
            rule, ulps = _OPERATIONS[value.op]
            ball = rule(*operands) if all(o.is_finite() for o in operands) else arb("nan")
            ball = _widened(ball, ulps) if ulps and ball.is_finite() else ball
            done.append(ball if abs(ball) < LARGEST else arb("nan"))
        return iter([done[i] for i in program.outputs])
    finally:
        ctx.prec = saved
