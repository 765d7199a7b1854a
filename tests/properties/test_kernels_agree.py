"""NumPy kernel, Torch kernel and exact ball arithmetic agree, for random states and parameters.

The bound is rounding: an exponential of ``x`` magnifies the relative rounding of ``x`` by ``|x|``, and the formulas
chain fewer than 64 operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from sympy import Rational, Symbol, oo

from numerics import compile_kernel
from numerics.strategies import decimals, rates
from theory.balls import enclose
from theory.flow import ReducedFlow, derive
from theory.model import PARAMETERIZATIONS, AttentionModel
from theory.symbols import N, c_OV, c_QK, gamma, mu_OV, mu_QK
from theory.task import TokenTask

EPS = 2.0**-52
CASES = [
    (code, kind, finite, skewed)
    for code in PARAMETERIZATIONS
    for kind in ("shared", "per_class")
    for finite in (True, False)
    for skewed in ((False, True) if "F" in code else (False,))
    if code[0] == "C" or kind == "shared" or not finite
]
Case = tuple[str, str, bool, bool]


@lru_cache(maxsize=64)
def flow_of(case: Case) -> ReducedFlow:
    code, kind, finite, skewed = case
    qk, ov = PARAMETERIZATIONS[code]
    options = {}
    if skewed and qk == "factorized":
        options["imbalance_qk"] = c_QK
    if skewed and ov == "factorized":
        options["imbalance_ov"] = c_OV
    task = TokenTask(noise=N if finite else oo, query_kind=kind, score_scale=gamma)  # type: ignore[arg-type]
    return derive(AttentionModel(task, qk, ov, **options))


def outputs_of(flow: ReducedFlow) -> tuple[Any, ...]:
    return (*(flow.velocity[s] for s in flow.states), flow.loss, flow.attention)


@st.composite
def points(draw: st.DrawFn, wide: float = 30.0) -> dict[str, float]:
    """A value for every symbol: sizes up to a million, states to where the loss is e^-30."""
    size = st.one_of(st.integers(1, 5), st.sampled_from([10, 1000, 10**6]))
    values = {name: float(draw(size)) for name in ("b", "K", "N", "m", "n")}
    values["M"] = float(draw(st.one_of(st.integers(2, 5), st.sampled_from([10, 1000, 10**6]))))
    values |= draw(rates()) | {"gamma": draw(decimals(0.1, 3))}
    values |= {name: draw(decimals(-2, 2, zero=False)) for name in ("c_OV", "c_QK")}
    values |= {name: draw(decimals(-wide, wide, zero=False)) for name in ("mu_OV", "mu_QK")}
    return values


def exact(expressions: tuple[Any, ...], point: dict[str, float]) -> list[float]:
    """The values to 200 bits, at the very doubles that the kernels get."""
    known = {s: Rational(point[s.name]) for e in expressions for s in e.free_symbols}
    return [float(enclose(e, {s: known[s] for s in e.free_symbols}, bits=200).mid()) for e in expressions]


def tolerance(point: dict[str, float]) -> float:
    return 64 * EPS * (1 + abs(point["gamma"] * point["mu_QK"]) * (1 + abs(point["mu_OV"])) + abs(point["mu_OV"]))


def values_of(flow: ReducedFlow, backend: str, point: dict[str, float]) -> list[float]:
    kernel = compile_kernel(flow, backend)
    given_values = {name: point[name] for name in kernel.arguments}
    if backend == "torch":
        given_values = {k: torch.tensor(v, dtype=torch.float64) for k, v in given_values.items()}  # type: ignore[misc]
    return [float(x) for x in kernel(**given_values)]


def worst(flow: ReducedFlow, reference: ReducedFlow, backend: str, point: dict[str, float]) -> float:
    """Largest relative error of a kernel over its bound."""
    wanted = exact(outputs_of(reference), point)
    found = values_of(flow, backend, point)
    return max(abs(f - w) / (tolerance(point) * abs(w) + 1e-300) for f, w in zip(found, wanted, strict=True))


@given(st.sampled_from(CASES), points(), st.sampled_from(["numpy", "torch"]))
def test_kernels_agree_with_exact_values(case: Case, point: dict[str, float], backend: str) -> None:
    flow = flow_of(case)
    assert worst(flow, flow, backend, point) <= 1


def test_a_wrong_kernel_is_noticed(wrong: Any, counterexample: Callable[..., Any]) -> None:
    cases = [case for case in CASES if case[0] == "CACO" and (case[2] or wrong.noise == "any")]
    strategy = st.tuples(st.sampled_from(cases), points())

    def fails(drawn: tuple[Case, dict[str, float]]) -> bool:
        flow = flow_of(drawn[0])
        return worst(wrong.flow(flow), flow, "numpy", drawn[1]) > 1

    # 1 + M b/N and M/(M-1) differ from 1 by far more than rounding for the sizes drawn; b = 1 hides b for b^2
    case, point = counterexample(strategy, fails)
    assert worst(flow_of(case), flow_of(case), "numpy", point) <= 1


def test_wrong_loss_and_attention_are_noticed(counterexample: Callable[..., Any]) -> None:
    flow = flow_of(("CACO", "shared", True, False))
    size = flow.task.classes
    for changed in (
        replace(flow, loss=flow.loss.xreplace({size - 1: size})),
        replace(flow, attention=flow.attention.xreplace({gamma: 2 * gamma})),
        replace(flow, loss=flow.loss.xreplace({mu_OV: -mu_OV})),
    ):
        counterexample(points(), lambda point, changed=changed: worst(changed, flow, "numpy", point) > 1)


def slope_of_loss(flow: ReducedFlow, state: Symbol, point: dict[str, float]) -> float:
    """``dL/dmu`` of the Torch kernel, by automatic differentiation."""
    kernel = compile_kernel(flow, "torch", outputs=["loss"])
    leaf = torch.tensor(point[state.name], dtype=torch.float64, requires_grad=True)
    named = {name: torch.tensor(point[name], dtype=torch.float64) for name in kernel.arguments}
    (loss,) = kernel(**named | {state.name: leaf})
    (slope,) = torch.autograd.grad(loss, leaf)
    return float(slope)


def mismatch(flow: ReducedFlow, point: dict[str, float], norms: ReducedFlow) -> float:
    """``|velocity + eta/norm2 dL/dmu|`` over its bound, the larger of both circuits."""
    velocities = compile_kernel(flow, "torch", outputs=["d_mu_OV", "d_mu_QK"])
    found = velocities(**{name: torch.tensor(point[name], dtype=torch.float64) for name in velocities.arguments})
    ratios = []
    for state, velocity in zip((mu_OV, mu_QK), found, strict=True):
        circuit = state.name[3:]
        formula = norms.definitions[f"norm2_{circuit}"]
        norm2 = exact((formula,), point)[0]
        wanted = -point[f"eta_{circuit}"] / norm2 * slope_of_loss(norms, state, point)
        ratios.append(abs(float(velocity) - wanted) / (tolerance(point) * abs(wanted) + 1e-300))
    return float(np.max(ratios))


COLLAPSED = [case for case in CASES if case[0] == "CACO"]


@given(st.sampled_from(COLLAPSED), points())
def test_velocity_is_the_gradient_of_the_loss(case: Case, point: dict[str, float]) -> None:
    assert mismatch(flow_of(case), point, flow_of(case)) <= 1


def test_a_wrong_velocity_is_not_the_gradient(wrong: Any, counterexample: Callable[..., Any]) -> None:
    cases = [case for case in COLLAPSED if case[2] or wrong.noise == "any"]

    def fails(drawn: tuple[Case, dict[str, float]]) -> bool:
        flow = flow_of(drawn[0])
        return mismatch(wrong.flow(flow), drawn[1], flow) > 1

    case, point = counterexample(st.tuples(st.sampled_from(cases), points()), fails)
    assert mismatch(flow_of(case), point, flow_of(case)) <= 1
