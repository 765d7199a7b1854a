"""One list of expressions that every backend must print, with values; dtypes, shapes, traps of generated code."""

from __future__ import annotations

import math
import warnings
from functools import cache

import mpmath
import numpy as np
import pytest
import sympy
import torch
from flint import arb, ctx, fmpq
from sympy import Abs, Ei, LambertW, Matrix, Max, Min, Rational, Symbol, asinh, exp, log, oo, pi, sign, sqrt, symbols

from numerics.backends.c import DIALECT as C
from numerics.backends.numba import DIALECT as NUMBA
from numerics.backends.numpy import DIALECT as NUMPY
from numerics.backends.table import OPERATIONS
from numerics.backends.torch import DIALECT as TORCH
from numerics.ir import lower
from numerics.kernels import BACKENDS, compile_kernel, rewrite
from numerics.requests import exact_form
from numerics.rewrites import REWRITES
from theory import AttentionModel, TokenTask, derive
from theory.balls import enclose
from theory.errors import GradlineError
from theory.symbols import c_OV

x, y = symbols("x y", real=True)
DTYPES = ["float64", "float32"]


def evaluate(kernel, *arrays):
    """Call with NumPy arrays or plain numbers, get NumPy arrays; any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if kernel.backend == "torch":
            arrays = [torch.as_tensor(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in arrays]
        out = kernel(*arrays)
    parts = out if isinstance(out, tuple) else (out,)
    parts = tuple(np.asarray(p.detach() if isinstance(p, torch.Tensor) else p) for p in parts)
    return parts if isinstance(out, tuple) else parts[0]


@pytest.mark.parametrize("dialect", [NUMPY, TORCH, NUMBA, C], ids=lambda d: d.name)
def test_every_operation_is_printed(dialect):
    infix = {"neg", "add", "sub", "mul", "div"}
    assert set(dialect.calls) == set(OPERATIONS) - infix


# What every backend must print, with values

#: Right wherever an argument is a number: nothing overflows that the result does not.
EVERYWHERE = {
    "softplus": log(1 + exp(x)),
    "softplus of -x": log(1 + exp(-x)),
    "sigmoid": exp(x) / (1 + exp(x)),
    "sigmoid of -x": 1 / (1 + exp(x)),
    "slope of the sigmoid": exp(-x) / (1 + exp(-x)) ** 2,
    "error": 1 / (exp(x) + 19),
    "expm1": exp(-(x**2)) - 1,
    "log1p": log(1 + x**2),
    "logaddexp": log(exp(x) + 3),
    "Wright omega": LambertW(exp(x)),
    "Wright omega, scaled": LambertW(exp(x / 3) / 7),
    "asinh": asinh(x),
    "constants": sqrt(2) * x + log(2) * x + exp(2) * x,
    "constants below": x / sqrt(pi) + x / log(2) ** 2 - x / pi ** Rational(5, 2) + sqrt(3) / exp(2),
    "maximum": Max(1.0, x),
    "minimum": Min(x, Rational(1, 3)),
    "magnitude": Abs(x) * sign(x) + Rational(1, 3),
    "arctangent": sympy.atan(x),
    "hyperbolic tangent": sympy.tanh(x),
    "sine": sympy.sin(x),
    "cosine": sympy.cos(x),
    "constant": pi * sqrt(3),
    "itself": x,
    "gaussian": exp(-(x**2) / 2),
}
POINTS = [
    -800.0,
    -120.5,
    -49.0,
    -45.0,
    -20.0,
    -3.7,
    -1.9,
    -1.0,
    -0.2,
    -1e-8,
    0.0,
    1e-8,
    0.3,
    1.0,
    5.0,
    20.0,
    45.0,
    60.0,
]
POINTS += [800.0, 5e4]
#: Where the exponential of the argument is a number of either dtype, and not at 0.
NEARBY = {
    "exponential": exp(x),
    "tangent": sympy.tan(x),
    "hyperbolic": sympy.sinh(x) * sympy.cosh(x / 2),
    "powers": x**5 + sqrt(1 + x**2) ** 3,
    "negative powers": x**-3 + 2 / x**2,
    "rational power": (1 + x**2) ** Rational(1, 3),
    "real power": (2 + x**2) ** (x / 2),
    "logarithm": log(x**2 + Rational(1, 7)),
    "Ei": Ei(x),
    "scaled Ei": exp(x) * Ei(-x),
    "Lambert W": LambertW(x**2),
    "difference of exponentials": exp(2 * x) - exp(x),
}
NEAR = [-16.5, -2.1, -1.9, -0.5, -1e-3, 1e-3, 0.2, 0.3725074, 0.5, 2.0, 10.0, 16.5]


@cache
def kernel_of(backend, group):
    return compile_kernel(list(group_of(group).values()), backend, args=[x])


def group_of(group):
    return {"everywhere": EVERYWHERE, "nearby": NEARBY}[group]


@cache
def exact_values(group, dtype):
    """Balls of 3000 bits, by expression and point."""
    expressions = [exact_form(e) for e in group_of(group).values()]
    points = np.array(POINTS if group == "everywhere" else NEAR, dtype)
    return points, [
        [enclose(e, {x: Rational(float(t))} if e.has(x) else {}, bits=3000) for t in points] for e in expressions
    ]


def relative(value, exact, dtype):
    """Relative error in eps of the dtype."""
    if exact == 0:
        return 0.0 if value == 0 else float("inf")
    if not np.isfinite(value):
        return float("inf")
    saved, ctx.prec = ctx.prec, 200
    try:
        return float((abs(arb(fmpq(*float(value).as_integer_ratio())) - exact) / abs(exact)).upper()) / float(
            np.finfo(dtype).eps
        )
    finally:
        ctx.prec = saved


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("group", ["everywhere", "nearby"])
def test_values(group, backend, dtype):
    points, exact = exact_values(group, dtype)
    out = evaluate(kernel_of(backend, group), points)
    tiny = float(np.finfo(dtype).tiny)
    for name, values, rights in zip(group_of(group), out, exact, strict=True):
        assert (values.dtype, values.shape) == (dtype, points.shape)
        for t, value, right in zip(points, values, rights, strict=True):
            assert right.is_finite()
            if bool(abs(right) < tiny):
                assert abs(value) <= tiny, (name, t, value)
                continue
            # 12 for the operations and the special functions; |x| is the conditioning of an exponential, x^2 of the
            # gaussian; a tangent and a sum have zeros, which magnify what comes before
            bound = 12 + 2 * abs(float(t)) + (float(t) ** 2 if name in {"gaussian", "expm1"} else 0)
            bound *= 10 if name in {"tangent", "powers", "negative powers"} else 1
            if name == "difference of exponentials":
                # the terms over their difference: what rounding of either one does to it
                bound *= (math.exp(2 * t) + math.exp(t)) / abs(math.exp(2 * t) - math.exp(t))
            assert relative(value, right, dtype) <= bound, (name, t, value, float(right))


def test_the_list_has_every_operation():
    expressions = [*EVERYWHERE.values(), *NEARBY.values(), log(exp(x) + exp(y)), LambertW(x), asinh(x / 2)]
    found = rewrite([exact_form(e) for e in expressions], [x, y], REWRITES)[0]
    assert {v.op for v in lower(found, [x, y]).values} >= set(OPERATIONS)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_lambert_on_its_whole_range(backend, dtype):
    edge = -0.3678794
    points = np.array([edge, -0.3678, -0.36, -0.25, -0.2, -1e-6, 0.0, 1e-6, 0.3, 1.0, 20.0, 1e6, 1e30], dtype)
    out = evaluate(compile_kernel(LambertW(x), backend, args=[x]), points)
    assert out.dtype == dtype
    for t, value in zip(points, out, strict=True):
        right = enclose(LambertW(x), {x: Rational(float(t))}, bits=300)
        # 8 for the method: also close to the branch point, where a single rounding of e x + 1 would cost all digits
        assert relative(value, right, dtype) <= 8 or right == 0 == value, (t, value, float(right))


@pytest.mark.parametrize("backend", BACKENDS)
def test_far_out_is_finite_and_right(backend):
    model = AttentionModel(TokenTask(noise=oo), qk="factorized", ov="factorized", imbalance_ov=c_OV)
    kernel = compile_kernel(derive(model), backend)
    states = np.array(
        [(s * v, r * q) for v in (0.0, 1.0, 1e4) for q in (0.0, 1.0, 1e3) for s in (1, -1) for r in (1, -1)]
    )
    at = {"mu_OV": states[:, 0], "mu_QK": states[:, 1]}
    for M in (2, 20, 10**6):
        values = [at.get(a, {"M": M, "c_OV": -0.5}.get(a, 3.0)) for a in kernel.arguments]
        assert all(np.isfinite(o).all() for o in evaluate(kernel, *values))
        loss = evaluate(
            kernel, *[{"mu_OV": -1e4, "mu_QK": 1e3, "M": M, "c_OV": 1}.get(a, 3.0) for a in kernel.arguments]
        )[2]
        # log(1 + (M-1) e^1e4) = 1e4 + log(M-1) up to e^-1e4: two roundings
        assert abs(float(loss) - (1e4 + np.log(M - 1))) <= 4e-12


# Traps of generated code


@pytest.mark.parametrize("backend", BACKENDS)
def test_named_values_of_the_traps(backend):
    def value(expr, *at):
        return float(evaluate(compile_kernel(expr, backend, args=[x]), *at))

    assert value(log(1 + exp(x)), 800.0) == 800.0
    assert abs(value(exp(x) * Ei(-x), 800.0) + 0.0012484) < 5e-8  # the digits given
    slope = exp(-x) / (1 + exp(-x)) ** 2
    assert abs(value(slope, np.float32(-45)) / 2.8625e-20 - 1) < 1e-4  # the digits given
    assert value(x**3, np.array(3_000_000)) == 2.7e19
    assert value(x**3, 3_000_000) == 2.7e19
    assert value(log(1 / (1 + x)), 1e-22) == -1e-22
    assert value(-log(1 + x), 1e-22) == -1e-22
    tiny = value(LambertW(x), -float(np.exp(-1.0)) * 2)
    assert np.isnan(tiny)


#: expression, point, its derivative there: a float32 point is computed in float32 where a backend has it
SLOPES = [
    (log(1 + exp(x)), 800.0, 1.0),
    (log(1 + exp(x)), -700.0, math.exp(-700.0)),
    (exp(x) / (1 + exp(x)), np.float32(-45), 2.8625186e-20),
    (1 / (1 + exp(-x)), -45.0, math.exp(-45.0)),
    (exp(x) * Ei(-x), 800.0, 1.5586e-06),
    (LambertW(x), 0.0, 1.0),
    (LambertW(3 * x), 0.0, 3.0),
    (LambertW(x), -math.exp(-1.0), math.inf),
    (log(1 / (1 + x)), 1e-22, -1.0),
    (x**3, np.array(3_000_000), 2.7e13),
    (sqrt(2) * x + log(2) * x + exp(2) * x, 1.0, math.sqrt(2.0) + math.log(2.0) + math.exp(2.0)),
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_derivatives_of_the_traps(backend):
    """SymPy's formulas of the derivatives, compiled; Torch's own derivatives are in `test_torch`."""
    kernel = compile_kernel([expr.diff(x) for expr, _, _ in SLOPES], backend, args=[x])
    for k, (expr, at, right) in enumerate(SLOPES):
        with np.errstate(all="ignore"):  # the others' values at this point
            value = float(evaluate(kernel, at)[k])
        # the digits given, single precision at 45, and the conditioning of exponents up to 800
        rel = 5e-5 if right == 1.5586e-06 else 1e-5 if isinstance(at, np.float32) else 1e-12
        assert value == pytest.approx(right, rel=rel), expr


@pytest.mark.parametrize("backend", BACKENDS)
def test_functions_without_code_are_refused_when_the_kernel_is_made(backend):
    for expr in (Max(1, x).diff(x), Max(1, x).diff(x, 2), sympy.Piecewise((0, x < 0), (1, True)), sympy.gamma(x)):
        with pytest.raises(GradlineError, match="lowering: no backend can print"):
            compile_kernel(expr, backend, args=[x])
    matrix = sympy.MatrixSymbol("A", 2, 2)
    with pytest.raises(TypeError, match="expected a ReducedFlow, SymPy expressions or an explicit matrix"):
        compile_kernel(matrix.T, backend, args=[x])


@pytest.mark.parametrize("backend", BACKENDS)
def test_large_and_small_numbers(backend):
    """Where a method changes, where a library's own function loses digits, and below the normal numbers."""
    p = Symbol("p", positive=True)
    beside = log(exp(2 * x) + Rational(1, 100))
    tiny = evaluate(compile_kernel(beside, backend, args=[x]), -0.00039247459967943444)
    # 1/100 + e^2x is close to 1, where a sum of logarithms would cancel; its own conditioning is 2x/0.009
    assert relative(float(tiny), enclose(beside, {x: Rational(-0.00039247459967943444)}, bits=300), "float64") <= 4
    expressions = [Ei(x), exp(-x) * Ei(x), x**105, exp(-x) * Ei(x) * p, 1 / (1 + exp(20 * x)), log(1 + exp(-20 * x))]
    kernel = compile_kernel(expressions, backend, args=[x, p])
    for at in (36.9, 39.5, 40.0, 40.36, 44.0, 50.0, 50.5, 709.9, 715.0):
        with np.errstate(all="ignore"):  # powers and sums of the last points
            found = evaluate(kernel, np.array([at]), 2.0)
        for expr, (value,) in zip(expressions, found, strict=True):
            right = enclose(expr, {x: Rational(at), p: Rational(2)}, bits=3000)
            if abs(right) < 1e308 and not bool(abs(right) < 1e-323):
                # 10 for the methods, 20 x for the conditioning of an exponential; a subnormal number has fewer digits
                bound = 10 + (20 * at if expr.has(exp(20 * x), exp(-20 * x)) else 0)
                small = 5e-324 / max(abs(float(right)), 5e-324) / 2**-52
                assert relative(value, right, "float64") <= bound + small, (expr, at, value, float(right))


