"""Confront a run of the full model with the prediction of the reduced flow, within the error of both integrations.

    |e(t)| <= eta^(1/2) exp(int_0^t max(0, -lambda) ds) * sum of local errors,   lambda = least eigenvalue of
    eta^(1/2) H eta^(1/2)

``H`` is the Hessian of the exact loss at the states of the run: in the coordinates ``eta^(-1/2) P`` the flow is a
gradient flow, and the logarithmic norm of its linearization is ``-lambda``. A local error is what step control allows.

Source: sections 2 and 4 of the theory, arXiv 2608.06776.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sympy import Rational, oo

from numerics.gradient_flow import MatrixRun, Objective, one_thread
from numerics.integrate import simulate
from numerics.matrix_model import MatrixModel
from numerics.trajectory import Trajectory
from theory import symbols
from theory.balls import enclose
from theory.flow import ReducedFlow, derive
from theory.integrals import FirstIntegral
from theory.model import AttentionModel
from theory.task import TokenTask

__all__ = [
    "Deviations",
    "Observation",
    "confront",
    "extreme_curvatures",
    "general_flow",
    "integral_drift",
    "observe",
    "witness",
]

Array = NDArray[np.float64]
Values = Mapping[str, float]

#: Gradients that a step of the full model's integrator takes at least: 12 stages, the first shared with the last step.
_STAGES = 11
#: Allowance for what is an estimate in the bound: the local errors and the curvature between recorded states.
_SAFETY = 4.0
#: Hessian products of a curvature.
_KRYLOV = 24


def witness(model: AttentionModel, start: Values | None = None, seed: int = 0) -> MatrixModel:
    """Return the full matrix model of a model with concrete sizes, on the line at a start.

    >>> witness(AttentionModel(TokenTask(2, 1, 1, 1, 1, 1)), {"mu_OV": 1.0}).coordinates()["mu_OV"]
    1.0
    """
    widths = {
        name: None if getattr(model, name) is None else int(getattr(model, name)) for name in ("width_qk", "width_ov")
    }
    return MatrixModel(
        model.task,
        model.qk,
        model.ov,
        start,
        imbalance_qk=float(model.imbalance_qk),
        imbalance_ov=float(model.imbalance_ov),
        width_qk=widths["width_qk"],
        width_ov=widths["width_ov"],
        seed=seed,
    )


def general_flow(model: AttentionModel) -> tuple[ReducedFlow, dict[str, float]]:
    """Return the flow for symbolic sizes and the values of its parameters, without the rates, that give this model.

    One derivation and one kernel then serve all sizes.

    >>> flow, values = general_flow(AttentionModel(TokenTask(3, 2, 2, float("inf"), 1, 1)))
    >>> values
    {'M': 3.0, 'b': 2.0, 'K': 2.0, 'm': 1.0, 'n': 1.0, 'gamma': 1.0}
    """
    task = model.task
    noise = symbols.N if task.noise_is_finite else oo
    general = TokenTask(noise=noise, query_kind=task.query_kind, score_scale=symbols.gamma)
    imbalances = {
        name: symbol
        for name, symbol in (("imbalance_qk", symbols.c_QK), ("imbalance_ov", symbols.c_OV))
        if getattr(model, name) != 0
    }
    flow = derive(AttentionModel(general, model.qk, model.ov, **imbalances))
    known = {
        "M": task.classes,
        "b": task.block,
        "K": task.queries,
        "N": task.noise,
        "m": task.informative_slots,
        "n": task.noise_slots,
        "gamma": task.score_scale,
        "c_OV": model.imbalance_ov,
        "c_QK": model.imbalance_qk,
    }
    return flow, {s.name: float(known[s.name]) for s in flow.parameters if s.name in known}


def _lanczos(product: Callable[[Array], Array], size: int) -> tuple[float, float]:
    """Extreme Ritz values, moved outward by their residuals, with full orthogonalization."""
    rng = np.random.default_rng(0)
    basis = np.zeros((min(size, _KRYLOV), size))
    diagonal, beside = np.zeros(len(basis)), np.zeros(len(basis))
    vector = rng.standard_normal(size)
    for k in range(len(basis)):
        basis[k] = vector / np.linalg.norm(vector)
        image = product(basis[k])
        diagonal[k] = basis[k] @ image
        for _ in range(2):
            image = image - basis[: k + 1].T @ (basis[: k + 1] @ image)
        beside[k] = np.linalg.norm(image)
        if beside[k] <= 1e-14 * np.abs(diagonal).max():  # an invariant subspace: go on in its complement
            beside[k] = 0.0
            image = rng.standard_normal(size)
            image = image - basis[: k + 1].T @ (basis[: k + 1] @ image)
        vector = image
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1))
    residuals = np.abs(beside[-1] * vectors[-1])
    return float(values[0] - residuals[0]), float(values[-1] + residuals[-1])


def extreme_curvatures(objective: Objective, state: Array) -> tuple[float, float]:
    """Return the least and the largest eigenvalue of ``eta^(1/2) H eta^(1/2)`` at a state, by the Lanczos method.

    >>> from numerics.gradient_flow import Objective
    >>> objective = Objective(witness(AttentionModel(TokenTask(2, 1, 1, 1, 1, 1))), {"eta_OV": 1, "eta_QK": 4})
    >>> [round(value, 3) for value in extreme_curvatures(objective, objective.start)]
    [-0.3, 0.339]
    """
    root = np.sqrt(objective.rates)
    leaf = torch.from_numpy(state.copy()).requires_grad_()
    with one_thread():
        (gradient,) = torch.autograd.grad(objective.value(leaf)[0], leaf, create_graph=True)

        def product(vector: Array) -> Array:
            tangent = torch.from_numpy(root * vector)
            (turned,) = torch.autograd.grad(gradient @ tangent, leaf, retain_graph=True)
            image: Array = root * turned.numpy()
            return image

        return _lanczos(product, state.size)


@dataclass(frozen=True)
class Observation:
    """A run of the full model with bounds on its error: ``budget_OV``, ``budget_QK`` (R,), on any entry of ``W``."""

    model: AttentionModel
    rates: Values
    start: Values
    run: MatrixRun
    budget_OV: Array
    budget_QK: Array


def _flat(run: MatrixRun, at: int) -> Array:
    return np.concatenate([value[at].ravel() for value in run.parameters.values()])


def _growth(objective: Objective, run: MatrixRun) -> Array:
    """Upper sums of the logarithmic norm, exponentiated: how much an error may have grown by each recorded time."""
    pace = np.array([max(0.0, -extreme_curvatures(objective, _flat(run, i))[0]) for i in range(run.t.size)])
    exponents = np.cumsum(np.diff(run.t) * np.maximum(pace[1:], pace[:-1]))
    return np.exp(np.minimum(np.concatenate([[0.0], exponents]), 300.0))


def _leverage(run: MatrixRun, circuit: str) -> float:
    """Largest change of ``W`` for a change of the parameters of a circuit: ``1``, or ``|U| + |V|`` for a product."""
    if f"W_{circuit}" in run.parameters:
        return 1.0
    norms = [np.linalg.norm(run.parameters[f"{side}_{circuit}"], 2, axis=(1, 2)).max() for side in "UV"]
    return float(sum(norms))


def observe(
    model: AttentionModel,
    rates: Values,
    start: Values,
    times: Any,
    *,
    rtol: float = 1e-10,
    atol: float = 1e-11,
    seed: int = 0,
) -> Observation:
    """Integrate the full model over recorded times and bound its error.

    Parameters: ``model``, concrete sizes; ``rates``; ``start`` on the line; ``times`` (R,), from 0 on; ``rtol``,
    ``atol``, tolerances of a step; ``seed`` of the gauge of factors.

    Returns: an `Observation`. Raises: as `numerics.MatrixModel` and its ``gradient_flow``.

    >>> model = AttentionModel(TokenTask(2, 1, 1, 1, 1, 1))
    >>> seen = observe(model, {"eta_OV": 1, "eta_QK": 1}, {"mu_OV": 0.5}, [0.0, 1.0])
    >>> bool(seen.run.distance_OV[-1] < seen.budget_OV[-1] < 1e-7)
    True
    """
    net = witness(model, start, seed)
    run = net.gradient_flow(rates, times, rtol=rtol, atol=atol)
    objective = Objective(net, rates)
    largest = max(float(np.abs(value).max()) for value in run.parameters.values())
    # a step is accepted when the root mean square of its error is below atol + rtol |P|; rounding is far below that
    local = float(np.sqrt(objective.rates.size / objective.rates.min())) * (atol + rtol * largest)
    error = _SAFETY * _growth(objective, run) * (1 + run.gradients / _STAGES) * local
    scale = {c: np.sqrt(float(rates[f"eta_{c}"])) * _leverage(run, c) for c in ("OV", "QK")}
    return Observation(model, rates, start, run, error * scale["OV"], error * scale["QK"])


@dataclass(frozen=True)
class Deviations:
    """How the full model and a prediction differ: by name, the deviation and its bound, arrays over times."""

    found: Mapping[str, Array]
    bound: Mapping[str, Array]

    @property
    def worst(self) -> tuple[str, float]:
        """The quantity that comes closest to its bound, and the largest ratio."""
        ratios = {name: float((found / self.bound[name]).max()) for name, found in self.found.items()}
        name = max(ratios, key=lambda key: ratios[key])
        return name, ratios[name]

    @property
    def holds(self) -> bool:
        """Whether every quantity is within its bound at every time."""
        return self.worst[1] <= 1


def confront(flow: ReducedFlow, values: Values, seen: Observation, *, rtol: float = 1e-10) -> Deviations:
    """Compare a run of the full model with the trajectory of a reduced flow.

        distance to the line, mu_OV(t), mu_QK(t), L(t), alpha(t)

    Parameters: ``flow`` and the ``values`` of its parameters other than the rates (see `general_flow`); ``seen``, the
    run; ``rtol`` of the prediction.

    Returns: `Deviations`; a bound is the error budget of the run and of the prediction.

    Raises: as `numerics.simulate`.

    >>> model = AttentionModel(TokenTask(2, 1, 1, 1, 1, 1))
    >>> seen = observe(model, {"eta_OV": 1, "eta_QK": 1}, {"mu_OV": 0.5}, [0.0, 1.0])
    >>> confront(*general_flow(model), seen).holds
    True
    """
    run = seen.run
    named = {s.name for s in flow.parameters}
    parameters = {**values, **{k: v for k, v in seen.rates.items() if k in named}}
    predicted = simulate(flow, parameters, seen.start, until_time=float(run.t[-1]), times=run.t, rtol=rtol, fast=False)
    if not isinstance(predicted, Trajectory):
        raise TypeError("values, rates or start hold arrays: expected one number for each name")
    gamma, widest = float(seen.model.task.score_scale), float(np.abs(run.W_OV).max())
    # both integrations behind the estimate round alike: some hundred steps with 1e-16 each, and ten times that
    extra = predicted.error_estimate + 1e-13
    # mu is a mean of entries of W divided by entries of E, whose norm is at least sqrt(1/2)
    output = 2 * seen.budget_OV + extra * (1 + np.abs(predicted.mu_OV))
    query_key = 2 * seen.budget_QK + extra * (1 + np.abs(predicted.mu_QK))
    # a softmax moves by at most gamma/2 per unit of its scores, a cross-entropy by 2 per unit of its logits
    attention = gamma * query_key
    # 1e-14: a softmax and a mean of logarithms, each within a hundred roundings of 1e-16 (values of order 1)
    found = {
        "distance_OV": run.distance_OV,
        "distance_QK": run.distance_QK,
        "mu_OV": np.abs(run.mu_OV - predicted.mu_OV),
        "mu_QK": np.abs(run.mu_QK - predicted.mu_QK),
        "loss": np.abs(run.loss - predicted.loss),
        "attention": np.abs(run.attention - predicted.attention),
    }
    bound = {
        "distance_OV": output,
        "distance_QK": query_key,
        "mu_OV": output,
        "mu_QK": query_key,
        "loss": 2 * (output + 2 * widest * attention) + 1e-14,
        "attention": attention + 1e-14,
    }
    return Deviations(found, bound)


def integral_drift(law: FirstIntegral, values: Values, seen: Observation) -> Deviations:
    """Compare the first integral along a run of the full model with its value at the start.

        |V(t) - V(0)| <= |dV/dmu_OV| e_OV + |dV/dmu_QK| e_QK

    Parameters: ``law``, of the sign of the start; ``values``, of its parameters other than the rates; ``seen``,
    the run.

    Returns: `Deviations` with the one entry ``"first integral"``.

    >>> from theory.integrals import first_integral
    >>> model = AttentionModel(TokenTask(2, 1, 1, 1, 1, 1))
    >>> seen = observe(model, {"eta_OV": 1, "eta_QK": 1}, {"mu_OV": 0.5}, [0.0, 1.0])
    >>> flow, values = general_flow(model)
    >>> integral_drift(first_integral(flow), values, seen).holds
    True
    """
    run = seen.run
    known = {name: Rational(str(value)) for name, value in {**values, **seen.rates}.items()}
    states = {symbols.mu_OV: run.mu_OV, symbols.mu_QK: run.mu_QK}

    def along(expression: Any) -> Array:
        free = expression.free_symbols
        fixed = {s: known[s.name] for s in free if s not in states}
        points = [
            fixed | {s: Rational(float(mu[i])) for s, mu in states.items() if s in free} for i in range(run.t.size)
        ]
        return np.array([float(enclose(expression, point, bits=128).mid()) for point in points])

    value = along(law.value)
    slopes = {s: np.abs(along(law.value.diff(s))).max() for s in states}
    # twice for the second order, where the slope changes over the error itself
    bound = 2 * (slopes[symbols.mu_OV] * 2 * seen.budget_OV + slopes[symbols.mu_QK] * 2 * seen.budget_QK)
    # ten units of rounding in the value and in each coordinate, carried to the value by its slope; four such values
    rounding = 1e-15 * (1 + np.abs(value).max() + sum(slopes[s] * np.abs(mu).max() for s, mu in states.items()))
    return Deviations({"first integral": np.abs(value - value[0])}, {"first integral": bound + 4 * rounding})
