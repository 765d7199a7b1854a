r"""Reads LaTeX formulas by the symbol table of a `Notation`; what it does not know, it refuses with its place.

Rules where LaTeX leaves a choice, each refused where it does not settle the matter:

* A name followed by parentheses is a product, unless the table says it is a function. ``(t)`` and ``(0)`` behind a
  quantity that moves in time are its value then; any other single name or number in parentheses is refused.
* ``a b/c`` is ``(a b)/c``; nothing but a sign, a relation or the end may follow ``c``.
* A function without parentheses takes one factor, behind which the product must end: ``\log x y`` is refused.
* ``\log^2 x`` is ``(\log x)^2``; ``\log(x)^2`` is refused. ``\log`` and ``\ln`` are natural.
* ``e`` is Euler's number and an italic ``d`` a differential, unless the table has symbols of these names.
* Braces that are no argument print nothing and mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from theory.latex.notation import Notation
from theory.latex.parser.atoms import FormulaReader
from theory.latex.parser.evaluate import evaluate
from theory.latex.parser.nodes import Node
from theory.latex.parser.vocabulary import Vocabulary, vocabulary
from theory.latex.source.items import nest
from theory.latex.source.macros import Macros, expand
from theory.latex.source.tokens import LatexError, Place, Token, tokenize

__all__ = ["parse", "parse_latex", "read_tokens"]

_NO_MACROS: Macros = {}


def read_tokens(tokens: Iterable[Token], macros: Macros, words: Vocabulary, end: Place) -> Node:
    """One expression from tokens.

    Raises: `LatexError`.
    """
    try:
        items = nest(expand(tokens, macros), end)
        return FormulaReader(items, words, end).everything()
    except RecursionError:
        raise LatexError(end, "a formula that is nested too deep") from None


def parse(latex: str, notation: Notation | None = None, macros: Macros = _NO_MACROS, file: str = "formula") -> Node:
    r"""The tree of one expression in LaTeX.

    Parameters: ``latex``, the formula without dollars; ``notation``, the symbol table; ``macros``, the author's macros;
    ``file``, its name in messages. Returns: a node of `theory.latex.parser.nodes`.
    Raises: `LatexError` with line and column.

    >>> type(parse(r"\frac{d\mu_{\mathrm{QK}}}{dt}")).__name__
    'Derivative'
    """
    tokens = list(tokenize(latex, file))
    lines = latex.split("\n")
    end = Place(file, len(lines), len(lines[-1]) + 1)
    return read_tokens(tokens, macros, vocabulary(notation or Notation(), macros), end)


def parse_latex(latex: str, notation: Notation | None = None, macros: Macros = _NO_MACROS) -> Any:
    r"""The value of one expression in LaTeX.

    Parameters: ``latex``, the formula without dollars; ``notation``, the symbol table; ``macros``, the author's macros.
    Returns: a SymPy expression, or `Words` for matrices; derivatives are `theory.latex.Rate`.
    Raises: `LatexError` with line and column for what is not understood or has two readings.

    >>> parse_latex(r"\frac{m e^{\gamma\mu_{QK}}}{m e^{\gamma\mu_{QK}} + n}")
    m*exp(gamma*mu_QK)/(m*exp(gamma*mu_QK) + n)
    >>> parse_latex(r"\alpha / b \mu")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    theory.latex.source.tokens.LatexError: formula:1:12: it is not clear whether \mu is below or behind the slash; ...
    >>> parse_latex(r"\mu_{\mathrm{QV}}")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    theory.latex.source.tokens.LatexError: formula:1:1: unknown symbol \mu_{QV}; the nearest known...
    """
    try:
        return evaluate(parse(latex, notation, macros))
    except RecursionError:
        raise LatexError(Place("formula", 1, 1), "a formula that is nested too deep") from None
