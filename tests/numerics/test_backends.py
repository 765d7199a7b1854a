"""Values on every backend against high precision: the published system, the traps of generated code, derivatives."""

from __future__ import annotations

import warnings
from functools import cache

import mpmath
import numpy as np
import pytest
import torch
from sympy import Abs, Ei, LambertW, Matrix, Max, Rational, Symbol, asinh, exp, log, oo, sign, sqrt, symbols

from numerics.backends.c import DIALECT as C
from numerics.backends.numba import DIALECT as NUMBA
from numerics.backends.numpy import DIALECT as NUMPY
from numerics.backends.table import OPERATIONS
from numerics.backends.torch import DIALECT as TORCH
from numerics.kernels import compile_kernel
from theory import AttentionModel, TokenTask, derive
from theory.symbols import c_OV, gamma

x, y = symbols("x y", real=True)
BACKENDS = ["numpy", "torch", "numba", "c"]
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


def relative(value, exact, dtype):
    """Relative error in eps of the dtype."""
    if exact == 0:
        return 0.0 if value == 0 else float("inf")
    return float(abs(mpmath.mpf(float(value)) - exact) / abs(exact) / np.finfo(dtype).eps)


@pytest.mark.parametrize("dialect", [NUMPY, TORCH, NUMBA, C], ids=lambda d: d.name)
def test_every_operation_is_printed(dialect):
    infix = {"neg", "add", "sub", "mul", "div"}
    assert set(dialect.calls) == set(OPERATIONS) - infix


# The published system on its whole range


@cache
def general_flow():
    return derive(AttentionModel(TokenTask(noise=oo, score_scale=gamma)))


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
    800.0,
    5e4,
]


def sigmoid(t):
    return 1 / (1 + mpmath.exp(-t))


def omega(t):
    return mpmath.lambertw(mpmath.exp(t)) if t < 1e4 else mpmath.findroot(lambda w: w + mpmath.log(w) - t, t)


FUNCTIONS = {
    "softplus": (log(1 + exp(x)), lambda t: mpmath.log1p(mpmath.exp(t))),
    "sigmoid": (exp(x) / (1 + exp(x)), sigmoid),
    "slope of the sigmoid": (exp(-x) / (1 + exp(-x)) ** 2, lambda t: sigmoid(t) * sigmoid(-t)),
    "expm1": (exp(-(x**2)) - 1, lambda t: mpmath.expm1(-t * t)),
    "log1p": (log(1 + x**2), lambda t: mpmath.log1p(t * t)),
    "logaddexp": (log(exp(x) + 3), lambda t: mpmath.log(mpmath.exp(t) + 3)),
    "Wright omega": (LambertW(exp(x)), omega),
    "asinh": (asinh(x), mpmath.asinh),
    "powers": (x**5 + sqrt(1 + x**2) ** 3, lambda t: t**5 + mpmath.sqrt(1 + t * t) ** 3),
    "constants": (
        sqrt(2) * x + log(2) * x + exp(2) * x,
        lambda t: t * (mpmath.sqrt(2) + mpmath.log(2) + mpmath.exp(2)),
    ),
    "maximum": (Max(1.0, x), lambda t: max(mpmath.mpf(1), t)),
    "magnitude": (Abs(x) * sign(x) + Rational(1, 3), lambda t: t + mpmath.mpf(1) / 3),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, backend, dtype):
    expr, exact = FUNCTIONS[name]
    points = np.array(POINTS, dtype)
    with np.errstate(over="ignore"):
        keep = np.array([abs(float(t)) ** 5 < float(np.finfo(dtype).max) or name != "powers" for t in points])
    points = points[keep]
    out = evaluate(compile_kernel(expr, backend, args=[x]), points)
    assert out.dtype == dtype
    tiny = float(np.finfo(dtype).tiny)
    for t, value in zip(points, out, strict=True):
        with mpmath.workdps(700):
            right = exact(mpmath.mpf(float(t)))
        if abs(right) < tiny:
            assert abs(value) <= tiny, (t, value)
        else:
            # 8 for the operations; |x| is the conditioning of the exponential; sums of both signs lose up to 4 more
            assert relative(value, right, dtype) <= 12 + 2 * abs(float(t)), (t, value, float(right))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_exponential_integral_and_lambert(backend, dtype):
    small = [-50.5, -49.5, -30.0, -2.1, -1.9, -0.5, 1e-3, 0.2, 0.5, 2.0, 10.0, 49.5, 50.5, 80.0]
    cases = [
        (Ei(x), small, mpmath.ei),
        (exp(x) * Ei(-x), [*small, 800.0], lambda t: mpmath.exp(t) * mpmath.ei(-t)),
        (LambertW(x), [-0.36, -0.2, -1e-6, 0.0, 1e-6, 0.3, 1.0, 20.0, 1e6, 1e30], mpmath.lambertw),
    ]
    for expr, at, exact in cases:
        points = np.array(at, dtype)
        out = evaluate(compile_kernel(expr, backend, args=[x]), points)
        assert out.dtype == dtype
        for t, value in zip(points, out, strict=True):
            with mpmath.workdps(60):
                right = exact(mpmath.mpf(float(t)))
                # 8 for the method, |x| for the exponential, 1/(1 + W) near the branch point (40 at -0.36)
                assert relative(value, right, dtype) <= 48 + 2 * abs(float(t)) * (float(t) < 100), (expr, t, value)


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
    assert value(log(1 / (1 + x)), 1e-22) == -1e-22 or value(-log(1 + x), 1e-22) == -1e-22
    tiny = value(LambertW(x), -float(mpmath.exp(-1)) * 2)
    assert np.isnan(tiny)


