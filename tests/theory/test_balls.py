"""Enclosures: right to the last bit claimed, honest about what is undefined, refused by name where unknown."""

from __future__ import annotations

from typing import Any

import mpmath
import pytest
import sympy
from flint import arb, ctx
from sympy import (
    Abs,
    Chi,
    Ci,
    E,
    Ei,
    Function,
    Integer,
    Integral,
    LambertW,
    Max,
    Min,
    Rational,
    Shi,
    Si,
    Symbol,
    asinh,
    atan,
    cos,
    cosh,
    erf,
    exp,
    li,
    log,
    pi,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)

from theory.balls import enclose, supported
from theory.errors import GradlineError

x, y = sympy.symbols("x y", real=True)
POINT = {x: Rational(3, 7), y: Rational(-5, 3)}
EXPRESSIONS: list[Any] = [
    x + y,
    x * y,
    x / y,
    x**5,
    y**-3,
    sqrt(x),
    x ** Rational(-2, 3),
    x**y,
    2**y,
    exp(x),
    log(x),
    Abs(y),
    sign(y),
    Ei(x),
    Ei(y),
    li(x + 2),
    LambertW(x),
    LambertW(y / 10, -1),
    Si(x),
    Ci(x),
    Shi(x),
    Chi(x),
    erf(x),
    sinh(y),
    cosh(y),
    tanh(y),
    asinh(y),
    sin(x),
    cos(y),
    tan(x),
    atan(y),
    Max(x, y, 1),
    Min(x, y),
    pi * x,
    E**x,
    sympy.gamma(x),
    sympy.factorial(x),
    sympy.GoldenRatio * x,
    log(1 + (Integer(3) - 1) * exp(-x)),
    Integral(exp(x * y) / sqrt(4 + x**2), (x, 0, y)),
    Integral(sinh(x) ** 2 * log(x), (x, 1, 2)),
]


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_enclosure_holds_the_value_and_is_narrow(expr: Any) -> None:
    ball = enclose(expr, POINT, 200)
    with mpmath.workdps(50):
        value = sympy.N(expr.xreplace({y: POINT[y]}) if expr.has(Integral) else expr.xreplace(POINT), 45)
    saved, ctx.prec = ctx.prec, 200
    try:
        reference = arb(str(value))
        assert abs(ball - reference) < arb("1e-40")  # SymPy gives 45 digits of numbers of size below 100
        assert ball.rad() < arb("1e-40")  # 200 bits are 60 digits, a few are lost
        assert not (ball + arb("1e-30")).overlaps(ball)  # twin: a value off by 1e-30 is outside
    finally:
        ctx.prec = saved


def test_more_bits_give_a_narrower_ball_inside() -> None:
    wide, narrow = enclose(exp(x) - log(x), POINT, 64), enclose(exp(x) - log(x), POINT, 512)
    assert wide.contains(narrow)
    assert narrow.rad() < wide.rad() * arb("1e-100")


def test_the_precision_of_the_caller_is_left_alone() -> None:
    before = ctx.prec
    enclose(exp(x), POINT, 333)
    assert ctx.prec == before


@pytest.mark.parametrize(
    "expr",
    [
        log(y),
        sqrt(y),
        1 / (x - Rational(3, 7)),
        log(x - Rational(3, 7)),
        y**x,
        LambertW(y),
        Ei(x - Rational(3, 7)),
        Integral(1 / x, (x, -1, 1)),
        exp(-1 / (x - Rational(3, 7)) ** 2),
    ],
    ids=str,
)
def test_undefined_values_are_not_finite(expr: Any) -> None:
    assert not enclose(expr, POINT, 256).is_finite()


def test_traps_of_floating_point() -> None:
    tiny, large, z = {x: Rational(1, 10**22)}, {x: Integer(800)}, Symbol("z", real=True)
    assert enclose(log(1 / (1 + x)), tiny, 256) < 0
    assert abs(enclose(log(1 / (1 + x)) + x, tiny, 256)) < arb("1e-43")  # log(1/(1 + x)) = -x + x**2/2
    assert enclose(x + y - z, {x: Rational(7, 10), y: Integer(10) ** 16, z: Integer(10) ** 16}, 128) > arb("0.69")
    assert abs(enclose(exp(x) * Ei(-x), large, 128) + arb("0.0012484")) < arb("1e-7")  # the digits of the list of traps
    assert abs(enclose(log(1 + exp(x)) - x, large, 2000)) < arb("1e-300")


@pytest.mark.parametrize(
    ("expr", "values", "error", "message"),
    [
        (x + y, {x: Integer(1)}, ValueError, "symbol y has no value"),
        (x, {x: sqrt(2)}, ValueError, "rational number expected"),
        (x, {x: 0.5}, ValueError, "rational number expected"),
        (x + 0.5, {x: Integer(1)}, ValueError, "rationals expected"),
        (sympy.zeta(x), {x: Integer(3)}, GradlineError, "zeta"),
        (Function("f")(x), {x: Integer(3)}, GradlineError, "f"),
        (LambertW(x, 2), {x: Integer(3)}, GradlineError, "branch"),
        (Integral(Ei(x), (x, 1, 2)), {}, GradlineError, "Ei"),
        (Integral(x, x), {x: Integer(1)}, GradlineError, "two limits"),
    ],
)
def test_what_has_no_enclosure_is_refused_by_name(expr: Any, values: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        enclose(expr, values)


def test_supported_agrees_with_enclose() -> None:
    assert all(supported(expr) for expr in EXPRESSIONS)
    assert not supported(sympy.zeta(x))
    assert not supported(Function("f")(x))
    assert not supported(Integral(Ei(x), (x, 1, 2)))
    assert not supported(Integral(x, x))
