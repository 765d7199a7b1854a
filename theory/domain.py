"""Signs, factors and absolute values of fractions on the domain of an expression.

Internal to :mod:`theory.identities`. What a rewriting relies on is recorded; what the domain implies (the argument
of a logarithm is positive) is kept for the next attempt of the conversion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction as Rational

import sympy
from sympy import Abs, Basic, E, Expr, Pow

from theory.algebra import Atom, Fraction, OutsideDomainError, Poly, Restart, Tower
from theory.errors import GradlineError
from theory.signs import Range, Sign, Signs

__all__ = ["Domain", "Hints", "Pieces", "leaves_out"]

Pieces = Sequence[tuple[Fraction, int]]


def leaves_out(expr: Basic) -> bool:
    """Whether the conversion may leave out places: where the argument of a sign or the base of a power vanishes."""
    powers = (node for node in expr.atoms(Pow) if not node.exp.is_Rational and node.base is not E)
    return expr.has(sympy.sign) or any(True for _ in powers)


@dataclass
class Hints:
    """What earlier attempts of a conversion found out; some facts need not hold where one of ``strata`` vanishes."""

    capacity: int = 16
    scales: dict[str, int] = field(default_factory=dict)
    facts: list[tuple[Expr, str]] = field(default_factory=list)
    strata: list[Expr] = field(default_factory=list)

    def refine(self, key: str, factor: int) -> Restart:
        """Split the exponential or root ``key`` into ``factor`` equal parts from now on."""
        self.scales[key] = self.scales.get(key, 1) * factor
        return Restart(key)


@dataclass
class Domain:
    """One conversion: its atoms, the proofs of their signs, and what was found out on the way."""

    tower: Tower
    signs: Signs
    hints: Hints
    found: list[tuple[Expr, str]] = field(default_factory=list)
    beside: list[tuple[Expr, str]] = field(default_factory=list)
    parts: list[Basic] = field(default_factory=list)
    bound_depth: int = 0

    # ---- splitting on the domain -------------------------------------------------------------------------

    def split(self, pieces: Pieces, strict: bool) -> tuple[Rational, list[tuple[Poly, int]]]:
        """``a = c * prod(h**k)`` with ``c > 0`` and ``h >= 0``, where ``a >= 0`` (``strict``: ``a > 0``).

        ``a`` is given as a product of powers, so that factors survive the relations between the atoms.
        """
        if any(a.num.is_zero() for a, _ in pieces):
            if strict or any(k < 0 for a, k in pieces if a.num.is_zero()):
                raise OutsideDomainError("the logarithm or power of an expression that is identically zero")
            return Rational(0), []
        top, bottom, factors = self._merged(pieces)
        parity = 1 if top * bottom > 0 else -1
        parts: list[tuple[Poly, int]] = []
        open_parts: list[tuple[Poly, int]] = []
        certain = True
        for poly, k in factors:
            sign = self.signs.of_factor(poly)
            certain &= strict or k < 0 or (k % 2 == 1 and sign is None) or self.signs.nonzero(poly)
            if sign is not None and sign.direction:
                self.note(poly, sign)
                parity *= sign.direction if k % 2 else 1
                parts.append((poly if sign.direction > 0 else -poly, k))
            elif k % 2 == 0:
                parts.extend((f, k) for f in self.absolute_factors(poly))
            else:
                open_parts.append((poly, k))
        parts.extend(self._settle(open_parts, parity, strict, certain))
        return Rational(abs(top), abs(bottom)), parts

    def _merged(self, pieces: Pieces) -> tuple[int, int, list[tuple[Poly, int]]]:
        content = Rational(1)
        merged: list[tuple[Poly, int]] = []
        for a, power in pieces:
            top, bottom, factors = self.tower.factors(a)
            content *= Rational(top, bottom) ** power
            for poly, k in factors:
                for position, (known, have) in enumerate(merged):
                    if known == poly:
                        merged[position] = (known, have + k * power)
                        break
                else:
                    merged.append((poly, k * power))
        return content.numerator, content.denominator, [(poly, k) for poly, k in merged if k]

    def _settle(
        self, open_parts: list[tuple[Poly, int]], parity: int, strict: bool, certain: bool
    ) -> Iterator[tuple[Poly, int]]:
        """The factors of unknown sign and odd multiplicity: their product has the sign ``parity``.

        ``certain``: the other factors do not vanish, so that this holds on the whole domain. Where they may
        vanish, the root of a negative factor is an imaginary number times zero, and nothing is learned.
        """
        if not open_parts:
            if parity < 0 and not certain:
                raise GradlineError("the root of an expression that is nowhere positive; look at where it vanishes")
            if parity < 0:
                raise OutsideDomainError("the logarithm or root of an expression that is negative everywhere")
            return
        if len(open_parts) == 1:
            poly, k = open_parts[0]
            poly = poly if parity > 0 else -poly
            if certain:
                self.harvest(poly, ">" if strict or k < 0 else ">=")
            yield poly, k
            return
        product = self.tower.constant(parity)
        exponent = 1 if sum(k for _, k in open_parts) >= 0 else -1
        for poly, k in open_parts:
            product *= poly
            if k != exponent:
                for factor in self.absolute_factors(poly):
                    yield factor, k - exponent
        yield self.tower.reduce(product), exponent

    def harvest(self, poly: Poly, relation: str) -> None:
        """Remember what the domain of the expression implies, for the next attempt.

        A part with a sign in it was rewritten for a nonzero argument: what it implies holds beside that place.
        """
        if not self.bound_depth:
            where = self.beside if self.parts and leaves_out(self.parts[-1]) else self.found
            where.append((self.tower.to_expr(poly), relation))

    def note(self, poly: Poly, sign: Sign) -> None:
        """Record the use of a sign, unless it is one that every atom of its kind has."""
        index = self.tower.single(poly)
        if index is None or self.tower.atoms[index].kind == "symbol":
            self.signs.record(poly, sign)

    # ---- absolute values -----------------------------------------------------------------------------------

    def absolute(self, a: Fraction) -> Fraction:
        """``Abs(a)``."""
        if a.num.is_zero():
            return a
        top, bottom, factors = self.tower.factors(a)
        result = self.tower.fraction(abs(top), abs(bottom))
        for poly, k in factors:
            if k % 2 == 0:
                base = Fraction(poly, self.tower.constant(1))
            else:
                base = self.tower.one
                for factor in self.absolute_factors(poly):
                    base = self.tower.mul(base, Fraction(factor, self.tower.constant(1)))
            result = self.tower.mul(result, self.tower.power(base, k))
        return result

    def absolute_factors(self, poly: Poly) -> tuple[Poly, ...]:
        """Nonnegative factors whose product is ``Abs(poly)`` for an irreducible polynomial."""
        sign = self.signs.of_factor(poly)
        if sign is not None and sign.direction:
            self.note(poly, sign)
            return (poly if sign.direction > 0 else -poly,)
        radicand = self.tower.reduce(poly * poly)
        for index, atom in enumerate(self.tower.atoms):
            if atom.kind == "abs" and atom.radicand == radicand:
                return (self.tower.gens[index],)
        index = self.tower.add_atom(Atom("abs", Abs(self.tower.to_expr(poly)), 2, radicand, poly))
        self.signs.ranges[index] = Range(low=Rational(0), low_strict=self.signs.nonzero(poly))
        return (self.tower.gens[index],)

    def sign_of(self, a: Fraction) -> Fraction | None:
        """``sign(a)`` where ``a`` is proved not to vanish or has a proved sign, else None."""
        sign = self.signs.of_fraction(a)
        if sign is not None and (sign.strict or not sign.direction):
            self.note_factors(a)
            return self.tower.fraction(sign.direction)
        if all(self.signs.nonzero(f) for f, _ in self.tower.irreducible(a.num)[1]):
            self.note_factors(a)
            return self.tower.mul(self.absolute(a), self.tower.power(a, -1))
        return None

    def note_factors(self, a: Fraction) -> None:
        """Record the signs of the factors that decide the sign of ``a``."""
        if a.num.is_zero():
            return
        for poly, k in self.tower.factors(a)[2]:
            sign = self.signs.of_factor(poly)
            if k % 2 and sign is not None and sign.direction:
                self.note(poly, sign)
