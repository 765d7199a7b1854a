"""What is found about an equation of a paper: compared with one statement, and as the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sympy import Symbol

from theory.frozen import FrozenMap
from theory.latex.check.stated import Statement
from theory.latex.notation import Rate
from theory.latex.source.tokens import Place

__all__ = ["Answer", "Finding", "Repair", "Result", "shown_quantity"]

Answer = Literal["exact", "enclosed", "identity", "differs", "undecided", "undefined"]


@dataclass(frozen=True)
class Result:
    """How an equation compares with a statement.

    ``answer``: "exact" or "enclosed" where they match; "identity" where the equation is true and does not determine
    the quantity; "differs" with a ``point`` where it fails; "undefined" where it has no value at any point tried;
    "undecided". ``assumptions`` are the relations that were needed; ``residual`` is the paper's left minus right side
    where the claim holds.
    """

    answer: Answer
    statement: Statement
    reason: str = ""
    assumptions: tuple[str, ...] = ()
    point: Mapping[Symbol, Any] = field(default_factory=lambda: FrozenMap({}))
    residual: Any = None

    @property
    def matches(self) -> bool:
        """Whether the equation says what the statement says."""
        return self.answer in ("exact", "enclosed")


@dataclass(frozen=True)
class Repair:
    """A change in words, where, and the statement that it leads to."""

    text: str
    place: Place
    statement: Statement | None = None


@dataclass(frozen=True)
class Finding:
    """What was found about an equation.

    ``statement`` is the name of what it matches or differs from, ``settings`` where it does, ``assumptions`` what
    that needs. If it differs: ``point``, where; ``values``, what each side and the theory's quantity are there;
    ``repair``, the smallest change that would make it right, or ``factor``, what it would have to be multiplied by.
    """

    status: Literal["match", "enclosed", "differs", "undecided"]
    statement: str = ""
    settings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    reason: str = ""
    point: Mapping[str, str] = field(default_factory=lambda: FrozenMap({}))
    values: Mapping[str, str] = field(default_factory=lambda: FrozenMap({}))
    repair: Repair | None = None
    factor: str = ""


def shown_quantity(quantity: Any) -> str:
    """A quantity of a statement in words."""
    if isinstance(quantity, tuple):
        return " or ".join(map(shown_quantity, quantity))
    return f"d{quantity.args[0]}/d{quantity.args[1]}" if isinstance(quantity, Rate) else str(quantity)
