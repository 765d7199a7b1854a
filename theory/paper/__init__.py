"""The claims of the theory, in the order of the paper.

Source: arXiv 2608.06776.
"""

from __future__ import annotations

from theory.paper import factors, integrals, lines, optimizers, qualitative, solutions
from theory.registry import Claim

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = (
    *lines.CLAIMS,
    *factors.CLAIMS,
    *integrals.CLAIMS,
    *solutions.CLAIMS,
    *qualitative.CLAIMS,
    *optimizers.CLAIMS,
)
