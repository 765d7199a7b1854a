"""Known theories of the literature, each stated, derived and run: section 12 of the theory."""

from __future__ import annotations

from theory.reference import (
    activation,
    arora,
    imbalanced,
    kunin,
    merged,
    saxe,
    soft_attention,
    value_softmax,
    weight_decay,
)
from theory.registry import Claim

__all__ = ["CLAIMS"]

_MODULES = (
    saxe,
    arora,
    imbalanced,
    kunin,
    merged,
    soft_attention,
    value_softmax,
    activation,
    weight_decay,
)

CLAIMS: tuple[Claim, ...] = tuple(claim for module in _MODULES for claim in module.claims())
