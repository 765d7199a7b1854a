"""Runs of an explicit model that a claim is confronted with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Expr, Symbol

from theory.models.flow import GradientFlow

__all__ = ["Comparison", "Trial", "time"]

#: Time along a trajectory.
time = Symbol("t", nonnegative=True)


@dataclass(frozen=True)
class Comparison:
    """``actual``, an expression in the states of the full model, against ``predicted``, one in states and ``t``."""

    name: str
    actual: Expr
    predicted: Expr


@dataclass(frozen=True)
class Trial:
    """One run of a full model, entry by entry, and what the stated formulas say of it.

    ``flow`` with concrete parameters only; ``start``, a value for each state; ``until``, the end of the run in
    the units of ``t``; ``compare``, from the stated formulas to comparisons that hold at every time.
    """

    label: str
    flow: GradientFlow
    start: Mapping[Symbol, Any]
    until: Any
    compare: Callable[[Mapping[str, Any]], Iterable[Comparison]]
