"""Concrete sizes of a task and the input checks of the full matrix model.

Source: section 1 of arXiv 2608.06776 (data model).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

__all__ = ["Sizes", "TaskLike", "check_choice", "check_names", "concrete_sizes", "finite_number", "size_range"]


class TaskLike(Protocol):
    """What the matrix model reads of a task: sizes, slots, query kind and score scale."""

    @property
    def classes(self) -> Any: ...
    @property
    def block(self) -> Any: ...
    @property
    def queries(self) -> Any: ...
    @property
    def noise(self) -> Any: ...
    @property
    def informative_slots(self) -> Any: ...
    @property
    def noise_slots(self) -> Any: ...
    @property
    def query_kind(self) -> Any: ...
    @property
    def score_scale(self) -> Any: ...


@dataclass(frozen=True)
class Sizes:
    """Sizes of a task as integers; ``noise_tokens`` is 1 and ``zero_noise`` true for ``noise=oo``."""

    classes: int
    block: int
    queries: int
    noise_tokens: int
    zero_noise: bool
    informative_slots: int
    noise_slots: int
    per_class: bool
    score_scale: float

    @property
    def informative_tokens(self) -> int:
        """Number of informative tokens, ``M b``; they come first, block after block."""
        return self.classes * self.block

    @property
    def tokens(self) -> int:
        """Number of attended tokens, ``M b + N``, noise last."""
        return self.informative_tokens + self.noise_tokens

    @property
    def query_tokens(self) -> int:
        """Number of query tokens, ``K`` (shared) or ``M K`` (per class, class after class)."""
        return self.queries * (self.classes if self.per_class else 1)

    def queries_of(self, label: int) -> range:
        """Query tokens that occur with a class."""
        first = label * self.queries if self.per_class else 0
        return range(first, first + self.queries)


def finite_number(name: str, value: Any, positive: bool = False) -> float:
    """Return a real number as a float, or raise a one-line ``ValueError`` or ``TypeError`` that names it."""
    wanted = "a finite number above 0" if positive else "a finite number"
    if isinstance(value, (str, bool)):
        raise TypeError(f"{name}={value!r}: expected {wanted}")
    if getattr(value, "free_symbols", None):
        raise ValueError(f"{name}={value}: expected {wanted}, not a symbol")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}={value!r}: expected {wanted}") from None
    if not math.isfinite(number) or (positive and number <= 0):
        raise ValueError(f"{name}={value}: expected {wanted}")
    return number


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return ``value`` if it is one of ``choices``, or raise a ``ValueError`` with the nearest one."""
    if value in choices:
        return str(value)
    near = get_close_matches(str(value), choices, 1, 0.0)[0]
    raise ValueError(f"{name}={value!r}: expected one of {', '.join(choices)}; did you mean {near!r}?")


def check_names(what: str, given: Mapping[Any, Any], allowed: Collection[str]) -> dict[str, Any]:
    """Return a mapping keyed by strings, or raise a ``ValueError`` naming an unknown name and the nearest
    one.

    >>> check_names("rates", {"eta_VO": 1}, ("eta_OV", "eta_QK"))
    Traceback (most recent call last):
    ...
    ValueError: unknown name 'eta_VO' in rates: expected eta_OV, eta_QK; did you mean 'eta_OV'?
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{what}={given!r}: expected a mapping from {', '.join(allowed)} to numbers")
    named = {str(name): value for name, value in given.items()}
    for name in named:
        if name not in allowed:
            near = get_close_matches(name, allowed, 1, 0.0)[0]
            raise ValueError(f"unknown name {name!r} in {what}: expected {', '.join(allowed)}; did you mean {near!r}?")
    return named


def size_range(name: str, given: Any) -> tuple[int, int]:
    """Return the least and the largest value of a size, given as a pair or as one number.

    >>> size_range("n", (1, 5)), size_range("n", 3)
    ((1, 5), (3, 3))
    """
    pair = (given, given) if isinstance(given, int) else given
    whole = isinstance(pair, (tuple, list)) and len(pair) == 2 and all(type(x) is int for x in pair)
    if not whole:
        raise TypeError(f"sizes: {name}={given!r}: expected (least, largest) or one integer")
    low, high = pair
    if not 1 <= low <= high:
        raise ValueError(f"sizes: {name} from {low} to {high}; expected positive integers in increasing order")
    return low, high


def _integer(name: str, value: Any, least: int) -> int:
    if getattr(value, "free_symbols", None):
        raise ValueError(f"{name}={value}: the matrix model needs a concrete size, an integer of at least {least}")
    number = finite_number(name, value)
    if number != int(number) or number < least:
        raise ValueError(f"{name}={value}: expected an integer of at least {least}")
    return int(value)


def concrete_sizes(task: TaskLike) -> Sizes:
    """Return the sizes of a task as integers and the score scale as a float.

    Raises: ``ValueError`` naming the first size that is a symbol or out of range.
    """
    noise = task.noise
    zero_noise = not getattr(noise, "free_symbols", None) and float(noise) == math.inf
    return Sizes(
        classes=_integer("classes", task.classes, 2),
        block=_integer("block", task.block, 1),
        queries=_integer("queries", task.queries, 1),
        noise_tokens=1 if zero_noise else _integer("noise", noise, 1),
        zero_noise=zero_noise,
        informative_slots=_integer("informative_slots", task.informative_slots, 1),
        noise_slots=_integer("noise_slots", task.noise_slots, 1),
        per_class=check_choice("query_kind", task.query_kind, ("shared", "per_class")) == "per_class",
        score_scale=finite_number("score_scale", task.score_scale, positive=True),
    )
