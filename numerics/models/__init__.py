"""Models that a user brings, in numbers: reduced by autograd, run entry by entry, confronted with a predicted flow."""

from __future__ import annotations

from numerics.models.flow import NumericFlow as NumericFlow
from numerics.models.reduction import reduce_model as reduce_model

__all__ = ["NumericFlow", "reduce_model"]
