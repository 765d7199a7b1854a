"""Exact fractions of polynomials over a tower of atoms, some of which satisfy ``atom**k = polynomial``.

Internal to :mod:`theory.identities`. Numerators and denominators are ``flint.fmpz_mpoly``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd
from typing import Any

from flint import Ordering, fmpz_mpoly_ctx
from sympy import Add, Expr, Integer, Mul, Pow

from theory.errors import GradlineError

__all__ = ["Atom", "Fraction", "OutsideDomainError", "Restart", "Tower"]

_LARGEST_FACTORED = 150  # terms or total degree: beyond this a polynomial is not factored
_LARGEST_DEGREE = 10_000
_MOST_TERMS = 50_000

#: A polynomial with integer coefficients (flint is untyped).
Poly = Any


class OutsideDomainError(GradlineError):
    """The expression has no real value anywhere: a division by zero or the logarithm of a negative number."""


class Restart(Exception):  # noqa: N818
    """The conversion must start again: a hint (capacity, scale of an exponential, domain fact) has changed."""


@dataclass(frozen=True)
class Fraction:
    """``num/den`` in lowest terms; the leading coefficient of ``den`` is positive."""

    num: Poly
    den: Poly


@dataclass(frozen=True)
class Atom:
    """A generator of the tower: its kind, its SymPy form and (for a radical) its order and radicand."""

    kind: str
    expr: Expr
    order: int = 0
    radicand: Any = None
    data: Any = None


@dataclass
class Tower:
    """A table of atoms with the arithmetic of fractions over them."""

    capacity: int
    atoms: list[Atom] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context = fmpz_mpoly_ctx.get([f"x{i}" for i in range(self.capacity)], Ordering.lex)
        self.gens = self.context.gens()
        self.one = self.fraction(1)
        self.zero = self.fraction(0)

    def constant(self, value: int) -> Poly:
        """The constant polynomial."""
        return self.context.constant(int(value))

    def fraction(self, num: int, den: int = 1) -> Fraction:
        """The constant fraction ``num/den``."""
        return self.make(self.constant(num), self.constant(den))

    def add_atom(self, atom: Atom) -> int:
        """Append an atom and return its index."""
        if len(self.atoms) >= self.capacity:
            raise Restart("capacity")
        self.atoms.append(atom)
        return len(self.atoms) - 1

    def generator(self, index: int) -> Fraction:
        """The atom as a fraction."""
        return Fraction(self.gens[index], self.constant(1))

    def make(self, num: Poly, den: Poly) -> Fraction:
        """Reduce by the relations and to lowest terms."""
        num, den = self.reduce(num), self.reduce(den)
        if den.is_zero():
            raise OutsideDomainError("a denominator of the expression is identically zero; check the divisions in it")
        if num.is_zero():
            return Fraction(num, self.constant(1))
        if len(num) + len(den) > _MOST_TERMS:
            raise GradlineError(f"a normal form of more than {_MOST_TERMS} terms; name subexpressions by symbols")
        num, den = self._lowest(*self._rationalized(*self._lowest(num, den)))
        if den.leading_coefficient() < 0:
            num, den = -num, -den
        return Fraction(num, den)

    def _lowest(self, num: Poly, den: Poly) -> tuple[Poly, Poly]:
        common = num.gcd(den)
        return (num, den) if common.is_one() else (num // common, den // common)

    def _rationalized(self, num: Poly, den: Poly) -> tuple[Poly, Poly]:
        """Move a power of a radical from the denominator to the numerator: ``1/s = s/s**2``."""
        if den.is_constant():
            return num, den
        for index, degree in enumerate(den.term_content().degrees()):
            order = self.atoms[index].order if degree else 0
            if order:
                factor = self.gens[index] ** (order - degree)
                num, den = self.reduce(num * factor), self.reduce(den * factor)
        return num, den

    def reduce(self, poly: Poly) -> Poly:
        """Replace ``atom**k`` by its radicand, from the last atom to the first."""
        if poly.is_constant():
            return poly
        degrees = poly.degrees()
        for index in range(len(self.atoms) - 1, -1, -1):
            order = self.atoms[index].order
            if order and degrees[index] >= order:
                poly = self._reduce_one(poly, index, order)
                degrees = poly.degrees() if not poly.is_zero() else [0] * self.capacity
        return poly

    def _reduce_one(self, poly: Poly, index: int, order: int) -> Poly:
        parts: dict[int, dict[tuple[int, ...], Any]] = {}
        for monomial, coefficient in poly.to_dict().items():
            quotient, rest = divmod(int(monomial[index]), order)
            key = (*monomial[:index], rest, *monomial[index + 1 :])
            parts.setdefault(quotient, {})[key] = coefficient
        total = self.constant(0)
        radicand = self.atoms[index].radicand
        for quotient, terms in parts.items():
            total += self.context.from_dict(terms) * radicand**quotient
        return total

    def add(self, a: Fraction, b: Fraction) -> Fraction:
        """``a + b``."""
        if a.den == b.den:
            return self.make(a.num + b.num, a.den)
        common = a.den.gcd(b.den)
        left, right = a.den // common, b.den // common
        return self.make(a.num * right + b.num * left, a.den * right)

    def mul(self, a: Fraction, b: Fraction) -> Fraction:
        """``a * b``."""
        return self.make(a.num * b.num, a.den * b.den)

    def neg(self, a: Fraction) -> Fraction:
        """``-a``."""
        return Fraction(-a.num, a.den)

    def sub(self, a: Fraction, b: Fraction) -> Fraction:
        """``a - b``."""
        return self.add(a, self.neg(b))

    def power(self, a: Fraction, exponent: int) -> Fraction:
        """``a**exponent`` for an integer exponent."""
        if exponent < 0:
            return self.power(self.make(a.den, a.num), -exponent)
        if exponent * max(a.num.total_degree(), a.den.total_degree()) > _LARGEST_DEGREE:
            raise GradlineError(f"a power of degree above {_LARGEST_DEGREE}; round the numbers, or name the exponent")
        result, square = self.one, a
        while exponent:
            if exponent & 1:
                result = self.mul(result, square)
            exponent >>= 1
            if exponent:
                square = self.mul(square, square)
        return result

    def equal(self, a: Fraction, b: Fraction) -> bool:
        """Whether the difference reduces to zero."""
        if a.num == b.num and a.den == b.den:
            return True
        return bool(self.reduce(a.num * b.den - b.num * a.den).is_zero())

    def variables(self, poly: Poly) -> list[int]:
        """Indices of the atoms that occur."""
        if poly.is_constant():
            return []
        return [index for index, degree in enumerate(poly.degrees()) if degree]

    def single(self, poly: Poly) -> int | None:
        """The index of the atom that ``poly`` is, if it is one."""
        used = self.variables(poly)
        if len(used) == 1 and poly == self.gens[used[0]]:
            return used[0]
        return None

    def coefficients(self, poly: Poly, index: int) -> dict[int, Poly]:
        """``poly`` as a polynomial in one atom: degree -> coefficient."""
        parts: dict[int, dict[tuple[int, ...], Any]] = {}
        for monomial, coefficient in poly.to_dict().items():
            key = (*monomial[:index], 0, *monomial[index + 1 :])
            parts.setdefault(int(monomial[index]), {})[key] = coefficient
        return {degree: self.context.from_dict(terms) for degree, terms in parts.items()}

    def linear_parts(self, poly: Poly, index: int) -> tuple[Poly, Poly]:
        """The coefficients of degree 0 and 1 in one atom."""
        parts = self.coefficients(poly, index)
        zero = self.constant(0)
        return parts.get(0) or zero, parts.get(1) or zero

    def factors(self, a: Fraction) -> tuple[int, int, list[tuple[Poly, int]]]:
        """Content numerator and denominator, and irreducible factors with (possibly negative) multiplicity."""
        top, above = self.irreducible(a.num)
        bottom, below = self.irreducible(a.den)
        return top, bottom, above + [(f, -k) for f, k in below]

    def irreducible(self, poly: Poly) -> tuple[int, list[tuple[Poly, int]]]:
        """Content and irreducible factors; a very large polynomial stays whole."""
        if poly.is_constant():
            return int(poly.leading_coefficient()), []
        if len(poly) <= _LARGEST_FACTORED and poly.total_degree() <= _LARGEST_FACTORED:
            try:
                content, factors = poly.factor()
                return int(content), [(f, int(k)) for f, k in factors]
            except OverflowError:  # flint sorts factors by coefficients, which must fit a machine integer
                pass
        whole = self.content(poly) * (1 if poly.leading_coefficient() > 0 else -1)
        return whole, [(poly // self.constant(whole), 1)]

    def content(self, poly: Poly) -> int:
        """The greatest common divisor of the coefficients."""
        result = 0
        for coefficient in poly.coeffs():
            result = gcd(result, int(coefficient))
        return result

    def terms(self, poly: Poly) -> Iterator[tuple[tuple[int, ...], int]]:
        """Monomials and coefficients in the order of the context."""
        for monomial, coefficient in poly.terms():
            yield tuple(int(e) for e in monomial), int(coefficient)

    def to_expr(self, poly: Poly) -> Expr:
        """The polynomial as a SymPy expression."""
        parts = []
        for monomial, coefficient in self.terms(poly):
            powers = [Pow(self.atoms[i].expr, e) for i, e in enumerate(monomial) if e]
            parts.append(Mul(Integer(coefficient), *powers))
        return Add(*parts)

    def fraction_expr(self, a: Fraction) -> Expr:
        """The fraction as a SymPy expression."""
        return Mul(self.to_expr(a.num), Pow(self.to_expr(a.den), -1))
