"""Torch: derivatives of first and second order, transformations, compilation, devices."""

from __future__ import annotations

import os

import mpmath
import pytest
import torch
from sympy import Ei, LambertW, Max, Rational, exp, log, oo, sqrt, symbols

from numerics.kernels import compile_kernel
from numerics.requests import exact_form
from theory import AttentionModel, TokenTask, derive
from theory.balls import enclose
from theory.symbols import gamma

x, y = symbols("x y", real=True)
LONG = "GRADLINE_LONG" in os.environ


def general_flow():
    return derive(AttentionModel(TokenTask(noise=oo, score_scale=gamma)))


def omega(t):
    return mpmath.findroot(lambda w: w + mpmath.log(w) - t, t)


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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_series_that_is_compiled(dtype, monkeypatch):
    """What PyTorch's compiler sees of the softplus, without compiling it."""
    kernel = compile_kernel([log(1 + exp(x)), log(1 + exp(-x))], "torch", args=[x])
    at = torch.tensor([-87.0, -3.0, -1.0, -0.5, 0.0, 0.3, 0.9, 2.0, 87.0], dtype=dtype, requires_grad=True)
    wanted = kernel(at)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    eps = torch.finfo(dtype).eps
    for got, right in zip(kernel(at), wanted, strict=True):
        assert got.dtype == dtype
        # a series and a division instead of the library's logarithm: some roundings
        torch.testing.assert_close(got, right, rtol=3 * eps, atol=0)
        slopes = [torch.autograd.grad(v.sum(), at, create_graph=True)[0] for v in (got, right)]
        torch.testing.assert_close(*slopes, rtol=8 * eps, atol=0)
        second = [torch.autograd.grad(s.sum(), at, retain_graph=True)[0] for s in slopes]
        # a sum of terms up to twice as large as it
        torch.testing.assert_close(*second, rtol=16 * eps, atol=0)


NEEDS_TIME = pytest.mark.skipif(not LONG, reason="PyTorch's compiler takes a minute or more: set GRADLINE_LONG=1")


def compiled(function):
    """By PyTorch's compiler, as one graph, without falling back on Python anywhere."""
    return torch.compile(function, fullgraph=True)


