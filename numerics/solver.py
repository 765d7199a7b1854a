"""Adaptive integration of a reduced flow in logarithmic time, with an exact loss event.

    u = log(1 + t/t_0),    dy/du = (t + t_0) dy/dt,    y = chart(mu)

In log time the long tail ``L ~ 1/t`` costs a few steps for each power of ten. In the coordinate ``y`` of
`numerics.charts` growth and decay near a stationary point are linear in ``t``: small starts keep their digits, and
decay is not stiff.

Source: reduced dynamics of arXiv 2608.06776.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import DOP853, LSODA, OdeSolution
from scipy.optimize import brentq

from numerics.charts import Chart
from numerics.logtime import log_time, time_of
from numerics.run_errors import IntegrationError, TimeLimitError

__all__ = ["METHODS", "IntegrationError", "Numbers", "Problem", "Solution", "TimeLimitError", "solve"]

Array = NDArray[np.float64]
Numbers = float | Array

#: Methods whose dense output is as accurate as their steps.
METHODS: dict[str, Any] = {"DOP853": DOP853, "LSODA": LSODA}

_LARGEST = math.log(1e308)
_LONGEST = 1.0  # a step covers at most a factor e of the time: interpolation stays as good as the steps


@dataclass(frozen=True)
class Problem:
    """A reduced flow with numbers.

    ``fields``, (mu_OV, mu_QK) -> (d mu_OV/dt, d mu_QK/dt, loss, attention), for numbers and for arrays; ``start`` (2,);
    ``charts``, the coordinate in which each circuit is integrated.
    """

    fields: Callable[[Any, Any], tuple[Any, Any, Any, Any]]
    start: tuple[float, float]
    charts: tuple[Chart, Chart]

    def to_chart(self) -> list[float]:
        """The start as ``y``."""
        return [chart.y(mu) for chart, mu in zip(self.charts, self.start, strict=True)]

    def from_chart(self, y: Any) -> Array:
        """Coordinates ``mu`` of ``y``, first axis over circuits."""
        return np.stack([np.asarray(chart.mu(x)) for chart, x in zip(self.charts, y, strict=True)])

    def loss(self, y: Any) -> float:
        """The loss at ``y``."""
        return float(self.fields(*self.from_chart(y))[2])

    def right_side(self, log_unit: float) -> Callable[[float, Any], list[float]]:
        """``dy/du`` as a function of ``u`` and ``y``, for ``log_unit = log t_0``."""
        fields, (chart_OV, chart_QK) = self.fields, self.charts

        def velocity(u: float, y: Any) -> list[float]:
            mu_OV, slope_OV = chart_OV.point(y[0])
            mu_QK, slope_QK = chart_QK.point(y[1])
            d_OV, d_QK, _, _ = fields(mu_OV, mu_QK)
            pace = math.exp(u + log_unit)
            return [pace * d_OV / slope_OV, pace * d_QK / slope_QK]

        return velocity

    def unit(self) -> float:
        """The time ``t_0`` in which ``y`` would change by 1 at the pace of the start."""
        with np.errstate(over="ignore"):
            speed = max(abs(float(v)) for v in self.right_side(0.0)(0.0, self.to_chart()))
        return 1.0 / speed


@dataclass(frozen=True)
class Solution:
    """Steps in log time, with a piecewise interpolant; ``t_end`` and ``mu_end`` (2,) are exact steps."""

    problem: Problem
    unit: float
    curve: OdeSolution[Any]
    t_end: float
    mu_end: tuple[float, float]
    steps: int

    @property
    def u_end(self) -> float:
        """End of the run in log time."""
        return float(self.curve.ts[-1])

    def t_of(self, u: Array) -> Array:
        """Time ``t`` of log time ``u``."""
        return time_of(u, self.unit)

    @property
    def fields(self) -> Callable[[Any, Any], tuple[Any, Any, Any, Any]]:
        """(mu_OV, mu_QK) -> (d mu_OV/dt, d mu_QK/dt, loss, attention), for numbers and arrays."""
        return self.problem.fields

    def mu(self, t: Any) -> Array:
        """Coordinates at times ``t``; shape (2, *t.shape)."""
        t = np.asarray(t, dtype=np.float64)
        u = np.minimum(log_time(t, self.unit), self.u_end)
        y = np.asarray(self.curve(u.ravel())).reshape(2, *t.shape)
        found = self.problem.from_chart(y)
        end = np.reshape(self.mu_end, (2, *[1] * t.ndim))
        begin = np.reshape(self.problem.start, (2, *[1] * t.ndim))
        return np.where(t == 0, begin, np.where(t == self.t_end, end, found))


@dataclass(frozen=True)
class _Stepper:
    """What each part of a run has in common."""

    problem: Problem
    velocity: Callable[[float, Any], list[float]]
    method: str
    rtol: float
    atol: tuple[float, float]
    max_steps: int

    def steps(self, u: float, y: Any, end: float, **options: Any) -> Iterator[Any]:
        """Yield the solver after each step from ``u`` to ``end``."""
        solver = METHODS[self.method](
            self.velocity,
            u,
            np.array(y, dtype=np.float64),
            end,
            rtol=self.rtol,
            atol=np.array(self.atol),
            max_step=_LONGEST,
            **options,
        )
        for _ in range(self.max_steps):
            message = solver.step()
            if solver.status == "failed" or not np.isfinite(solver.y).all():
                raise IntegrationError(
                    f"integration with {self.method} failed at log time {solver.t:.6g}, state {self._shown(solver.y)}: "
                    f"{message or 'the state is not finite'} (an escape faster than rounding of the time after a long "
                    "plateau?); start closer to 0, stop earlier, or use numerics.stopping_state"
                )
            yield solver
            if solver.status == "finished":
                return
        raise IntegrationError(
            f"integration with {self.method}: {self.max_steps} steps end at log time {solver.t:.6g} of {end:.6g}, "
            f"state {self._shown(solver.y)}; raise max_steps, loosen rtol or stop earlier"
        )

    def _shown(self, y: Any) -> str:
        return "({:.6g}, {:.6g})".format(*self.problem.from_chart(y))


def _polish(stepper: _Stepper, u: float, y: Array, goal: float) -> Array:
    """Move a state along the flow onto the target by less than the spacing of log time."""
    pace = np.array(stepper.velocity(u, y))
    for _ in range(3):
        gap = math.log(stepper.problem.loss(y)) - goal
        probe = 1e-6 / max(1.0, float(np.abs(pace).max()))
        slope = (math.log(stepper.problem.loss(y + probe * pace)) - goal - gap) / probe
        if gap == 0 or not slope < 0:
            return y
        y = y - gap / slope * pace
    return y


def _cross(stepper: _Stepper, solver: Any, before: Array, target: float) -> tuple[list[float], list[Any], Array]:
    """Replace the step that crosses the target by steps that end on it: ends, interpolants, and the state there."""
    goal, start, piece = math.log(target), float(solver.t_old), solver.dense_output()

    def gap(u: float) -> float:
        return math.log(stepper.problem.loss(piece(u))) - goal

    u = float(solver.t)
    if gap(start) > 0 > gap(u):
        u = float(brentq(gap, start, u, xtol=1e-300, rtol=8.9e-16))
    if u <= start:
        u = math.nextafter(start, math.inf)
    ends: list[float] = []
    pieces: list[Any] = []
    state = before
    for last in stepper.steps(start, before, u, first_step=u - start):
        ends.append(float(last.t))
        pieces.append(last.dense_output())
        state = np.array(last.y)
    return ends, pieces, _polish(stepper, u, state, goal)


def _bound(stop_time: float | None, unit: float) -> float:
    if stop_time is None:
        return _LARGEST - math.log(unit)
    return float(log_time(np.asarray(stop_time), unit))


def solve(
    problem: Problem,
    *,
    loss: float | None,
    time: float | None,
    unit: float,
    method: str = "DOP853",
    rtol: float = 1e-10,
    atol: Sequence[float] = (1e-10, 1e-10),
    max_steps: int = 20_000,
    progress: Callable[[float], None] | None = None,
) -> Solution:
    """Integrate a flow from its start to a loss, a time, or a loss within a time.

    Parameters: ``problem``; ``loss``, the target, below the initial loss; ``time``, the time limit in ``t`` (one of
    the two is needed); ``unit``, the ``t_0`` of log time; ``method``, a name in `METHODS`; ``rtol``, ``atol``,
    tolerances of a step in ``y``; ``progress``, called with a fraction.

    Raises: `IntegrationError` where the method fails; `TimeLimitError` where the limit comes before the target.
    """
    end = _bound(time, unit)
    tolerances = (float(atol[0]), float(atol[1]))
    stepper = _Stepper(problem, problem.right_side(math.log(unit)), method, rtol, tolerances, max_steps)
    state, ends = np.array(problem.to_chart()), [0.0]
    pieces: list[Any] = []
    first = now = problem.loss(state)
    steps = 0
    for solver in stepper.steps(0.0, state, end):
        steps += 1
        now = problem.loss(solver.y)
        if loss is not None and now <= loss:
            last_ends, last_pieces, state = _cross(stepper, solver, state, loss)
            ends, pieces = ends + last_ends, pieces + last_pieces
            break
        ends.append(float(solver.t))
        pieces.append(solver.dense_output())
        state = np.array(solver.y)
        if progress is not None:
            by_loss = 0.0 if loss is None else math.log(now / first) / math.log(loss / first)
            progress(min(1.0, max(by_loss, 0.0 if time is None else solver.t / end)))
    else:
        _check_reached(loss, time, now)
    mu_OV, mu_QK = (float(x) for x in problem.from_chart(state))
    t_end = float(time_of(np.asarray(ends[-1]), unit)) if loss is not None else float(time or 0.0)
    return Solution(problem, unit, OdeSolution(ends, pieces), t_end, (mu_OV, mu_QK), steps)


def _check_reached(loss: float | None, time: float | None, reached: float) -> None:
    """Raise unless the end of a run without crossing is where it should end."""
    if loss is None:
        return
    if time is None:
        raise IntegrationError(
            f"integration to loss {loss:.6g}: at the largest time of double precision, t = 1e308, the loss is "
            f"{reached:.6g}; raise the target"
        )
    raise TimeLimitError(
        f"the time limit t={time:.6g} comes before the loss {loss:.6g}: the loss reached is {reached:.6g}, at "
        f"t={time:.6g}; raise until_time or until_loss",
        reached,
        time,
    )
