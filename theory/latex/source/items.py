r"""Tokens of a formula as a tree: groups, ``\begin ... \end``, and nothing that leaves the meaning as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from theory.latex.source.commands import FONTS, INVISIBLE_WITH_ARGUMENT, SIZES, TEXTS, TRANSPARENT, is_invisible
from theory.latex.source.stream import Stream, stripped
from theory.latex.source.tokens import LatexError, Place, Token, shown

__all__ = [
    "Environment",
    "Group",
    "Item",
    "TextItem",
    "is_command",
    "is_letter",
    "is_mark",
    "key_text",
    "nest",
    "text_of",
]


@dataclass(frozen=True, slots=True)
class Group:
    """What stands between braces."""

    items: tuple[Item, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Environment:
    r"""What stands between ``\begin{name}`` and ``\end{name}``."""

    name: str
    items: tuple[Item, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class TextItem:
    r"""Words: the argument of ``\text``; formulas inside it are kept as items."""

    words: str
    formulas: tuple[tuple[Item, ...], ...]
    place: Place


Item = Token | Group | Environment | TextItem

_DEEPEST = 60


def is_command(item: Item | None, *names: str) -> bool:
    """Whether an item is one of these commands."""
    return isinstance(item, Token) and item.is_command(*names)


def is_mark(item: Item | None, *marks: str) -> bool:
    """Whether an item is one of these characters."""
    return isinstance(item, Token) and item.is_mark(*marks)


def is_letter(item: Item | None, letter: str) -> bool:
    """Whether an item is this letter."""
    return isinstance(item, Token) and item.kind == "letter" and item.text == letter


def nest(tokens: Iterable[Token], end: Place) -> tuple[Item, ...]:
    r"""The items of a formula whose macros are expanded.

    Parameters: ``tokens``; ``end``, the place to name where something is missing at the end.
    Raises: `LatexError` for braces or environments without a partner.

    >>> from theory.latex.source.tokens import tokenize
    >>> [type(i).__name__ for i in nest(tokenize(r"x\,{yz}\text{if } t"), Place("paper.tex", 1, 1))]
    ['Token', 'Group', 'TextItem', 'Token']
    """
    found = list(tokens)
    _check_depth(found)
    return _items(Stream(found, end))


def _check_depth(tokens: list[Token]) -> None:
    depth = 0
    for token in tokens:
        if token.kind == "open" or token.is_mark("(", "[") or token.is_command("left", "begin", "{", "lbrace"):
            depth += 1
        elif token.kind == "close" or token.is_mark(")", "]") or token.is_command("right", "end", "}", "rbrace"):
            depth -= 1
        if depth > _DEEPEST:
            raise LatexError(token.place, f"nested more than {_DEEPEST} deep")


def _items(stream: Stream) -> tuple[Item, ...]:
    found: list[Item] = []
    while stream.rest:
        token = stream.take()
        if token.kind in ("space", "par", "note") or token.is_mark("~"):
            continue
        if token.kind == "close":
            raise LatexError(token.place, "this } has no {")
        if token.kind == "open":
            stream.push([token])
            found.append(Group(_items(Stream(stream.group(), stream.end)), token.place))
        elif token.kind == "command":
            found.extend(_command(stream, token))
        else:
            found.append(token)
    return tuple(found)


def _command(stream: Stream, token: Token) -> tuple[Item, ...]:
    name = token.text
    if token.is_command("begin"):
        return (_environment(stream, token),)
    if name in ("end",):
        raise LatexError(token.place, f"\\end{{{shown(stream.argument(token))}}} has no \\begin")
    if is_invisible(name) or name in SIZES:
        return ()
    if name in INVISIBLE_WITH_ARGUMENT:
        stream.star()
        stream.bracket()
        for _ in range(INVISIBLE_WITH_ARGUMENT[name]):
            stream.argument(token)
        return ()
    if name in TRANSPARENT:
        stream.bracket()
        for _ in range(TRANSPARENT[name]):
            stream.argument(token)
        return _items(Stream(stream.argument(token), stream.end))
    if name in TEXTS:
        return (_text(stream.argument(token), token),)
    if name == "operatorname":
        stream.star()
    if name in ("underbrace", "overbrace"):
        return _braced(stream, token)
    return (token,)


def _braced(stream: Stream, token: Token) -> tuple[Item, ...]:
    """A brace under or over a formula, with the remark at it, leaves the formula."""
    inside = stream.argument(token)
    mark = "_" if token.text == "underbrace" else "^"
    if stream.next_is(mark):
        stream.take()
        stream.argument(token)
    return _items(Stream(inside, stream.end))


def _environment(stream: Stream, token: Token) -> Environment:
    name = shown(stripped(stream.argument(token)))
    depth = 1
    inside: list[Token] = []
    while stream.rest:
        found = stream.take()
        if found.is_command("begin", "end"):
            argument = stream.argument(found)
            depth += 1 if found.text == "begin" else -1
            if not depth:
                closing = shown(stripped(argument))
                if closing != name:
                    raise LatexError(found.place, f"\\end{{{closing}}} ends \\begin{{{name}}} at {token.place}")
                return Environment(name, _inside(name, inside, stream, token), token.place)
            inside += [found, Token("open", "{", found.place), *argument, Token("close", "}", found.place)]
        else:
            inside.append(found)
    raise LatexError(token.place, f"\\begin{{{name}}} has no \\end{{{name}}}")


def _inside(name: str, tokens: list[Token], stream: Stream, of: Token) -> tuple[Item, ...]:
    rest = Stream(tokens, stream.end)
    if name in ("array", "alignedat", "subarray"):
        rest.bracket()
        rest.argument(of)
    elif name in ("aligned", "gathered", "split", "multlined"):
        rest.bracket()
    return _items(rest)


def _text(tokens: tuple[Token, ...], of: Token) -> TextItem:
    """Words with formulas between dollars."""
    words: list[str] = []
    formulas: list[tuple[Item, ...]] = []
    inside: list[Token] | None = None
    for token in tokens:
        if token.is_mark("$"):
            if inside is not None:
                formulas.append(nest(inside, token.place))
            inside = [] if inside is None else None
        elif inside is not None:
            inside.append(token)
        elif token.kind in ("space", "par") or token.is_mark("~") or token.is_command(" ", "quad", "qquad", ","):
            words.append(" ")
        else:
            words.append(token.source)
    if inside is not None:
        raise LatexError(of.place, "a $ inside this text has no partner")
    return TextItem(" ".join("".join(words).split()), tuple(formulas), of.place)


def text_of(items: Iterable[Item]) -> str:
    """Items as LaTeX, for messages."""
    parts: list[str] = []
    for item in items:
        if isinstance(item, Group):
            parts.append(f"{{{text_of(item.items)}}}")
        elif isinstance(item, Environment):
            parts.append(f"\\begin{{{item.name}}}...\\end{{{item.name}}}")
        elif isinstance(item, TextItem):
            parts.append(f"\\text{{{item.words}}}")
        else:
            spaced = parts and item.kind == "letter" and parts[-1][:1] == "\\" and parts[-1][-1:].isalpha()
            parts.append(f" {item.source}" if spaced else item.source)
    return "".join(parts)


def key_text(items: Iterable[Item]) -> str:
    r"""What a script or the inside of a font says, whatever its font and braces.

    >>> from theory.latex.source.tokens import tokenize
    >>> place = Place("paper.tex", 1, 1)
    >>> {key_text(nest(tokenize(text), place)) for text in (r"\mathrm{QK}", r"{QK}", r"\text{QK}", r"\rm QK")}
    {'QK'}
    """
    parts: list[str] = []
    for item in items:
        if isinstance(item, Group):
            parts.append(key_text(item.items))
        elif isinstance(item, TextItem):
            parts.append(item.words)
        elif isinstance(item, Environment):
            parts.append(f"\\{item.name}")
        elif not item.is_command(*FONTS):
            parts.append(item.source)
    return "".join(parts)
