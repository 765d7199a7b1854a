"""Coordinates in which each circuit is integrated: regular where small values grow, decay or cross zero.

    collapsed: y = mu      balanced: y = log|mu|      imbalanced: y = asinh(mu/width),  width = |c|/(2 sigma)

The rate factors ``1``, ``2 sigma |mu|`` and ``sqrt(c^2 + 4 sigma^2 mu^2)`` become constants in ``y``.

Source: rescaling of the learning rate by factorization, arXiv 2608.06776; claims `rescaling-balanced` and
`rescaling-imbalanced`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from theory.model import AttentionModel
    from theory.orbits import Circuit

__all__ = ["FAR", "Chart", "ChartKind", "chart_kinds"]

ChartKind = Literal["collapsed", "balanced", "imbalanced"]

FAR = 345.0  # e^345 squared still is a double; a balanced circuit below e^-345 is linear in mu to all digits


@dataclass(frozen=True)
class Chart:
    """A coordinate ``y`` of ``mu``: ``kind``; ``sign`` of a balanced start; ``width`` of an imbalanced circuit.

    Sign and width are numbers, or arrays with one for each run.

    >>> chart = Chart("imbalanced", width=0.5)
    >>> round(float(chart.mu(chart.y(-2.0))), 12)
    -2.0
    """

    kind: ChartKind
    sign: Any = 1.0
    width: Any = 1.0

    def y(self, mu: Any) -> Any:
        """The coordinate of a value or of an array of them."""
        if self.kind == "collapsed":
            return mu
        return np.log(np.abs(mu)) if self.kind == "balanced" else np.arcsinh(mu / self.width)

    def mu(self, y: Any) -> Any:
        """The value of a coordinate or of an array of them."""
        if self.kind == "collapsed":
            return y
        return self.sign * np.exp(y) if self.kind == "balanced" else self.width * np.sinh(y)

    def point(self, y: float) -> tuple[float, float]:
        """The value at ``y`` and ``d mu/dy`` there; clipped far out, where only their ratio matters."""
        if self.kind == "collapsed":
            return y, 1.0
        y = min(max(y, -FAR), FAR)
        if self.kind == "balanced":
            mu = self.sign * math.exp(y)
            return mu, mu
        return self.width * math.sinh(y), self.width * math.cosh(y)

    def tolerance(self, rtol: float) -> float:
        """Absolute tolerance in ``y`` for a tolerance relative to ``1 + |mu|``."""
        return rtol / max(1.0, self.width)


def chart_kinds(model: AttentionModel) -> tuple[ChartKind, ChartKind]:
    """The kinds of the charts of output-value and query-key."""

    def kind(circuit: Circuit) -> ChartKind:
        if model.form(circuit) == "collapsed":
            return "collapsed"
        return "balanced" if model.is_balanced(circuit) else "imbalanced"

    return kind("OV"), kind("QK")
