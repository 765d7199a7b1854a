"""Simulation of a reduced flow: two integrations that must agree, with events, any time variable and batches.

Source: reduced dynamics of arXiv 2608.06776.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy
from numpy.typing import ArrayLike, NDArray

from numerics.charts import Chart
from numerics.conditions import (
    Stop,
    TimeName,
    as_flow,
    read_parameters,
    read_start,
    read_stop,
    read_time_name,
    read_times,
)
from numerics.kernels import compile_kernel
from numerics.scalar import scalar_function
from numerics.sizes import check_choice, finite_number
from numerics.solver import METHODS, IntegrationError, Problem, Solution, TimeLimitError, solve
from numerics.trajectory import Point, Trajectory, TrajectoryBatch
from theory.errors import GradlineError
from theory.flow import ReducedFlow
from theory.line import COORDINATES
from theory.model import AttentionModel

__all__ = ["AGREEMENT", "IntegrationError", "TimeLimitError", "simulate"]

Array = NDArray[np.float64]
Progress = Callable[[float, float], None]

#: Largest `error_estimate` a trajectory is returned with, as a multiple of ``rtol``.
AGREEMENT = 100.0
#: Tolerances of the steps of both integrations, as fractions of ``rtol``; the tighter one is returned.
_LOOSE, _TIGHT = 0.1, 0.003
_POINTS = 257


@dataclass(frozen=True)
class _Run:
    """A checked setting of one run."""

    flow: ReducedFlow
    parameters: dict[str, float]
    start: dict[str, float]
    problem: Problem
    stop: Stop
    times: Array | None
    time: TimeName
    rtol: float
    atol: float | None
    method: str
    max_steps: int


def _charts(flow: ReducedFlow, start: dict[str, float], parameters: dict[str, float]) -> tuple[Chart, Chart]:
    charts = []
    for circuit, coordinate in COORDINATES.items():
        if flow.model.form(circuit) == "collapsed":
            chart = Chart("collapsed")
        elif flow.model.is_balanced(circuit):
            chart = Chart("balanced", sign=math.copysign(1.0, start[coordinate.name]))
        else:
            numbers = {s: sympy.Float(parameters[s.name], 20) for s in flow.parameters}
            width = flow.model.imbalance(circuit) / (2 * flow.definitions[f"sigma_{circuit}"])
            chart = Chart("imbalanced", width=abs(float(width.xreplace(numbers))))
        charts.append(chart)
    return charts[0], charts[1]


def _problem(flow: ReducedFlow, parameters: dict[str, float], start: dict[str, float]) -> Problem:
    kernel, values = compile_kernel(flow, backend="numpy"), tuple(parameters.values())
    plain = scalar_function(kernel)

    def fields(mu_OV: Any, mu_QK: Any) -> tuple[Any, Any, Any, Any]:
        if np.ndim(mu_OV) == 0:
            return plain(float(mu_OV), float(mu_QK), *values)
        return kernel(mu_OV, mu_QK, *values)

    begin = start["mu_OV"], start["mu_QK"]
    problem = Problem(fields, begin, _charts(flow, start, parameters))
    with np.errstate(all="ignore"):
        found = [float(x) for x in fields(*begin)]
    shown = f"start mu_OV={begin[0]!r}, mu_QK={begin[1]!r}"
    if not np.isfinite(found).all():
        raise ValueError(f"{shown}: velocity and loss are not finite there; expected a start closer to 0")
    if found[0] == 0 == found[1]:
        raise ValueError(f"{shown}: stationary in double precision, both velocities are 0; expected a start that moves")
    return problem


def _check_target(run: _Run) -> None:
    """Refuse a target that the loss, which never increases along the flow, can't reach from this start."""
    if run.stop.loss is None:
        return
    first = float(run.problem.fields(*run.problem.start)[2])
    if run.stop.loss >= first:
        raise ValueError(f"until_loss={run.stop.loss!r}: expected a loss below the initial one, {first!r}")
    if run.problem.charts[0].kind == "balanced" and run.problem.start[0] < 0:
        least = float(run.problem.fields(0.0, run.problem.start[1])[2])
        if run.stop.loss <= least:
            raise ValueError(
                f"until_loss={run.stop.loss!r}: never reached, mu_OV < 0 keeps its sign in a balanced circuit and the "
                f"loss stays above {least!r}"
            )