@pytest.mark.parametrize("backend", BACKENDS)
def test_dtypes_and_shapes(backend):
    kernel = compile_kernel(
        x * log(Symbol("M", positive=True) - 1 + 1) + Rational(1, 3), backend, args=[x, Symbol("M", positive=True)]
    )
    single = np.ones((2, 3), np.float32)
    for other in (5, 5.0, np.float32(5)):
        out = evaluate(kernel, single, other)
        assert (out.dtype, out.shape) == (np.float32, (2, 3))
    assert evaluate(kernel, single, np.float64(5)).dtype == np.float64
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


def test_numpy_scalars_stay_scalars():
    kernel = compile_kernel(exp(x), args=[x])
    assert type(kernel(1.0)) is np.float64
    assert type(kernel(np.float32(1))) is np.float32


# Torch: derivatives


def slope(expr, at, dtype=torch.float64, order=1):
    """A derivative of some order by autograd."""
    point = torch.tensor(at, dtype=dtype, requires_grad=True)
    value = compile_kernel(expr, "torch", args=[x])(point)
    for _ in range(order):
        (value,) = torch.autograd.grad(value, point, create_graph=True)
    assert value.dtype == dtype
    return float(value.detach())


def test_derivatives_at_saturation():
    soft, logistic = log(1 + exp(x)), 1 / (1 + exp(-x))
    assert slope(soft, 800.0) == 1.0
    assert slope(soft, -800.0) == 0.0
    assert slope(logistic, 0.0) == 0.25
    assert slope(logistic, 0.0, order=2) == 0.0
    assert slope(soft, 0.0, order=2) == 0.25
    # exp(-45) to the conditioning of its exponent, 45 eps
    for sign_ in (1, -1):
        assert abs(slope(logistic, 45.0 * sign_, torch.float32) / 2.8625186e-20 - 1) < 50 * 2**-23
        assert abs(slope(logistic, 600.0 * sign_) / float(mpmath.exp(-600)) - 1) < 700 * 2**-52
        assert abs(slope(logistic, 40.0 * sign_, order=2) * -sign_ / float(mpmath.exp(-40)) - 1) < 50 * 2**-52


def test_derivatives_of_lambert_and_ei():
    w = LambertW(x)
    assert slope(w, 0.0) == 1.0
    assert slope(w, -float(mpmath.exp(-1))) == float("inf")
    assert slope(w, 0.0, order=2) == -2.0
    for at in (-0.3, 0.5, 3.0):
        exact = [float(mpmath.diff(lambda t: mpmath.lambertw(t).real, at, k)) for k in (1, 2)]
        # digits of mpmath's difference quotients
        assert [slope(w, at, order=k) for k in (1, 2)] == pytest.approx(exact, rel=1e-8)
    assert slope(LambertW(exp(x)), 800.0) == pytest.approx(1 / (1 + 1 / float(omega(mpmath.mpf(800)))), rel=1e-15)
    for at in (-60.0, -1.0, 0.5, 60.0):
        assert slope(Ei(x), at) == pytest.approx(float(mpmath.exp(at) / at), rel=1e-13)
        exact = float(mpmath.diff(lambda t: mpmath.exp(t) * mpmath.ei(-t), at))
        # the derivative is a difference of two numbers up to 60 times larger
        assert slope(exp(x) * Ei(-x), at) == pytest.approx(exact, rel=1e-9)


