"""The curve of a flow without integration: ``mu_QK`` as a function of ``mu_OV``.

    Y(mu_QK) - Y(q_0) = pull (X(mu_OV) - X(v_0)),    Y(q) = int dq/((1 - alpha) f_QK(q)),    X(v) = int v dv/f_OV(v)

with ``pull = kappa gamma``. Source: arXiv 2608.06776, conserved quantities; section 6 of the theory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from numerics.ascent import Ascent
from numerics.circuits import Circuit, pick

__all__ = ["Curve"]


@dataclass(frozen=True)
class Curve:
    """Curves from starts ``(v_0, q_0)``; fields are numbers, or arrays over curves. ``log_weight = log(m/n)``."""

    output: Circuit
    query: Circuit
    classes: Any
    block: Any
    log_weight: Any
    scale: Any
    pull: Any
    rate: Any
    v_0: Any
    q_0: Any

    @cached_property
    def ascent(self) -> Ascent:
        """``rate Y`` of query-key, as an integral and its inverse."""
        return Ascent(self.query, self.log_weight, self.scale, self.q_0)

    def pick(self, index: Any) -> Curve:
        """The curves with some numbers; ``index`` may be a tuple, as for arrays."""
        rest = (self.classes, self.block, self.log_weight, self.scale, self.pull, self.rate, self.v_0, self.q_0)
        return Curve(self.output.pick(index), self.query.pick(index), *(pick(value, index) for value in rest))

    def log_odds(self, q: Any) -> Any:
        """``log w``, where ``alpha = w/(1 + w)``."""
        return self.scale * q + self.log_weight

    def height(self, v: Any) -> Any:
        """``rate (Y(q) - Y(q_0))`` on the curve at a value of ``mu_OV``."""
        return self.query.rate * self.pull * self.output.output_rise(v, self.v_0)

    def log_odds_at(self, v: Any, guess: Any = None) -> tuple[Any, Any]:
        """``log w`` on the curve at values of ``mu_OV``, and the distance ``d`` of ``mu_QK`` from its start."""
        return self.ascent.inverse(self.height(v), guess)

    def log_attention(self, log_w: Any) -> Any:
        """``log alpha``."""
        return -np.logaddexp(0.0, -log_w)