def _integrate(run: _Run, rtol: float, unit: float, progress: Callable[[float], None] | None) -> Solution:
    given = None if run.atol is None else run.atol * rtol / run.rtol
    atol = [chart.tolerance(rtol) if given is None else given for chart in run.problem.charts]
    with np.errstate(all="ignore"):
        return solve(
            run.problem,
            loss=run.stop.loss,
            time=run.stop.time,
            unit=unit,
            method=run.method,
            rtol=rtol,
            atol=atol,
            max_steps=run.max_steps,
            progress=progress,
        )


def _grid(solution: Solution, time: TimeName) -> Array:
    """Output times: evenly spaced in log time and, unless log time is asked for, in ``t`` as well."""
    inner = solution.t_of(np.linspace(0.0, solution.u_end, _POINTS)[1:-1])
    even = solution.t_end * np.linspace(0.0, 1.0, _POINTS)[1:-1]
    chosen = inner if time == "log" else np.concatenate([inner, even])
    chosen = np.unique(chosen[(chosen > 0) & (chosen < solution.t_end)])
    return np.concatenate([[0.0], chosen, [solution.t_end]])


def _deviation(one: Solution, other: Solution, times: Array) -> float:
    """Largest deviation: in states relative to ``1 + |mu|``, in the end time relative to ``t + t_0``."""
    common = times[times < min(one.t_end, other.t_end)]
    first, second = one.mu(common), other.mu(common)
    parts = np.abs(first - second) / (1 + np.abs(first))
    ends = np.abs(np.subtract(one.mu_end, other.mu_end)) / (1 + np.abs(one.mu_end))
    late = abs(one.t_end - other.t_end) / (one.t_end + one.unit)
    return float(max(np.max(parts, initial=0.0), ends.max(), late))


def _agreeing(run: _Run, progress: Callable[[float], None] | None) -> tuple[Solution, Array, float]:
    """Integrate twice, with different tolerances and log times; return the tighter one, its grid and the deviation."""
    unit = run.problem.unit()
    halves = [None, None] if progress is None else [lambda x: progress(x / 3), lambda x: progress((1 + 2 * x) / 3)]
    loose = _integrate(run, run.rtol * _LOOSE, unit / math.e, halves[0])
    tight = _integrate(run, run.rtol * _TIGHT, unit, halves[1])
    grid = _grid(tight, run.time)
    times = grid if run.times is None else np.union1d(grid, run.times)
    error = _deviation(tight, loose, times)
    if not error <= AGREEMENT * run.rtol:
        raise IntegrationError(
            f"integration with {run.method}: two runs with different tolerances differ by {error:.3g}, more than "
            f"{AGREEMENT:g} rtol = {AGREEMENT * run.rtol:.3g}; change rtol, or start further from a stationary point"
        )
    return tight, grid, error


def _trajectory(run: _Run, progress: Callable[[float], None] | None) -> Trajectory:
    solution, grid, error = _agreeing(run, progress)
    if run.times is not None:
        if run.times[-1] > solution.t_end:
            raise ValueError(
                f"times: {run.times[-1]:.6g} (in t) lies beyond the end of the run, t={solution.t_end:.6g}"
            )
        grid = run.times
    unit = min(run.parameters["eta_OV"], run.parameters["eta_QK"])
    mu = solution.mu(grid)
    _, _, loss, attention = (
        np.broadcast_to(np.asarray(x, dtype=np.float64), grid.shape) for x in run.problem.fields(*mu)
    )
    last = [float(x) for x in run.problem.fields(*solution.mu_end)[2:]]
    end = Point(solution.t_end, solution.t_end * unit, *solution.mu_end, *last)
    return Trajectory(
        t=grid,
        tau=grid * unit,
        mu_OV=mu[0],
        mu_QK=mu[1],
        loss=loss,
        attention=attention,
        end=end,
        parameters=MappingProxyType(run.parameters),
        start=MappingProxyType(run.start),
        time=run.time,
        error_estimate=error,
        steps=solution.steps,
        flow=run.flow,
        solution=solution,
    )


