"""The intermediate form: rewrites keep the value, one exponential serves both tails, refusals name the place."""

from __future__ import annotations

import mpmath
import pytest
from sympy import (
    Derivative,
    DiracDelta,
    Ei,
    Function,
    Heaviside,
    I,
    Integral,
    LambertW,
    Max,
    Piecewise,
    Rational,
    Symbol,
    exp,
    log,
    oo,
    pi,
    sin,
    sqrt,
    zoo,
)

from numerics.functions import expm1, log1p, restore, scaled_ei, sigmoid, softplus, wrightomega
from numerics.ir import UnsupportedError, lower
from numerics.kernels import compile_kernel, rewrite
from numerics.rewrites import REWRITES
from numerics.value_check import RewriteError
from theory.symbols import M, eta_OV, gamma, m, mu_OV, mu_QK, n

x = Symbol("x", real=True)
y = Symbol("y", real=True)


def rewritten(expr):
    symbols = sorted(expr.free_symbols, key=str)
    return rewrite([expr], symbols, REWRITES)[0][0]


X = gamma * mu_QK + log(m / n)
E = exp(gamma * mu_QK)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (m * E / (m * E + n), sigmoid(X)),
        (1 - m * E / (m * E + n), sigmoid(-X)),
        (n / (m * E + n), sigmoid(-X)),
        (m * n * E / (m * E + n) ** 2, sigmoid(X) * sigmoid(-X)),
        (1 / (exp(x) + M - 1), sigmoid(log(M - 1) - x) / (M - 1)),
        (exp(x) / (exp(x) + M - 1), sigmoid(x - log(M - 1))),
        (exp(x + y) / (1 + exp(x)), exp(y) * sigmoid(x)),
        (exp(-x) / (1 + exp(-x)) ** 2, sigmoid(x) * sigmoid(-x)),
        (exp(x) / (exp(x) + exp(y)), sigmoid(x - y)),
        (log(1 + (M - 1) * exp(-x)), softplus(log(M - 1) - x)),
        (log(1 + exp(x)), softplus(x)),
        (log(exp(x) / (1 + exp(x))), -softplus(-x)),
        (log(1 + x**2), log1p(x**2)),
        (log(1 / (1 + x)), -log1p(x)),
        (log((1 + x) ** Rational(3, 2)), Rational(3, 2) * log1p(x)),
        (log((1 + x) ** -2), -log((1 + x) ** 2)),
        (log((1 + M) ** -2), -2 * log1p(M)),
        (log((1 + exp(x)) ** -3), -3 * softplus(x)),
        (LambertW(x).diff(x), exp(-LambertW(x)) / (1 + LambertW(x))),
        (LambertW(x**2) ** 2 / x**3, x * exp(-2 * LambertW(x**2))),
        (LambertW(x) / y, LambertW(x) / y),
        (LambertW(x) * LambertW(y) / (x * y), exp(-LambertW(x)) * exp(-LambertW(y))),
        (2 * exp(x) - 2, 2 * expm1(x)),
        (1 - exp(x), -expm1(x)),
        (LambertW(3 * exp(x)), wrightomega(x + log(3))),
        (exp(x) * Ei(-x), scaled_ei(-x)),
    ],
)
def test_rewrites(expr, expected):
    assert rewritten(expr) == expected


@pytest.mark.parametrize("expr", [1 / (exp(x) + y), log(exp(x) + y), 1 / (exp(x) + M - 3)])
def test_no_logarithm_of_an_unproved_sign(expr):
    new = rewritten(expr)
    assert not new.has(log(y), log(M - 3), sigmoid, softplus)


def test_the_check_catches_a_wrong_rewrite():
    def wrong_sign(expr, positive):
        return expr.xreplace({sigmoid(x): sigmoid(-x)})

    with pytest.raises(RewriteError, match=r"rewrite wrong_sign: changed .* at x = "):
        rewrite([exp(x) / (1 + exp(x))], [x], (*REWRITES, wrong_sign))


def test_the_check_catches_a_tiny_error():
    def nearly(expr, positive):
        return expr * (1 + Rational(1, 10**35))

    with pytest.raises(RewriteError, match="nearly"):
        rewrite([x**2 + 1], [x], (nearly,))


