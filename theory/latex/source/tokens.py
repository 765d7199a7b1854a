r"""Text of a LaTeX file as tokens, each with its place.

Comments are kept only where they speak to this package (``% gradline: ...``); what TeX does not read as formulas
(``verbatim``, ``comment``, all after ``\end{document}``) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

__all__ = ["LatexError", "Place", "Token", "shown", "tokenize"]

Kind = Literal["command", "letter", "digit", "mark", "open", "close", "space", "par", "note"]


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file; lines and columns count from 1.

    >>> print(Place("paper.tex", 3, 14))
    paper.tex:3:14
    """

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class LatexError(ValueError):
    """LaTeX that can't be read, with the place where that was noticed."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place
        self.message = message


@dataclass(frozen=True, slots=True)
class Token:
    r"""A token of TeX: ``\command`` (``text`` without backslash), a character, a brace, blank, or a note.

    ``macros`` are the author's macros that it came from, outermost first; ``place`` is then that of the outermost.
    A ``primitive`` command keeps its first meaning, whatever an author's macro of its name says.
    """

    kind: Kind
    text: str
    place: Place
    macros: tuple[str, ...] = ()
    primitive: bool = False

    def is_command(self, *names: str) -> bool:
        """Whether this is one of these commands."""
        return self.kind == "command" and self.text in names

    def is_mark(self, *marks: str) -> bool:
        """Whether this is one of these characters."""
        return self.kind == "mark" and self.text in marks

    @property
    def source(self) -> str:
        """The token as it is written."""
        return f"\\{self.text}" if self.kind == "command" else self.text

    def used_by(self, call: Token) -> Token:
        """This token of a macro's body, where the macro is used."""
        return replace(self, place=call.place, macros=(*call.macros, call.text))


def shown(tokens: tuple[Token, ...] | list[Token]) -> str:
    """Tokens as text that reads back to them."""
    parts: list[str] = []
    for token in tokens:
        if parts and token.kind == "letter" and re.search(r"\\[A-Za-z@]+$", parts[-1]):
            parts.append(" ")
        parts.append(token.source)
    return "".join(parts)


_NOTE = re.compile(r"%+\s*gradline:[ \t]*(.*?)\s*$")
_SKIPPED = frozenset(
    (
        *("verbatim", "verbatim*", "Verbatim", "BVerbatim", "LVerbatim", "alltt", "lstlisting", "minted", "tcblisting"),
        *("comment", "filecontents", "filecontents*"),
    )
)
_BEGIN = re.compile(r"\\begin\s*\{([A-Za-z]+\*?)\}")
_COMMAND = re.compile(r"\\(?:([A-Za-z@]+)|(.))", re.DOTALL)
_BLANK = re.compile(r"[ \t\n]+")
#: The end of a line behind a command, with the next line's indentation; an empty line stays.
_LINE_END = re.compile(r"\n(?![ \t]*\n)[ \t]*")
_LAST = re.compile(r"\\end\s*\{document\}")
_VERB = re.compile(r"\\(?:verb\*?|lstinline(?:\[[^]\n]*\])?|mintinline(?:\[[^]\n]*\])?\{\w+\})([^A-Za-z\s*\[{])")
#: Commands whose argument is read letter by letter: a percent sign in an address starts no comment.
_LITERAL = re.compile(r"\\(?:url|nolinkurl|path|href|lstinline|mintinline\{\w+\})(?=\{)")


class _Text:
    """A text with the line and column of each position."""

    def __init__(self, text: str, file: str) -> None:
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self.text, self.file = text, file
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.line = 0

    def place(self, position: int) -> Place:
        """The place of a position; asked for in rising order."""
        while self.line + 1 < len(self.starts) and self.starts[self.line + 1] <= position:
            self.line += 1
        return Place(self.file, self.line + 1, position - self.starts[self.line] + 1)


def tokenize(text: str, file: str = "input") -> Iterator[Token]:
    r"""The tokens of a LaTeX text.

    Parameters: ``text``; ``file``, its name in messages. Yields: `Token`.
    Raises: `LatexError` for an environment of verbatim text that does not end.

    >>> [token.source for token in tokenize(r"\mu_{QK} % the rate")]
    ['\\mu', '_', '{', 'Q', 'K', '}', ' ']
    """
    source = _Text(text, file)
    text = source.text
    position = 0
    while position < len(text):
        token, position = _next(source, text, position)
        if token is not None:
            yield token


def _next(source: _Text, text: str, at: int) -> tuple[Token | None, int]:
    here = text[at]
    place = source.place(at)
    if here == "\\":
        return _command(text, at, place)
    if here == "%":
        return _comment(text, at, place)
    if here.isspace():
        return _blank(text, at, place)
    if here in "{}":
        return Token("open" if here == "{" else "close", here, place), at + 1
    kind: Kind = "mark"
    if here.isascii() and here.isalpha():
        kind = "letter"
    elif here.isascii() and here.isdigit():
        kind = "digit"
    return Token(kind, here, place), at + 1


def _comment(text: str, at: int, place: Place) -> tuple[Token | None, int]:
    """A comment goes to the end of its line and takes the line's end and the next line's indentation with it."""
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    note = _NOTE.match(text[at:end])
    after = end
    while after < len(text) and text[after] in " \t\n" and not (text[after] == "\n" and after > end):
        after += 1
    return (Token("note", note[1], place) if note else None), after


def _blank(text: str, at: int, place: Place) -> tuple[Token | None, int]:
    found = _BLANK.match(text, at)
    if found is None:
        return Token("space", " ", place), at + 1
    return Token("par" if found[0].count("\n") > 1 else "space", " ", place), found.end()


def _command(text: str, at: int, place: Place) -> tuple[Token | None, int]:
    begin = _BEGIN.match(text, at)
    if begin is not None and begin[1] in _SKIPPED:
        end = text.find(f"\\end{{{begin[1]}}}", begin.end())
        if end < 0:
            raise LatexError(place, f"\\begin{{{begin[1]}}} has no \\end{{{begin[1]}}}")
        return Token("space", " ", place), end + len(begin[1]) + 6
    verb = _VERB.match(text, at)
    if verb is not None:
        end = text.find(verb[1], verb.end())
        if end < 0 or "\n" in text[verb.end() : end]:
            raise LatexError(place, f"{verb[0]} has no second {verb[1]} on its line")
        return Token("space", " ", place), end + 1
    literal = _LITERAL.match(text, at)
    if literal is not None and (end := _balanced(text, literal.end())):
        return Token("space", " ", place), end
    if _LAST.match(text, at):
        return None, len(text)
    found = _COMMAND.match(text, at)
    if found is None:
        raise LatexError(place, "a backslash at the end of the file")
    if found[1] is None:
        return Token("command", " " if found[2].isspace() else found[2], place), found.end()
    if found[1] == "endinput":
        return None, len(text)
    end = found.end()
    while end < len(text) and text[end] in " \t":
        end += 1
    line = _LINE_END.match(text, end)
    return Token("command", found[1], place), end if line is None else line.end()


def _balanced(text: str, at: int) -> int:
    """The position behind the group that opens at a position, on one line; 0 where it does not end there."""
    depth = 0
    while at < len(text) and text[at] != "\n":
        depth += (text[at] == "{") - (text[at] == "}")
        at += 1
        if not depth:
            return at
    return 0
