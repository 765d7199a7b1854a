"""Velocities, loss, attention and their gradients against ball arithmetic, on the grid of `accuracy`."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sympy import oo

from numerics.kernels import BACKENDS, Kernel, compile_kernel
from theory import AttentionModel, TokenTask, derive
from theory.symbols import gamma

sys.path.insert(0, str(Path(__file__).parent))
from accuracy import OUTPUTS, SIZES, grid, worst

DTYPES = ["float64", "float32"]


@cache
def kernel(backend: str) -> Kernel:
    return compile_kernel(derive(AttentionModel(TokenTask(noise=oo, score_scale=gamma))), backend)


def arguments(dtype: str) -> list[Any]:
    v, q, M, m, n, g = grid(dtype).points
    b, K, eta_v, eta_q = SIZES
    return [v, q, M, b, K, m, n, g, eta_v, eta_q]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_values(backend: str, dtype: str, record_property: Any) -> None:
    assert kernel(backend).arguments == ("mu_OV", "mu_QK", "M", "b", "K", "m", "n", "gamma", "eta_OV", "eta_QK")
    exact = grid(dtype)
    given = arguments(dtype)
    if backend == "torch":
        given = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in given]
    out = [np.asarray(o) for o in kernel(backend)(*given)]
    found = {}
    for j, name in enumerate(OUTPUTS):
        assert out[j].dtype == dtype
        found[name], at = worst(out[j], exact.values[j], [abs(v) for v in exact.values[j]], exact.bound, dtype)
        assert found[name] <= 1, (name, found[name], [float(c[at]) for c in exact.points], float(out[j][at]))
    print(f"{backend} {dtype}, {len(exact.bound)} states: worst error over its bound {found}")
    assert max(found.values()) > 0.01  # the bound is not so wide that it would hide a loss of two digits


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients(dtype: str) -> None:
    exact = grid(dtype)
    given = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments(dtype)]
    states = [g.clone().requires_grad_() for g in given[:2]]
    out = kernel("torch")(*states, *given[2:])
    found = {}
    for j, name in enumerate(OUTPUTS):
        slopes = torch.autograd.grad(out[j].sum(), states, retain_graph=True, materialize_grads=True)
        for s, slope in enumerate(slopes):
            error, at = worst(slope.numpy(), exact.slopes[s][j], exact.scales[s][j], 4 * exact.bound, dtype)
            where = [float(c[at]) for c in exact.points]
            assert error <= 1, (name, s, error, where, float(slope[at]), float(exact.slopes[s][j][at]))
            found[f"{name}, {('mu_OV', 'mu_QK')[s]}"] = error
    print(f"torch {dtype}, {len(exact.bound)} states: worst error over its bound {found}")


def naive(v: Any, q: Any, M: Any, b: Any, K: Any, m: Any, n: Any, g: Any, eta_v: Any, eta_q: Any) -> tuple[Any, ...]:
    """The equations as they are written."""
    e = np.exp(g * q)
    alpha = m * e / (m * e + n)
    below = np.exp(alpha * v) + M - 1
    loss = np.log(1 + (M - 1) * np.exp(-alpha * v))
    return eta_v * alpha / (b * below), eta_q * g * (M - 1) * alpha * (1 - alpha) * v / (M * b * K * below), loss, alpha


def test_the_bound_catches_a_naive_kernel() -> None:
    exact = grid("float64")
    with np.errstate(all="ignore"):
        out = naive(*arguments("float64"))
    for j, name in enumerate(OUTPUTS):
        error, _ = worst(out[j], exact.values[j], [abs(v) for v in exact.values[j]], exact.bound, "float64")
        assert error > 1, name