def test_the_check_refuses_what_it_cannot_evaluate():
    with pytest.raises(RewriteError, match="no real finite value"):
        rewrite([log(-1 - x**2)], [x], REWRITES)


def test_program_is_the_expression():
    expr = eta_OV * sqrt(mu_OV**2 + pi) ** 3 / 7 + log(M - 1) - mu_OV**5 + exp(Rational(1, 3)) * mu_QK
    symbols = [eta_OV, mu_OV, mu_QK, M]
    at = {eta_OV: Rational(3, 2), mu_OV: Rational(-5, 7), mu_QK: Rational(2, 9), M: Rational(4)}
    program = lower([expr], symbols)
    with mpmath.workdps(50):
        (value,) = program.evaluate({s.name: mpmath.mpf(int(v.p)) / int(v.q) for s, v in at.items()})
        # 50 digits on both sides: ten are left for rounding
        assert abs(value - mpmath.mpf(str(expr.xreplace(at).evalf(50)))) < mpmath.mpf(10) ** -40


def test_one_exponential_for_both_tails_and_the_logarithm():
    program = lower([sigmoid(x), sigmoid(-x), softplus(x), softplus(-x)], [x])
    assert [v.op for v in program.values].count("decay") == 1
    twin = lower([sigmoid(x), sigmoid(y)], [x, y])
    assert [v.op for v in twin.values].count("decay") == 2


def test_powers_are_products():
    ops = [v.op for v in lower([x**7], [x]).values]
    assert "pow" not in ops
    assert ops.count("mul") == 4
    assert "pow" in [v.op for v in lower([x ** Rational(1, 3)], [x]).values]


def test_equal_subexpressions_are_one_value():
    program = lower([exp(x) * y, exp(x) + y], [x, y])
    assert [v.op for v in program.values].count("exp") == 1


def test_bounded_factors_come_last():
    program = lower([sigmoid(x) * y * eta_OV], [x, y, eta_OV], uniform=[eta_OV])
    last = program.values[program.outputs[0]]
    assert last.op == "mul"
    assert program.values[last.operands[1]].op == "sigmoid"


f = Function("f")
REFUSED = [
    (x + DiracDelta(x), "DiracDelta"),
    (2 * f(x), "f"),
    (Derivative(f(x), x) + 1, "Derivative"),
    (Heaviside(x), "Heaviside"),
    (Piecewise((0, x < 0), (1, True)) * x, "Piecewise"),
    (Integral(f(x), (x, 0, x)), "Integral"),
    (I * x, "I"),
    (zoo + 0 * x, "zoo"),
    (x + oo, "oo"),
    (x * 10**400, "range"),
    (LambertW(x, -1), "LambertW"),
]


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize(("expr", "name"), REFUSED)
def test_refusals_name_function_and_place(expr, name, backend):
    with pytest.raises(UnsupportedError, match=rf"lowering: .*\b{name}\b.*, in .*; rewrite the expression"):
        compile_kernel(expr, backend, args=[x])


def test_the_place_is_the_way_down():
    with pytest.raises(UnsupportedError, match=r"in x\*exp\(f\(x\)\) > exp\(f\(x\)\) > f\(x\);"):
        compile_kernel(x * exp(f(x)), args=[x])


def test_restore_gives_definitions():
    assert restore(sigmoid(softplus(x))) == 1 / (1 + exp(-log(1 + exp(x))))


def test_constants_of_stable_functions_compare():
    expr = Max(x, log(1 + exp(Rational(5, 3)))) + log(1 + exp(sin(1))) / (exp(x) + 2)
    value = float(compile_kernel(expr, args=[x])(0.3))
    # three operations on numbers of size at most 2
    assert abs(value - float(expr.xreplace({x: Rational(3, 10)}).evalf(20))) < 1e-15


def test_floats_in_an_expression_are_exact():
    expr = 0.1 * x + x**0.5
    assert "0.1*x" in compile_kernel(expr, args=[x]).source.replace(" ", "")
    assert float(compile_kernel(expr, args=[x])(4.0)) == 2.4
