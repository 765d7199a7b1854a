"""Python snippets that show a counterexample: self-contained, to be pasted into an interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from keyword import iskeyword
from typing import Any

from sympy import Dummy, Expr, Rational, Symbol
from sympy.printing import sstr

from theory.words import Words

__all__ = ["matrix_snippet", "scalar_snippet"]


def _plain(symbols: set[Symbol]) -> dict[Symbol, Symbol]:
    """Symbols whose names are Python identifiers and all different."""
    taken: set[str] = set()
    found: dict[Symbol, Symbol] = {}
    for symbol in sorted(symbols, key=lambda s: (isinstance(s, Dummy), str(s.name))):
        name = symbol.name if symbol.name.isidentifier() else "x"
        while iskeyword(name) or name in taken or name in ("S", "Symbol", "point"):
            name += "_"
        taken.add(name)
        found[symbol] = Symbol(name, **_assumptions(symbol))
    return found


def _assumptions(symbol: Symbol) -> dict[str, bool]:
    """The assumptions that were given to a symbol."""
    return {k: v for k, v in symbol._assumptions_orig.items() if k != "commutative" or not v}


def _declare(symbol: Symbol) -> str:
    given = "".join(f", {k}={v}" for k, v in sorted(_assumptions(symbol).items()))
    return f'{symbol.name} = Symbol("{symbol.name}"{given})'


def _number(value: Rational) -> str:
    return str(value) if value.is_Integer else f"Rational({value.p}, {value.q})"


def scalar_snippet(stated: Expr, derived: Expr, point: Mapping[Symbol, Rational]) -> str:
    """Code that evaluates two expressions at a point.

    Parameters: ``stated`` and ``derived``, expressions; ``point``, symbol -> rational number.
    Returns: Python source that prints both values.

    >>> from sympy import Integer
    >>> from theory.symbols import M
    >>> print(scalar_snippet(M**2, Integer(3), {M: Integer(2)}))
    from sympy import *
    M = Symbol("M", integer=True, positive=True)
    point = {M: 2}
    stated = M**S(2)
    derived = S(3)
    print("stated ", stated.xreplace({k: S(v) for k, v in point.items()}).evalf(20))
    print("derived", derived.xreplace({k: S(v) for k, v in point.items()}).evalf(20))
    """
    names = _plain(set(point) | stated.free_symbols | derived.free_symbols)
    lines = ["from sympy import *", *(_declare(s) for s in names.values())]
    values = ", ".join(f"{names[s]}: {_number(v)}" for s, v in point.items())
    lines.append(f"point = {{{values}}}")
    for name, expr in (("stated", stated), ("derived", derived)):
        lines.append(f"{name} = {sstr(expr.xreplace(names), sympy_integers=True)}")
    put = "xreplace({k: S(v) for k, v in point.items()}).evalf(20)"
    lines += [f'print("stated ", stated.{put})', f'print("derived", derived.{put})']
    return "\n".join(lines)


def matrix_snippet(
    stated: Words, derived: Words, matrices: Mapping[str, Any], scalars: Mapping[Symbol, Rational]
) -> str:
    """Code that evaluates two expressions in matrices.

    Parameters: ``stated`` and ``derived``, words; ``matrices``, letter -> SymPy matrix; ``scalars``, symbol ->
    rational number.
    Returns: Python source that prints both matrices.
    """
    letters = {name: "ones" if name == "1" else name for name in matrices}
    lines = ["from sympy import *"]
    lines += [f"{letters[name]} = Matrix({_rows(value)})" for name, value in matrices.items()]
    names = _plain(set(scalars))
    lines += [f"{names[s]} = {_number(value)}" for s, value in scalars.items()]
    size = next(iter(matrices.values())).rows if matrices else 1
    for name, words in (("stated", stated), ("derived", derived)):
        lines.append(f"{name} = {_product(words, letters, names, size)}")
    return "\n".join([*lines, 'print("stated ", stated)', 'print("derived", derived)'])


def _rows(value: Any) -> str:
    return "[" + ", ".join("[" + ", ".join(_number(x) for x in row) + "]" for row in value.tolist()) + "]"


def _product(words: Words, letters: Mapping[str, str], names: Mapping[Symbol, Symbol], size: int) -> str:
    terms = []
    for word, coefficient in words.terms.items():
        factors = [f"({sstr(coefficient.xreplace(dict(names)), sympy_integers=True)})"] if coefficient != 1 else []
        factors += [letters[name] + (".T" if transposed else "") for name, transposed in word] or [f"eye({size})"]
        terms.append("*".join(factors))
    return " + ".join(terms) or f"zeros({size}, {size})"