def _settings(flow: ReducedFlow, until_loss: Any, until_time: Any, options: dict[str, Any]) -> Callable[..., _Run]:
    """Check what all runs of a batch share; returns the maker of a run from parameters and start."""
    time = read_time_name(options["time"])
    method = check_choice("method", options["method"], METHODS)
    rtol = finite_number("rtol", options["rtol"], positive=True)
    if not 1e-11 <= rtol <= 1e-3:
        raise ValueError(f"rtol={rtol}: expected a tolerance from 1e-11 to 1e-3")
    atol = None if options["atol"] is None else finite_number("atol", options["atol"], positive=True)
    steps = finite_number("max_steps", options["max_steps"], positive=True)

    def make(parameters: Mapping[Any, Any], start: Mapping[Any, Any] | None) -> _Run:
        values, begin = read_parameters(flow, parameters), read_start(flow, start)
        unit = 1 / min(values["eta_OV"], values["eta_QK"]) if time == "tau" else 1.0
        stop, times = read_stop(until_loss, until_time, unit), read_times(options["times"], unit)
        problem = _problem(flow, values, begin)
        return _Run(flow, values, begin, problem, stop, times, time, rtol, atol, method, int(steps))

    return make


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
    max_steps: int = 20_000,
    progress: Progress | None = None,
) -> Trajectory | TrajectoryBatch:
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
    ``"LSODA"``; ``max_steps`` of an integration; ``progress``, called with (done, total) in runs, ``done`` with a
    fraction. Arrays among the values of ``parameters`` and ``start`` are broadcast together.

    Returns: a `Trajectory`; a `TrajectoryBatch` if any value is an array.

    Raises: ``ValueError`` or ``TypeError`` for wrong input; `TimeLimitError` where the limit comes before the target;
    `IntegrationError` where integration fails or both integrations differ by more than ``AGREEMENT * rtol``.

    Source: arXiv 2608.06776, reduced dynamics; claims `flow-collapsed`, `flow-cafo`, `flow-faco`, `flow-fafo`.

    >>> from theory import AttentionModel, TokenTask
    >>> task = TokenTask(classes=20, block=50, queries=50, noise=float("inf"), informative_slots=5, noise_slots=50)
    >>> run = simulate(AttentionModel(task), {"eta_OV": 1, "eta_QK": 0.1}, until_loss=1e-4)
    >>> print(f"{run.end.tau:.3g} {run.end.mu_OV:.3f} {run.end.mu_QK:.3f} {run.end.attention:.3f}")
    4.9e+06 42.282 1.395 0.287
    """
    flow = as_flow(flow)
    options = {"time": time, "times": times, "rtol": rtol, "atol": atol, "method": method, "max_steps": max_steps}
    make = _settings(flow, until_loss, until_time, options)
    shape, settings = _spread(parameters, start)
    runs = [make(parameters, start)] if shape == () else [make(*setting) for setting in settings]
    for run in runs:
        _check_target(run)
    done = []
    for i, run in enumerate(runs):
        report = None if progress is None else _part(progress, i, len(runs))
        try:
            done.append(_trajectory(run, report))
        except GradlineError as error:
            if len(runs) > 1:
                ratio = run.parameters["eta_QK"] / run.parameters["eta_OV"]
                text = f"run {i + 1} of {len(runs)}, eta_QK/eta_OV = {ratio:.6g}: {error}"
                error.args = (text, *error.args[1:])
            raise
        if progress is not None:
            progress(i + 1, len(runs))
    return done[0] if shape == () else TrajectoryBatch(tuple(done), shape)


def _part(progress: Progress, index: int, total: int) -> Callable[[float], None]:
    return lambda fraction: progress(index + min(fraction, 1.0), total)
