"""Wrong versions of a formula: one mechanical change each, described in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sympy import Abs, Add, Expr, I, Integer, LambertW, Mul, Pow, Symbol, exp, log, nan, oo, zoo
from sympy.functions.special.error_functions import Ei

from theory.symbols import K, M, N, alpha, b, c_OV, c_QK, eta_OV, eta_QK, m, mu_OV, mu_QK, n

__all__ = ["MIXED_UP", "Change", "formula_changes", "places", "rebuilt"]

_CIRCUITS = {mu_OV: mu_QK, mu_QK: mu_OV, eta_OV: eta_QK, eta_QK: eta_OV, c_OV: c_QK, c_QK: c_OV}
#: Symbols that are easily mixed up: of the other circuit, or of the other kind of slots.
MIXED_UP: dict[Symbol, Symbol] = {m: n, n: m, **_CIRCUITS}
_SWAPS: dict[Symbol, tuple[Symbol, ...]] = {
    **{symbol: (other,) for symbol, other in MIXED_UP.items()},
    b: (K, N),
    K: (b, M),
    N: (b, K),
    M: (b, K),
}
_FUNCTIONS: dict[Any, tuple[Callable[[Any], Any], ...]] = {
    exp: (lambda x: 1 + x, lambda x: exp(-x), lambda x: x),
    log: (lambda x: x - 1, lambda x: x, exp),
    Ei: (exp, lambda x: Ei(-x), lambda x: log(Abs(x))),
    LambertW: (lambda x: x, lambda x: log(1 + x), lambda x: LambertW(2 * x)),
    Abs: (lambda x: x, lambda x: x**2, lambda x: -x),
}
_TEXT = 60


@dataclass(frozen=True)
class Change:
    """A changed formula: ``kind`` of change, what was done in words, and the result."""

    kind: str
    description: str
    formula: Any


def _short(expr: Any) -> str:
    text = str(expr)
    return text if len(text) <= _TEXT else text[: _TEXT - 3] + "..."


def _symbol(s: Symbol, others: tuple[Symbol, ...]) -> Iterator[tuple[str, Any]]:
    same_kind = tuple(o for o in others if o not in _SWAPS and o != alpha) if s not in _SWAPS else ()
    for other in (*_SWAPS.get(s, ()), *same_kind):
        yield "symbol swapped", other
    if s.is_integer:
        yield "size off by one", s + 1
        if s == M:
            yield "size off by one", s - 1
    yield "exponent", s**2
    yield "coefficient", 2 * s
    yield "coefficient", s / 2
    yield "sign", -s


def _number(value: Any) -> Iterator[tuple[str, Any]]:
    yield ("size off by one" if value.is_Integer else "coefficient"), value + 1
    yield ("size off by one" if value.is_Integer else "coefficient"), value - 1
    yield "sign", -value
    yield "coefficient", 2 * value


def _sum(node: Any) -> Iterator[tuple[str, Any]]:
    for i, term in enumerate(node.args):
        rest = Add(*(t for j, t in enumerate(node.args) if j != i))
        yield "term dropped", rest
        yield "sign", rest - term
        yield "coefficient", rest + 2 * term
        yield "coefficient", rest + term / 2


def _product(node: Any) -> Iterator[tuple[str, Any]]:
    for i, factor in enumerate(node.args):
        rest = Mul(*(f for j, f in enumerate(node.args) if j != i))
        if factor != -1:
            yield "factor dropped", rest
        yield "exponent", rest / factor
        yield "exponent", rest * factor**2


def _power(node: Any) -> Iterator[tuple[str, Any]]:
    base, power = node.as_base_exp() if isinstance(node, Pow) else node.args
    for other in (power + 1, power - 1, -power, 2 * power, power / 2):
        yield "exponent", base**other


def _local(node: Any, symbols: tuple[Symbol, ...]) -> Iterator[tuple[str, Any]]:
    """The changes at one place."""
    if isinstance(node, Symbol):
        yield from _symbol(node, tuple(s for s in symbols if s != node))
    elif node.is_Rational:
        yield from _number(node)
    elif node.is_Add:
        yield from _sum(node)
    elif node.is_Mul:
        yield from _product(node)
    elif isinstance(node, Pow):
        yield from _power(node)
    for other in _FUNCTIONS.get(node.func, ()):
        yield "function swapped", other(node.args[0])


def places(node: Any, path: tuple[int, ...] = (), parent: Any = None) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
    """Every place of an expression with the smallest sum, product or function that holds it."""
    yield path, node, parent
    for i, arg in enumerate(node.args):
        if not (isinstance(node, Pow) and i == 1 and arg.is_Rational):
            yield from places(arg, (*path, i), node)


def rebuilt(expr: Any, path: tuple[int, ...], new: Any) -> Any:
    if not path:
        return new
    args = list(expr.args)
    args[path[0]] = rebuilt(args[path[0]], path[1:], new)
    return expr.func(*args)


def _whole(formula: Expr) -> Iterator[tuple[str, str, Any]]:
    """Changes of the formula as a whole."""
    yield "sign", "the sign of the formula", -formula
    yield "coefficient", "the formula times 2", 2 * formula
    yield "coefficient", "half of the formula", formula / 2
    yield "exponent", "the square of the formula", formula**2
    yield "exponent", "the reciprocal of the formula", 1 / formula if formula != 0 else Integer(1)
    yield "term added", "1 added to the formula", formula + 1
    yield "term added", "1 subtracted from the formula", formula - 1
    for symbol in sorted(formula.free_symbols, key=lambda s: str(s.name)):
        yield "factor added", f"the formula times {symbol}", formula * symbol
        yield "factor added", f"the formula over {symbol}", formula / symbol
    exchanged = formula.xreplace(_CIRCUITS)
    if exchanged != formula:
        yield "circuits exchanged", "OV and QK exchanged in the formula", exchanged


def formula_changes(formula: Expr) -> Iterator[Change]:
    """The wrong versions of a formula, each once: structurally different from it and from each other.

    Parameters: ``formula``, a scalar expression. Yields: `Change`; a result that is no real expression (``I``,
    an infinity) is left out.

    >>> [c.description for c in formula_changes(M - 1)][-3:]
    ['M -> b in M - 1', 'M -> K in M - 1', 'M -> M**2 in M - 1']
    """
    seen = {formula}
    symbols = tuple(sorted(formula.free_symbols, key=lambda s: str(s.name)))
    for kind, text, new in _whole(formula):
        if _fresh(new, seen):
            yield Change(kind, text, new)
    for path, node, parent in places(formula):
        where = "" if parent is None else f" in {_short(parent)}"
        for kind, new in _local(node, symbols):
            changed = rebuilt(formula, path, new)
            if _fresh(changed, seen):
                yield Change(kind, f"{_short(node)} -> {_short(new)}{where}", changed)


def _fresh(changed: Any, seen: set[Any]) -> bool:
    if changed in seen or changed.has(I, zoo, nan, oo, -oo):
        return False
    seen.add(changed)
    return True
