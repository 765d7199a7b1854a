"""Exponentials and error functions of parameters as algebraically independent coordinates of their own.

Exponents are split into monomials: exponentials of distinct monomials are algebraically independent over the rational
functions (theorem of Ax), and so are error functions of linear forms that differ by more than a sign. A random
value for each is then a generic point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any

from sympy import Dummy, Expr, Integer, Mul, Poly, Pow, Rational, Symbol, diff, erf, exp, pi
from sympy.core.function import Function
from sympy.functions.elementary.hyperbolic import HyperbolicFunction

from theory.errors import GradlineError

__all__ = ["Coordinates", "rational_form"]


@dataclass(frozen=True)
class Coordinates:
    """``expressions``, rational in ``parameters``, ``adjoined`` and ``constants``; ``slopes`` of each adjoined one."""

    expressions: tuple[Expr, ...]
    parameters: tuple[Symbol, ...]
    adjoined: tuple[Symbol, ...]
    slopes: tuple[Mapping[Symbol, Expr], ...]
    constants: tuple[Symbol, ...]


def rational_form(expressions: Sequence[Expr], parameters: Sequence[Symbol]) -> Coordinates:
    """Replace exponentials and error functions by coordinates.

    Raises: `GradlineError` for an exponent that is no polynomial with rational coefficients.

    >>> from sympy.abc import x
    >>> len(rational_form([exp(x) + exp(x / 2)], [x]).adjoined)
    1
    """
    plain = [_by_exponentials(e) for e in expressions]
    errors = sorted(set().union(*(e.atoms(erf) for e in plain)), key=str)
    bells = {e: exp(-(e.args[0] ** 2)) for e in errors}
    found = sorted(set().union(*(e.atoms(exp) for e in [*plain, *bells.values()])), key=str)
    table, exponents = _exponentials(found, parameters)
    root = Dummy("root_pi")
    names = {e: Dummy(f"erf{i}") for i, e in enumerate(errors)}
    replace = {**names, **table, Pow(pi, Rational(-1, 2)): 1 / root, Pow(pi, Rational(1, 2)): root}
    slopes = [{x: s * diff(u, x) for x in parameters if u.has(x)} for s, u in exponents]
    for e in errors:
        factor, u = 2 / root * table[bells[e]], e.args[0]
        slopes.append({x: factor * diff(u, x) for x in parameters if u.has(x)})
    rational = tuple(e.xreplace(replace) for e in plain)
    adjoined = (*(s for s, _ in exponents), *names.values())
    used = set().union(*(e.free_symbols for e in [*rational, *(v for s in slopes for v in s.values())]))
    constants = tuple(sorted(used - {*parameters, *adjoined}, key=lambda s: (s.name, s.sort_key())))
    return Coordinates(rational, tuple(parameters), adjoined, tuple(slopes), constants)


def _by_exponentials(expr: Expr) -> Expr:
    """Write hyperbolic functions by exponentials, innermost first."""
    if not expr.has(HyperbolicFunction):
        return expr
    found = expr.func(*(_by_exponentials(a) for a in expr.args))
    return found.rewrite(exp) if isinstance(found, HyperbolicFunction) else found


def _exponentials(
    found: Sequence[Expr], parameters: Sequence[Symbol]
) -> tuple[dict[Expr, Expr], list[tuple[Symbol, Expr]]]:
    """Write each exponential as a product of powers of ``exp(monomial/l)``, the ``l`` common to all."""
    splits = {e: _monomials(e, parameters) for e in found}
    scale: dict[Expr, int] = {}
    for split in splits.values():
        for monomial, coefficient in split.items():
            scale[monomial] = lcm(scale.get(monomial, 1), int(coefficient.q))
    names = {m: Dummy(f"E{i}") for i, m in enumerate(sorted(scale, key=str))}
    table = {e: Mul(*(Pow(names[m], int(c * scale[m])) for m, c in split.items())) for e, split in splits.items()}
    return table, [(name, m / Integer(scale[m])) for m, name in names.items()]


def _monomials(e: Expr, parameters: Sequence[Symbol]) -> dict[Expr, Any]:
    argument = e.args[0]
    gens = sorted(argument.free_symbols | set(parameters), key=str)
    if argument.atoms(Function) or not argument.is_polynomial(*gens):
        raise GradlineError(f"{e}: exponent {argument} is no polynomial; laws are counted for exp of polynomials")
    poly = Poly(argument, *gens)
    if not (poly.domain.is_QQ or poly.domain.is_ZZ):
        raise GradlineError(f"{e}: exponent {argument} has an irrational coefficient; put a symbol in its place")
    return {Mul(*(g**k for g, k in zip(gens, ks, strict=True))): c for ks, c in poly.terms()}
