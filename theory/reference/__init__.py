"""Known theories of the literature, each stated, derived and run: section 12 of the theory."""

from __future__ import annotations

from theory.reference import arora, imbalanced, kunin, laws, merged, saxe, soft_attention
from theory.registry import Claim

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = tuple(
    claim for module in (saxe, arora, imbalanced, kunin, merged, soft_attention, laws) for claim in module.claims()
)
