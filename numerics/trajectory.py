"""Trajectories of a reduced flow: what `numerics.simulate` returns.

Source: reduced dynamics of arXiv 2608.06776.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numerics.conditions import TimeName, as_flow
from numerics.sizes import finite_number

if TYPE_CHECKING:
    from numerics.fast.solution import FastSolution
    from numerics.solver import Solution
    from theory.flow import ReducedFlow
    from theory.model import AttentionModel

__all__ = ["Point", "Trajectory", "TrajectoryBatch", "output_grid"]

Array = NDArray[np.float64]
_POINTS = 257


def output_grid(solution: Solution | FastSolution, time: TimeName) -> Array:
    """Output times: evenly spaced in log time and, unless log time is asked for, in ``t`` as well."""
    inner = solution.t_of(np.linspace(0.0, solution.u_end, _POINTS)[1:-1])
    even = solution.t_end * np.linspace(0.0, 1.0, _POINTS)[1:-1]
    chosen = inner if time == "log" else np.concatenate([inner, even])
    chosen = np.unique(chosen[(chosen > 0) & (chosen < solution.t_end)])
    return np.concatenate([[0.0], chosen, [solution.t_end]])


@dataclass(frozen=True)
class Point:
    """One state, or an array of states, of trajectories: numbers, or arrays of one shape."""

    t: Any
    tau: Any
    mu_OV: Any
    mu_QK: Any
    loss: Any
    attention: Any


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A trajectory of the two coordinates.

    ``t``, ``tau = t min(eta_OV, eta_QK)``, ``mu_OV``, ``mu_QK``, ``loss``, ``attention``: arrays (R,) over the output
    grid; ``end``, the last state, also where a grid was asked for; ``parameters`` and ``start`` by name; ``time``,
    the name of the time variable; ``error_estimate``, largest deviation of a second integration, in the coordinates
    relative to ``1 + |mu|`` and in the end time relative to itself (for very short runs to the time scale of the
    start); ``steps``, of the integrator; ``flow``; ``solution``, its steps; ``times``, the grid if one was asked for.
    Called with times, the dense output: coordinates of shape (2, *times.shape).
    """

    end: Point
    parameters: Mapping[str, float]
    start: Mapping[str, float]
    time: TimeName
    error_estimate: float
    steps: int
    source: ReducedFlow | AttentionModel
    solution: Solution | FastSolution
    times: Array | None = None

    @property
    def flow(self) -> ReducedFlow:
        """The reduced flow."""
        return as_flow(self.source)

    @cached_property
    def t(self) -> Array:
        """The output grid."""
        return output_grid(self.solution, self.time) if self.times is None else self.times

    @property
    def tau(self) -> Array:
        """The output grid in units of the slower circuit."""
        return self.t * self.tau_unit

    @cached_property
    def _mu(self) -> Array:
        return self.solution.mu(self.t)

    @property
    def mu_OV(self) -> Array:
        """The output-value coordinate on the grid."""
        return self._mu[0]

    @property
    def mu_QK(self) -> Array:
        """The query-key coordinate on the grid."""
        return self._mu[1]

    @cached_property
    def _seen(self) -> tuple[Array, Array]:
        _, _, loss, attention = self.solution.fields(*self._mu)
        shape = self.t.shape
        return np.broadcast_to(np.asarray(loss), shape), np.broadcast_to(np.asarray(attention), shape)

    @property
    def loss(self) -> Array:
        """The loss on the grid."""
        return self._seen[0]

    @property
    def attention(self) -> Array:
        """The attention on the grid."""
        return self._seen[1]

    def __call__(self, t: ArrayLike) -> Array:
        """Coordinates ``(mu_OV, mu_QK)`` at times ``t`` between 0 and the end; shape (2, *t.shape)."""
        times = np.asarray(t, dtype=np.float64)
        if not bool(np.all((times >= 0) & (times <= self.end.t))):
            raise ValueError(f"t={t!r}: expected times from 0 to the end of the run, t={self.end.t:.17g}")
        return self.solution.mu(times)

    def at(self, t: float) -> Point:
        """The state at a time ``t`` between 0 and the end."""
        time = finite_number("t", t)
        mu_OV, mu_QK = (float(x) for x in self(time))
        loss, attention = (float(x) for x in self.solution.fields(mu_OV, mu_QK)[2:])
        return Point(time, time * self.tau_unit, mu_OV, mu_QK, loss, attention)

    def at_loss(self, loss: float) -> Point:
        """The state at which the loss has a value between the initial and the last one."""
        target, first = finite_number("loss", loss, positive=True), self.at(0.0)
        for point in (first, self.end):
            if math.isclose(target, point.loss, rel_tol=1e-13):
                return point
        if not self.end.loss < target < first.loss:
            raise ValueError(
                f"loss={loss}: expected a loss of this run, from {self.end.loss:.17g} to {first.loss:.17g}"
            )
        from scipy.optimize import brentq

        solution = self.solution

        def gap(u: float) -> float:
            return math.log(self.at(self._clip(u)).loss) - math.log(target)

        u = float(brentq(gap, 0.0, solution.u_end, xtol=1e-300, rtol=8.9e-16))
        return self.at(self._clip(u))

    def _clip(self, u: float) -> float:
        return min(float(self.solution.t_of(np.asarray(u))), float(self.end.t))

    @property
    def tau_unit(self) -> float:
        """``min(eta_OV, eta_QK)``, the ratio of ``tau`` to ``t``."""
        return min(self.parameters["eta_OV"], self.parameters["eta_QK"])


@dataclass(frozen=True, eq=False)
class TrajectoryBatch:
    """Trajectories for arrays of parameters or starts, in the shape these broadcast to.

    ``runs``, trajectories in C order; ``shape``; ``end``, the last states, and ``error_estimate``, of that shape.
    Indexed by position in ``runs``, or by one index for each axis;
    iteration is over ``runs``.
    """

    runs: Sequence[Trajectory]
    shape: tuple[int, ...]
    end: Point
    error_estimate: Array

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Trajectory]:
        return iter(self.runs)

    @overload
    def __getitem__(self, index: int | tuple[int, ...]) -> Trajectory: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Trajectory, ...]: ...
    def __getitem__(self, index: int | tuple[int, ...] | slice) -> Trajectory | tuple[Trajectory, ...]:
        if isinstance(index, tuple):
            return self.runs[int(np.arange(len(self.runs)).reshape(self.shape)[index])]
        if isinstance(index, slice):
            return tuple(self.runs[index])
        return self.runs[index]
