"""Proofs that a polynomial over the atoms has one sign on the whole domain.

Internal to :mod:`theory.identities` and :mod:`theory.positivity`. Each atom has a range; a polynomial whose
coefficients all have one sign after moving the ranges to ``[0, oo)`` has that sign.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction as Rational
from typing import Any

from theory.algebra import Fraction, Poly, Tower

__all__ = ["Fact", "Range", "Sign", "Signs"]


_DEEPEST = 3  # nested uses of the rules for radicals and quadratics
_LONGEST = 80  # terms of a polynomial that these rules are tried on
_MOST_EFFORT = 400  # uses of these rules in one conversion


@dataclass(frozen=True)
class Range:
    """What is known of a real atom: ``low <= atom <= high``, strictly or not, and whether it can be 0."""

    low: Rational | None = None
    high: Rational | None = None
    low_strict: bool = True
    high_strict: bool = True
    nonzero: bool = False

    @property
    def known(self) -> bool:
        """Whether there is any bound."""
        return self.low is not None or self.high is not None


@dataclass(frozen=True)
class Sign:
    """``direction`` is -1, 0 or 1; with ``strict`` false the value may also be 0."""

    direction: int
    strict: bool = True

    def flip(self, sign: int = -1) -> Sign:
        """The sign of the product with a number of the given sign."""
        return Sign(self.direction * sign, self.strict)

    def times(self, other: Sign) -> Sign:
        """The sign of a product."""
        return Sign(self.direction * other.direction, self.strict and other.strict)


@dataclass(frozen=True)
class Fact:
    """A polynomial known to be positive (``>``), nonnegative (``>=``) or nonzero (``!=``), and its source."""

    poly: Poly
    relation: str
    text: str


@dataclass
class Signs:
    """Sign proofs over one tower."""

    tower: Tower
    ranges: dict[int, Range] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    recorded: list[tuple[Poly, Sign]] = field(default_factory=list)
    depth: int = 0
    effort: int = 0
    cache: list[tuple[Poly, Sign | None]] = field(default_factory=list)

    def of_fraction(self, a: Fraction) -> Sign | None:
        """The sign of a fraction where it is defined, or None."""
        if a.num.is_zero():
            return Sign(0)
        top, bottom, factors = self.tower.factors(a)
        total = Sign(1 if top * bottom > 0 else -1)
        for poly, multiplicity in factors:
            sign = self.of_factor(poly)
            if multiplicity % 2 == 0:
                strict = multiplicity < 0 or self.nonzero(poly)
                total = total.times(Sign(1, strict))
            elif sign is None:
                return None
            else:
                total = total.times(Sign(sign.direction, sign.strict or multiplicity < 0))
        return total

    def of_poly(self, poly: Poly) -> Sign | None:
        """The sign of a polynomial, or None."""
        return self.of_fraction(Fraction(poly, self.tower.constant(1)))

    def nonzero(self, poly: Poly) -> bool:
        """Whether the polynomial is proved to vanish nowhere."""
        sign = self.of_factor(poly)
        if sign is not None and sign.strict and sign.direction:
            return True
        index = self.tower.single(poly)
        if index is not None and self.ranges.get(index, Range()).nonzero:
            return True
        return any(f.relation == "!=" and poly in (f.poly, -f.poly) and self._note(f.text) for f in self.facts)

    def of_factor(self, poly: Poly) -> Sign | None:
        """The sign of an irreducible polynomial, or None; proofs are remembered."""
        for known, sign in self.cache:
            if known == poly:
                return sign
        if self.depth > _DEEPEST or len(poly) > _LONGEST or self.effort >= _MOST_EFFORT:
            return self._by_coefficients(poly)
        self.depth += 1
        self.effort += 1
        try:
            sign = self._search(poly)
        finally:
            self.depth -= 1
        if sign is not None or self.depth == 0:
            self.cache.append((poly, sign))
        return sign

    def record(self, poly: Poly, sign: Sign) -> None:
        """Remember a sign that a rewriting relied on."""
        if not any(known == poly for known, _ in self.recorded):
            self.recorded.append((poly, sign))

    def texts(self) -> tuple[str, ...]:
        """The signs and facts that were used, as inequalities, sorted."""
        texts = set(self.used)
        for poly, sign in self.recorded:
            relation = {1: ">", -1: "<"}[sign.direction] + ("" if sign.strict else "=")
            texts.add(f"{self.tower.to_expr(poly)} {relation} 0")
            used = set(self.tower.variables(poly))
            texts.update(f.text for f in self.facts if used.intersection(self.tower.variables(f.poly)))
        return tuple(sorted(texts))

    def _note(self, text: str) -> bool:
        self.used.add(text)
        return True

    def _search(self, poly: Poly) -> Sign | None:
        if poly.is_zero():
            return Sign(0)
        best = self._from_facts(poly)
        if best is not None and best.strict:
            return best
        return self._by_coefficients(poly) or best or self._by_radical(poly) or self._by_discriminant(poly)

    def _from_facts(self, poly: Poly) -> Sign | None:
        best: Sign | None = None
        for fact in self.facts:
            if fact.relation == "!=":
                continue
            for direction, candidate in ((1, fact.poly), (-1, -fact.poly)):
                if poly == candidate and (best is None or not best.strict):
                    best = Sign(direction, fact.relation == ">")
        if best is not None and not best.strict and self._known_nonzero(poly):
            best = Sign(best.direction)
        return best

    def _known_nonzero(self, poly: Poly) -> bool:
        return any(f.relation == "!=" and poly in (f.poly, -f.poly) for f in self.facts)

    def _by_coefficients(self, poly: Poly) -> Sign | None:
        weak = None
        for mode in ("low", "high", "both"):
            sign = self._moved(poly, mode)
            if sign is not None and sign.strict:
                return sign
            weak = weak or sign
        return weak

    def _moved(self, poly: Poly, mode: str) -> Sign | None:
        """The sign by coefficients, with atoms that have two bounds moved by one of them or by both."""
        strict_atoms: dict[int, bool] = {}
        closed = False
        for index in self.tower.variables(poly):
            bound = self.ranges.get(index, Range())
            if not bound.known:
                continue
            two = bound.low is not None and bound.high is not None
            if two and mode == "low":
                bound = replace(bound, high=None)
            elif two and mode == "high":
                bound = replace(bound, low=None)
            elif two:
                closed |= not bound.high_strict
            poly, strict_atoms[index] = self._to_half_line(poly, index, bound)
        sign = self._one_sign(poly, strict_atoms)
        return Sign(sign.direction, sign.strict and not closed) if sign is not None else None

    def _one_sign(self, poly: Poly, strict_atoms: dict[int, bool]) -> Sign | None:
        signs = set()
        strict = False
        for monomial, coefficient in self.tower.terms(poly):
            signs.add(coefficient > 0)
            term_strict = True
            for index, exponent in enumerate(monomial):
                if not exponent:
                    continue
                if index in strict_atoms:
                    term_strict &= strict_atoms[index]
                elif exponent % 2:
                    return None
                else:
                    term_strict &= self.ranges.get(index, Range()).nonzero
            strict |= term_strict
        if len(signs) != 1:
            return None
        return Sign(1 if signs.pop() else -1, strict)

    def _to_half_line(self, poly: Poly, index: int, bound: Range) -> tuple[Poly, bool]:
        """Replace the atom by an expression of a new one in [0, oo), times a positive factor."""
        x = self.tower.gens[index]
        if bound.low is None:
            high = bound.high if bound.high is not None else Rational(0)
            num, den, strict = high.numerator - high.denominator * x, high.denominator, bound.high_strict
        elif bound.high is None:
            num, den, strict = (
                bound.low.numerator + bound.low.denominator * x,
                bound.low.denominator,
                bound.low_strict,
            )
        else:
            return self._to_interval(poly, index, bound.low, bound.high), bound.low_strict and bound.high_strict
        return self._substitute(poly, index, num, self.tower.constant(den)), strict

    def _to_interval(self, poly: Poly, index: int, low: Rational, high: Rational) -> Poly:
        x = self.tower.gens[index]
        scale = low.denominator * high.denominator
        num = int(low * scale) + int(high * scale) * x
        return self._substitute(poly, index, num, scale * (1 + x))

    def _substitute(self, poly: Poly, index: int, num: Poly, den: Poly) -> Poly:
        parts = self.tower.coefficients(poly, index)
        top = max(parts)
        total = self.tower.constant(0)
        for degree, coefficient in parts.items():
            total += coefficient * num**degree * den ** (top - degree)
        return total

    def _by_radical(self, poly: Poly) -> Sign | None:
        """``a + b*s`` with ``s = sqrt(p)``: by the sign of ``a**2 - b**2*p``."""
        for index in reversed(self.tower.variables(poly)):
            atom: Any = self.tower.atoms[index]
            if atom.order != 2 or atom.kind == "parity":
                continue
            a, b = self.tower.linear_parts(self.tower.reduce(poly), index)
            if a.is_zero() or b.is_zero():
                return None
            gap = self.of_poly(self.tower.reduce(a * a - b * b * atom.radicand))
            if gap is None:
                return None
            if gap.direction == 0:
                sign = self.of_poly(a) or self.of_poly(b)
                return Sign(sign.direction, False) if sign else None
            sign = self.of_poly(a if gap.direction > 0 else b)
            return Sign(sign.direction, gap.strict) if sign and sign.direction else None
        return None

    def _by_discriminant(self, poly: Poly) -> Sign | None:
        """``a*x**2 + b*x + c`` with ``b**2 < 4*a*c`` has the sign of ``c``."""
        for index in self.tower.variables(poly):
            parts = self.tower.coefficients(poly, index)
            if max(parts) != 2 or 0 not in parts or self.tower.atoms[index].order:
                continue
            _, linear = self.tower.linear_parts(poly, index)
            gap = self.of_poly(self.tower.reduce(linear * linear - 4 * parts[2] * parts[0]))
            sign = self.of_poly(parts[0])
            if gap is not None and gap.direction < 0 and gap.strict and sign is not None and sign.direction:
                return Sign(sign.direction)
        return None
