"""All polynomial conservation laws up to a degree, found exactly.

A polynomial ``h`` is conserved for every loss if ``sum_i eta_i (dh/d theta_i) (d phi_j/d theta_i)`` vanishes for every
potential ``phi_j``. At random points modulo a prime this is a linear system for the coefficients of ``h``, whose null
space is at least as large as the space of laws. Each vector of it is lifted to rational numbers and proved by
polynomial identity, so that a basis all of whose vectors pass holds all laws of that degree and below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from math import comb, gcd, isqrt, lcm
from random import Random

from flint import fmpz_mat, nmod_mat
from sympy import Add, Expr, Integer, Mul, Rational

from theory.errors import GradlineError
from theory.laws.conserved import is_law
from theory.laws.counting import PRIMES, Progress, silent
from theory.laws.fields import MOST_UNKNOWNS, GradientFields, Point, as_fields

__all__ = ["polynomial_laws"]

_SPARE = 12


def polynomial_laws(
    fields: GradientFields, degree: int = 2, *, seed: int = 0, progress: Progress | None = None
) -> tuple[Expr, ...]:
    """Find a basis of the polynomial laws without constant term up to a degree.

        sum_i eta_i (dh/d theta_i) (d phi_j/d theta_i) = 0     for every potential phi_j

    Parameters: ``fields`` of the model; ``degree``, at least 1; ``seed`` of the random points; ``progress``, called
    with the number done, the number in all and what is done.

    Returns: a basis of the laws whose coefficients depend on no symbol, each law proved, with coprime integer
    coefficients, in a fixed order; products of laws are laws of higher degree and count.

    Raises: ``ValueError`` for a degree below 1; `GradlineError` where the system is too large, with the size
    that fits, where a rate is a symbol, or where a coefficient is no fraction of small integers.

    Source: section 13 of the theory; arXiv 2307.00144.

    >>> from sympy.abc import u, v
    >>> from theory.laws.fields import gradient_fields
    >>> polynomial_laws(gradient_fields([u * v], [u, v]))
    (u**2 - v**2,)
    """
    if isinstance(degree, bool) or not isinstance(degree, int) or degree < 1:
        raise ValueError(f"degree={degree!r}: expected an integer of at least 1")
    symbolic = sorted({str(eta) for eta in as_fields(fields).rates if eta.free_symbols})
    if symbolic:
        raise GradlineError(f"learning rate {symbolic[0]}: polynomial laws need numbers; use laws_in_basis for symbols")
    unknowns = comb(fields.dimension + degree, degree) - 1
    if unknowns > MOST_UNKNOWNS:
        fits = next((d for d in range(degree - 1, 0, -1) if comb(fields.dimension + d, d) - 1 <= MOST_UNKNOWNS), 0)
        remedy = f"degree {fits} fits" if fits else f"at most {MOST_UNKNOWNS} parameters fit"
        raise GradlineError(
            f"laws of degree {degree} in {fields.dimension} parameters: {unknowns} coefficients, more than "
            f"{MOST_UNKNOWNS}; {remedy}"
        )
    monomials = [m for d in range(1, degree + 1) for m in combinations_with_replacement(range(fields.dimension), d)]
    p = PRIMES[0]
    vectors = _null_space(_rows(fields, monomials, Random(seed), p, progress or silent), len(monomials), p)
    lifted = [_integers(vector, p) for vector in vectors]
    whole = [vector for vector in lifted if vector is not None]
    laws = [_expression(vector, monomials, fields) for vector in _shortest(whole)]
    if len(whole) < len(lifted) or not all(is_law(law, fields) for law in laws):
        raise GradlineError(
            f"laws of degree {degree}: {len(laws)} candidates modulo a prime, not all with rational coefficients; "
            "give a numerical value to each symbol, or use laws_in_basis"
        )
    return tuple(laws)


def _rows(
    fields: GradientFields, monomials: Sequence[tuple[int, ...]], random: Random, p: int, progress: Progress
) -> Iterator[list[int]]:
    wanted = total = len(monomials) + _SPARE
    while wanted:
        progress(total - wanted, total, "equations for polynomial laws")
        point = fields.point(random, p)
        try:
            velocity = point.field([random.randrange(p) for _ in fields.potentials])
        except ZeroDivisionError:
            continue
        yield [_slope(m, point, velocity) for m in monomials]
        wanted -= 1


def _slope(monomial: tuple[int, ...], point: Point, velocity: Sequence[int]) -> int:
    """Derivative of a monomial along the field."""
    x = point.coordinates
    if len(monomial) == 2:
        a, b = monomial
        return (x[a] * velocity[b] + velocity[a] * x[b]) % point.p
    total = 0
    for position, index in enumerate(monomial):
        term = velocity[index]
        for other in (*monomial[:position], *monomial[position + 1 :]):
            term = term * x[other] % point.p
        total += term
    return total % point.p


def _null_space(rows: Iterator[list[int]], width: int, p: int) -> list[list[int]]:
    """Null space in reduced form: columns from the last, so that each vector leads with its first free column."""
    matrix = nmod_mat([row[::-1] for row in rows], p)
    reduced, rank = matrix.rref()
    pivots: list[int] = []
    column = 0
    for i in range(rank):
        while int(reduced[i, column]) == 0:
            column += 1
        pivots.append(column)
    taken = set(pivots)
    vectors = []
    for free in range(width):
        if free in taken:
            continue
        vector = [0] * width
        vector[free] = 1
        for i, pivot in enumerate(pivots):
            vector[pivot] = -int(reduced[i, free]) % p
        vectors.append(vector[::-1])
    return vectors[::-1]


def _rational(a: int, p: int) -> Rational | None:
    """The fraction ``n/d`` with ``n, d`` below ``sqrt(p/2)`` that is ``a`` modulo ``p``."""
    bound = isqrt(p // 2)
    (r0, s0), (r1, s1) = (p, 0), (a, 1)
    while r1 > bound:
        q = r0 // r1
        (r0, s0), (r1, s1) = (r1, s1), (r0 - q * r1, s0 - q * s1)
    return Rational(r1, s1) if s1 and abs(s1) <= bound and gcd(r1, s1) == 1 else None


def _integers(vector: Sequence[int], p: int) -> list[int] | None:
    """A residue vector as coprime integers, or None if it has no small rational form."""
    rationals = [_rational(value, p) if value else Integer(0) for value in vector]
    known = [c for c in rationals if c is not None]
    if len(known) < len(vector):
        return None
    scale = lcm(*(int(c.q) for c in known))
    whole = [int(c * scale) for c in known]
    divisor = gcd(*whole)
    return [c // divisor for c in whole]


def _shortest(vectors: Sequence[Sequence[int]]) -> list[list[int]]:
    """A reduced basis of the same lattice: laws with few terms, such as single balances, are its short vectors."""
    if not vectors:
        return []
    rows = fmpz_mat([list(v) for v in vectors]).lll().tolist()
    found = []
    for row in rows:
        whole = [int(c) for c in row]
        first = next(c for c in whole if c)
        found.append([c if first > 0 else -c for c in whole])
    return sorted(found, reverse=True)


def _expression(vector: Sequence[int], monomials: Sequence[tuple[int, ...]], fields: GradientFields) -> Expr:
    terms = [(c, m) for c, m in zip(vector, monomials, strict=True) if c]
    return Add(*(c * Mul(*(fields.parameters[i] for i in m)) for c, m in terms))
