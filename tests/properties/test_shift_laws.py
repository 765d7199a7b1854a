"""Softmax shift invariance conserves sums on the line and off it, under gradient flow and gradient descent.

collapsed: 1^T W_OV, and W_QK 1 for finite N      factorized: 1^T U_OV, and V_QK^T 1 for finite N
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from numerics.gradient_flow import MatrixRun
from numerics.predictions import witness
from numerics.strategies import models, off_line, rates, tasks
from theory.model import AttentionModel

Array = NDArray[np.float64]
ENTRIES = 1_500
Law = Callable[[Mapping[str, Array]], Array]


@dataclass(frozen=True)
class Setting:
    """A model with rates and parameters anywhere."""

    model: AttentionModel
    rates: dict[str, float]
    matrices: dict[str, Array]


@st.composite
def settings_off_line(draw: st.DrawFn, noise: str = "any", code: str | None = None) -> Setting:
    kind = "shared" if code is not None and code[0] == "F" else None
    task = draw(tasks(noise=noise, query_kind=kind, max_entries=ENTRIES))  # type: ignore[arg-type]
    model = draw(models(task, code=code))
    return Setting(model, draw(rates()), draw(off_line(model)))


def laws(model: AttentionModel) -> dict[str, Law]:
    """The conserved sums of a model: functions of the stacked parameters, shape (R, ...)."""
    found: dict[str, Law] = {}
    if model.ov == "collapsed":
        found["column sums of W_OV"] = lambda p: p["W_OV"].sum(axis=1)
    else:
        found["1^T U_OV"] = lambda p: p["U_OV"].sum(axis=1)
    if model.task.noise_is_finite:
        if model.qk == "collapsed":
            found["row sums of W_QK"] = lambda p: p["W_QK"].sum(axis=2)
        else:
            found["V_QK^T 1"] = lambda p: p["V_QK"].sum(axis=1)
    return found


def run_flow(setting: Setting) -> tuple[MatrixRun, float]:
    """A short run of the flow, and the largest product of rate and time."""
    net = witness(setting.model, {"mu_OV": 1, "mu_QK": 1})
    net.set_matrices(**setting.matrices)
    high = max(setting.rates.values())
    time = 3 / high
    return net.gradient_flow(setting.rates, np.linspace(0, time, 4), rtol=1e-6, atol=1e-7), 3.0


def run_descent(setting: Setting, decay: float = 0.0, momentum: float = 0.0) -> tuple[MatrixRun, float]:
    net = witness(setting.model, {"mu_OV": 1, "mu_QK": 1})
    net.set_matrices(**setting.matrices)
    step, steps = 0.5, 6
    run = net.gradient_descent(setting.rates, steps, step, momentum=momentum, weight_decay=decay)
    return run, step * steps * max(setting.rates.values()) / (1 - momentum)


def allowed(run: MatrixRun, setting: Setting, travelled: float) -> float:
    """Rounding of sums that nothing else can change, whatever the tolerance: every step is linear in gradients.

    Each of ``gradients`` evaluations and the sum itself round to 2^-53 of the entries, and a gradient to 32 times that.
    """
    size = max(float(np.abs(p).max()) for p in run.parameters.values())
    terms = max(max(p.shape[1:]) for p in run.parameters.values())
    slope = (1 + 2 * float(setting.model.task.score_scale) * float(np.abs(run.W_OV).max())) * max(1.0, size)
    return 2.0**-53 * terms * ((4 + run.gradients) * size + 32 * travelled * slope)


def drift(law: Law, run: MatrixRun, factors: Array | None = None) -> float:
    value = law(run.parameters)
    expected = value[0] if factors is None else factors.reshape(-1, *[1] * (value.ndim - 1)) * value[0]
    return float(np.abs(value - expected).max())


@given(settings_off_line())
def test_flow_conserves_sums_anywhere(setting: Setting) -> None:
    run, travelled = run_flow(setting)
    bound = allowed(run, setting, travelled)
    for name, law in laws(setting.model).items():
        assert drift(law, run) <= bound, name


@given(settings_off_line(), st.sampled_from([0.0, 0.5, 0.9]))
def test_descent_conserves_sums_anywhere(setting: Setting, momentum: float) -> None:
    run, travelled = run_descent(setting, momentum=momentum)
    bound = allowed(run, setting, travelled)
    for name, law in laws(setting.model).items():
        assert drift(law, run) <= bound, name


@given(settings_off_line(), st.sampled_from([0.01, 0.1, 0.5]))
def test_weight_decay_scales_sums(setting: Setting, decay: float) -> None:
    run, travelled = run_descent(setting, decay)
    bound = allowed(run, setting, travelled)
    steps = np.arange(run.t.size)
    for name, law in laws(setting.model).items():
        circuit = name.split("_")[1][:2]
        factors = (1 - 0.5 * setting.rates[f"eta_{circuit}"] * decay) ** steps
        assert drift(law, run, factors) <= bound * max(1.0, np.abs(factors).max()), name


WRONG_LAWS: dict[str, tuple[str, str, Law]] = {
    # name: (parameterization, noise, sum that is not conserved)
    "row sums of W_OV": ("CACO", "any", lambda p: p["W_OV"].sum(axis=2)),
    "column sums of W_QK": ("CACO", "any", lambda p: p["W_QK"].sum(axis=1)),
    "row sums of W_QK without noise": ("CACO", "finite", lambda p: p["W_QK"][:, :, :-1].sum(axis=2)),
    "row sums of W_QK for infinite N": ("CACO", "infinite", lambda p: p["W_QK"].sum(axis=2)),
    "weighted column sums of W_OV": ("CACO", "any", lambda p: p["W_OV"].sum(axis=1) + 1e-6 * p["W_OV"][:, 0]),
    "1^T V_OV": ("CAFO", "any", lambda p: p["V_OV"].sum(axis=1)),
    "U_QK^T 1": ("FACO", "finite", lambda p: p["U_QK"].sum(axis=1)),
    "column sums of U V^T": ("CAFO", "any", lambda p: np.einsum("rij,rkj->rk", p["U_OV"], p["V_OV"])),
}


def test_wrong_laws_are_noticed(counterexample: Callable[..., Any]) -> None:
    for code, noise, law in WRONG_LAWS.values():
        for run_of in (run_flow, run_descent):

            def fails(setting: Setting, law: Law = law, run_of: Callable[..., Any] = run_of) -> bool:
                run, travelled = run_of(setting)
                return drift(law, run) > allowed(run, setting, travelled)

            setting = counterexample(settings_off_line(noise, code), fails)
            run, travelled = run_of(setting)
            assert all(drift(right, run) <= allowed(run, setting, travelled) for right in laws(setting.model).values())


def test_wrong_decay_is_noticed(counterexample: Callable[..., Any]) -> None:
    """Sums that weight decay shrinks are not constant, and do not shrink at twice the rate."""
    for rate in (0, 2):

        def fails(setting: Setting, rate: int = rate) -> bool:
            run, travelled = run_descent(setting, 0.1)
            factors = (1 - rate * 0.05 * setting.rates["eta_OV"]) ** np.arange(run.t.size)
            return drift(laws(setting.model)["column sums of W_OV"], run, factors) > allowed(run, setting, travelled)

        counterexample(settings_off_line(code="CACO"), fails)
