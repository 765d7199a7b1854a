"""Simulation on generated integrators: all runs of a batch at once; what they leave undone goes to SciPy.

Source: reduced dynamics of arXiv 2608.06776.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from numerics.charts import Chart, ChartKind, chart_kinds
from numerics.conditions import RunOptions, as_flow, check_end, read_arrays
from numerics.fast.engine import Ends, integrate, load
from numerics.fast.plan import Plan, kind_of, known_parameters, model_values, plan_of
from numerics.fast.solution import FastSolution
from numerics.ir import UnsupportedError
from numerics.run_errors import numbered
from numerics.trajectory import Point, Trajectory, TrajectoryBatch
from theory.flow import ReducedFlow, derive
from theory.model import AttentionModel

__all__ = ["fast_batch"]

Array = NDArray[np.float64]

#: Tolerances of the steps, as fractions of ``rtol``: of a run, and where its two integrations differ by too much.
_TOLERANCES = 0.003, 0.00003


@dataclass(frozen=True)
class _Setup:
    """Runs, checked: arrays (runs,) by name, in the order of the parameters of the flow."""

    source: ReducedFlow | AttentionModel
    module: Any
    plan: Plan
    kinds: tuple[ChartKind, ChartKind]
    parameters: Mapping[str, Array]
    start: Mapping[str, Array]
    given: Array
    widths: Array
    settings: Array
    options: RunOptions

    def integrate(self, at: Any, tolerance: float) -> Ends:
        """Integrate some of the runs."""
        settings = self.settings[at].copy()
        settings[:, 4:6] *= tolerance
        return integrate(self.module, settings, self.given[at], self.options.max_steps)

    def charts(self, i: int) -> tuple[Chart, Chart]:
        """The charts of a run."""
        return _charts(self.kinds, self.widths[:, i])


def _same(flow: ReducedFlow) -> bool:
    """Whether a flow is what its model derives to: nobody replaced a part of it."""
    own = derive(flow.model)
    return flow is own or flow == own


@lru_cache(maxsize=64)
def _symbols(model: AttentionModel) -> tuple[Any, ...]:
    return known_parameters(model)


def _setup(flow: ReducedFlow | AttentionModel, parameters: Any, start: Any, options: RunOptions) -> Any:
    """The shape and the `_Setup` of runs, or None."""
    if isinstance(flow, ReducedFlow) and not _same(flow):
        return None
    model = flow.model if isinstance(flow, ReducedFlow) else flow
    symbols = flow.parameters if isinstance(flow, ReducedFlow) else _symbols(model)
    found = read_arrays(model, symbols, parameters, start)
    if found is None:
        return None
    shape, values, begin = found
    stop, unit = options.stop(1.0), options.unit(values)
    options.times_in(1.0)
    numbers = model_values(model, values)
    if numbers is None or not np.isfinite(np.max(unit) * (stop.time or 0.0)):
        return None
    try:
        plan = plan_of(kind_of(model))
    except UnsupportedError:
        return None
    runs, kinds = len(begin["mu_OV"]), chart_kinds(model)
    signs = [np.sign(begin[n]) if kind == "balanced" else 1.0 for n, kind in zip(begin, kinds, strict=True)]
    with np.errstate(all="ignore"):
        given, widths = plan.given(numbers, (signs[0], signs[1]), runs)
        settings = np.empty((runs, 6))
        for k, (mu, chart) in enumerate(zip(begin.values(), _charts(kinds, widths), strict=True)):
            settings[:, k] = chart.y(mu)
    settings[:, 2] = 0.0 if stop.loss is None else stop.loss
    settings[:, 3] = np.inf if stop.time is None else stop.time * unit
    settings[:, 4] = options.rtol
    own = options.rtol / np.maximum(1.0, np.abs(widths[1]))
    settings[:, 5] = own if options.atol is None else options.atol
    module = load(plan.source)
    return shape, _Setup(flow, module, plan, kinds, values, begin, given, widths, settings, options)


def _charts(kinds: tuple[ChartKind, ChartKind], widths: Array) -> tuple[Chart, Chart]:
    """The charts of both circuits; the width of a balanced one is the sign of its start."""
    output, query = (
        Chart(k, w, 1.0) if k == "balanced" else Chart(k, 1.0, w) for k, w in zip(kinds, widths, strict=True)
    )
    return output, query


def _integrated(setup: _Setup) -> tuple[Ends, NDArray[np.bool_], Array]:
    """Ends of all runs, which of them are done, and the tolerance with which each was."""
    ends = setup.integrate(slice(None), _TOLERANCES[0])
    tolerance = np.full(len(setup.settings), _TOLERANCES[0])
    bound = setup.options.agreement
    done = (ends.status == setup.module.DONE) & (ends.error <= bound)
    again = np.flatnonzero((ends.status == setup.module.DONE) & ~done)
    if again.size:
        tolerance[again] = _TOLERANCES[1]
        better = setup.integrate(again, _TOLERANCES[1])
        for name in ("x", "y", "t", "loss", "attention", "steps", "error", "status"):
            getattr(ends, name)[again] = getattr(better, name)
        done = (ends.status == setup.module.DONE) & (ends.error <= bound)
    return ends, done, tolerance


@dataclass(frozen=True)
class _Runs(Sequence[Trajectory]):
    """Trajectories that are made when they are asked for."""

    make: Callable[[int], Trajectory]
    size: int
    made: dict[int, Trajectory] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Trajectory]:
        return (self[i] for i in range(self.size))

    @overload
    def __getitem__(self, index: int) -> Trajectory: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Trajectory, ...]: ...
    def __getitem__(self, index: int | slice) -> Trajectory | tuple[Trajectory, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self.size)))
        at = range(self.size)[index]
        if at not in self.made:
            self.made[at] = self.make(at)
        return self.made[at]


def _nodes(setup: _Setup, ends: Ends, tolerance: Array, i: int) -> Array:
    """The steps of a run: kept if all runs fit into the lanes, otherwise integrated again."""
    steps = int(ends.steps[i]) + 1
    if len(setup.settings) <= setup.module.LANES and tolerance[i] == _TOLERANCES[0]:
        return ends.nodes[i, :steps]
    return setup.integrate(slice(i, i + 1), tolerance[i]).nodes[0, :steps]


def _maker(setup: _Setup, ends: Ends, mu: tuple[Array, Array], tolerance: Array) -> Callable[[int], Trajectory]:
    """The function that makes a trajectory of a run."""
    options = setup.options

    def make(i: int) -> Trajectory:
        parameters = {name: float(v[i]) for name, v in setup.parameters.items()}

        def fields() -> Any:
            from numerics.scipy_runs import fields_of

            return fields_of(as_flow(setup.source), parameters)

        unit = float(options.unit(parameters))
        slower = min(parameters["eta_OV"], parameters["eta_QK"])
        begin = {name: float(v[i]) for name, v in setup.start.items()}
        last, t = (float(mu[0][i]), float(mu[1][i])), float(ends.t[i])
        solution = FastSolution(
            module=setup.module,
            nodes=_nodes(setup, ends, tolerance, i),
            given=setup.given[i],
            charts=setup.charts(i),
            start=(begin["mu_OV"], begin["mu_QK"]),
            mu_end=last,
            t_end=t,
            unit=float(ends.unit[i]),
            make_fields=fields,
        )
        times = options.times_in(unit)
        check_end(times, t)
        return Trajectory(
            end=Point(t, t * slower, *last, float(ends.loss[i]), float(ends.attention[i])),
            parameters=MappingProxyType(parameters),
            start=MappingProxyType(begin),
            time=options.time,
            error_estimate=float(ends.error[i]),
            steps=int(ends.steps[i]),
            source=setup.source,
            solution=solution,
            times=times,
        )

    return make


def fast_batch(
    flow: ReducedFlow | AttentionModel,
    parameters: Any,
    start: Any,
    options: RunOptions,
    progress: Callable[[float, float], None] | None,
) -> TrajectoryBatch | None:
    """Simulate all runs; ``shape`` is () for a single one.

    Returns: None where a generated integrator does not apply or the input is refused: `numerics.scipy_runs` says why.

    Raises: what `numerics.simulate` raises for runs that SciPy has to finish.
    """
    prepared = _setup(flow, parameters, start, options)
    if prepared is None:
        return None
    shape, setup = prepared
    ends, done, tolerance = _integrated(setup)
    count = len(done)
    if progress is not None:
        progress(int(done.sum()) - 0.5 * bool(done.all()), count)
    with np.errstate(over="ignore"):
        charts = _charts(setup.kinds, setup.widths)
        mu = [np.array(chart.mu(y)) for chart, y in zip(charts, (ends.x, ends.y), strict=True)]
    runs = _Runs(_maker(setup, ends, (mu[0], mu[1]), tolerance), count)
    for i in np.flatnonzero(~done):
        run = _finished_elsewhere(setup, int(i), count)
        runs.made[int(i)] = run
        ends.t[i], ends.loss[i], ends.attention[i] = run.end.t, run.end.loss, run.end.attention
        ends.error[i], mu[0][i], mu[1][i] = run.error_estimate, run.end.mu_OV, run.end.mu_QK
    if options.times is not None and count:
        units = np.broadcast_to(options.unit(setup.parameters), count)
        earliest = int(np.argmin(ends.t / units))
        check_end(options.times_in(float(units[earliest])), ends.t[earliest])
    if progress is not None:
        progress(count, count)
    slower = np.minimum(setup.parameters["eta_OV"], setup.parameters["eta_QK"])
    columns = ends.t, ends.t * slower, mu[0], mu[1], ends.loss, ends.attention
    return TrajectoryBatch(runs, shape, Point(*(c.reshape(shape) for c in columns)), ends.error.reshape(shape))


def _finished_elsewhere(setup: _Setup, i: int, total: int) -> Trajectory:
    """A run on SciPy."""
    from numerics.scipy_runs import make_run, run_trajectory

    parameters = {name: float(v[i]) for name, v in setup.parameters.items()}
    start = {name: float(v[i]) for name, v in setup.start.items()}
    run = make_run(as_flow(setup.source), parameters, start, setup.options)
    with numbered(i, total, parameters):
        return run_trajectory(run, None)