@NEEDS_TIME
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")  # torch's own
def test_torch_compile():
    model = AttentionModel(TokenTask(20, 50, 50, oo, 5, 50))
    kernel = compile_kernel(derive(model), "torch")
    fast = compiled(kernel.function)
    state = torch.linspace(-3, 3, 7, dtype=torch.float64, requires_grad=True)
    for got, right in zip(fast(state, 0.5, 1.0, 2.0), kernel(state, 0.5, 1.0, 2.0), strict=True):
        assert got.dtype == right.dtype
        # another exponential, right to an ulp, and the few operations behind it
        torch.testing.assert_close(got, right, rtol=1e-14, atol=0)
        if right.requires_grad:
            slopes = [torch.autograd.grad(v.sum(), state, retain_graph=True)[0] for v in (got, right)]
            torch.testing.assert_close(*slopes, rtol=1e-13, atol=0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")  # torch's own
@NEEDS_TIME
def test_torch_compile_of_special_functions():
    kernel = compile_kernel([LambertW(exp(x)), LambertW(x**2 - Rational(1, 3)), Ei(x), exp(x) * Ei(-x)], "torch", [x])
    fast = compiled(kernel.function)
    at = torch.tensor([-60.0, -1.5, -0.2, 0.3725, 1.5, 20.0, 60.0], dtype=torch.float64, requires_grad=True)
    for got, right in zip(fast(at), kernel(at), strict=True):
        # the same operations, of which a library's exponential and logarithm may differ by an ulp; Ei is near its zero
        torch.testing.assert_close(got, right, rtol=1e-14, atol=1e-17)
        slopes = [torch.autograd.grad(v.sum(), at, retain_graph=True)[0] for v in (got, right)]
        # that of e^x Ei(-x) is a difference of numbers up to 60 times as large
        torch.testing.assert_close(*slopes, rtol=1e-11, atol=0)


TRAPS = {
    "softplus": (log(1 + exp(x)), [800.0, -800.0, 0.0, 40.0]),
    "softplus of -x": (log(1 + exp(-x)) + x, [800.0, 0.0, -3.0]),
    "both tails": (exp(x) / (1 + exp(x)) * 3 + 2 / (1 + exp(x)), [0.0, 1.0, -1.0]),
    "sigmoid": (1 / (1 + exp(-x)), [45.0, -45.0, 0.0, 700.0]),
    "log sigmoid": (log(exp(x) / (1 + exp(x))), [-800.0, 800.0, 0.0]),
    "scaled Ei": (exp(x) * Ei(-x), [0.5, 3.0, 20.0]),
    "Lambert W": (LambertW(x), [0.0, -0.3, 2.0, 1e10]),
    "omega": (LambertW(exp(x)), [-700.0, 0.0, 1.0, 800.0]),
    "constants": (sqrt(2) * x + log(2) * x + exp(2) * x, [0.0, 1.0]),
    "cube": (x**3, [3e6, 0.0]),
    "root": (sqrt(1 + x**2), [0.0, 1e-8, 3.0]),
    "logaddexp": (log(exp(x) + exp(2 * x)), [800.0, 0.0, -800.0]),
    "logaddexp of a constant": (log(exp(x) + Rational(1, 100)), [-0.01, 0.0, 5.0, -5.0]),
}


@pytest.mark.parametrize("name", TRAPS)
def test_derivatives_of_the_traps(name):
    expr, points = TRAPS[name]
    for order in (1, 2):
        formula = exact_form(expr).diff(x, order)
        if formula == 0:  # of a linear function, which autograd does not follow
            continue
        for at in points:
            right = _exact_slope(formula, at)
            got = slope(expr, at, order=order)
            # conditioning |x| of an exponential, once for each order, and ten operations
            bound = 2.0**-52 * (16 + 4 * min(abs(at), 1e3)) * order
            small = 1e-300 + (1e-16 if right == 0 else 0)
            assert abs(got - right) <= bound * abs(right) + small, (name, order, at, got, right)


def _exact_slope(formula, at):
    if not formula.has(x):
        return float(formula)
    ball = enclose(formula, {x: Rational(at)}, bits=4000)
    return float(ball.mid()) if ball.is_finite() else _limit(formula, at)


def _limit(formula, at):
    """The value where the formula is 0/0, as that of W_0 is at 0: from both sides."""
    sides = [
        float(enclose(formula, {x: Rational(at) + h}, bits=4000).mid())
        for h in (Rational(1, 10**30), -Rational(1, 10**30))
    ]
    assert sides[0] == pytest.approx(sides[1], rel=1e-15)
    return sides[0]


def test_derivative_of_a_maximum():
    assert [slope(Max(1.0, x), at) for at in (0.5, 2.0)] == [0.0, 1.0]


def test_derivatives_at_a_tie():
    """Where both slots are as many and ``mu_QK = 0``, both signs of a sigmoid meet at 0."""
    kernel = compile_kernel(general_flow(), "torch", outputs=["d_mu_QK", "attention"])
    score = torch.zeros((), dtype=torch.float64, requires_grad=True)
    velocity, attention = kernel(1.5, score, 20, 3, 7, 4, 4, 1.0, 2.0, 5.0)
    (first,) = torch.autograd.grad(attention, score, create_graph=True)
    (second,) = torch.autograd.grad(first, score, retain_graph=True)
    assert (float(first.detach()), float(second)) == (0.25, 0.0)
    (got,) = torch.autograd.grad(velocity, score, retain_graph=True)
    # alpha (1 - alpha) is stationary at 1/2: what is left is through 1/D
    v = mpmath.mpf("1.5")
    exact = mpmath.diff(lambda q: _velocity(1 / (1 + mpmath.exp(-q)), v), 0)
    assert float(got) == pytest.approx(float(exact), rel=1e-8)  # digits of the difference quotient


def _velocity(alpha, v):
    return 5 * mpmath.mpf(19) / (20 * 21) * alpha * (1 - alpha) * v / (mpmath.exp(alpha * v) + 19)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_an_accelerator():
    kernel = compile_kernel(general_flow(), "torch")
    state = torch.linspace(-3, 3, 7, device="cuda", requires_grad=True)
    out = kernel(state, 1.0, 20, 50, 50, 5, torch.tensor(50), 1.0, 1, 10)
    assert all((o.device.type, o.dtype) == ("cuda", torch.float32) for o in out)
