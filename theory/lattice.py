"""Linear dependence over the rationals of fractions of polynomials; internal to :mod:`theory.identities`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction as Rational

from theory.algebra import Fraction, Poly, Tower

__all__ = ["dependence"]

_Vector = dict[tuple[int, ...], Rational]


def dependence(tower: Tower, a: Fraction, basis: Sequence[Fraction]) -> dict[int, Rational] | None:
    """Coefficients of ``a`` in a linearly independent ``basis``, or None if ``a`` is not in its span."""
    if not basis:
        return None
    common = a.den
    for item in basis:
        common = common * (item.den // common.gcd(item.den))
    rows = [_vector(tower, item, common) for item in basis]
    target = _vector(tower, a, common)
    return _solve(rows, target)


def _vector(tower: Tower, a: Fraction, common: Poly) -> _Vector:
    poly = tower.reduce(a.num * (common // a.den))
    return {monomial: Rational(coefficient) for monomial, coefficient in tower.terms(poly)}


def _solve(rows: list[_Vector], target: _Vector) -> dict[int, Rational] | None:
    """Solve ``sum(c_i * row_i) = target`` by elimination, carrying the combination along."""
    pivots: list[tuple[tuple[int, ...], _Vector, dict[int, Rational]]] = []
    for position, row in enumerate(rows):
        vector, combination = _eliminate(dict(row), {position: Rational(1)}, pivots)
        if vector:
            pivots.append((max(vector), vector, combination))
    rest, combination = _eliminate(dict(target), {}, pivots)
    if rest:
        return None
    return {position: -c for position, c in sorted(combination.items()) if c}


def _eliminate(
    vector: _Vector,
    combination: dict[int, Rational],
    pivots: list[tuple[tuple[int, ...], _Vector, dict[int, Rational]]],
) -> tuple[_Vector, dict[int, Rational]]:
    for pivot, row, how in pivots:
        if pivot not in vector:
            continue
        factor = vector[pivot] / row[pivot]
        for key, value in row.items():
            total = vector.get(key, Rational(0)) - factor * value
            if total:
                vector[key] = total
            else:
                vector.pop(key, None)
        for position, value in how.items():
            combination[position] = combination.get(position, Rational(0)) - factor * value
    return vector, combination
