"""What the theories of this library share: how a claim is made, and conservation along a flow as an obligation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from theory.models.trial import Trial
from theory.registry import Claim, Obligation, Stated
from theory.trace import Assumption

__all__ = ["reference_claim"]


def reference_claim(
    identity: str,
    title: str,
    text: str,
    stated: Stated,
    obligations: Callable[[Stated], Iterable[Obligation]],
    source: str,
    assumptions: Sequence[str] = (),
    trials: Callable[[], Sequence[Trial]] | None = None,
) -> Claim:
    """A claim of the literature: stated formulas, what they must satisfy, and runs of the full model.

    Parameters: as for `Claim`; ``assumptions``, sentences; ``trials``, runs of an explicit model.
    """
    said = tuple(Assumption(a) for a in assumptions)
    subject: Any = None if trials is None else ("trials", trials)
    return Claim(identity, stated, obligations, title, text, source, lambda: said, tuple, subject)
