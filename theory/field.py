"""Exponentials, logarithms and roots as atoms of a tower, independent of each other where that can be seen.

Internal to :mod:`theory.identities`. Every rewriting is an identity of real numbers wherever both sides are
defined; those that need a sign use a proof from :mod:`theory.signs`, which is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction as Rational
from math import gcd
from typing import Any

from flint import fmpz
from sympy import E, Integer, Pow, exp, log

from theory.algebra import Atom, Fraction, Poly
from theory.denesting import square_roots
from theory.domain import Domain, Pieces
from theory.lattice import dependence
from theory.signs import Range, Sign

__all__ = ["Field"]

_LARGEST_FACTORED = 100  # bits: beyond this an integer is not factored into primes


_LONGEST_CONJUGATE = 20  # terms of the argument of a logarithm that is compared with its conjugate


@dataclass(frozen=True)
class _Exponent:
    """A basis element of the exponents: ``exp(exponent)`` is the atom to the power ``scale``, or a known value."""

    exponent: Fraction
    key: str
    atom: int = -1
    scale: int = 1
    value: Fraction | None = None


@dataclass
class Field(Domain):
    """The transcendental and algebraic atoms, with the basis of exponents seen so far."""

    exponents: list[_Exponent] = field(default_factory=list)
    logs: list[tuple[Poly, int]] = field(default_factory=list)
    roots: list[tuple[Poly, int, int]] = field(default_factory=list)

    # ---- logarithms ----------------------------------------------------------------------------------------

    def log(self, a: Fraction) -> Fraction:
        """``log(a)``, split into logarithms of factors that are positive on the domain."""
        return self.log_product([(a, 1)])

    def log_product(self, pieces: Pieces) -> Fraction:
        """The logarithm of a product of powers."""
        content, parts = self.split(pieces, strict=True)
        total = self.tower.zero
        for prime, k in _primes(content):
            total = self._plus(total, k, self.log_atom(self.tower.constant(prime)))
        for poly, k in parts:
            total = self._plus(total, k, self._log_factor(poly))
        return total

    def _plus(self, total: Fraction, k: int, a: Fraction) -> Fraction:
        return self.tower.add(total, self.tower.mul(self.tower.fraction(k), a))

    def _log_factor(self, poly: Poly) -> Fraction:
        index = self.tower.single(poly)
        if index is not None:
            atom = self.tower.atoms[index]
            if atom.kind == "exp":
                return atom.data
            if atom.kind == "root":
                inner = self.log(Fraction(atom.radicand, self.tower.constant(1)))
                return self.tower.mul(inner, self.tower.fraction(1, atom.order))
            if atom.kind == "lambert" and self.positive(atom.data):
                return self.tower.sub(self.log(atom.data), self.tower.generator(index))
        square = None if any(known == poly for known, _ in self.logs) else self._square_root(poly, within=True)
        if square is not None:
            return self.tower.mul(self.log(square), self.tower.fraction(2))
        return self._log_conjugate(poly) or self.log_atom(poly)

    def positive(self, a: Fraction) -> bool:
        """Whether ``a`` is proved positive where it is defined; the proof is recorded."""
        sign = self.signs.of_fraction(a)
        if sign is None or sign.direction != 1 or not sign.strict:
            return False
        self.note_factors(a)
        return True

    def _log_conjugate(self, poly: Poly) -> Fraction | None:
        """``log(a - b*s) = log(a**2 - b**2*p) - log(a + b*s)``, ``s = sqrt(p)``: keeps one of the two."""
        if len(poly) > _LONGEST_CONJUGATE:
            return None
        for index in reversed(self.tower.variables(poly)):
            atom = self.tower.atoms[index]
            if atom.order != 2 or atom.kind != "root":
                continue
            a, b = self.tower.linear_parts(poly, index)
            if a.is_zero() or b.is_zero():
                return None
            norm = self.tower.reduce(a * a - b * b * atom.radicand)
            sign = self.signs.of_poly(norm)
            if sign is None or not sign.strict or (b if sign.direction > 0 else a).leading_coefficient() > 0:
                return None
            norm = norm if sign.direction > 0 else -norm
            other = self.tower.reduce(sign.direction * (a - b * self.tower.gens[index]))
            if self.signs.of_poly(other) != Sign(1):
                return None
            one = self.tower.constant(1)
            return self.tower.sub(self.log(Fraction(norm, one)), self.log(Fraction(other, one)))
        return None

    def log_atom(self, poly: Poly) -> Fraction:
        """The atom ``log(poly)``; ``exp`` of it is ``poly``."""
        for known, index in self.logs:
            if known == poly:
                return self.tower.generator(index)
        index = self.tower.add_atom(Atom("log", log(self.tower.to_expr(poly))))
        above_one = self.signs.of_poly(poly - 1)
        if above_one is not None and above_one.direction > 0:
            self.signs.ranges[index] = Range(low=Rational(0), low_strict=above_one.strict)
        self.logs.append((poly, index))
        atom = self.tower.generator(index)
        value = Fraction(poly, self.tower.constant(1))
        self.exponents.append(_Exponent(atom, f"log{len(self.logs)}", value=value))
        return atom

    # ---- exponentials --------------------------------------------------------------------------------------

    def exp(self, a: Fraction) -> Fraction:
        """``exp(a)`` as a product of integer powers of independent exponentials, radicals and factors."""
        if a.num.is_zero():
            return self.tower.one
        result = self.tower.one
        for piece in self._pieces(a):
            result = self.tower.mul(result, self._exp_piece(piece))
        return result

    def _pieces(self, a: Fraction) -> Iterator[Fraction]:
        if a.den.is_constant():
            for monomial, coefficient in self.tower.terms(a.num):
                yield self.tower.make(self.tower.context.from_dict({monomial: coefficient}), a.den)
            return
        for item in self.exponents:
            if item.value is not None and (share := self._share(a, item.exponent)) is not None:
                yield share
                a = self.tower.sub(a, share)
        if not a.num.is_zero():
            yield a

    def _share(self, a: Fraction, atom: Fraction) -> Fraction | None:
        """The part ``c*atom`` of ``a`` with a rational number ``c``, if ``a`` is linear in that atom."""
        index = self.tower.single(atom.num)
        if index is None or not a.num.degrees()[index] or a.den.degrees()[index]:
            return None
        ratio = self.tower.make(self.tower.linear_parts(a.num, index)[1], a.den)
        if a.num.degrees()[index] > 1 or not ratio.num.is_constant() or not ratio.den.is_constant():
            return None
        return self.tower.mul(ratio, atom)

    def _exp_piece(self, a: Fraction) -> Fraction:
        if a.num.is_constant() and a.den.is_constant():
            self._constant_exponent()
        solution = dependence(self.tower, a, [item.exponent for item in self.exponents])
        if solution is None:
            content = self.tower.content(a.num) * (1 if a.num.leading_coefficient() > 0 else -1)
            base = self.tower.mul(a, self.tower.fraction(1, content))
            self._new_exponent(base, f"exp{len(self.exponents)}")
            solution = {len(self.exponents) - 1: Rational(content)}
        result = self.tower.one
        for position, coefficient in solution.items():
            result = self.tower.mul(result, self._exp_basis(self.exponents[position], coefficient))
        return result

    def _constant_exponent(self) -> None:
        if not any(item.key == "E" for item in self.exponents):
            self._new_exponent(self.tower.one, "E")

    def _new_exponent(self, exponent: Fraction, key: str) -> None:
        scale = self.hints.scales.get(key, 1)
        part = self.tower.mul(exponent, self.tower.fraction(1, scale))
        expr = exp(self.tower.fraction_expr(part)) if key != "E" else Pow(E, Integer(1) / scale)
        index = self.tower.add_atom(Atom("exp", expr, data=part))
        self.signs.ranges[index] = self._exp_range(part)
        self.exponents.append(_Exponent(exponent, key, index, scale))

    def _exp_range(self, exponent: Fraction) -> Range:
        sign = self.signs.of_fraction(exponent)
        if sign is not None and sign.direction > 0:
            return Range(low=Rational(1), low_strict=sign.strict)
        if sign is not None and sign.direction < 0:
            return Range(low=Rational(0), high=Rational(1), high_strict=sign.strict)
        return Range(low=Rational(0))

    def _exp_basis(self, item: _Exponent, coefficient: Rational) -> Fraction:
        if item.value is not None:
            if coefficient.denominator == 1:
                return self.tower.power(item.value, coefficient.numerator)
            return self.rational_power(item.value, coefficient)
        exponent = coefficient * item.scale
        if exponent.denominator != 1:
            raise self.hints.refine(item.key, exponent.denominator)
        return self.tower.power(self.tower.generator(item.atom), exponent.numerator)

    def lambert(self, index: int, argument: Fraction) -> None:
        """Let ``exp(W(x)) = x/W(x)`` be known for the atom ``W(x)``."""
        atom = self.tower.generator(index)
        sign = self.signs.of_fraction(argument)
        if sign is not None and sign.direction > 0:
            self.signs.ranges[index] = Range(low=Rational(0), low_strict=sign.strict)
        value = self.tower.mul(argument, self.tower.power(atom, -1))
        self.exponents.append(_Exponent(atom, f"lambert{index}", value=value))

    # ---- roots ---------------------------------------------------------------------------------------------

    def rational_power(self, a: Fraction, exponent: Rational) -> Fraction:
        """``a**exponent`` for a rational exponent, where ``a >= 0``."""
        return self.power_product([(a, 1)], exponent)

    def power_product(self, pieces: Pieces, exponent: Rational) -> Fraction:
        """The rational power of a product of powers."""
        content, parts = self.split(pieces, strict=exponent < 0)
        if content == 0:
            return self.tower.zero
        result = self.tower.one
        for prime, k in _primes(content):
            result = self.tower.mul(result, self._root(self.tower.constant(prime), k * exponent))
        for poly, k in parts:
            result = self.tower.mul(result, self._root(poly, k * exponent))
        return result

    def _root(self, poly: Poly, exponent: Rational) -> Fraction:
        whole = exponent.numerator // exponent.denominator
        rest = exponent - whole
        result = self.tower.power(Fraction(poly, self.tower.constant(1)), whole)
        if not rest:
            return result
        index = self.tower.single(poly)
        atom: Any = self.tower.atoms[index] if index is not None else None
        if atom is not None and atom.kind == "exp":
            inner = self.tower.mul(atom.data, self.tower.fraction(rest.numerator, rest.denominator))
            return self.tower.mul(result, self.exp(inner))
        if atom is not None and atom.kind == "root":
            base = Fraction(atom.radicand, self.tower.constant(1))
            return self.tower.mul(result, self.rational_power(base, rest / atom.order))
        square = None if any(known == poly for known, _, _ in self.roots) else self._square_root(poly)
        if square is not None:
            return self.tower.mul(result, self.rational_power(square, 2 * rest))
        root, order = self._root_atom(poly, rest.denominator)
        return self.tower.mul(result, self.tower.power(root, int(rest * order)))

    def _square_root(self, poly: Poly, within: bool = False) -> Fraction | None:
        """``sqrt(poly) = Abs(a)`` where ``a**2 = poly`` and the denominator of ``a`` vanishes nowhere."""
        for root in square_roots(self.tower, poly, within):
            below = Fraction(root.den, self.tower.constant(1))
            sign = self.signs.of_fraction(below)
            if sign is not None and sign.strict:
                self.note_factors(below)
                return self.absolute(root)
        return None

    def _root_atom(self, poly: Poly, order: int) -> tuple[Fraction, int]:
        for known, index, position in self.roots:
            if known == poly:
                have = self.tower.atoms[index].order
                if have % order:
                    raise self.hints.refine(f"root{position}", order // gcd(have, order))
                return self.tower.generator(index), have
        position = len(self.roots)
        scale = self.hints.scales.get(f"root{position}", 1)
        order = order * scale // gcd(order, scale)
        expr = Pow(self.tower.to_expr(poly), Integer(1) / order)
        index = self.tower.add_atom(Atom("root", expr, order, poly))
        sign = self.signs.of_poly(poly)
        self.signs.ranges[index] = Range(low=Rational(0), low_strict=sign is not None and sign.strict)
        self.roots.append((poly, index, position))
        return self.tower.generator(index), order


def _primes(content: Rational) -> Iterator[tuple[int, int]]:
    """Prime factors of a positive rational with their exponents; a very large integer stays whole."""
    for number, sign in ((content.numerator, 1), (content.denominator, -1)):
        if number == 1:
            continue
        if number.bit_length() > _LARGEST_FACTORED:
            yield number, sign
        else:
            for prime, k in fmpz(number).factor():
                yield int(prime), sign * int(k)
