"""What the decision procedure accepts: exact real scalars, and assumptions that are inequalities.

Internal to :mod:`theory.identities`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction as Rational
from typing import Any

import sympy
from sympy import Basic, Expr, Symbol
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from theory.errors import GradlineError
from theory.signs import Range
from theory.symbols import LOWER_BOUNDS, SYMBOLS, UPPER_BOUNDS

__all__ = ["SignCondition", "check_names", "conditions", "exact", "symbol_range"]

_INFINITE = frozenset({"Infinity", "NegativeInfinity", "ComplexInfinity", "NaN"})
_REFUSED = frozenset(
    {
        "Piecewise",
        "ITE",
        "re",
        "im",
        "arg",
        "conjugate",
        "DiracDelta",
        "Heaviside",
        "Sum",
        "Product",
        "Limit",
        "Order",
        "AccumulationBounds",
    }
)


@dataclass(frozen=True)
class SignCondition:
    """``expr > 0``, ``expr >= 0`` or ``expr != 0``."""

    expr: Expr
    relation: str


def exact(expr: Any) -> Expr:
    """An exact real scalar expression, from one or from an integer; everything else is refused by name."""
    if isinstance(expr, int) and not isinstance(expr, bool):
        return sympy.Integer(expr)
    if isinstance(expr, float):
        raise ValueError(f"floating-point number {expr}; rationals expected (try Rational)")
    if not isinstance(expr, Expr) or getattr(expr, "is_Matrix", False):
        raise TypeError(f"expected a scalar SymPy expression, got {type(expr).__name__}")
    symbols: set[Symbol] = set()
    seen: set[Basic] = set()
    stack: list[Any] = [expr]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        _check_node(node)
        stack.extend(node.args)
        if node.is_Symbol:
            symbols.add(node)
    _one_per_name(symbols)
    return expr


def check_names(expressions: Iterable[Expr]) -> None:
    """Refuse two symbols that have one name and differ in their assumptions."""
    _one_per_name(set().union(*(expr.atoms(Symbol) for expr in expressions)))


def _one_per_name(symbols: set[Symbol]) -> None:
    names = Counter(symbol.name for symbol in symbols if not symbol.is_Dummy)
    for name, count in sorted(names.items()):
        if count > 1:
            raise ValueError(f"two different symbols are named {name!r}{_clash(name, symbols)}")


def _clash(name: str, symbols: set[Symbol]) -> str:
    """How the symbols of one name differ, and which one to use."""
    said = sorted(
        ", ".join(sorted(k if v else f"not {k}" for k, v in s._assumptions_orig.items() if k != "commutative"))
        or "nothing"
        for s in symbols
        if s.name == name and not s.is_Dummy
    )
    differ = f" (assumed: {'; '.join(said)})"
    if name in SYMBOLS and SYMBOLS[name].symbol in symbols:
        return f"{differ}; use theory.symbols.{name} for both"
    return f"{differ}; define it once, with all its assumptions, and use that symbol on both sides"


#: Assumptions of symbols that neither the sign proofs nor the choice of witnesses know.
_NARROW = ("zero", "irrational", "transcendental", "even", "odd", "prime", "composite")


def _kind(symbol: Symbol) -> str:
    return next(kind for kind in _NARROW if getattr(symbol, f"is_{kind}"))


def _may_be_complex(node: Any) -> bool:
    return bool(node.is_complex and node.is_real is None)


def _check_node(node: Any) -> None:
    name = type(node).__name__
    if getattr(node, "is_Float", False):
        raise ValueError(f"floating-point number {node} in the expression; rationals expected (try Rational)")
    if node is sympy.I:
        raise ValueError("the imaginary unit I in the expression; real expressions expected")
    if name in _INFINITE:
        raise ValueError(f"{node} in the expression; finite expressions expected")
    if getattr(node, "is_Matrix", False) or getattr(node, "is_commutative", True) is False:
        raise TypeError(f"{name} {node} in the expression; expected scalars (write the entries as symbols)")
    if isinstance(node, Symbol) and (node.is_extended_real is False or node.is_finite is False):
        raise ValueError(f"the symbol {node} is not real; real symbols expected")
    if isinstance(node, Symbol) and any(getattr(node, f"is_{kind}") for kind in _NARROW):
        raise ValueError(
            f"the symbol {node} is assumed {_kind(node)}; expected real, rational, integer or sign assumptions"
        )
    if isinstance(node, Symbol) and _may_be_complex(node):
        raise ValueError(f"the symbol {node} is complex; real symbols expected")
    if isinstance(node, AppliedUndef) and (node.is_extended_real is False or _may_be_complex(node)):
        raise ValueError(f"the function {node.func} is not real; real functions expected")
    if name == "ComplexRootOf" and not node.is_real:
        raise ValueError(f"{node} is a complex number; real expressions expected")
    if name in _REFUSED:
        raise GradlineError(f"{name} in the normal form of {node}: not supported; decide each branch by itself")
    if isinstance(node, Relational):
        raise TypeError(f"the relation {node} is no expression; give it as an assumption")


def conditions(assumptions: Iterable[Any]) -> tuple[SignCondition, ...]:
    """Relations such as ``Gt(x, 0)`` as conditions on the sign of a difference."""
    if isinstance(assumptions, Basic):
        raise TypeError(f"expected a sequence of relations as assumptions, got {assumptions}; write ({assumptions},)")
    result: list[SignCondition] = []
    for relation in assumptions:
        if relation in (True, sympy.true):
            continue
        if relation in (False, sympy.false):
            raise ValueError("an assumption is false for all values; expected relations that can hold")
        if isinstance(relation, sympy.And):
            result.extend(conditions(sorted(relation.args, key=sympy.default_sort_key)))
            continue
        result.append(_condition(relation))
    return tuple(result)


def _condition(relation: Any) -> SignCondition:
    kinds: dict[type, tuple[int, str]] = {
        sympy.StrictGreaterThan: (1, ">"),
        sympy.GreaterThan: (1, ">="),
        sympy.StrictLessThan: (-1, ">"),
        sympy.LessThan: (-1, ">="),
        sympy.Unequality: (1, "!="),
    }
    if type(relation) not in kinds:
        raise ValueError(f"assumption {relation}: expected one of >, >=, <, <=, != between two expressions")
    direction, name = kinds[type(relation)]
    return SignCondition(direction * (exact(relation.lhs) - exact(relation.rhs)), name)


def symbol_range(symbol: Symbol) -> Range:
    """The range of a symbol by its SymPy assumptions, ``symbols.LOWER_BOUNDS`` and ``symbols.UPPER_BOUNDS``."""
    nonzero = symbol.is_nonzero is True or symbol.is_zero is False
    if symbol in LOWER_BOUNDS:
        return Range(Rational(LOWER_BOUNDS[symbol]), None, False)
    if symbol.is_positive:
        high = Rational(UPPER_BOUNDS[symbol]) if symbol in UPPER_BOUNDS else None
        low = Rational(1) if symbol.is_integer else Rational(0)
        return Range(low, high, not symbol.is_integer, high is None)
    if symbol.is_negative:
        high = Rational(-1) if symbol.is_integer else Rational(0)
        return Range(None, high, True, not symbol.is_integer)
    if symbol.is_nonnegative:
        return Range(Rational(0), None, nonzero)
    if symbol.is_nonpositive:
        return Range(None, Rational(0), True, nonzero)
    return Range(nonzero=nonzero)
