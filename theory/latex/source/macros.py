r"""The author's macros: their definitions and their expansion.

Understood are ``\newcommand``, ``\renewcommand``, ``\providecommand`` and ``\DeclareRobustCommand`` (up to nine
arguments, one of them optional), ``\def`` with plain arguments, ``\let``, ``\DeclareMathOperator`` and
``\DeclarePairedDelimiter``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from theory.latex.source.commands import LATEX_COMMANDS
from theory.latex.source.stream import Stream, stripped
from theory.latex.source.tokens import LatexError, Place, Token, shown, tokenize

__all__ = ["DEFINING", "Macro", "Macros", "call", "define", "expand"]

_MOST_TOKENS = 20_000
_MOST_ARGUMENTS = 9


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro: ``body`` with ``#1`` for its arguments; ``problem`` says why it can't be used, if so.

    ``default`` is the value of the first argument where that is optional; ``delimiters`` marks a pair of delimiters.
    """

    name: str
    body: tuple[Token, ...]
    place: Place
    arguments: int = 0
    default: tuple[Token, ...] | None = None
    delimiters: bool = False
    problem: str = ""


Macros = Mapping[str, Macro]


def _name(stream: Stream, of: Token) -> Token:
    inside = stripped(stream.argument(of))
    if len(inside) != 1 or inside[0].kind != "command":
        raise LatexError(of.place, f"{of.source}: expected the name of a command, found {shown(inside)!r}")
    return inside[0]


def _newcommand(stream: Stream, of: Token, known: Macros) -> Macro | None:
    stream.star()
    name = _name(stream, of)
    count = stripped(stream.bracket() or ())
    default = stream.bracket() if count else None
    body = stream.argument(of)
    digits = shown(count)
    if digits and (not digits.isdigit() or int(digits) > _MOST_ARGUMENTS):
        raise LatexError(of.place, f"{of.source}{{{name.source}}}: expected a number of arguments, found {digits!r}")
    found = Macro(name.text, _body(body), name.place, int(digits or 0), default)
    old = known.get(name.text)
    if of.text == "providecommand":
        return None if old is not None or name.text in LATEX_COMMANDS else found
    if of.text == "newcommand" and old is not None and (old.body, old.arguments) != (found.body, found.arguments):
        return replace(found, problem=f"it is defined twice, at {old.place} and at {name.place}")
    return found


def _body(tokens: Iterable[Token]) -> tuple[Token, ...]:
    return tuple(token for token in tokens if token.kind != "note")


def _def(stream: Stream, of: Token, known: Macros) -> Macro:
    stream.skip_blanks()
    name = stream.take()
    if name.kind != "command":
        raise LatexError(name.place, f"{of.source}: expected the name of a command, found {name.source!r}")
    pattern: list[Token] = []
    while (token := stream.peek()) is not None and token.kind != "open":
        pattern.append(stream.take())
    text = shown(stripped(pattern))
    count = text.count("#")
    plain = text == "".join(f"#{i}" for i in range(1, count + 1))
    problem = "" if plain else f"its arguments are delimited ({text})"
    if of.text in ("edef", "xdef"):
        problem = f"\\{of.text} is not understood"
    return Macro(name.text, _body(stream.argument(of)), name.place, count, problem=problem)


def _let(stream: Stream, of: Token, known: Macros) -> Macro:
    stream.skip_blanks()
    name = stream.take()
    if stream.next_is("="):
        stream.take()
    stream.skip_blanks()
    meaning = stream.take()
    if name.kind != "command":
        raise LatexError(name.place, f"\\let: expected the name of a command, found {name.source!r}")
    if meaning.kind == "command" and meaning.text in known:
        return replace(known[meaning.text], name=name.text)
    return Macro(name.text, (replace(meaning, primitive=True),), name.place)


