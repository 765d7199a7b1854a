"""Trajectory evidence for optimizers and conserved sums: finite steps of the full model, and runs off the line.

Source: sections 3, 5 and 9 of the theory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from numerics.checks.autograd import along, exact_rows, numeric, off_line
from numerics.checks.cases import Array, Case, Circuit, cases, evaluate, matrix_velocities
from numerics.checks.comparison import Comparison, Finding
from numerics.checks.instance import law_value, laws_of
from numerics.checks.trajectory import MARGIN, RTOL
from numerics.explicit_line import line_part
from numerics.gradient_flow import Objective
from numerics.matrix_model import MatrixModel
from theory.integrals import first_integral
from theory.paper.optimizers import g, h, mu
from theory.paper.settings import setting_flow
from theory.registry import Claim
from theory.symbols import c_OV, c_QK, mu_OV, mu_QK

__all__ = ["CHECKS"]

STEPS, STEP = 8, 0.2
SCALARS = {"h": STEP, "lambda": 0.1, "beta": 0.9}
#: Rounding of 1e-15 in each step, grown sideways by at most 1 + h eta curvature, below 4, in each of 8 steps:
#: 1e-15 4^8.
BESIDE = 1e-10

_OPTIONS: dict[str, dict[str, Any]] = {
    "gradient-descent": {"step": {}},
    "momentum": {
        "heavy-ball step": {"momentum": SCALARS["beta"]},
        "Nesterov step": {"momentum": SCALARS["beta"], "nesterov": True},
    },
    "weight-decay": {"step": {"weight_decay": SCALARS["lambda"]}},
}


def _stated_steps(claim: Claim, net: MatrixModel, rates: Mapping[str, float], step: str) -> dict[str, Array]:
    """The parameters after some steps of the stated update, with gradients by torch; ``h`` is scaled by the rate."""
    named = dict(net.named_parameters())
    state = {k: v.detach().numpy().copy() for k, v in named.items()}
    buffers = {k: np.zeros_like(v) for k, v in state.items()}
    objective = Objective(net, rates)
    for _ in range(STEPS):
        flat = np.concatenate([x.ravel() for x in state.values()])
        slopes = objective.split(torch.from_numpy(objective.gradient(flat)))
        for name, current in list(state.items()):
            letters = {"W": current, "G": slopes[name].numpy(), "B_W": buffers[name]}
            scalars = SCALARS | {"h": STEP * rates[f"eta_{name[-2:]}"]}
            state[name] = numeric(claim.stated[step], letters, scalars)
            if "buffer" in claim.stated:
                buffers[name] = numeric(claim.stated["buffer"], letters, scalars)
    return state


def _optimizer(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """The stated update against the optimizer of the full model, and the distance of its iterates from the line."""
    for code in ("CACO", "FAFO"):
        for case in list(cases(rng, code, 1))[:3]:
            imbalance: dict[Circuit, Any] | None = None
            if code == "FAFO" and rng.random() < 0.5:
                imbalance = {"OV": case.values[c_OV], "QK": case.values[c_QK]}
            for step, options in _OPTIONS[claim.subject[1]].items():
                net = case.model(code, imbalance)
                stated = _stated_steps(claim, case.model(code, imbalance), case.rates, step)
                run = net.gradient_descent(case.rates, STEPS, STEP, **options)
                found = {k: x[-1] for k, x in run.parameters.items()}
                size = 1 + max(float(np.abs(x).max()) for x in found.values())
                apart = max(float(np.abs(stated[k] - found[k]).max()) for k in found)
                where = f"{case.describe()}, imbalanced" if imbalance else case.describe()
                yield Comparison(f"{step} against the optimizer of the full model", 0.0, apart, BESIDE * size, where)
                directions = {"OV": net.directions().E_OV, "QK": net.directions().E_QK}
                for circuit, E in directions.items():
                    W = _product(stated, circuit)
                    yield Comparison(f"W_{circuit} beside its line", 0.0, line_part(W, E)[1], BESIDE * size, where)


def _product(parameters: Mapping[str, Array], circuit: str) -> Array:
    if f"W_{circuit}" in parameters:
        return parameters[f"W_{circuit}"]
    product: Array = parameters[f"U_{circuit}"] @ parameters[f"V_{circuit}"].T
    return product


def _drift(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """One step is the stated one; over a fixed time the drift of the first integral falls by half with the step."""
    for code in ("CACO", "CAFO", "FACO", "FAFO"):
        case = next(cases(rng, code, 1))
        case = Case(case.query_kind, case.finite, code, {**case.values, mu_OV: abs(case.values[mu_OV])})
        case = Case(case.query_kind, case.finite, code, {**case.values, mu_QK: abs(case.values[mu_QK])})
        yield from _one_step(claim, case)
        yield from _slope(case)


def _one_step(claim: Claim, case: Case) -> Iterator[Finding]:
    net, size = case.model(), 0.1
    net = case.model(case.code)
    directions = {"OV": net.directions().E_OV, "QK": net.directions().E_QK}
    speeds = {k: along(v, directions[k]) for k, v in matrix_velocities(net, case.rates).items()}
    run = net.gradient_descent(case.rates, 1, size)
    for circuit, coordinate, form, found in (
        ("OV", mu_OV, case.code[2], run.mu_OV),
        ("QK", mu_QK, case.code[0], run.mu_QK),
    ):
        formula = claim.stated["collapsed" if form == "C" else "factorized"]
        images = {mu: float(case.values[coordinate]), g: speeds[circuit], h: size}  # type: ignore[index]
        stated = float(formula.xreplace(images))
        yield Comparison(f"one step of mu_{circuit}", stated, float(found[1]), 1e-11, case.describe())


def _slope(case: Case) -> Iterator[Finding]:
    setting = next(s for s in _settings() if s.label == case.label)
    value = first_integral(setting_flow(setting, case.code)).value
    drifts = []
    for steps in (25, 50, 100):
        run = case.model(case.code).gradient_descent(case.rates, steps, 2.0 / steps)
        ends = [
            evaluate(value, {**case.values, mu_OV: _rational(run.mu_OV[i]), mu_QK: _rational(run.mu_QK[i])})
            for i in (0, -1)
        ]
        drifts.append(abs(ends[1] - ends[0]))
    # the measured orders differ from 1 by O(h); their change from one halving to the next is half of that
    orders = np.log2(np.array(drifts[:-1]) / np.array(drifts[1:]))
    bound = 0.02 + 4 * abs(float(orders[1] - orders[0]))
    yield Comparison("order of the drift in h", 1.0, float(orders[1]), bound, case.describe())


def _settings() -> Any:
    from theory.paper.settings import SETTINGS

    return SETTINGS


def _rational(value: float) -> Any:
    from sympy import Rational

    return Rational(float(value))


def _shift(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """The stated sums along a run of the full model from a random start off the line."""
    for case in cases(rng, "CACO", 1):
        run = off_line(case, rng, "CACO").gradient_flow(case.rates, [0.0, 2.0], rtol=RTOL, atol=RTOL)
        ends = [{"OV": exact_rows(run.W_OV[i]), "QK": exact_rows(run.W_QK[i])} for i in (0, -1)]
        for name, _ in laws_of(case):
            sums = np.array([float(law_value(claim, name, W, case).mid()) for W in ends])  # type: ignore[arg-type]
            yield from _conserved(name, sums, case)


def _conserved(what: str, values: Array, case: Case) -> Iterator[Finding]:
    drift = float(np.abs(values[-1] - values[0]).max())
    bound = MARGIN * RTOL * (1 + float(np.abs(values).max()))
    yield Comparison(f"drift of the {what}", 0.0, drift, bound, case.describe())


def _words(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """The stated matrix along a run of the factorized full model off the line."""
    for case in cases(rng, "FAFO", 1):
        run = off_line(case, rng, "FAFO").gradient_flow(case.rates, [0.0, 2.0], rtol=RTOL, atol=RTOL)
        for circuit in ("OV", "QK"):
            factors = {side: run.parameters[f"{side}_{circuit}"] for side in "UV"}
            if case.finite or circuit == "OV":
                ends = [numeric(claim.stated["conserved"], {k: v[i] for k, v in factors.items()}, {}) for i in (0, -1)]
                yield from _conserved(f"stated matrix of {circuit}", np.stack(ends), case)


CHECKS = {"optimizer": _optimizer, "drift": _drift, "shift": _shift, "words conserved": _words}
