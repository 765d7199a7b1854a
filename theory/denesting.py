"""Square roots inside a field with roots adjoined: ``sqrt(b + 2*sqrt(b) + 1) = sqrt(b) + 1``.

Internal to :mod:`theory.identities`. In ``K(s)`` with ``s**2 = p``, a square ``u + v*s`` is ``(e + v*s/(2*e))**2``
where ``e**2 = (u + d)/2`` or ``(u - d)/2`` with ``d**2 = u**2 - v**2*p`` in ``K``. Each root found is squared and
compared, so that a mistake in the search could only lose a root.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import isqrt

from theory.algebra import Fraction, Poly, Tower

__all__ = ["square_roots"]

_MOST_TERMS = 60  # of a polynomial that is tried
_MOST_EFFORT = 200  # fields entered in one search: one more root doubles it at worst
_MOST_ROOTS = 4  # of one element: absolute values make a ring with more than two
_RADICALS = ("root", "abs")


def square_roots(tower: Tower, poly: Poly, within: bool = False) -> Iterator[Fraction]:
    """Fractions over the atoms whose square is ``poly``; ``within``: over the atoms that ``poly`` is made of.

    Nothing is searched for where no roots are nested, neither in ``poly`` nor among the atoms.
    """
    radicals = [i for i, atom in enumerate(tower.atoms) if atom.order == 2 and atom.kind in _RADICALS]
    if within:
        made_of = _closure(tower, poly)
        radicals = [i for i in radicals if i in made_of]
    inside = set(tower.variables(poly))
    if len(poly) > _MOST_TERMS or not (inside.intersection(radicals) or _nested(tower, radicals)):
        return
    one = tower.constant(1)
    target = tower.make(poly, one)
    for found in islice(_Search(tower, radicals).roots(target, len(radicals)), 8):
        if tower.equal(tower.mul(found, found), target):
            yield found


def _closure(tower: Tower, poly: Poly) -> set[int]:
    found: set[int] = set()
    open_ones = [poly]
    while open_ones:
        for index in set(tower.variables(open_ones.pop())) - found:
            found.add(index)
            if tower.atoms[index].order:
                open_ones.append(tower.atoms[index].radicand)
    return found


def _nested(tower: Tower, radicals: list[int]) -> bool:
    return any(set(tower.variables(tower.atoms[i].radicand)).intersection(radicals) for i in radicals)


@dataclass
class _Search:
    """The descent through the fields; the last of the ``radicals`` is adjoined last."""

    tower: Tower
    radicals: list[int]
    effort: int = _MOST_EFFORT

    def roots(self, a: Fraction, count: int) -> Iterator[Fraction]:
        """Square roots of ``a`` in the field with the first ``count`` radicals."""
        self.effort -= 1
        if self.effort < 0 or len(a.num) > _MOST_TERMS or len(a.den) > _MOST_TERMS:
            return
        if not count or a.num.is_zero():
            yield from self._rational(a)
            return
        tower, index = self.tower, self.radicals[count - 1]
        one = tower.constant(1)
        u, v = (tower.make(part, one) for part in tower.linear_parts(tower.reduce(a.num * a.den), index))
        found = self._mixed(u, v, index, count - 1) if v.num else self._pure(u, index, count - 1)
        for root in found:
            yield tower.mul(root, tower.power(Fraction(a.den, one), -1))

    def _pure(self, u: Fraction, index: int, count: int) -> Iterator[Fraction]:
        """``sqrt(u)`` in ``K``, or ``sqrt(u*p)*s/p``."""
        yield from self.roots(u, count)
        atom, tower = self.tower.atoms[index], self.tower
        if atom.kind == "root":
            p = tower.make(atom.radicand, tower.constant(1))
            scale = tower.mul(tower.generator(index), tower.power(p, -1))
            for root in self.roots(tower.mul(u, p), count):
                yield tower.mul(root, scale)

    def _mixed(self, u: Fraction, v: Fraction, index: int, count: int) -> Iterator[Fraction]:
        tower = self.tower
        p = tower.make(tower.atoms[index].radicand, tower.constant(1))
        norm = tower.sub(tower.mul(u, u), tower.mul(tower.mul(v, v), p))
        half = tower.fraction(1, 2)
        for d in islice(self.roots(norm, count), _MOST_ROOTS):
            for square in (tower.add(u, d), tower.sub(u, d)):
                for e in self.roots(tower.mul(square, half), count):
                    if e.num:
                        rest = tower.mul(tower.mul(v, half), tower.power(e, -1))
                        yield tower.add(e, tower.mul(rest, tower.generator(index)))

    def _rational(self, a: Fraction) -> Iterator[Fraction]:
        """The root of a fraction whose factors all have even powers."""
        tower = self.tower
        if a.num.is_zero():
            yield tower.zero
            return
        top, bottom, factors = tower.factors(a)
        content = top * bottom
        if content < 0 or isqrt(content) ** 2 != content or any(k % 2 for _, k in factors):
            return
        result = tower.fraction(isqrt(content), abs(bottom))
        for poly, k in factors:
            result = tower.mul(result, tower.power(Fraction(poly, tower.constant(1)), k // 2))
        yield result
