"""Trajectories of a reduced flow: what `numerics.simulate` returns.

Source: reduced dynamics of arXiv 2608.06776.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from numerics.conditions import TimeName
from numerics.sizes import finite_number
from numerics.solver import Solution
from theory.flow import ReducedFlow

__all__ = ["Point", "Trajectory", "TrajectoryBatch"]

Array = NDArray[np.float64]


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
    start); ``steps``, of the integrator; ``flow``; ``solution``, its steps. Called with times, the dense output:
    coordinates of shape (2, *times.shape).
    """

    t: Array
    tau: Array
    mu_OV: Array
    mu_QK: Array
    loss: Array
    attention: Array
    end: Point
    parameters: Mapping[str, float]
    start: Mapping[str, float]
    time: TimeName
    error_estimate: float
    steps: int
    flow: ReducedFlow
    solution: Solution

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
        loss, attention = (float(x) for x in self.solution.problem.fields(mu_OV, mu_QK)[2:])
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

    ``runs``, trajectories in C order; ``shape``. Indexed by position in ``runs``, or by one index for each axis;
    iteration is over ``runs``.
    """

    runs: tuple[Trajectory, ...]
    shape: tuple[int, ...]

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
        return self.runs[index]

    @property
    def end(self) -> Point:
        """The last states, arrays of shape ``shape``."""
        names = ("t", "tau", "mu_OV", "mu_QK", "loss", "attention")
        return Point(*(np.array([getattr(run.end, n) for run in self.runs]).reshape(self.shape) for n in names))

    @property
    def error_estimate(self) -> Array:
        """Error estimates, of shape ``shape``."""
        return np.array([run.error_estimate for run in self.runs]).reshape(self.shape)
