"""Runs of a reduced flow on SciPy's integrators: two integrations of each that must agree.

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
from numpy.typing import NDArray

from numerics.charts import Chart, chart_kinds
from numerics.conditions import RunOptions, Stop, check_end, read_parameters, read_start
from numerics.kernels import compile_kernel
from numerics.run_errors import IntegrationError
from numerics.scalar import scalar_function
from numerics.solver import Problem, Solution, solve
from numerics.trajectory import Point, Trajectory, output_grid
from theory.flow import ReducedFlow
from theory.line import COORDINATES

__all__ = ["fields_of", "make_run", "run_trajectory"]

Array = NDArray[np.float64]
Fields = Callable[[Any, Any], tuple[Any, Any, Any, Any]]

#: Tolerances of the steps of both integrations, as fractions of ``rtol``; the tighter one is returned.
_LOOSE, _TIGHT = 0.1, 0.003


@dataclass(frozen=True)
class Run:
    """A checked setting of one run."""

    flow: ReducedFlow
    parameters: dict[str, float]
    start: dict[str, float]
    problem: Problem
    stop: Stop
    times: Array | None
    options: RunOptions


def charts_of(flow: ReducedFlow, start: dict[str, float], parameters: dict[str, float]) -> tuple[Chart, Chart]:
    charts = []
    for (circuit, coordinate), kind in zip(COORDINATES.items(), chart_kinds(flow.model), strict=True):
        chart = Chart(kind)
        if kind == "balanced":
            chart = Chart(kind, sign=math.copysign(1.0, start[coordinate.name]))
        if kind == "imbalanced":
            numbers = {s: sympy.Float(parameters[s.name], 20) for s in flow.parameters}
            width = flow.model.imbalance(circuit) / (2 * flow.definitions[f"sigma_{circuit}"])
            chart = Chart(kind, width=abs(float(width.xreplace(numbers))))
        charts.append(chart)
    return charts[0], charts[1]


def fields_of(flow: ReducedFlow, parameters: Mapping[str, float]) -> Fields:
    """(mu_OV, mu_QK) -> (d mu_OV/dt, d mu_QK/dt, loss, attention), for numbers and for arrays."""
    kernel, values = compile_kernel(flow, backend="numpy"), tuple(parameters.values())
    plain = scalar_function(kernel)

    def fields(mu_OV: Any, mu_QK: Any) -> tuple[Any, Any, Any, Any]:
        if np.ndim(mu_OV) == 0:
            return plain(float(mu_OV), float(mu_QK), *values)
        return kernel(mu_OV, mu_QK, *values)

    return fields


def _problem(flow: ReducedFlow, parameters: dict[str, float], start: dict[str, float]) -> Problem:
    fields = fields_of(flow, parameters)
    begin = start["mu_OV"], start["mu_QK"]
    problem = Problem(fields, begin, charts_of(flow, start, parameters))
    with np.errstate(all="ignore"):
        found = [float(x) for x in fields(*begin)]
    shown = f"start mu_OV={begin[0]!r}, mu_QK={begin[1]!r}"
    if not np.isfinite(found).all():
        raise ValueError(f"{shown}: velocity and loss are not finite there; expected a start closer to 0")
    if found[0] == 0 == found[1]:
        raise ValueError(f"{shown}: stationary in double precision, both velocities are 0; expected a start that moves")
    return problem


def _check_target(run: Run) -> None:
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


def _integrate(run: Run, rtol: float, unit: float, progress: Callable[[float], None] | None) -> Solution:
    given = None if run.options.atol is None else run.options.atol * rtol / run.options.rtol
    atol = [chart.tolerance(rtol) if given is None else given for chart in run.problem.charts]
    with np.errstate(all="ignore"):
        return solve(
            run.problem,
            loss=run.stop.loss,
            time=run.stop.time,
            unit=unit,
            method=run.options.method,
            rtol=rtol,
            atol=atol,
            max_steps=run.options.max_steps,
            progress=progress,
        )


def _deviation(one: Solution, other: Solution, times: Array) -> float:
    """Largest deviation: in states relative to ``1 + |mu|``, in the end time relative to ``t + t_0``."""
    common = times[times < min(one.t_end, other.t_end)]
    first, second = one.mu(common), other.mu(common)
    parts = np.abs(first - second) / (1 + np.abs(first))
    ends = np.abs(np.subtract(one.mu_end, other.mu_end)) / (1 + np.abs(one.mu_end))
    late = abs(one.t_end - other.t_end) / (one.t_end + one.unit)
    return float(max(np.max(parts, initial=0.0), ends.max(), late))


def _agreeing(run: Run, progress: Callable[[float], None] | None) -> tuple[Solution, float]:
    """Integrate twice, with different tolerances and log times; return the tighter one and the deviation."""
    unit = run.problem.unit()
    halves = [None, None] if progress is None else [lambda x: progress(x / 3), lambda x: progress((1 + 2 * x) / 3)]
    loose = _integrate(run, run.options.rtol * _LOOSE, unit / math.e, halves[0])
    tight = _integrate(run, run.options.rtol * _TIGHT, unit, halves[1])
    grid = output_grid(tight, run.options.time)
    times = grid if run.times is None else np.union1d(grid, run.times)
    error = _deviation(tight, loose, times)
    if not error <= run.options.agreement:
        raise IntegrationError(
            f"integration with {run.options.method}: two runs with different tolerances differ by {error:.3g}, more "
            f"than 100 rtol = {run.options.agreement:.3g}; change rtol, or start further from a stationary point"
        )
    return tight, error


def run_trajectory(run: Run, progress: Callable[[float], None] | None) -> Trajectory:
    """Integrate a run twice; ``progress`` is called with a fraction.

    Raises: `IntegrationError`, `TimeLimitError`, or ``ValueError`` where the grid goes beyond the end.
    """
    solution, error = _agreeing(run, progress)
    check_end(run.times, solution.t_end)
    unit = min(run.parameters["eta_OV"], run.parameters["eta_QK"])
    last = [float(x) for x in run.problem.fields(*solution.mu_end)[2:]]
    end = Point(solution.t_end, solution.t_end * unit, *solution.mu_end, *last)
    return Trajectory(
        end=end,
        parameters=MappingProxyType(run.parameters),
        start=MappingProxyType(run.start),
        time=run.options.time,
        error_estimate=error,
        steps=solution.steps,
        source=run.flow,
        solution=solution,
        times=run.times,
    )


def make_run(
    flow: ReducedFlow, parameters: Mapping[Any, Any], start: Mapping[Any, Any] | None, options: RunOptions
) -> Run:
    """Check parameters, start and end of a run."""
    values, begin = read_parameters(flow, parameters), read_start(flow, start)
    unit = options.unit(values)
    stop, times = options.stop(unit), options.times_in(unit)
    run = Run(flow, values, begin, _problem(flow, values, begin), stop, times, options)
    _check_target(run)
    return run