def _operator(stream: Stream, of: Token, known: Macros) -> Macro:
    star = stream.star()
    name = _name(stream, of)
    shape = [replace(t, place=name.place) for t in tokenize(f"\\operatorname{'*' * star}{{")]
    body = (*shape, *stream.argument(of), Token("close", "}", name.place))
    return Macro(name.text, _body(body), name.place)


def _delimiters(stream: Stream, of: Token, known: Macros) -> Macro:
    name = _name(stream, of)
    left, right = stream.argument(of), stream.argument(of)
    parameter = (Token("mark", "#", name.place), Token("digit", "1", name.place))
    return Macro(name.text, _body((*left, *parameter, *right)), name.place, 1, delimiters=True)


DEFINING = {
    **dict.fromkeys(("newcommand", "renewcommand", "providecommand", "DeclareRobustCommand"), _newcommand),
    **dict.fromkeys(("def", "gdef", "edef", "xdef"), _def),
    "let": _let,
    "DeclareMathOperator": _operator,
    "DeclarePairedDelimiter": _delimiters,
}


def define(stream: Stream, of: Token, known: Macros) -> Macro | None:
    r"""Read the definition that follows a command such as ``\newcommand``.

    Returns: the `Macro`; None where ``\providecommand`` leaves an older meaning.
    Raises: `LatexError` for a definition that is not understood.

    >>> tokens = list(tokenize(r"{\muQK}{\mu_{\mathrm{QK}}}"))
    >>> of = Token("command", "newcommand", tokens[0].place)
    >>> shown(define(Stream(tokens, tokens[0].place), of, {}).body)
    '\\mu_{\\mathrm{QK}}'
    """
    return DEFINING[of.text](stream, of, known)


def expand(tokens: Iterable[Token], macros: Macros) -> tuple[Token, ...]:
    r"""Tokens without the author's macros.

    Parameters: ``tokens``; ``macros``, name -> `Macro`.
    Raises: `LatexError` for a macro that expands for ever, lacks an argument, or is not understood.

    >>> place = Place("paper.tex", 1, 1)
    >>> half = Macro("half", tuple(tokenize(r"\frac{#1}{2}")), place, arguments=1)
    >>> shown(expand(tokenize(r"\half{x}"), {"half": half}))
    '\\frac{x}{2}'
    """
    given = list(tokens)
    stream = Stream(given, given[-1].place if given else Place("input", 1, 1))
    result: list[Token] = []
    while stream.rest:
        token = stream.take()
        macro = macros.get(token.text) if token.kind == "command" and not token.primitive else None
        if macro is None:
            result.append(token)
            continue
        _check_use(token, macro, len(result) + len(stream.rest))
        stream.push(call(stream, token, macro))
    return tuple(result)


def _check_use(token: Token, macro: Macro, size: int) -> None:
    if macro.problem:
        raise LatexError(token.place, f"macro \\{macro.name} can't be used: {macro.problem}")
    if token.text in token.macros:
        raise LatexError(token.place, f"macro \\{macro.name}, defined at {macro.place}, expands for ever")
    if size > _MOST_TOKENS:
        raise LatexError(token.place, f"macro \\{macro.name} expands to more than {_MOST_TOKENS} tokens")


def call(stream: Stream, use: Token, macro: Macro) -> Iterable[Token]:
    """The body with its arguments put in."""
    given: list[tuple[Token, ...]] = []
    if macro.delimiters:
        stream.star()
        stream.bracket()
    if macro.default is not None:
        first = stream.bracket()
        given.append(macro.default if first is None else first)
    while len(given) < macro.arguments:
        given.append(stream.argument(use))
    result: list[Token] = []
    body = iter(macro.body)
    for token in body:
        if not token.is_mark("#"):
            result.append(token.used_by(use))
            continue
        number = next(body, None)
        if number is None or not number.text.isdigit() or not 0 < int(number.text) <= len(given):
            raise LatexError(use.place, f"macro \\{macro.name}, defined at {macro.place}, has no such argument")
        result.extend(given[int(number.text) - 1])
    return result
