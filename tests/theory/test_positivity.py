"""Proofs of signs: right where given, and never given for an expression that takes another sign."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import sympy
from sympy import Abs, Ge, Gt, Integer, LambertW, Le, Lt, Ne, Rational, Symbol, exp, log, sqrt

from theory.balls import enclose
from theory.identities import prove_zero
from theory.inputs import symbol_range
from theory.positivity import sign
from theory.symbols import UPPER_BOUNDS, K, M, alpha, b, c_QK, gamma, m, mu_OV, mu_QK, n
from theory.witnesses import points

x, y = sympy.symbols("x y", real=True)
p = Symbol("p", positive=True)
share = m * exp(gamma * mu_QK) / (m * exp(gamma * mu_QK) + n)

PROVED: list[tuple[Any, int]] = [
    (M - 1, 1),
    (1 - M, -1),
    (M * b - 1, 1),
    (M * (M - 1) * b, 1),
    (1 / (M - 1), 1),
    (share, 1),
    (1 - share, 1),
    (share - 1, -1),
    ((M - 1) * exp(mu_OV) + M - 2, 1),
    (exp(share * mu_OV) + M - 1, 1),
    (sqrt(b), 1),
    (x**2 + 1, 1),
    (x**2 + x + 1, 1),
    (x - sqrt(x**2 + 1), -1),
    (sqrt(x**2 + 1) + x, 1),
    (sqrt(c_QK**2 + 4 * b * x**2), 1),
    (c_QK**2, 1),
    (exp(p) - 1, 1),
    (exp(-p) - 1, -1),
    (log(M), 1),
    (LambertW(p) * 0 + p, 1),
    (Abs(x) + 1, 1),
    (2 - alpha, 1),
    (-K * b, -1),
    (sqrt(2) - 1, 1),
    (sqrt(2) + sqrt(3) - 3, 1),
    (sqrt(2) - sqrt(3), -1),
    (exp(x) * exp(-x) - 1, 0),
    (Integer(0), 0),
    (Rational(-2, 3), -1),
]
NOT_PROVED: list[Any] = [
    x,
    x * y,
    M - 2,
    M - 3,
    x**2,
    Abs(x),
    Abs(x) - x,
    exp(x) - 1,
    x**2 - x * y + y**2,
    log(p),
    mu_OV * share,
    x**3 + 1,
    alpha - 1,
    b - 1,
    sqrt(x**2 + 1) - 1,
    exp(x) - x,
]


@pytest.mark.parametrize(("expr", "expected"), PROVED, ids=str)
def test_sign_is_proved(expr: Any, expected: int) -> None:
    assert sign(expr) == expected
    assert sign(-expr) == -expected


@pytest.mark.parametrize("expr", NOT_PROVED, ids=str)
def test_twin_a_sign_that_is_not_definite_or_not_seen_is_none(expr: Any) -> None:
    assert sign(expr) is None


@pytest.mark.parametrize(
    ("expr", "assumptions", "expected"),
    [
        (mu_OV, [Gt(mu_OV, 0)], 1),
        (mu_OV, [Lt(mu_OV, 0)], -1),
        (mu_OV, [Ge(mu_OV, 0)], None),
        (mu_OV, [Ge(mu_OV, 0), Ne(mu_OV, 0)], 1),
        (mu_OV * mu_QK, [Gt(mu_OV, 0), Lt(mu_QK, 0)], -1),
        (1 - alpha, [Lt(alpha, 1)], 1),
        (alpha * (1 - alpha), [Lt(alpha, 1)], 1),
        (x + 1, [Ge(x, 0), Le(x, 3)], 1),
        (x - 3, [Ge(x, 0), Le(x, 3)], None),
        (4 - x, [Ge(x, 0), Le(x, 3)], 1),
        (x**2 - 5 * x + 6, [Gt(x, 3)], 1),
        (x**2 - 5 * x + 6, [Gt(x, 2), Lt(x, 3)], -1),
        (x**2 - 5 * x + 6, [Gt(x, 2)], None),
        (M - 3, [Ge(M, 4)], 1),
        (x - y, [Gt(x, y)], 1),
        (y - x, [Gt(x, y)], -1),
        (x**2, [Ne(x, 0)], 1),
        (x**2 * y, [Ne(x, 0), Gt(y, 0)], 1),
        (y, [Ge(x**2 * y, 0), Ne(y, 0)], None),  # x = 0 says nothing of y
        (y, [Gt(x**2 * y, 0)], None),
        (exp(x) - 1, [Gt(x, 0)], 1),
        (1 - exp(x), [Gt(x, 0)], -1),
        (log(x), [Gt(x, 1)], 1),
    ],
    ids=str,
)
def test_assumptions_are_used_and_not_stretched(expr: Any, assumptions: list[Any], expected: int | None) -> None:
    assert sign(expr, assumptions) == expected


def test_proved_signs_hold_at_random_points() -> None:
    random = Random(3)
    pieces = [x, y, p, M - 1, M - 2, b, exp(x), sqrt(p + x**2), Abs(x), sqrt(x**2 + 1), exp(p), share, log(M), alpha]
    proved = 0
    for _ in range(250):
        terms = [random.choice((1, 1, 2, -1)) * random.choice(pieces) * random.choice(pieces) for _ in range(2)]
        expr = sympy.Add(*terms, random.choice((0, 1, -1)))
        answer = sign(expr)
        if answer is None:
            continue
        proved += 1
        for point in points(sorted(expr.free_symbols, key=str), (), 8):
            ball = enclose(expr, point, 200)
            assert not ball.is_finite() or (ball * answer > 0 if answer else ball.contains(0)), (expr, point)
    assert proved > 50


def test_an_expression_without_real_values_has_no_sign() -> None:
    assert sign(log(-1 - sympy.exp(x) * 0 - x**2, evaluate=False)) is None
    assert sign(sympy.sign(x)) is None


@pytest.mark.parametrize(("expr", "error"), [(0.5 * x, ValueError), (sympy.I * x, ValueError), ("x", TypeError)])
def test_bad_input_is_refused(expr: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        sign(expr)


def test_the_range_of_attention_comes_from_the_symbols() -> None:
    # fixed attention may be 1: Abs(alpha - 1) is 1 - alpha, which is not positive everywhere
    assert UPPER_BOUNDS[alpha] == 1
    assert (symbol_range(alpha).high, symbol_range(alpha).high_strict) == (1, False)
    assert (sign(alpha), sign(1 - alpha), sign(2 - alpha)) == (1, None, 1)
    assert sign(1 - alpha, [alpha < 1]) == 1
    assert prove_zero(Abs(alpha - 1) + alpha - 1).answer == "equal"
    # twin: another positive symbol has no upper bound
    other = Symbol("other", positive=True)
    assert symbol_range(other).high is None
    assert prove_zero(Abs(other - 1) + other - 1).answer == "different"
