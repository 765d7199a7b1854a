"""Simulation of a reduced flow: two integrations that must agree, with events, any time variable and batches.

Source: reduced dynamics of arXiv 2608.06776.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from numerics.conditions import AGREEMENT, RunOptions, TimeName, as_flow
from numerics.run_errors import IntegrationError, TimeLimitError, numbered
from numerics.trajectory import Point, Trajectory, TrajectoryBatch
from theory.errors import GradlineError
from theory.flow import ReducedFlow
from theory.model import AttentionModel
from theory.models.flow import GradientFlow

if TYPE_CHECKING:
    from numerics.models.flow import NumericFlow
    from numerics.models.simulation import FlowRun

__all__ = ["AGREEMENT", "IntegrationError", "TimeLimitError", "simulate"]

Progress = Callable[[float, float], None]
_END = "t", "tau", "mu_OV", "mu_QK", "loss", "attention"


def _spread(*mappings: Mapping[Any, Any] | None) -> tuple[tuple[int, ...], list[list[dict[Any, Any]]]]:
    """Broadcast the values of mappings together; returns the shape and, for each run, one mapping for each given."""
    given = [dict(m) if isinstance(m, Mapping) else {} for m in mappings]
    arrays = {(i, k): np.asarray(v) for i, m in enumerate(given) for k, v in m.items() if np.ndim(v) > 0}
    try:
        shape = np.broadcast_shapes(*(a.shape for a in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{k} {a.shape}" for (_, k), a in arrays.items())
        raise ValueError(f"shapes that do not broadcast together: {shapes}") from None
    wide = {key: np.broadcast_to(a, shape) for key, a in arrays.items()}
    runs = [
        [{k: wide[i, k][at] if (i, k) in wide else v for k, v in m.items()} for i, m in enumerate(given)]
        for at in np.ndindex(shape)
    ]
    return shape, runs


@overload
def simulate(
    flow: ReducedFlow | AttentionModel,
    parameters: Mapping[Any, Any],
    start: Mapping[Any, Any] | None = None,
    until_loss: float | None = None,
    until_time: float | None = None,
    *,
    time: TimeName = "t",
    times: ArrayLike | None = None,
    rtol: float = 1e-10,
    atol: float | None = None,
    method: str = "DOP853",
    fast: bool | None = None,
    max_steps: int = 20_000,
    progress: Progress | None = None,
) -> Trajectory | TrajectoryBatch: ...


@overload
def simulate(
    flow: GradientFlow | NumericFlow,
    parameters: Mapping[Any, Any] | None = None,
    start: Mapping[Any, Any] | None = None,
    until_loss: float | None = None,
    until_time: float | None = None,
    *,
    times: ArrayLike | None = None,
    rtol: float = 1e-10,
    method: str = "DOP853",
) -> FlowRun: ...


def simulate(
    flow: ReducedFlow | AttentionModel | GradientFlow | NumericFlow,
    parameters: Mapping[Any, Any] | None = None,
    start: Mapping[Any, Any] | None = None,
    until_loss: float | None = None,
    until_time: float | None = None,
    *,
    time: TimeName = "t",
    times: ArrayLike | None = None,
    rtol: float = 1e-10,
    atol: float | None = None,
    method: str = "DOP853",
    fast: bool | None = None,
    max_steps: int = 20_000,
    progress: Progress | None = None,
) -> Trajectory | TrajectoryBatch | FlowRun:
    """Integrate a reduced flow to a loss or for a time, twice, and return the trajectory if both integrations agree.

        d mu/dt = velocity(mu; parameters),   mu(0) = start,   end: loss(mu) = until_loss  or  t = until_time

    Parameters: ``flow``, a `ReducedFlow` or an `AttentionModel`; ``parameters``, name or symbol -> number, exactly
    those of ``flow.parameters``; ``start``, ``mu_OV`` and ``mu_QK``, 0 by default, required and nonzero for
    balanced factorized circuits; ``until_loss``, a target below the initial loss, met to rounding (the loss never
    increases along the flow); ``until_time``, the length of the run, or with a target the limit for it; ``time``:
    ``"t"``; ``"tau"``, in which ``until_time`` and ``times`` are in ``tau = t min(eta_OV, eta_QK)``; ``"log"``, in
    which they are in ``t`` and the default grid is even in log time only; ``times``, the output grid, sorted, from
    0 to at most the end; ``rtol``, from 1e-11 to 1e-3, and ``atol``, tolerances: the steps of the trajectory
    returned are held to 0.003 of them, in the coordinates of `numerics.charts`; ``method``, ``"DOP853"`` or
    ``"LSODA"``; ``fast``, whether DOP853 is compiled with Numba (`numerics.fast`) where it can be: True, False, or
    None, if Numba is there and ``GRADLINE_FAST`` is not 0; ``max_steps`` of an integration; ``progress``, called with
    (done, total) in runs. Arrays among the values of ``parameters`` and ``start`` are broadcast together. Of a user's
    model, a `GradientFlow` or what `numerics.reduce_model` returns, every state has a start, and the options are those
    of `numerics.models.simulation.simulate_flow`.

    Returns: a `Trajectory`; a `TrajectoryBatch` if any value is an array; a `FlowRun` for a user's model.

    Raises: ``ValueError`` or ``TypeError`` for wrong input; `TimeLimitError` where the limit comes before the target;
    `IntegrationError` where integration fails or both integrations differ by more than ``AGREEMENT * rtol``.

    Source: arXiv 2608.06776, reduced dynamics; claims `flow-collapsed`, `flow-cafo`, `flow-faco`, `flow-fafo`.

    >>> from theory import AttentionModel, TokenTask
    >>> task = TokenTask(classes=20, block=50, queries=50, noise=float("inf"), informative_slots=5, noise_slots=50)
    >>> run = simulate(AttentionModel(task), {"eta_OV": 1, "eta_QK": 0.1}, until_loss=1e-4)
    >>> print(f"{run.end.tau:.3g} {run.end.mu_OV:.3f} {run.end.mu_QK:.3f} {run.end.attention:.3f}")
    4.9e+06 42.282 1.395 0.287
    """
    if isinstance(flow, GradientFlow) or not isinstance(flow, (ReducedFlow, AttentionModel)):
        from numerics.models.simulation import simulate_flow

        other = {
            "time": time != "t",
            "atol": atol,
            "fast": fast,
            "max_steps": max_steps != 20_000,
            "progress": progress,
        }
        unknown = next((name for name, given in other.items() if given not in (None, False)), None)
        if unknown is not None:
            raise ValueError(f"{unknown}: only for the flow of the two coordinates; expected times, rtol or method")
        return simulate_flow(flow, parameters, start, until_loss, until_time, times=times, rtol=rtol, method=method)
    options = RunOptions(until_loss, until_time, time, times, rtol, atol, method, max_steps)
    parameters = {} if parameters is None else parameters
    if _is_fast(fast, method):
        from numerics.fast.runs import fast_batch

        batch = fast_batch(flow, parameters, start, options, progress)
        if batch is not None:
            return batch.runs[0] if batch.shape == () else batch
    return _on_scipy(as_flow(flow), parameters, start, options, progress)


def _is_fast(fast: bool | None, method: str) -> bool:
    if fast is None:
        fast = method == "DOP853" and os.environ.get("GRADLINE_FAST", "") != "0"
        return fast and importlib.util.find_spec("numba") is not None
    if not isinstance(fast, bool):
        raise TypeError(f"fast={fast!r}: expected True, False or None")
    if fast and method != "DOP853":
        raise ValueError(f"fast=True with method={method!r}: expected method='DOP853', the one that is compiled")
    if fast and importlib.util.find_spec("numba") is None:
        raise GradlineError("fast=True needs Numba, which is not installed: pip install 'gradline[fast]'")
    return fast


def _on_scipy(
    flow: ReducedFlow,
    parameters: Mapping[Any, Any],
    start: Mapping[Any, Any] | None,
    options: RunOptions,
    progress: Progress | None,
) -> Trajectory | TrajectoryBatch:
    from numerics.scipy_runs import make_run, run_trajectory

    shape, settings = _spread(parameters, start)
    each = [(parameters, start)] if shape == () else settings
    runs = [make_run(flow, values, begin, options) for values, begin in each]
    done = []
    for i, run in enumerate(runs):
        report = None if progress is None else _part(progress, i, len(runs))
        with numbered(i, len(runs), run.parameters):
            done.append(run_trajectory(run, report))
        if progress is not None:
            progress(i + 1, len(runs))
    return done[0] if shape == () else _batch(done, shape)


def _batch(runs: list[Trajectory], shape: tuple[int, ...]) -> TrajectoryBatch:
    end = Point(*(np.array([getattr(run.end, name) for run in runs]).reshape(shape) for name in _END))
    return TrajectoryBatch(tuple(runs), shape, end, np.array([run.error_estimate for run in runs]).reshape(shape))


def _part(progress: Progress, index: int, total: int) -> Callable[[float], None]:
    return lambda fraction: progress(index + min(fraction, 1.0), total)
