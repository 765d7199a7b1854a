"""Reads the text of `theory.serialize` back: a small grammar and a list of heads; nothing is ever evaluated.

    value  = head "(" [item ("," item)*] ")" | constant | integer | "True" | "False" | "'" name "'"
    item   = value | name "=" value

Each node must come out as it was written: one that SymPy would rewrite is refused, as is every other head.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Any

import sympy
from sympy import Basic, Dummy, Expr, Integer, Rational, Symbol
from sympy.core.facts import InconsistentAssumptions
from sympy.core.relational import Relational

from theory.blocks import Block, BlockMatrix
from theory.orbits import IndexSet
from theory.serialize import ASSUMPTIONS, CONSTANTS, DEEPEST, FUNCTIONS, MOST_DIGITS, OPERATIONS, RELATIONS
from theory.words import Rule, Word, Words

__all__ = ["read"]

_TOKEN = re.compile(
    r"[ \n]*(?:(?P<name>[A-Za-z_]\w*)|(?P<integer>-?[0-9]+)|(?P<text>'(?:[^'\\]|\\.)*')|(?P<mark>[(),=]))", re.ASCII
)
_LONGEST_SHOWN = 30
_LONGEST_MESSAGE = 200
_MARGIN = 8  # words and blocks put their expressions a few levels deeper


def read(text: str) -> Any:
    """Read a value from the text that `theory.serialize.write` gives.

    ``read(write(value)) = value``, up to the numbers of dummy symbols.

    Parameters: ``text``.
    Returns: a SymPy expression or relation, `Words`, a `Rule` or a `BlockMatrix`.
    Raises: ``ValueError`` with the position of what is not understood.
    Source: SymPy's ``srepr``.

    >>> read("Add(Symbol('x', real=True), Integer(1))")
    x + 1
    >>> read("Add(Integer(1), open('x'))")
    Traceback (most recent call last):
    ...
    ValueError: position 16: unknown head 'open'; expected one of srepr, such as Add, Symbol or exp
    """
    reader = _Reader(text)
    value = reader.value(0)
    if reader.next() is not None:
        raise reader.error(reader.at, f"{reader.shown(reader.at)} after the end")
    if not isinstance(value, Basic | Words | Rule | BlockMatrix):
        raise reader.error(0, "no expression")
    return value


@dataclass(frozen=True)
class _Part:
    """A piece of a larger value that is none by itself."""

    kind: str
    value: Any


class _Reader:
    """The text and the place that was reached."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = self.at = 0

    def error(self, at: int, message: str) -> ValueError:
        """A message with its position."""
        return ValueError(f"position {at}: {message}")

    def shown(self, at: int) -> str:
        """The text at a place, cut short."""
        rest = self.text[at:]
        if not rest:
            return "the end of the text"
        return repr(rest if len(rest) <= _LONGEST_SHOWN else rest[:_LONGEST_SHOWN] + "...")

    def next(self) -> tuple[str, str] | None:
        """The kind and the text of the next token; None at the end."""
        found = _TOKEN.match(self.text, self.position)
        if found is None:
            self.at = self.position
            if self.text[self.position :].strip(" \n"):
                raise self.error(self.position, f"{self.shown(self.position)} is not understood")
            return None
        self.at, self.position = found.end() - len(found[found.lastgroup or 0]), found.end()
        return str(found.lastgroup), found[found.lastgroup or 0]

    def is_next(self, mark: str) -> bool:
        """Whether the next token is this mark; it is taken if so."""
        before = self.position
        if self.next() == ("mark", mark):
            return True
        self.position = before
        return False

    def value(self, depth: int) -> Any:
        """A value."""
        token = self.next()
        at = self.at
        if depth > DEEPEST + _MARGIN:
            raise self.error(at, f"nested more than {DEEPEST} deep")
        kind, word = token or ("", "")
        if kind == "integer":
            if len(word) > MOST_DIGITS + 1:
                raise self.error(at, f"an integer of more than {MOST_DIGITS} digits")
            return int(word)
        if kind == "text":
            return self.name(at, word)
        if kind != "name":
            raise self.error(at, f"expected a value, found {self.shown(at)}")
        if word in ("True", "False"):
            return word == "True"
        if word in CONSTANTS:
            return CONSTANTS[word]
        return self.call(at, word, depth)

    def name(self, at: int, quoted: str) -> str:
        """A name between quotes."""
        try:
            return str(json.loads('"' + quoted[1:-1].replace('"', '\\"') + '"'))
        except ValueError:
            raise self.error(at, f"{self.shown(at)} is no name between quotes") from None

    def call(self, at: int, head: str, depth: int) -> Any:
        """A head with its arguments."""
        build = _BUILD.get(head)
        if build is None:
            raise self.error(at, f"unknown head {head!r}{_nearest(head)}")
        if not self.is_next("("):
            raise self.error(self.position, f"expected ( after {head}, found {self.shown(self.position)}")
        parts, options = self.arguments(depth)
        try:
            return build(head, tuple(parts), options)
        except (TypeError, ValueError, AttributeError) as error:
            raise self.error(at, f"{head}: {' '.join(str(error).split())[:_LONGEST_MESSAGE]}") from None

    def arguments(self, depth: int) -> tuple[list[Any], dict[str, Any]]:
        """Arguments up to the closing parenthesis."""
        parts: list[Any] = []
        options: dict[str, Any] = {}
        if self.is_next(")"):
            return parts, options
        while True:
            before = self.position
            token = self.next()
            if token is not None and token[0] == "name" and self.is_next("="):
                if token[1] in options:
                    raise self.error(self.at, f"{token[1]} is given twice")
                options[token[1]] = self.value(depth + 1)
            else:
                self.position = before
                parts.append(self.value(depth + 1))
            if self.is_next(")"):
                return parts, options
            if not self.is_next(","):
                raise self.error(self.position, f"expected , or ), found {self.shown(self.position)}")