def test_gradients_of_the_flow_are_right_and_finite():
    model = AttentionModel(TokenTask(classes=20, block=50, queries=50, noise=oo, informative_slots=5, noise_slots=50))
    kernel = compile_kernel(derive(model), "torch")
    points = [(0.0, 0.0), (5.0, 1.0), (12.0, -3.0), (1e4, 1e3), (-1e4, -1e3), (5.0, 40.0), (5.0, -40.0)]
    for v, q in points:
        state = torch.tensor([v, q], dtype=torch.float64, requires_grad=True)
        for j, value in enumerate(kernel(state[0], state[1], 1.0, 10.0)):
            (gradient,) = torch.autograd.grad(value, state, retain_graph=True)
            assert torch.isfinite(gradient).all()
            exact = _partials(j, v, q)
            for got, right in zip(gradient.tolist(), exact, strict=True):
                # 4 (8 + 4|z| + 2|mu_QK|) eps at |z|, |mu_QK| <= 40 is 1.1e-12 where nothing cancels
                assert abs(got - right) <= 2e-12 * abs(right) + 1e-40, (v, q, j, got, float(right))


def _partials(j, v, q):
    with mpmath.workdps(60):
        v, q = mpmath.mpf(v), mpmath.mpf(q)
        return mpmath.diff(lambda t: _published(t, q)[j], v), mpmath.diff(lambda t: _published(v, t)[j], q)


def _published(v, q):
    alpha = 1 / (1 + 10 * mpmath.exp(-q))
    inverse = 1 / (mpmath.exp(alpha * v) + 19)
    rest = 10 / (mpmath.exp(q) + 10)
    loss = mpmath.log1p(19 * mpmath.exp(-alpha * v))
    return alpha / 50 * inverse, 10 * mpmath.mpf(19) / 50000 * alpha * rest * v * inverse, loss, alpha


def test_balanced_circuits_have_gradients_at_zero():
    kernel = compile_kernel(derive(AttentionModel(TokenTask(noise=oo), qk="factorized", ov="factorized")), "torch")
    states = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    out = kernel(states[0], states[1], *[3.0] * (len(kernel.arguments) - 2))
    (gradient,) = torch.autograd.grad(sum(o.sum() for o in out), states)
    assert torch.isfinite(gradient).all()


def test_torch_keeps_grad_dtype_and_scalars():
    kernel = compile_kernel(general_flow(), "torch")
    state = torch.ones(4, dtype=torch.float32, requires_grad=True)
    out = kernel(state, 1.0, 20, 50, 50, 5, torch.tensor(50), 1.0, 1, 10)
    assert all((o.dtype, o.shape, o.requires_grad) == (torch.float32, (4,), True) for o in out[:3])
    plain = kernel(torch.ones(4), 1.0, 20, 50, 50, 5, 50, 1.0, 1, 10)
    assert not any(o.requires_grad for o in plain)
    meta = kernel(torch.ones(4, device="meta"), 1.0, 20, 50, 50, 5, 50, 1.0, 1, 10)
    assert all(o.device.type == "meta" for o in meta)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own forward mode loads it
def test_torch_transforms():
    kernel = compile_kernel(general_flow(), "torch")

    def velocity(state):
        return torch.stack(kernel(state[0], state[1], 20, 3, 7, 5, 50, 1.0, 2.0, 5.0)[:2])

    state = torch.tensor([1.5, 0.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(velocity, state)
    assert torch.autograd.gradgradcheck(velocity, state)
    batch = torch.linspace(-2, 2, 10, dtype=torch.float64).reshape(5, 2)
    jacobians = torch.func.vmap(torch.func.jacrev(velocity))(batch)
    forward = torch.func.vmap(torch.func.jacfwd(velocity))(batch)
    # the same derivative in two orders of multiplication
    assert torch.allclose(jacobians, forward, rtol=1e-13, atol=0)
    special = compile_kernel(LambertW(exp(x)) + Ei(x) + LambertW(x), "torch", args=[x])
    at = torch.tensor([0.5, 1.5], dtype=torch.float64)
    mapped = torch.func.vmap(torch.func.grad(special))(at)
    single = torch.stack([torch.func.grad(special)(a) for a in at])
    assert torch.equal(mapped, single)
