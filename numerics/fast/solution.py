"""A run of a generated integrator: its steps and their dense output, with the views that `numerics.solver` has.

Source: reduced dynamics of arXiv 2608.06776.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numerics.charts import Chart
from numerics.logtime import log_time, time_of

__all__ = ["FastSolution"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FastSolution:
    """Steps in the coordinate of ``mu_OV``, with dense output.

    ``module``, the integrator; ``nodes`` (steps + 1, 11); ``given`` (COUNT,), its numbers; ``charts``; ``start`` and
    ``mu_end`` (2,); ``t_end``; ``unit``, the unit of log time; ``make_fields``, which compiles (mu_OV, mu_QK) -> (d
    mu_OV/dt, d mu_QK/dt, loss, attention).
    """

    module: Any
    nodes: Array
    given: Array
    charts: tuple[Chart, Chart]
    start: tuple[float, float]
    mu_end: tuple[float, float]
    t_end: float
    unit: float
    make_fields: Callable[[], Callable[[Any, Any], tuple[Any, Any, Any, Any]]]

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.nodes) - 1

    @property
    def u_end(self) -> float:
        """End of the run in log time."""
        return float(log_time(np.asarray(self.t_end), self.unit))

    def t_of(self, u: Array) -> Array:
        """Time ``t`` of log time ``u``."""
        return np.minimum(time_of(u, self.unit), self.t_end)

    def fields(self, mu_OV: Any, mu_QK: Any) -> tuple[Any, Any, Any, Any]:
        """Velocities, loss and attention at states."""
        return self.make_fields()(mu_OV, mu_QK)

    def mu(self, t: Any) -> Array:
        """Coordinates at times ``t``; shape (2, *t.shape)."""
        t = np.asarray(t, dtype=np.float64)
        found = np.empty((2, t.size))
        work = np.zeros(self.module.SIZE)
        work[self.module.GIVEN :: self.module.LANES] = self.given
        self.module.states(np.ascontiguousarray(t).ravel(), self.nodes, self.steps, work, found)
        mu = np.stack([np.asarray(chart.mu(y)) for chart, y in zip(self.charts, found, strict=True)])
        end = np.reshape(self.mu_end, (2, *[1] * t.ndim))
        begin = np.reshape(self.start, (2, *[1] * t.ndim))
        return np.where(t == 0, begin, np.where(t == self.t_end, end, mu.reshape(2, *t.shape)))