def _nearest(head: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(head, sorted(_BUILD), 1)
    return f"; did you mean {near[0]!r}?" if near else "; expected one of srepr, such as Add, Symbol or exp"


Parts = tuple[Any, ...]
Options = Mapping[str, Any]


def _expect(condition: bool, wanted: str) -> None:
    if not condition:
        raise ValueError(f"expected {wanted}")


def _all(parts: Parts, kind: Any, wanted: str) -> None:
    _expect(all(isinstance(part, kind) for part in parts), wanted)


def _pieces(parts: Parts, kind: str, wanted: str) -> tuple[Any, ...]:
    """The contents of parts that must all be of one kind."""
    _expect(all(isinstance(part, _Part) and part.kind == kind for part in parts), wanted)
    return tuple(part.value for part in parts)


def _kept(node: Any, parts: Parts) -> Any:
    """A node, provided that it has the arguments that were written."""
    if node.args != parts:
        raise ValueError(f"expected arguments that stay as they are; SymPy makes {str(node)[:_LONGEST_SHOWN]} of them")
    return node


def _plain(options: Options) -> None:
    _expect(not options, f"no option {', '.join(options)}")


def _operation(head: str, parts: Parts, options: Options) -> Any:
    _plain(options)
    _all(parts, Expr, "expressions")
    _expect(len(parts) == 2 if head == "Pow" else len(parts) > 1, "two arguments" + (" or more" * (head != "Pow")))
    return _kept(OPERATIONS[head](*parts, evaluate=False), parts)


def _function(head: str, parts: Parts, options: Options) -> Any:
    _plain(options)
    _all(parts, Expr, "expressions")
    _expect(len(parts) > 0, "an argument")
    return _kept(FUNCTIONS[head](*parts, evaluate=False), parts)


def _relation(head: str, parts: Parts, options: Options) -> Any:
    _plain(options)
    if head == "And":
        _all(parts, Relational, "relations")
    else:
        _all(parts, Expr, "expressions")
        _expect(len(parts) == 2, "two sides")
    return _kept(RELATIONS[head](*parts, evaluate=False), parts)


def _integer(_: str, parts: Parts, options: Options) -> Any:
    _plain(options)
    _expect(len(parts) == 1 and type(parts[0]) is int, "one integer")
    return Integer(parts[0])


def _rational(_: str, parts: Parts, options: Options) -> Any:
    _plain(options)
    _expect(len(parts) == 2 and all(type(part) is int for part in parts), "two integers")
    p, q = parts
    _expect(q > 1 and gcd(p, q) == 1, "a fraction in lowest terms")
    return Rational(p, q)


def _symbol(head: str, parts: Parts, options: Options) -> Any:
    _expect(len(parts) == 1 and isinstance(parts[0], str), "a name")
    number = options.get("dummy_index")
    given = {key: value for key, value in options.items() if key != "dummy_index"}
    for key, value in given.items():
        _expect(key in ASSUMPTIONS, f"no assumption {key!r}")
        _expect(isinstance(value, bool), f"True or False for {key}")
    if head == "Symbol":
        _expect("dummy_index" not in options, "no dummy_index")
        return _shared_symbol(parts[0], tuple(sorted(given.items())))
    _expect(type(number) is int and number > 0, "a dummy_index above 0")
    _shared_symbol(parts[0], tuple(sorted(given.items())))  # refuses contradicting assumptions
    return Dummy(parts[0], dummy_index=number, **given)


@lru_cache(maxsize=1024)
def _shared_symbol(name: str, assumptions: tuple[tuple[str, bool], ...]) -> Any:
    try:
        return Symbol(name, **dict(assumptions))
    except InconsistentAssumptions:
        raise ValueError("expected assumptions that do not contradict each other") from None


def _tuple(_: str, parts: Parts, options: Options) -> Any:
    _plain(options)
    _all(parts, Expr, "expressions")
    return sympy.Tuple(*parts)


def _integral(_: str, parts: Parts, options: Options) -> Any:
    _plain(options)
    _expect(len(parts) > 1 and isinstance(parts[0], Expr), "an expression and its limits")
    _all(parts[1:], sympy.Tuple, "limits as Tuple")
    _expect(all(len(t.args) in (1, 3) and isinstance(t.args[0], Symbol) for t in parts[1:]), "a variable in each limit")
    return _kept(sympy.Integral(*parts), parts)


def _letter(_: str, parts: Parts, options: Options) -> _Part:
    _plain(options)
    _expect(len(parts) == 2 and isinstance(parts[0], str) and isinstance(parts[1], bool), "a name and True or False")
    return _Part("Letter", parts)


def _word(_: str, parts: Parts, options: Options) -> _Part:
    _plain(options)
    return _Part("Word", _pieces(parts, "Letter", "letters"))


def _term(_: str, parts: Parts, options: Options) -> _Part:
    _plain(options)
    _expect(len(parts) > 0 and isinstance(parts[0], Expr), "a coefficient")
    return _Part("Term", (_pieces(parts[1:], "Letter", "letters"), parts[0]))


def _words(_: str, parts: Parts, options: Options) -> Words:
    _plain(options)
    terms: tuple[tuple[Word, Any], ...] = _pieces(parts, "Term", "terms")
    words = Words.of(dict(terms))
    _expect(len(words.terms) == len(terms), "different words with coefficients other than 0")
    _expect(tuple(words.terms.items()) == terms, "sorted words with factored coefficients")
    return words


def _rule(_: str, parts: Parts, options: Options) -> Rule:
    _plain(options)
    _expect(len(parts) == 2 and isinstance(parts[1], Words), "a word and its image")
    (word,) = _pieces(parts[:1], "Word", "a word and its image")
    return Rule(word, parts[1])


def _index(_: str, parts: Parts, options: Options) -> _Part:
    _plain(options)
    kinds = (str, Expr, bool)
    fits = len(parts) == 3 and all(isinstance(part, kind) for part, kind in zip(parts, kinds, strict=True))
    _expect(fits, "a name, a count and True or False")
    return _Part("IndexSet", IndexSet(*parts))


def _block(_: str, parts: Parts, options: Options) -> _Part:
    _plain(options)
    _all(parts, Expr, "expressions")
    _expect(len(parts) == 2, "two coefficients")
    return _Part("Block", Block(*parts))


def _collection(inner: str) -> Callable[[str, Parts, Options], _Part]:
    def build(head: str, parts: Parts, options: Options) -> _Part:
        _plain(options)
        return _Part(head, _pieces(parts, inner, f"each of them {inner}"))

    return build


def _block_matrix(_: str, parts: Parts, options: Options) -> BlockMatrix:
    _plain(options)
    _expect(len(parts) == 4 and isinstance(parts[0], Expr), "classes, rows, columns and blocks")
    rows, columns = _pieces(parts[1:3], "Indices", "Indices for rows and columns")
    (blocks,) = _pieces(parts[3:], "Blocks", "Blocks")
    return BlockMatrix(parts[0], rows, columns, blocks)


_BUILD: dict[str, Callable[[str, Parts, Options], Any]] = {
    **dict.fromkeys(OPERATIONS, _operation),
    **dict.fromkeys(FUNCTIONS, _function),
    **dict.fromkeys(RELATIONS, _relation),
    **dict.fromkeys(("Symbol", "Dummy"), _symbol),
    "Integer": _integer,
    "Rational": _rational,
    "Tuple": _tuple,
    "Integral": _integral,
    "Letter": _letter,
    "Word": _word,
    "Term": _term,
    "Words": _words,
    "Rule": _rule,
    "IndexSet": _index,
    "Indices": _collection("IndexSet"),
    "Block": _block,
    "Row": _collection("Block"),
    "Blocks": _collection("Row"),
    "BlockMatrix": _block_matrix,
}
