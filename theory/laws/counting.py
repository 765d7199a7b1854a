"""How many independent conservation laws hold for every loss and data set.

Laws are constant on the orbits of the Lie algebra that the gradient fields generate, so that near a generic point

    number of laws = D - dim Lie(grad phi_1, grad phi_2, ...)(theta).

The dimension is computed exactly at a random point modulo a prime: a rank there is never above the true one, so
``D - rank`` is an upper bound on the number of laws that needs no luck. Laws that are known (found as polynomials, or
given) bound it from below by the rank of their gradients. Where the bounds meet, the count is certified.

Source: arXiv 2307.00144; section 13 of the theory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from sympy import Expr, isprime

from theory.inputs import exact
from theory.laws.conserved import is_law
from theory.laws.fields import GradientFields, Point, as_fields
from theory.laws.gradients import gradient_rows

__all__ = ["Count", "count_laws", "independent"]


def _primes() -> tuple[int, int]:
    """Two primes below 2^61 that are -1 modulo 120, so that 2, 3 and 5 have square roots."""
    found: list[int] = []
    candidate = 2**61 - (2**61 + 1) % 120
    while len(found) < 2:
        if isprime(candidate):
            found.append(candidate)
        candidate -= 120
    return found[0], found[1]


Progress = Callable[[int, int, str], None]

#: The chance that a rank drops at a random point is below 10^-14 for each.
PRIMES = _primes()
_DEPTH = 7
#: Random brackets of one depth that must all be dependent before the depth counts as exhausted.
_TRIES = 3


@dataclass(frozen=True)
class Count:
    """The number of independent conservation laws of a model.

    ``parameters``, their number ``D``; ``lie_dimension``, the rank reached by the fields and their brackets;
    ``known``, the rank of the gradients of known laws; ``depth``, the longest bracket that added to the rank;
    ``complete``, whether longer brackets add nothing (at random points, both primes); ``primes``.
    """

    parameters: int
    lie_dimension: int
    known: int
    depth: int
    complete: bool
    primes: tuple[int, ...]

    @property
    def count(self) -> int:
        """``D - lie_dimension``: exact if `certified`, and never too small."""
        return self.parameters - self.lie_dimension

    @property
    def at_least(self) -> int:
        """A number of laws that is certain."""
        return self.known

    @property
    def certified(self) -> bool:
        """Whether the bounds meet."""
        return self.known == self.count

    def __str__(self) -> str:
        if self.certified:
            return f"{self.count} (certified)"
        if self.complete:
            return f"at least {self.known}; {self.count} by ranks modulo two primes at random points"
        return f"at least {self.known}, at most {self.count}"


class _Span:
    """A growing linear span modulo a prime, kept in echelon form."""

    def __init__(self, p: int) -> None:
        self.p = p
        self.rows: list[tuple[int, list[int]]] = []

    def add(self, vector: Sequence[int]) -> bool:
        """Add a vector; whether the rank has grown."""
        rest = list(vector)
        for pivot, row in self.rows:
            factor = rest[pivot]
            if factor:
                rest = [(a - factor * b) % self.p for a, b in zip(rest, row, strict=True)]
        first = next((i for i, a in enumerate(rest) if a), -1)
        if first < 0:
            return False
        scale = pow(rest[first], -1, self.p)
        self.rows.append((first, [a * scale % self.p for a in rest]))
        return True

    @property
    def rank(self) -> int:
        return len(self.rows)


def silent(done: int, total: int, label: str) -> None:
    """No progress is shown."""


def _grow(point: Point, random: Random, enough: int, depth: int, progress: Progress) -> tuple[int, int, bool]:
    """Rank of the brackets up to ``depth``, the depth that last added, and whether a depth added nothing."""
    fields, span = point.fields, _Span(point.p)
    count = len(fields.potentials)
    for j in range(count):
        if span.rank == enough:
            return span.rank, 1, True
        span.add(point.field([int(i == j) for i in range(count)]))
    reached = 1
    for length in range(2, depth + 1) if count > 1 else ():
        before, failures = span.rank, 0
        while failures < _TRIES and span.rank < enough:
            progress(span.rank, enough, f"brackets of {length} fields")
            words = [[random.randrange(point.p) for _ in range(count)] for _ in range(length)]
            failures = 0 if span.add(point.bracket(words)) else failures + 1
        if span.rank == before:
            return span.rank, reached, True
        reached = length
        if span.rank == enough:
            return span.rank, reached, True
    return span.rank, reached, count <= 1


def _at_point(
    fields: GradientFields, random: Random, p: int, enough: int, depth: int, progress: Progress
) -> tuple[int, int, bool]:
    while True:
        try:
            return _grow(fields.point(random, p), random, enough, depth, progress)
        except ZeroDivisionError:
            continue


def independent(laws: Sequence[Expr], fields: GradientFields, *, seed: int = 0) -> tuple[Expr, ...]:
    """Choose laws with linearly independent gradients at a generic point; the first ones are kept.

    Parameters: ``laws``, functions of the parameters; ``fields`` of the model; ``seed`` of the point.

    Returns: the chosen ones, in order. Raises: ``ValueError`` for a symbol with the name of another one.

    Source: arXiv 2307.00144.

    >>> from sympy.abc import u, v
    >>> from theory.laws.fields import gradient_fields
    >>> independent([u**2 - v**2, (u**2 - v**2) ** 2], gradient_fields([u * v], [u, v]))
    (u**2 - v**2,)
    """
    as_fields(fields).check_names([exact(law) for law in laws])
    span = _Span(PRIMES[0])
    rows = gradient_rows(laws, fields.parameters, Random(seed), PRIMES[0])
    return tuple(law for law, row in zip(laws, rows, strict=True) if span.add(row))


def count_laws(
    fields: GradientFields,
    laws: Sequence[Any] = (),
    *,
    seed: int = 0,
    depth: int = _DEPTH,
    progress: Progress | None = None,
) -> Count:
    """Count the independent conservation laws that hold for every loss and data set.

        D - dim Lie(grad phi_1, grad phi_2, ...)

    Parameters: ``fields`` of the model; ``laws``, known ones such as `polynomial_laws` returns or your own, each
    proved by `is_law`; ``seed``; ``depth``, the longest bracket tried; ``progress``, called with the rank reached, the
    one that is enough and what is done.

    Returns: a `Count`, dimensionless; both primes must agree, otherwise the larger rank counts.

    Raises: ``ValueError`` for a law that is none, ``TypeError`` for input that is no `GradientFields`.

    Source: arXiv 2307.00144; section 13 of the theory.

    >>> from sympy.abc import u, v
    >>> from theory.laws.fields import gradient_fields
    >>> print(count_laws(gradient_fields([u * v], [u, v]), [u**2 - v**2]))
    1 (certified)
    """
    wrong = next((law for law in laws if not is_law(law, as_fields(fields))), None)
    if wrong is not None:
        raise ValueError(f"laws: {wrong} is not conserved along every field; expected laws, see polynomial_laws")
    known = len(independent(laws, fields, seed=seed))
    if len(fields.potentials) <= 1:
        known = max(known, fields.dimension - len(fields.potentials))
    enough, told = fields.dimension - known, progress or silent
    found = [_at_point(fields, Random(seed + i), p, enough, depth, told) for i, p in enumerate(PRIMES)]
    rank, reached, _ = max(found)
    return Count(fields.dimension, rank, known, reached, all(f[2] for f in found), PRIMES)
