"""The record of a derivation: assumptions and steps, from which proofs are printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Assumption", "Step", "Trace"]


@dataclass(frozen=True)
class Step:
    """One step of a derivation: ``rule`` turns ``inputs`` into ``output``.

    ``rule`` is a short name of the rule; ``reason`` says in a sentence why it applies; ``name`` is what the
    output is called.
    """

    rule: str
    name: str
    inputs: tuple[Any, ...]
    output: Any
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.name} = {self.output}"


Trace = tuple[Step, ...]


@dataclass(frozen=True)
class Assumption:
    """Something a result needs: a sentence and, where it can be written so, a SymPy relation."""

    text: str
    relation: Any = None

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        # SymPy evaluates relations when it reads them back: M > 0 would become True
        if self.relation is None:
            return Assumption, (self.text,)
        return _assumption, (self.text, type(self.relation), *self.relation.args)


def _assumption(text: str, kind: Any, left: Any, right: Any) -> Assumption:
    return Assumption(text, kind(left, right, evaluate=False))
