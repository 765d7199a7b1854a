"""Gradient flow and gradient descent of the full matrix model.

Source: sections 2 and 9 of the theory, arXiv 2608.06776.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.integrate import DOP853
from scipy.optimize import brentq

from numerics.explicit_line import line_part
from numerics.sizes import check_names, finite_number
from theory.errors import GradlineError

if TYPE_CHECKING:
    from numerics.matrix_model import MatrixModel

__all__ = ["MatrixRun", "Objective", "gradient_descent", "gradient_flow", "one_thread"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MatrixRun:
    """A trajectory of the full model, one entry per recorded time (first axis).

    ``t`` (R,); ``mu_OV``, ``mu_QK``: projections on the line; ``loss``, ``attention``: exact over the
    population; ``distance_OV``, ``distance_QK``: largest entry of ``W`` minus its projection;
    ``relative_OV``, ``relative_QK``: its Frobenius norm relative to that of ``W``; ``W_OV`` (R, M, T),
    ``W_QK`` (R, Q, T): effective matrices; ``parameters``: every trained matrix by name, stacked;
    ``gradients``: number of gradients taken.
    """

    t: Array
    mu_OV: Array
    mu_QK: Array
    loss: Array
    attention: Array
    distance_OV: Array
    distance_QK: Array
    relative_OV: Array
    relative_QK: Array
    W_OV: Array
    W_QK: Array
    parameters: Mapping[str, Array]
    gradients: int


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread inside the block: matrices are small, and waiting for threads can cost far more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Objective:
    """The exact loss as a function of one flat vector of all parameters."""

    def __init__(self, net: MatrixModel, rates: Mapping[str, Any]) -> None:
        names = ("eta_OV", "eta_QK")
        named = check_names("rates", rates, names)
        for name in names:
            if name not in named:
                raise ValueError(f"rates has no {name}: expected both eta_OV and eta_QK")
        eta = {name: finite_number(name, named[name], positive=True) for name in names}
        parameters = dict(net.named_parameters())
        self.net = net
        self.shapes = {name: tuple(value.shape) for name, value in parameters.items()}
        self.sizes = [value.numel() for value in parameters.values()]
        self.rates = np.concatenate([np.full(value.numel(), eta["eta" + k[1:]]) for k, value in parameters.items()])
        self.start = np.concatenate([value.detach().numpy().ravel() for value in parameters.values()])
        self.calls = 0

    def split(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        parts = torch.split(flat, self.sizes)
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def value(self, flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        parameters = self.split(flat)
        return self.net.on_population(*(self.net.effective(circuit, parameters) for circuit in ("OV", "QK")))

    def loss(self, flat: Array) -> tuple[float, float]:
        with torch.no_grad():
            loss, attention = self.value(torch.from_numpy(flat))
        return float(loss), float(attention)

    def gradient(self, flat: Array) -> Array:
        self.calls += 1
        leaves = {name: part.requires_grad_() for name, part in self.split(torch.from_numpy(flat)).items()}
        loss, _ = self.net.on_population(*(self.net.effective(circuit, leaves) for circuit in ("OV", "QK")))
        found = torch.autograd.grad(loss, list(leaves.values()))
        return np.concatenate([part.numpy().ravel() for part in found])

    def velocity(self, _time: float, flat: Array) -> Array:
        return -self.rates * self.gradient(flat)

    def run(self, times: Sequence[float], states: Sequence[Array]) -> MatrixRun:
        """Measure recorded states."""
        parameters = self.split_many(states)
        tensors = [self.split(torch.from_numpy(state)) for state in states]
        W = {c: np.stack([self.net.effective(c, p).numpy() for p in tensors]) for c in ("OV", "QK")}
        directions = self.net.directions()
        output = np.array([line_part(matrix, directions.E_OV) for matrix in W["OV"]]).T
        query_key = np.array([line_part(matrix, directions.E_QK) for matrix in W["QK"]]).T
        loss, attention = np.array([self.loss(state) for state in states]).T
        return MatrixRun(
            t=np.asarray(times, dtype=np.float64),
            mu_OV=output[0],
            mu_QK=query_key[0],
            loss=loss,
            attention=attention,
            distance_OV=output[1],
            distance_QK=query_key[1],
            relative_OV=output[2],
            relative_QK=query_key[2],
            W_OV=W["OV"],
            W_QK=W["QK"],
            parameters=parameters,
            gradients=self.calls,
        )

    def split_many(self, states: Sequence[Array]) -> dict[str, Array]:
        parts = np.split(np.stack(states), np.cumsum(self.sizes)[:-1], axis=1)
        return {name: part.reshape(-1, *shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def update(self, flat: Array) -> None:
        self.net.set_matrices(**self.split(torch.from_numpy(flat)))


def _check_times(times: float | Sequence[float] | Array) -> Array:
    wanted = np.array([0.0, times]) if np.ndim(times) == 0 else np.asarray(times, dtype=np.float64)
    rising = wanted.ndim == 1 and wanted.size > 0 and np.isfinite(wanted).all() and (np.diff(wanted) > 0).all()
    if not rising or wanted[0] < 0 or wanted[-1] == 0:
        raise ValueError(f"times={times!r}: expected an end time above 0, or finite increasing times from 0 on")
    return wanted


@dataclass(frozen=True)
class _Settings:
    rtol: float
    atol: float
    max_steps: int


def _steps(
    objective: Objective, span: tuple[float, float], state: Array, settings: _Settings
) -> Iterator[DOP853[np.float64]]:
    """Yield the solver after each step until the end of the span."""
    solver = DOP853(objective.velocity, span[0], state, span[1], rtol=settings.rtol, atol=settings.atol)
    for _ in range(settings.max_steps):
        message = solver.step()
        if solver.status == "failed":
            raise GradlineError(f"gradient flow of the matrix model at t={solver.t:.6g}: {message}; loosen rtol, atol")
        yield solver
        if solver.status == "finished":
            return
    raise GradlineError(
        f"gradient flow of the matrix model: {settings.max_steps} steps end at t={solver.t:.6g} with loss "
        f"{objective.loss(solver.y)[0]:.6g}, before the target; raise max_steps or the target"
    )


def _at(objective: Objective, solver: DOP853[np.float64], time: float, previous: Array, settings: _Settings) -> Array:
    """State inside the last step, by integration from its start: more accurate than the interpolant."""
    if time == solver.t:
        return np.array(solver.y)
    *_, last = _steps(objective, (float(solver.t_old or 0.0), time), previous, settings)
    return np.array(last.y)


def _flow_to_times(objective: Objective, times: Array, settings: _Settings) -> tuple[list[float], list[Array]]:
    states = [objective.start] if times[0] == 0 else []
    previous = objective.start
    for solver in _steps(objective, (0.0, times[-1]), previous, settings):
        while len(states) < len(times) and times[len(states)] <= solver.t:
            states.append(_at(objective, solver, times[len(states)], previous, settings))
        previous = np.array(solver.y)
    return times.tolist(), states


def _flow_to_loss(objective: Objective, target: float, settings: _Settings) -> tuple[list[float], list[Array]]:
    def excess(time: float, state: Callable[[float], Array]) -> float:
        return objective.loss(state(time))[0] - target

    first = objective.loss(objective.start)[0]
    if target >= first:
        raise ValueError(f"until_loss={target}: expected a target below the initial loss {first:.6g}")
    times, states = [0.0], [objective.start]
    for solver in _steps(objective, (0.0, math.inf), objective.start, settings):
        if objective.loss(solver.y)[0] > target:
            times.append(float(solver.t))
            states.append(np.array(solver.y))
            continue
        inside = solver.dense_output()
        hit = float(brentq(excess, times[-1], solver.t, args=(inside,), xtol=1e-300, rtol=1e-14))
        states.append(_at(objective, solver, hit, states[-1], settings))
        times.append(hit)
        break
    return times, states


def gradient_flow(
    net: MatrixModel,
    rates: Mapping[str, Any],
    times: float | Sequence[float] | Array | None = None,
    until_loss: float | None = None,
    *,
    rtol: float = 1e-11,
    atol: float = 1e-12,
    max_steps: int = 100_000,
    update: bool = False,
) -> MatrixRun:
    """Integrate the gradient flow of every parameter of the full model (DOP853 on autograd gradients).

    ``dP/dt = -eta dL/dP`` with ``eta_OV`` for output-value and ``eta_QK`` for query-key parameters.

    Parameters: ``net``, the start; ``rates``: ``eta_OV`` and ``eta_QK``, above 0; exactly one of ``times``
    (an end time, or increasing times to record) and ``until_loss`` (records every step); ``rtol``, ``atol``:
    tolerances; ``max_steps`` of the solver; ``update``: whether ``net`` takes the final parameters.

    Returns: `MatrixRun`.

    Raises: ``ValueError`` for bad rates, times or targets; `theory.errors.GradlineError` for too many steps
    (with the time and loss reached) or a population too large to enumerate.

    Source: section 2 of the theory.

    >>> from numerics.matrix_model import MatrixModel
    >>> from theory.task import TokenTask
    >>> net = MatrixModel(TokenTask(2, 1, 1, 2, informative_slots=1, noise_slots=1))
    >>> run = gradient_flow(net, {"eta_OV": 1, "eta_QK": 10}, until_loss=0.1)
    >>> round(float(run.loss[-1]), 10), bool(run.distance_QK[-1] < 1e-12)
    (0.1, True)
    """
    objective = Objective(net, rates)
    settings = _Settings(
        finite_number("rtol", rtol, positive=True), finite_number("atol", atol, positive=True), max_steps
    )
    if (times is None) == (until_loss is None):
        raise ValueError("gradient_flow: expected exactly one of times and until_loss")
    with one_thread():
        if times is not None:
            found = _flow_to_times(objective, _check_times(times), settings)
        else:
            target = finite_number("until_loss", until_loss, positive=True)
            found = _flow_to_loss(objective, target, settings)
        if update:
            objective.update(found[1][-1])
        return objective.run(*found)


def _descend(objective: Objective, steps: int, h: float, momentum: tuple[float, bool], decay: float) -> list[Array]:
    beta, nesterov = momentum
    states, average = [objective.start], np.zeros_like(objective.start)
    for step in range(steps):
        gradient = objective.gradient(states[-1]) + decay * states[-1]
        average = beta * average + gradient
        direction = gradient + beta * average if nesterov else average
        with np.errstate(over="ignore", invalid="ignore"):
            states.append(states[-1] - h * objective.rates * direction)
        if not np.isfinite(states[-1]).all():
            raise GradlineError(
                f"gradient descent of the matrix model: step {step + 1} is not finite; take a smaller step_size"
            )
    return states


def gradient_descent(
    net: MatrixModel,
    rates: Mapping[str, Any],
    steps: int,
    step_size: float = 1.0,
    *,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    update: bool = False,
) -> MatrixRun:
    """Descend along the exact gradient of every parameter of the full model.

    ``g = dL/dP + lambda P``, ``v <- beta v + g``, ``P <- P - h eta v`` (Nesterov: ``P <- P - h eta (g + beta
    v)``).

    Parameters: ``net``, the start; ``rates``: ``eta_OV`` and ``eta_QK``, above 0; ``steps`` >= 1;
    ``step_size`` h > 0; ``momentum`` beta in [0, 1); ``nesterov``; ``weight_decay`` lambda >= 0; ``update``:
    whether ``net`` takes the final parameters.

    Returns: `MatrixRun` with ``steps + 1`` entries, the start first, and ``t = h`` times the step.

    Raises: ``ValueError`` for bad input; `theory.errors.GradlineError` when an entry stops being finite.

    Source: section 9 of the theory.

    >>> from numerics.matrix_model import MatrixModel
    >>> from theory.task import TokenTask
    >>> net = MatrixModel(TokenTask(2, 1, 1, 2, informative_slots=1, noise_slots=1))
    >>> run = gradient_descent(net, {"eta_OV": 1, "eta_QK": 10}, steps=100)
    >>> run.t.shape, bool(run.loss[-1] < run.loss[0])
    ((101,), True)
    """
    objective = Objective(net, rates)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ValueError(f"steps={steps!r}: expected an integer of at least 1")
    h = finite_number("step_size", step_size, positive=True)
    beta, decay = finite_number("momentum", momentum), finite_number("weight_decay", weight_decay)
    if not 0 <= beta < 1 or (nesterov and beta == 0):
        raise ValueError(f"momentum={momentum}: expected a number in [0, 1), above 0 with nesterov")
    if decay < 0:
        raise ValueError(f"weight_decay={weight_decay}: expected a number of at least 0")
    with one_thread():
        states = _descend(objective, steps, h, (beta, nesterov), decay)
        if update:
            objective.update(states[-1])
        return objective.run([h * step for step in range(steps + 1)], states)
