"""What the theories of this library share: how a claim is made, and conservation along a flow as an obligation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sympy import Add, Expr, Symbol, diff

from theory.models.trial import Trial
from theory.registry import Claim, Obligation, Stated
from theory.trace import Assumption

__all__ = ["along_potential", "eta", "reference_claim"]

#: One learning rate for all layers.
eta = Symbol("eta", positive=True)


def along_potential(law: Expr, potential: Expr, entries: Sequence[Symbol]) -> Expr:
    """The derivative of a law along the gradient of a potential."""
    return Add(*(diff(law, e) * diff(potential, e) for e in entries))


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
