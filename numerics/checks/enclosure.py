"""Enclosure evidence: every scalar obligation in ball arithmetic at random rational points of its domain.

``value = 0``: the ball contains 0 and is narrower than `WIDTH`; ``value > 0``: the ball is positive. One point
at which a ball excludes 0 is a rigorous counterexample. Where the exact decision is a counterexample, its point
is one of those tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from sympy import Basic, Integer, Rational, Symbol

from numerics.checks.comparison import WIDTH, Residual
from theory.balls import enclose
from theory.errors import GradlineError
from theory.registry import Obligation, Outcome
from theory.symbols import LOWER_BOUNDS, UPPER_BOUNDS

__all__ = ["Positive", "enclosure_findings", "is_scalar"]

#: Points for each obligation; a wrong formula is analytic and not zero, so one generic point shows it.
POINTS = 2
_BITS = (256, 512, 1024)
_ATTEMPTS = 40


@dataclass(frozen=True)
class Positive:
    """A ball that should be positive; its error over its bound is its radius over its midpoint."""

    what: str
    ball: Any
    case: str
    bound: float = 1.0

    @property
    def error(self) -> float:
        """Radius over midpoint: below 1 for a positive ball."""
        return float(self.ball.rad() / abs(self.ball.mid())) if self.ball.is_finite() and self.ball.mid() != 0 else 1.0

    @property
    def holds(self) -> bool | None:
        """None where the ball contains 0."""
        return True if self.ball > 0 else False if self.ball < 0 else None

    @property
    def says(self) -> str:
        """The value, for a message."""
        return f"{self.what} is {self.ball.str(15, radius=False)}, not positive ({self.case})"


def is_scalar(obligation: Obligation) -> bool:
    """Whether the value of an obligation is a SymPy expression."""
    return isinstance(obligation.value, Basic) and not getattr(obligation.value, "is_Matrix", False)


def _draw(symbol: Symbol, rng: np.random.Generator) -> Rational:
    """A value within the assumptions of a symbol: sizes up to 6, other numbers up to 3 and below an upper bound."""
    if symbol.is_integer:
        low = LOWER_BOUNDS.get(symbol, 1 if symbol.is_positive else 0 if symbol.is_nonnegative else -3)
        return Integer(int(rng.integers(low, low + 6)))
    if symbol in UPPER_BOUNDS:
        return UPPER_BOUNDS[symbol] * Rational(int(rng.integers(1, 20)), 20)
    size = Rational(int(rng.integers(1, 60)), 20)
    if symbol.is_positive or symbol.is_nonnegative:
        return size
    if symbol.is_negative or symbol.is_nonpositive:
        return -size
    return size if rng.random() < 0.5 else -size


def _satisfied(assumptions: Sequence[Any], point: Mapping[Symbol, Rational]) -> bool:
    return all(relation.xreplace(dict(point)) == sympy.true for relation in assumptions)


def _points(obligation: Obligation, rng: np.random.Generator) -> Iterator[dict[Symbol, Rational]]:
    symbols = set(obligation.value.free_symbols).union(*(a.free_symbols for a in obligation.assumptions))
    ordered = sorted(symbols, key=lambda s: (s.name, str(s.assumptions0)))
    for _ in range(_ATTEMPTS if ordered else 1):
        point = {s: _draw(s, rng) for s in ordered}
        if _satisfied(obligation.assumptions, point):
            yield point


def _enclosed(obligation: Obligation, point: Mapping[Symbol, Rational]) -> Residual | Positive | None:
    """What the balls say at a point, with more bits while they are too wide; None if there is no value."""
    name, case = obligation.name, ", ".join(f"{s}={v}" for s, v in point.items()) or "no symbols"
    finding: Residual | Positive | None = None
    for bits in _BITS:
        ball = enclose(obligation.value, point, bits=bits)
        if not ball.is_finite():
            continue
        finding = Residual(name, ball, case) if obligation.relation == "= 0" else Positive(name, ball, case)
        if finding.holds is not None:
            return finding
    return finding


def _findings(outcome: Outcome, rng: np.random.Generator) -> Iterator[Residual | Positive]:
    obligation, found = outcome.obligation, 0
    if outcome.decision is not None and outcome.decision.witness:
        known = dict(outcome.decision.witness)
        free = obligation.value.free_symbols - set(known)
        at_witness = _enclosed(obligation, {**known, **{s: _draw(s, rng) for s in sorted(free, key=str)}})
        if at_witness is not None:
            yield at_witness
    for point in _points(obligation, rng):
        finding = _enclosed(obligation, point)
        if finding is not None:
            yield finding
            found += 1
            if found == POINTS:
                return


def enclosure_findings(
    outcomes: Sequence[Outcome], rng: np.random.Generator
) -> tuple[list[Residual | Positive], dict[str, Any]]:
    """Enclose the scalar obligations among ``outcomes``.

    Returns: the findings and the figures: obligations enclosed, scalar ones, the stated width, bits, refuted
    ones among them.
    """
    scalar = [o for o in outcomes if is_scalar(o.obligation)]
    findings: list[Residual | Positive] = []
    enclosed = 0
    for outcome in scalar:
        try:
            new = list(_findings(outcome, rng))
        except (GradlineError, ValueError):
            # a function without an enclosure, or a value that is no rational number
            new = []
        enclosed += bool(new)
        findings += new
    refuted = sum(o.answer == "refuted" for o in scalar)
    figures = {"scalar_obligations": len(scalar), "enclosed": enclosed, "width": WIDTH, "bits": _BITS[0]}
    figures |= {"counterexamples": refuted} if refuted else {}
    return findings, figures
