"""The bottom-up walk: each SymPy node becomes a fraction over the atoms of one table.

Internal to :mod:`theory.identities`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction as Rational
from functools import reduce
from math import comb
from typing import Any

import sympy
from sympy import Basic, Expr, Symbol
from sympy.core.function import AppliedUndef, Function

from theory.algebra import Atom, Fraction, Tower
from theory.errors import GradlineError
from theory.field import Field
from theory.inputs import symbol_range
from theory.signs import Range

__all__ = ["Converter"]

_MOST_TERMS = 20_000


@dataclass
class Converter:
    """Bottom-up conversion with one table of atoms."""

    atoms: Field
    memo: dict[Basic, Fraction] = field(default_factory=dict)
    opaque: list[tuple[Any, tuple[Fraction, ...], int]] = field(default_factory=list)
    strata: list[Fraction] = field(default_factory=list)
    free: frozenset[Symbol] = frozenset()
    bound: set[Symbol] = field(default_factory=set)

    @property
    def tower(self) -> Tower:
        """The arithmetic."""
        return self.atoms.tower

    @property
    def left_out(self) -> tuple[Expr, ...]:
        """What was taken to be nonzero; where it vanishes nothing is proved."""
        here = (self.tower.fraction_expr(a) for a in self.strata)
        return tuple(dict.fromkeys([*self.atoms.hints.strata, *here]))

    def convert(self, expr: Basic) -> Fraction:
        """The expression as a fraction over the atoms."""
        if expr not in self.memo:
            self.atoms.parts.append(expr)
            self.memo[expr] = self._convert(expr)
            self.atoms.parts.pop()
        return self.memo[expr]

    def leave_out(self, a: Fraction) -> None:
        """Remember the place where ``a`` vanishes for a separate check."""
        if a not in self.strata:
            self.strata.append(a)

    def _convert(self, expr: Any) -> Fraction:
        if expr.is_Rational:
            return self.tower.fraction(int(expr.p), int(expr.q))
        if expr.is_Symbol:
            return self.symbol(expr)
        if expr.is_Add:
            return self._fold(self.tower.add, expr.args)
        if expr.is_Mul:
            return self._fold(self.tower.mul, expr.args)
        if expr is sympy.S.Exp1:
            return self.atoms.exp(self.tower.one)
        if expr.is_Pow:
            return self._power(expr.base, expr.exp)
        if isinstance(expr, sympy.Integral):
            return self._integral(expr)
        rule = _RULES.get(type(expr).__name__) if not isinstance(expr, AppliedUndef) else None
        if rule is not None:
            return rule(self, *expr.args)
        if isinstance(expr, Function):
            return self._function(expr)
        return self.opaque_atom(expr, (), expr)

    def _fold(self, combine: Callable[[Fraction, Fraction], Fraction], args: Sequence[Basic]) -> Fraction:
        parts = [self.convert(arg) for arg in args]
        while len(parts) > 1:
            paired = [combine(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
            parts = paired + (parts[-1:] if len(parts) % 2 else [])
        return parts[0]

    def symbol(self, symbol: Symbol) -> Fraction:
        """The atom of a symbol."""
        index = self.tower.add_atom(Atom("symbol", symbol))
        self.atoms.signs.ranges[index] = symbol_range(symbol)
        if symbol.is_extended_real is None:
            self.atoms.signs.used.add(f"{symbol} is real")
        return self.tower.generator(index)

    def pieces(self, expr: Any) -> list[tuple[Fraction, int]]:
        """A product of powers as a list of bases and exponents."""
        if expr.is_Mul:
            return [piece for arg in expr.args for piece in self.pieces(arg)]
        if expr.is_Pow and expr.exp.is_Integer and expr.base is not sympy.S.Exp1:
            return [(a, k * int(expr.exp)) for a, k in self.pieces(expr.base)]
        return [(self.convert(expr), 1)]

    def absolute(self, expr: Any) -> Fraction:
        """The absolute value, factor by factor."""
        factors = [self.tower.power(self.atoms.absolute(a), k) for a, k in self.pieces(expr)]
        return reduce(self.tower.mul, factors)

    # ---- powers --------------------------------------------------------------------------------------------

    def _power(self, base: Any, exponent: Any) -> Fraction:
        if exponent.is_Rational:
            if exponent.q == 1:
                return self._integer_power(self.convert(base), int(exponent.p))
            return self.atoms.power_product(self.pieces(base), Rational(int(exponent.p), int(exponent.q)))
        if base is sympy.S.Exp1:
            return self.atoms.exp(self.convert(exponent))
        a, e = self.convert(base), self.convert(exponent)
        if e.num.is_constant() and e.den.is_constant():
            return self._power_of(
                a,
                Rational(int(e.num.leading_coefficient()) if e.num else 0, int(e.den.leading_coefficient())),
            )
        if a.num.is_zero():
            raise GradlineError(f"power of zero: {base**exponent} in the normal form; replace the base")
        sign = self.atoms.signs.of_fraction(a)
        if sign is not None and sign.direction and not sign.strict:
            self.leave_out(a)
        if sign is not None and sign.direction > 0:
            self.atoms.note_factors(a)
            return self.atoms.exp(self.tower.mul(e, self.atoms.log(a)))
        if exponent.is_integer and sign is not None and sign.direction < 0:
            self.atoms.note_factors(a)
            size = self.atoms.exp(self.tower.mul(e, self.atoms.log(self.tower.neg(a))))
            return self.tower.mul(self._parity(e), size)
        if sign is not None and sign.strict:
            raise GradlineError(f"power {base**exponent} of a negative number: not real; give the exponent as integer")
        return self._opaque_power(a, e)

    def _power_of(self, a: Fraction, exponent: Rational) -> Fraction:
        if exponent.denominator == 1:
            return self._integer_power(a, exponent.numerator)
        return self.atoms.rational_power(a, exponent)

    def _integer_power(self, a: Fraction, exponent: int) -> Fraction:
        terms = max(len(a.num), len(a.den))
        if abs(exponent) > 1 and comb(terms + abs(exponent) - 1, terms - 1) > _MOST_TERMS:
            raise GradlineError(f"a sum to the power {exponent} in the normal form; name the sum by a symbol")
        return self.tower.power(a, exponent)

    def _parity(self, e: Fraction) -> Fraction:
        """``(-1)**e`` for an integer ``e``: an atom whose square is 1 per monomial."""
        if not e.den.is_constant() or int(e.den.leading_coefficient()) != 1:
            return self._parity_atom(e)
        result = self.tower.one
        for monomial, coefficient in self.tower.terms(e.num):
            if coefficient % 2 == 0 and self._integer_monomial(monomial):
                continue
            integer = self._integer_monomial(monomial)
            c = 1 if integer else coefficient
            part = self.tower.make(self.tower.context.from_dict({monomial: c}), self.tower.constant(1))
            if part.num.is_constant():
                result = self.tower.neg(result)
            elif integer:
                result = self.tower.mul(result, self._parity_atom(part))
            else:
                return self._parity_atom(e)
        return result

    def _integer_monomial(self, monomial: tuple[int, ...]) -> bool:
        atoms = [self.tower.atoms[i] for i, k in enumerate(monomial) if k]
        return all(atom.kind == "symbol" and atom.expr.is_integer for atom in atoms)

    def _parity_atom(self, e: Fraction) -> Fraction:
        expr = sympy.Pow(-1, self.tower.fraction_expr(e))
        for name, args, index in self.opaque:
            if name == "parity" and self.tower.equal(args[0], e):
                return self.tower.generator(index)
        index = self.tower.add_atom(Atom("parity", expr, 2, self.tower.constant(1)))
        self.atoms.signs.ranges[index] = Range(nonzero=True)
        self.opaque.append(("parity", (e,), index))
        return self.tower.generator(index)

    def _opaque_power(self, a: Fraction, e: Fraction) -> Fraction:
        """``a**e`` of a base of unknown sign; integer parts of the exponent are split off."""
        constant, rest = self.tower.zero, e
        if e.den.is_constant():
            zero = (0,) * self.tower.capacity
            value = int(e.num.to_dict().get(zero, 0))
            constant = self.tower.fraction(value // int(e.den.leading_coefficient()))
            rest = self.tower.sub(e, constant)
        expr = sympy.Pow(self.tower.fraction_expr(a), self.tower.fraction_expr(rest))
        whole = int(constant.num.leading_coefficient()) if constant.num else 0
        return self.tower.mul(self.opaque_atom("power", (a, rest), expr), self.tower.power(a, whole))

    # ---- functions -----------------------------------------------------------------------------------------

    def opaque_atom(self, name: Any, args: tuple[Fraction, ...], expr: Expr, kind: str = "opaque") -> Fraction:
        """An atom identified by its function and its arguments, compared as normal forms."""
        for known, others, index in self.opaque:
            if known == name and len(args) == len(others) and all(map(self.tower.equal, args, others)):
                return self.tower.generator(index)
        index = self.tower.add_atom(Atom(kind, expr, data=args[0] if args else None))
        if expr is sympy.pi:
            self.atoms.signs.ranges[index] = Range(low=Rational(3), high=Rational(4))
        self.opaque.append((name, args, index))
        if kind == "lambert":
            self.atoms.lambert(index, args[0])
        return self.tower.generator(index)

    def _function(self, expr: Any) -> Fraction:
        if isinstance(expr, AppliedUndef) and expr.is_extended_real is None:
            self.atoms.signs.used.add(f"{expr.func} is real")
        args = tuple(self.convert(arg) for arg in expr.args)
        return self.opaque_atom(expr.func, args, expr.func(*map(self.tower.fraction_expr, args)))

    def lambert(self, x: Expr, *branch: Expr) -> Fraction:
        """``W(x)``; ``W(y*exp(y)) = y`` where ``y >= -1`` is proved."""
        a = self.convert(x)
        if a.num.is_zero():
            return self.tower.zero
        if not branch:
            found = self._lambert_inverse(a)
            if found is not None:
                return found
        name = ("LambertW", branch)
        kind = "lambert" if not branch else "lambert_branch"
        result = self.opaque_atom(name, (a,), sympy.LambertW(self.tower.fraction_expr(a), *branch), kind)
        return result

    def _lambert_inverse(self, a: Fraction) -> Fraction | None:
        sign = self.atoms.signs.of_fraction(a)
        if sign is None or sign.direction != 1:
            return None
        total = self.atoms.log(a)
        for monomial, coefficient in self.tower.terms(total.num):
            y = self.tower.make(self.tower.context.from_dict({monomial: coefficient}), total.den)
            if self.atoms.positive(y):
                image = self.tower.mul(y, self.atoms.exp(y))
                if self.tower.equal(image, a):
                    return y
        return None

    def sign(self, x: Expr) -> Fraction:
        """``sign(x)``; an argument that may vanish is remembered for a separate check."""
        a = self.convert(x)
        result = self.atoms.sign_of(a)
        if result is None:
            self.leave_out(a)
            result = self.tower.mul(self.atoms.absolute(a), self.tower.power(a, -1))
        return result

    def extremum(self, direction: int, args: Sequence[Expr]) -> Fraction:
        """``Max`` (1) or ``Min`` (-1) by ``(a + b +- Abs(a - b))/2``."""
        result = self.convert(args[0])
        for arg in args[1:]:
            b = self.convert(arg)
            gap = self.atoms.absolute(self.tower.sub(result, b))
            total = self.tower.add(self.tower.add(result, b), gap if direction > 0 else self.tower.neg(gap))
            result = self.tower.mul(total, self.tower.fraction(1, 2))
        return result

    def exponentials(self, x: Expr) -> tuple[Fraction, Fraction]:
        """``exp(x)`` and ``exp(-x)``."""
        value = self.atoms.exp(self.convert(x))
        return value, self.tower.power(value, -1)

    def _integral(self, expr: Any) -> Fraction:
        """An integral is identified by integrand and limits, with canonical variables of integration."""
        if any(len(limit) != 3 for limit in expr.limits):
            return self.opaque_atom(expr, (), expr)
        self.atoms.bound_depth += 1
        body, bounds, variables = self._canonical(expr)
        args = [self.convert(bound) for pair in bounds for bound in pair]
        integrand = self.convert(body)
        self.atoms.bound_depth -= 1
        ends = [self.tower.fraction_expr(a) for a in args]
        limits = list(zip(variables, ends[::2], ends[1::2], strict=True))
        if len(expr.limits) == 1 and self.tower.equal(args[0], args[1]):
            return self.tower.zero
        constant = self._constant_factor(integrand, [limit[0] for limit in limits])
        integrand = self.tower.mul(integrand, self.tower.power(constant, -1))
        rebuilt = sympy.Integral(self.tower.fraction_expr(integrand), *limits)
        return self.tower.mul(constant, self.opaque_atom(("Integral", len(limits)), (integrand, *args), rebuilt))

    def _canonical(self, expr: Any) -> tuple[Expr, list[tuple[Expr, Expr]], list[Symbol]]:
        """Integrand, bounds and variables; the bounds of an inner integral may hold the variables of the outer ones."""
        variables = [self._variable(position) for position in range(len(expr.limits))]
        body, bounds = expr.function, list[tuple[Expr, Expr]]()
        for position, (old, low, high) in enumerate(expr.limits):
            body = body.xreplace({old: variables[position]})
            bounds = [
                (a.xreplace({old: variables[position]}), b.xreplace({old: variables[position]})) for a, b in bounds
            ]
            bounds.append((low, high))
        return body, bounds, variables

    def _variable(self, position: int) -> Symbol:
        name = f"_s{self.atoms.bound_depth}_{position}"
        while Symbol(name, real=True) in self.free:
            name = f"_{name}"
        variable = Symbol(name, real=True)
        self.bound.add(variable)
        return variable

    def _constant_factor(self, integrand: Fraction, variables: list[Symbol]) -> Fraction:
        """The product of the factors that do not depend on the variables of integration."""
        if integrand.num.is_zero():
            return self.tower.one
        top, bottom, factors = self.tower.factors(integrand)
        constant = self.tower.fraction(top, bottom)
        for poly, k in factors:
            if not any(self.tower.atoms[i].expr.has(*variables) for i in self.tower.variables(poly)):
                part = Fraction(poly, self.tower.constant(1))
                constant = self.tower.mul(constant, self.tower.power(part, k))
        return constant


def _hyperbolic(c: Converter, x: Expr, sign: int) -> Fraction:
    e, inverse = c.exponentials(x)
    return c.tower.mul(c.tower.add(e, inverse if sign > 0 else c.tower.neg(inverse)), c.tower.fraction(1, 2))


def _ratio(c: Converter, a: Fraction, b: Fraction) -> Fraction:
    return c.tower.mul(a, c.tower.power(b, -1))


def _tanh(c: Converter, x: Expr) -> Fraction:
    return _ratio(c, _hyperbolic(c, x, -1), _hyperbolic(c, x, 1))


def _area(c: Converter, x: Expr, shift: int) -> Fraction:
    """``asinh`` (shift 1) or ``acosh`` (shift -1) as a logarithm."""
    a = c.convert(x)
    root = c.atoms.rational_power(c.tower.add(c.tower.mul(a, a), c.tower.fraction(shift)), Rational(1, 2))
    return c.atoms.log(c.tower.add(a, root))


def _atanh(c: Converter, x: Expr) -> Fraction:
    a = c.convert(x)
    ratio = _ratio(c, c.tower.add(c.tower.one, a), c.tower.sub(c.tower.one, a))
    return c.tower.mul(c.atoms.log(ratio), c.tower.fraction(1, 2))


_RULES: dict[str, Callable[..., Fraction]] = {
    "exp": lambda c, x: c.atoms.exp(c.convert(x)),
    "log": lambda c, x: c.atoms.log_product(c.pieces(x)),
    "Abs": lambda c, x: c.absolute(x),
    "sign": lambda c, x: c.sign(x),
    "Max": lambda c, *args: c.extremum(1, sorted(args, key=sympy.default_sort_key)),
    "Min": lambda c, *args: c.extremum(-1, sorted(args, key=sympy.default_sort_key)),
    "sinh": lambda c, x: _hyperbolic(c, x, -1),
    "cosh": lambda c, x: _hyperbolic(c, x, 1),
    "tanh": _tanh,
    "coth": lambda c, x: c.tower.power(_tanh(c, x), -1),
    "sech": lambda c, x: c.tower.power(_hyperbolic(c, x, 1), -1),
    "csch": lambda c, x: c.tower.power(_hyperbolic(c, x, -1), -1),
    "asinh": lambda c, x: _area(c, x, 1),
    "acosh": lambda c, x: _area(c, x, -1),
    "atanh": _atanh,
    "LambertW": lambda c, x, *branch: c.lambert(x, *branch),
}
