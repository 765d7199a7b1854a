"""The places that a conversion left out, and an expression at such a place.

Internal to :mod:`theory.identities`. A sign was rewritten for a nonzero argument, a power for a nonzero base: where
that vanishes the expression has to be looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy
from sympy import Basic, Dummy, Expr, Symbol

from theory.algebra import Fraction, OutsideDomainError, Poly
from theory.converter import Converter
from theory.errors import GradlineError
from theory.inputs import SignCondition, symbol_range

__all__ = ["at_place", "own_conditions", "places"]

_INFINITE = (sympy.nan, sympy.zoo, sympy.oo, -sympy.oo)


def places(converter: Converter, argument: Fraction) -> list[tuple[Symbol, Expr]] | None:
    """Where the factors of unknown sign vanish, each solved for a symbol, or None."""
    result: list[tuple[Symbol, Expr]] = []
    for poly, _ in converter.tower.irreducible(argument.num)[1]:
        found = _zeros(converter, poly)
        if found is None:
            return None
        result += found
    return result


def _zeros(converter: Converter, poly: Poly) -> list[tuple[Symbol, Expr]] | None:
    tower = converter.tower
    if converter.atoms.signs.nonzero(poly):
        return []
    single = tower.single(poly)
    if single is not None and tower.atoms[single].kind in ("abs", "root"):
        return places(converter, Fraction(tower.atoms[single].radicand, tower.constant(1)))
    if any(tower.atoms[i].expr.free_symbols & converter.bound for i in tower.variables(poly)):
        return [] if _on_null_set(converter, poly) else None
    for index in tower.variables(poly):
        found = _solved(converter, poly, index)
        if found is not None:
            return [found]
    return None


def _on_null_set(converter: Converter, poly: Poly) -> bool:
    """Whether it vanishes at finitely many values of a variable of integration only."""
    tower = converter.tower
    moving = [i for i in tower.variables(poly) if tower.atoms[i].expr.free_symbols & converter.bound]
    if len(moving) != 1 or tower.atoms[moving[0]].kind != "symbol":
        return False
    return any(
        c.is_constant() or converter.atoms.signs.nonzero(c) for c in tower.coefficients(poly, moving[0]).values()
    )


def _solved(converter: Converter, poly: Poly, index: int) -> tuple[Symbol, Expr] | None:
    """The zeros of a polynomial that is linear in a symbol, with a slope that vanishes nowhere."""
    tower = converter.tower
    parts = tower.coefficients(poly, index)
    if tower.atoms[index].kind != "symbol" or max(parts) != 1:
        return None
    if not (parts[1].is_constant() or all(converter.atoms.signs.nonzero(f) for f, _ in tower.irreducible(parts[1])[1])):
        return None
    symbol = tower.atoms[index].expr
    rest = tower.to_expr(parts[0]) if 0 in parts else sympy.Integer(0)
    slope = tower.to_expr(parts[1])
    return None if (rest + slope).has(symbol) else (symbol, -rest / slope)


def own_conditions(symbol: Symbol, value: Expr) -> list[SignCondition]:
    """What the assumptions of a symbol say of the value that takes its place."""
    bound, result = symbol_range(symbol), []
    if bound.low is not None:
        low = value - sympy.Rational(bound.low.numerator, bound.low.denominator)
        result.append(SignCondition(low, ">" if bound.low_strict else ">="))
    if bound.high is not None:
        high = sympy.Rational(bound.high.numerator, bound.high.denominator) - value
        result.append(SignCondition(high, ">" if bound.high_strict else ">="))
    if bound.nonzero:
        result.append(SignCondition(value, "!="))
    return result


def at_place(expr: Expr, symbol: Symbol, value: Expr) -> Expr:
    """The expression where ``symbol = value``, with a domain that may be larger.

    Raises: OutsideDomainError if a part of it has no real value anywhere there; GradlineError for what can't be put.
    """
    known: dict[Basic, Any] = {}

    def put(node: Any) -> Any:
        if node not in known:
            known[node] = _rebuilt(node, symbol, value, put)
        return known[node]

    return put(expr)


def _rebuilt(node: Any, symbol: Symbol, value: Expr, put: Any) -> Any:
    if node == symbol:
        return value
    if symbol not in node.free_symbols:
        return node
    if isinstance(node, sympy.Integral):
        return _integral(node, symbol, value, put)
    if isinstance(node, sympy.Derivative | sympy.Subs):
        return sympy.Subs(node, symbol, value)
    args = [put(arg) for arg in node.args]
    result = node.func(*args)
    if result in _INFINITE or (result.has(sympy.I) and result.is_number and result.is_extended_real is False):
        raise OutsideDomainError(f"{node} has no real value where {symbol} = {value}")
    # SymPy writes the root of -y**2 with I, which is real where y = 0, and splits roots of products
    if result.has(sympy.I, *_INFINITE) or not _powers([result]) <= _powers(args) | _powers([node]):
        return node.func(*args, evaluate=False)
    return result


def _powers(nodes: Iterable[Any]) -> set[Any]:
    found = set().union(*(node.atoms(sympy.Pow) for node in nodes))
    return {power for power in found if power.free_symbols and not power.exp.is_Integer and power.base is not sympy.E}


def _integral(node: Any, symbol: Symbol, value: Expr, put: Any) -> Any:
    bound = {limit[0] for limit in node.limits}
    if len(node.limits) > 1 and (symbol in bound or bound & value.free_symbols):
        raise GradlineError(f"{node} where {symbol} = {value}: rename its variables")
    body, limits = node.function, list(node.limits)
    if symbol not in bound:
        for position, limit in enumerate(limits):
            if limit[0] in value.free_symbols:
                fresh = Dummy(limit[0].name, **limit[0].assumptions0)
                body, limits[position] = body.xreplace({limit[0]: fresh}), (fresh, *limit[1:])
        body = put(body)
    return sympy.Integral(body, *((limit[0], *map(put, limit[1:])) for limit in limits))
