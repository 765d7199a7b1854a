"""Expressions as text and back, without evaluating anything: the part of SymPy's ``srepr`` that claims need.

`write` gives ``srepr`` text with sorted assumptions, arguments in the order in which they are stored and dummy
symbols numbered from 1, so that equal values give equal text in every process. `theory.reader.read` is its
inverse. `Words`, `Rule` and `BlockMatrix` have forms of their own in the same style.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import sympy
from sympy import Basic, Dummy, Rational, Symbol

from theory.blocks import BlockMatrix
from theory.errors import GradlineError
from theory.orbits import IndexSet
from theory.words import Rule, Word, Words

__all__ = ["ASSUMPTIONS", "CONSTANTS", "DEEPEST", "FUNCTIONS", "MOST_DIGITS", "OPERATIONS", "RELATIONS", "write"]

#: How deep a text may be nested, and how long a number in it may be.
DEEPEST = 100
MOST_DIGITS = 4000

#: Sums, products and powers.
OPERATIONS: Mapping[str, Any] = MappingProxyType({c.__name__: c for c in (sympy.Add, sympy.Mul, sympy.Pow)})

_FUNCTION_NAMES = (
    *("exp", "log", "Abs", "sign", "Max", "Min", "LambertW", "Ei", "li", "Si", "Ci", "Shi", "Chi"),
    *("erf", "erfc", "erfi", "gamma", "loggamma", "factorial"),
    *("sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "coth", "sech", "csch", "asinh", "acosh", "atanh"),
)

#: Functions that the decision procedure or the enclosures know.
FUNCTIONS: Mapping[str, Any] = MappingProxyType({name: getattr(sympy, name) for name in _FUNCTION_NAMES})

_RELATION_NAMES = ("Equality", "Unequality", "StrictGreaterThan", "GreaterThan", "StrictLessThan", "LessThan", "And")

#: Relations, as formulas and as assumptions.
RELATIONS: Mapping[str, Any] = MappingProxyType({name: getattr(sympy, name) for name in _RELATION_NAMES})

#: Numbers and truth values with a name.
CONSTANTS: Mapping[str, Any] = MappingProxyType(
    {
        **{name: getattr(sympy, name) for name in ("pi", "E", "oo", "EulerGamma", "Catalan", "GoldenRatio")},
        **{name: getattr(sympy, name) for name in ("true", "false")},
    }
)
_NAMED = {value: name for name, value in CONSTANTS.items()}

_SIGNED = ("negative", "nonnegative", "nonpositive", "nonzero", "positive", "real")

#: What a symbol may assume.
ASSUMPTIONS = frozenset(
    {
        *("algebraic", "antihermitian", "commutative", "complex", "composite", "even", "finite", "hermitian"),
        *("imaginary", "infinite", "integer", "irrational", "noninteger", "odd", "prime", "rational"),
        *("transcendental", "zero", *_SIGNED, *(f"extended_{name}" for name in _SIGNED)),
    }
)

_HEADS = {value: name for part in (OPERATIONS, FUNCTIONS, RELATIONS) for name, value in part.items()}
_HEADS |= {sympy.Integral: "Integral", sympy.Tuple: "Tuple"}


def write(value: Any, dummies: dict[Symbol, int] | None = None) -> str:
    """Write a value as text that `theory.reader.read` turns into an equal one.

    ``read(write(value)) = value``, up to the numbers of dummy symbols.

    Parameters: ``value``, a SymPy expression or relation, an integer, `Words`, a `Rule` or a `BlockMatrix`;
    ``dummies``, the numbers that dummy symbols have so far, to be continued.
    Returns: the text.
    Raises: `GradlineError` naming what can't be written.
    Source: SymPy's ``srepr``.

    >>> from theory.symbols import M
    >>> write(1 / M)
    "Pow(Symbol('M', integer=True, positive=True), Integer(-1))"
    """
    return _Writer({} if dummies is None else dummies).value(value)


class _Writer:
    """One text; it numbers dummy symbols as they come."""

    def __init__(self, dummies: dict[Symbol, int]) -> None:
        self.dummies = dummies
        self.depth = 0

    def value(self, value: Any) -> str:
        """Any value."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int):
            return f"Integer({_digits(value)})"
        for kind, form in _FORMS.items():
            if isinstance(value, kind):
                return form(self, value)
        if not isinstance(value, Basic):
            raise GradlineError(f"writing {value!r}: {type(value).__name__} has no text; expected a SymPy expression")
        return self.expression(value)

    def expression(self, value: Any) -> str:
        """A SymPy object."""
        if value in _NAMED:
            return _NAMED[value]
        if isinstance(value, Rational):
            return (
                f"Integer({_digits(value.p)})" if value.q == 1 else f"Rational({_digits(value.p)}, {_digits(value.q)})"
            )
        if type(value) in (Symbol, Dummy):
            return self.symbol(value)
        if type(value) not in _HEADS:
            raise GradlineError(
                f"writing {value}: {type(value).__name__} is not among what a text can hold; "
                "expected sums, products, powers, relations and functions such as exp, log, Ei, LambertW"
            )
        return self.call(_HEADS[type(value)], value.args)

    def symbol(self, symbol: Any) -> str:
        """A symbol with the assumptions that it was made with, sorted."""
        given = dict(symbol._assumptions_orig)
        if type(symbol) is Dummy:
            given["dummy_index"] = self.dummies.setdefault(symbol, len(self.dummies) + 1)
        options = "".join(f", {key}={given[key]}" for key in sorted(given))
        return f"{type(symbol).__name__}({_quoted(symbol.name)}{options})"

    def call(self, head: str, parts: Iterable[Any]) -> str:
        """A head with its parts."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise GradlineError(f"writing {head}(...): nested more than {DEEPEST} deep; name a part with a symbol")
        text = f"{head}({', '.join(self.value(part) for part in parts)})"
        self.depth -= 1
        return text

    def word(self, word: Word) -> list[str]:
        """The letters of a word."""
        return [f"Letter({_quoted(name)}, {transposed})" for name, transposed in word]

    def words(self, words: Words) -> str:
        """A sum of words, each with its coefficient."""
        terms = (", ".join((self.value(c), *self.word(word))) for word, c in words.terms.items())
        return f"Words({', '.join(f'Term({term})' for term in terms)})"

    def rule(self, rule: Rule) -> str:
        """A rule for words."""
        return f"Rule(Word({', '.join(self.word(rule.word))}), {self.words(rule.image)})"

    def blocks(self, matrix: BlockMatrix) -> str:
        """A block matrix with its index sets."""
        rows = (", ".join(self.call("Block", (x.same, x.ones)) for x in row) for row in matrix.blocks)
        sides = (f"Indices({', '.join(self.index(i) for i in side)})" for side in (matrix.rows, matrix.columns))
        grid = f"Blocks({', '.join(f'Row({row})' for row in rows)})"
        return f"BlockMatrix({', '.join((self.value(matrix.classes), *sides, grid))})"

    def index(self, index: IndexSet) -> str:
        """An index set."""
        return f"IndexSet({_quoted(index.name)}, {self.value(index.count)}, {index.per_class})"


_FORMS: dict[type, Callable[[_Writer, Any], str]] = {
    Words: _Writer.words,
    Rule: _Writer.rule,
    BlockMatrix: _Writer.blocks,
}


def _digits(number: Any) -> str:
    """An integer in decimal."""
    if abs(int(number)) >= 10**MOST_DIGITS:
        raise GradlineError(f"writing an integer of more than {MOST_DIGITS} digits; write it as a power")
    return str(number)


def _quoted(name: str) -> str:
    """A name between single quotes, in ASCII."""
    return "'" + json.dumps(name)[1:-1].replace('\\"', '"').replace("'", "\\u0027") + "'"