@pytest.mark.parametrize("backend", BACKENDS)
def test_dtypes_and_shapes(backend):
    kernel = compile_kernel(
        x * log(Symbol("M", positive=True) - 1 + 1) + Rational(1, 3), backend, args=[x, Symbol("M", positive=True)]
    )
    single = np.ones((2, 3), np.float32)
    for other in (5, 5.0, np.float32(5)):
        out = evaluate(kernel, single, other)
        assert (out.dtype, out.shape) == (np.float32, (2, 3))
    # a 0-d tensor adapts to the others, as in Torch's own operations; a NumPy scalar has a dtype of its own
    assert evaluate(kernel, single, np.float64(5)).dtype == ("float32" if backend == "torch" else "float64")
    assert evaluate(kernel, np.ones(3, np.int32), 5).dtype == np.float64
    assert evaluate(kernel, np.ones(3, bool), 5).dtype == np.float64
    assert evaluate(kernel, np.ones((2, 1)), np.full(4, 5.0)).shape == (2, 4)
    assert evaluate(kernel, 1.0, 5).shape == ()
    assert evaluate(kernel, np.array(1.0), 5).shape == ()
    assert evaluate(kernel, np.ones((0, 3)), 5).shape == (0, 3)
    with pytest.raises(TypeError, match="expected real"):
        evaluate(kernel, np.ones(2, complex), 5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_constants_take_the_shape(backend):
    states = np.arange(3, dtype=np.float32)
    out = evaluate(compile_kernel(x / x, backend, args=[x]), states)
    assert (out.dtype, out.tolist()) == (np.float32, [1.0, 1.0, 1.0])
    first, second = evaluate(compile_kernel([y, sqrt(2)], backend, args=[x, y]), states, 2.0)
    assert (first.tolist(), second.shape, second.dtype) == ([2.0] * 3, (3,), np.float32)
    matrix = evaluate(compile_kernel(Matrix([x, 1]), backend, args=[x]), states)
    assert matrix.tolist() == [[[0.0], [1.0]], [[1.0], [1.0]], [[2.0], [1.0]]]
    assert float(evaluate(compile_kernel(x - x + 7, backend, args=[]))) == 7.0


def test_the_polynomial_of_the_exponential():
    """It meets (e^r - 1 - r)/r^2 at the Chebyshev points, to a tenth of a unit in the last place of the exponential."""
    with mpmath.workdps(60):
        half, count = mpmath.log(2) / 2, 10
        nodes = [half * mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
        rows = mpmath.matrix([[node**j for j in range(count)] for node in nodes])
        values = mpmath.matrix([(mpmath.expm1(node) - node) / node**2 for node in nodes])
        coefficients = [float(c) for c in mpmath.lu_solve(rows, values)]
        for k in range(-50, 51):
            r = half * k / 50
            found = 1 + r + r**2 * sum(mpmath.mpf(c) * r**j for j, c in enumerate(coefficients))
            assert abs(found / mpmath.exp(r) - 1) < 0.1 * 2**-52
    for source in (NUMBA.helpers["_shifted_exp"], C.helpers["shifted_exp"]):
        assert all(repr(c) in source for c in coefficients)


@pytest.mark.parametrize("backend", ["numba", "c"])
def test_the_exponential_is_right_to_a_unit_in_the_last_place(backend):
    random = np.random.default_rng(2)
    points = np.concatenate([random.uniform(-744, 709.7, 1000), random.uniform(-1, 1, 1000)])
    found = evaluate(compile_kernel(exp(x), backend, args=[x]), points)
    for t, value in zip(points, found, strict=True):
        right = enclose(exp(x), {x: Rational(float(t))}, bits=200)
        assert bool(abs(arb(fmpq(*float(value).as_integer_ratio())) - right) < arb(float(np.spacing(value)))), t


@pytest.mark.parametrize("backend", ["numba", "c"])
def test_a_state_has_the_same_bits_alone_and_among_others(backend):
    kernel = compile_kernel([log(1 + exp(x)), exp(-y) / (1 + exp(-y)) ** 2], backend, args=[x, y])
    random = np.random.default_rng(3)
    first, second = random.uniform(-40, 40, (2, 37))  # vectors and a rest
    among = kernel(first, second)
    alone = [kernel(a, b) for a, b in zip(first, second, strict=True)]
    assert [tuple(values) for values in zip(*among, strict=True)] == alone


def test_numpy_scalars_stay_scalars():
    kernel = compile_kernel(exp(x), args=[x])
    assert type(kernel(1.0)) is np.float64
    assert type(kernel(np.float32(1))) is np.float32
