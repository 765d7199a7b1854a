r"""A paper as its displayed formulas, in order, each with the macros in force there.

``\input`` and ``\include`` are followed; macros obey the groups and environments they are defined in.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from theory.latex.source.commands import DISPLAYS
from theory.latex.source.conditionals import Branches
from theory.latex.source.files import decode
from theory.latex.source.macros import DEFINING, Macro, Macros, call, define
from theory.latex.source.stream import Stream, stripped
from theory.latex.source.tokens import LatexError, Place, Token, shown, tokenize

__all__ = ["Display", "Paper", "read_paper"]

_MOST_STEPS = 200_000
_INPUT = ("input", "include", "subfile", "subfileinclude")
_UNFOLLOWED = ("import", "subimport", "includefrom", "inputfrom", "externaldocument", "catcode", "mathcode")
_ENDS = {"[": "]", "(": ")"}


@dataclass(frozen=True, slots=True)
class Display:
    r"""A displayed formula: ``environment`` (``"["`` for ``\[``), what stands in it, and the ``macros`` in force.

    ``notes`` are the comments ``% gradline:`` before it or on its first line.
    """

    environment: str
    place: Place
    tokens: tuple[Token, ...]
    macros: Macros
    notes: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Paper:
    """The displays of a paper, the files it is made of, and remarks on what was not followed."""

    displays: tuple[Display, ...]
    files: tuple[Path, ...]
    remarks: tuple[str, ...] = ()


@dataclass
class _Scope:
    """A group or an environment that is open."""

    name: str
    place: Place
    macros: Macros


def read_paper(path: str | Path) -> Paper:
    r"""Read a paper with the files it inputs.

    Parameters: ``path``, the main file.
    Returns: a `Paper`.
    Raises: `LatexError` with file, line and column for text that is not UTF-8, unbalanced braces or environments, an
    input that is missing or contains itself, or a macro that expands for ever; ``OSError`` where the main file can't
    be read.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "paper.tex"
    >>> _ = file.write_text(r"Text \begin{equation} L = 1 \end{equation}")
    >>> [(d.environment, d.place.line, d.place.column) for d in read_paper(file).displays]
    [('equation', 1, 6)]
    """
    return _Reader(Path(path)).read()


class _Reader:
    """Reads a paper once from its first token to its last."""

    def __init__(self, path: Path) -> None:
        self.folder = path.parent
        self.main = str(path)
        self.files = [path]
        self.parents: dict[str, str] = {}
        self.remarks: list[str] = []
        self.displays: list[Display] = []
        self.notes: list[Token] = []
        text = decode(path, self.main)
        self.stream = Stream(tokenize(text, self.main), Place(self.main, text.count("\n") + 1, 1))
        self.scopes = [_Scope("", Place(self.main, 1, 1), {})]
        self.steps = 0
        self.branches = Branches(self.stream)

    @property
    def macros(self) -> Macros:
        """The macros in force."""
        return self.scopes[-1].macros

    def read(self) -> Paper:
        """Everything."""
        while self.stream.rest:
            self.step(self.stream.take())
        for scope in reversed(self.scopes[1:]):
            if scope.name == "{":
                raise LatexError(scope.place, "this { has no }")
            if scope.name != "document":
                raise LatexError(scope.place, f"\\begin{{{scope.name}}} has no \\end{{{scope.name}}}")
        self.drop_notes()
        return Paper(tuple(self.displays), tuple(self.files), tuple(self.remarks))

    def step(self, token: Token) -> None:
        """One token of the text between formulas."""
        self.steps += bool(token.macros)
        if self.steps > _MOST_STEPS:
            raise LatexError(token.place, f"more than {_MOST_STEPS} tokens from macros; one may expand for ever")
        if token.kind == "note":
            self.notes.append(token)
            return
        if token.kind in ("space", "par"):
            return
        if token.is_command("begin", "[") or token.is_mark("$"):
            self.begin(token)
            return
        if token.is_command("label"):
            self.stream.argument(token)
            return
        self.drop_notes()
        if token.kind == "open":
            self.scopes.append(_Scope("{", token.place, self.macros))
        elif token.kind == "close":
            self.close("{", token, "this } has no {")
        elif token.kind == "command":
            self.command(token)

    def drop_notes(self) -> None:
        """A comment for this package that stands before no formula is a mistake."""
        if self.notes:
            raise LatexError(self.notes[0].place, "this comment for gradline stands neither before nor in a display")

    def close(self, name: str, token: Token, problem: str) -> None:
        """The end of a group or environment."""
        scope = self.scopes[-1]
        if scope.name == name and len(self.scopes) > 1:
            self.scopes.pop()
        elif scope.name == "{":
            raise LatexError(scope.place, "this { has no }")
        elif len(self.scopes) > 1 and name != "{":
            raise LatexError(token.place, f"{problem}; \\begin{{{scope.name}}} at {scope.place} is open")
        else:
            raise LatexError(token.place, problem)

    def begin(self, token: Token) -> None:
        """The start of an environment or of a formula."""
        if token.is_mark("$"):
            double = bool(self.stream.rest) and self.stream.rest[0].is_mark("$")
            if double:
                self.stream.take()
                self.display(token, "$$")
            else:
                self.drop_notes()
                self.inline(token)
            return
        if token.text == "[":
            self.display(token, "[")
            return
        name = shown(stripped(self.stream.argument(token)))
        if name in DISPLAYS:
            self.display(token, name)
            return
        shorthand = self.macros.get(f"begin {name}")
        if shorthand is not None:
            self.stream.push(call(self.stream, token, shorthand))
            return
        if name != "subequations":
            self.drop_notes()
        self.scopes.append(_Scope(name, token.place, self.macros))

    def inline(self, start: Token) -> None:
        """A formula in the text is passed over."""
        while self.stream.rest:
            if self.stream.take().is_mark("$"):
                return
        raise LatexError(start.place, "this $ has no partner")

    def command(self, token: Token) -> None:
        """A command of the text."""
        if token.text in self.macros:
            self.use(token)
        elif token.text in DEFINING:
            self.learn(define(self.stream, token, self.macros), token.text in ("gdef", "xdef"))
        elif token.text in ("newenvironment", "renewenvironment"):
            self.environment(token)
        elif token.text == "end":
            name = shown(stripped(self.stream.argument(token)))
            shorthand = self.macros.get(f"end {name}")
            if shorthand is not None:
                self.stream.push(call(self.stream, token, shorthand))
            else:
                self.close(name, token, f"\\end{{{name}}} has no \\begin{{{name}}}")
        elif token.text in _INPUT:
            self.input(token)
        elif token.text in ("usepackage", "RequirePackage"):
            self.packages(token)
        elif token.text in _UNFOLLOWED:
            self.remarks.append(f"{token.place}: \\{token.text} is not followed")
        elif self.branches.concerns(token):
            self.branches.take(token)
        elif token.text == "(":
            self.collect(token, "(")

    def use(self, token: Token) -> None:
        """A macro in the text matters only where it opens a formula, defines or inputs something."""
        if self.leads_to(token.text, ("begin", "end", "[", "]", *_INPUT, *DEFINING), dollars=True):
            if token.text in token.macros:
                raise LatexError(token.place, f"macro \\{token.text} expands for ever")
            self.stream.push(call(self.stream, token, self.macros[token.text]))

    def leads_to(self, name: str, commands: Collection[str], dollars: bool = False) -> bool:
        """Whether a macro contains one of these commands, or a dollar sign, by itself or in the macros it uses."""
        waiting, seen = [name], set()
        while waiting:
            name = waiting.pop()
            if name not in self.macros or name in seen:
                if name in commands:
                    return True
                continue
            seen.add(name)
            body = self.macros[name].body
            if dollars and any(t.is_mark("$") for t in body):
                return True
            waiting += [t.text for t in body if t.kind == "command"]
        return False

    def learn(self, macro: Macro | None, everywhere: bool = False) -> None:
        """Put a macro in force, in this scope or in all."""
        if macro is None:
            return
        for scope in self.scopes if everywhere else self.scopes[-1:]:
            scope.macros = {**scope.macros, macro.name: macro}

    def environment(self, of: Token) -> None:
        r"""``\newenvironment``: its two halves are kept as macros that no command can name."""
        self.stream.star()
        name = shown(stripped(self.stream.argument(of)))
        count = shown(stripped(self.stream.bracket() or ())) or "0"
        default = self.stream.bracket()
        first, last = self.stream.argument(of), self.stream.argument(of)
        if not count.isdigit():
            raise LatexError(of.place, f"\\{of.text}{{{name}}}: expected a number of arguments, found {count!r}")
        for half, body, arguments in (("begin", first, int(count)), ("end", last, 0)):
            optional = default if half == "begin" else None
            self.learn(Macro(f"{half} {name}", body, of.place, arguments, optional))

    # ---- files ---------------------------------------------------------------------------------------------

    def input(self, token: Token) -> None:
        r"""The file of ``\input``, in its place."""
        name = self.file_name(token)
        if not name:
            raise LatexError(token.place, f"\\{token.text}: expected the name of a file")
        path = self.folder / name
        if not path.is_file() and not name.endswith(".tex"):
            path = self.folder / f"{name}.tex"
        if not path.is_file():
            raise LatexError(token.place, f"\\{token.text}{{{name}}}: no such file: {path}")
        key = os.path.realpath(path)
        at: str | None = token.place.file
        while at is not None:
            if os.path.realpath(at) == key:
                raise LatexError(token.place, f"\\{token.text}{{{name}}}: this file inputs itself")
            at = self.parents.get(at)
        self.parents[str(path)] = token.place.file
        self.files.append(path)
        self.stream.push(tokenize(decode(path, str(path)), str(path)))

    def file_name(self, token: Token) -> str:
        """The name in braces, or up to the next blank."""
        self.stream.skip_blanks()
        following = self.stream.peek()
        if following is not None and following.kind == "open":
            return shown(stripped(self.stream.group())).strip().strip('"')
        name: list[Token] = []
        while (found := self.stream.peek()) is not None and found.kind in ("letter", "digit", "mark"):
            name.append(self.stream.take())
        return shown(name)

    def packages(self, token: Token) -> None:
        """Definitions of the author's own packages that lie beside the paper."""
        self.stream.bracket()
        for name in shown(self.stream.argument(token)).split(","):
            path = self.folder / f"{name.strip()}.sty"
            if path.is_file():
                self.files.append(path)
                self.package(path)

    def package(self, path: Path) -> None:
        """A package is read for its definitions only; what is not understood ends it."""
        try:
            stream = Stream(tokenize(decode(path, str(path)), str(path)), Place(str(path), 1, 1))
            while stream.rest:
                token = stream.take()
                if token.kind == "command" and token.text in DEFINING:
                    self.learn(define(stream, token, self.macros))
        except LatexError as error:
            self.remarks.append(f"{error}; the rest of this package was not read")

    # ---- formulas ------------------------------------------------------------------------------------------

    def display(self, start: Token, name: str) -> None:
        """A displayed formula up to its end."""
        notes, self.notes = self.notes, []
        while self.stream.rest and self.stream.rest[0].kind in ("space", "note"):
            token = self.stream.take()
            if token.kind == "note" and token.place.line == start.place.line:
                notes.append(token)
            elif token.kind == "note":
                self.stream.push([token])
                break
        macros = self.macros
        tokens = self.collect(start, name)
        self.displays.append(Display(name, start.place, tokens, macros, tuple(notes)))

    def collect(self, start: Token, name: str) -> tuple[Token, ...]:
        """The tokens up to the end of a formula; inputs and the halves of environments are put in."""
        found: list[Token] = []
        opened: list[tuple[str, Place]] = []
        while self.stream.rest:
            token = self.stream.take()
            if not opened and self.ends(token, name):
                return tuple(found)
            if token.kind in ("open", "close"):
                self.brace(token, opened)
                found.append(token)
            elif token.is_command(*_INPUT) and token.text not in self.macros:
                self.input(token)
            elif (
                token.kind == "command"
                and token.text in self.macros
                and self.leads_to(token.text, ("begin", "end", "]", *_INPUT))
            ):
                self.stream.push(call(self.stream, token, self.macros[token.text]))
            else:
                self.environments(token, opened, found)
        shown_name = f"\\begin{{{name}}}" if name in DISPLAYS else name if name == "$$" else f"\\{name}"
        if opened and opened[-1][0] == "{":
            raise LatexError(opened[-1][1], "this { has no }")
        raise LatexError(start.place, f"{shown_name} has no end")

    def brace(self, token: Token, opened: list[tuple[str, Place]]) -> None:
        """A brace inside a formula."""
        if token.kind == "open":
            opened.append(("{", token.place))
        elif not opened or opened[-1][0] != "{":
            raise LatexError(token.place, "this } has no {")
        else:
            opened.pop()

    def ends(self, token: Token, name: str) -> bool:
        """Whether a formula ends here; its closing tokens are taken."""
        if name == "$$":
            if token.is_mark("$") and self.stream.rest and self.stream.rest[0].is_mark("$"):
                self.stream.take()
                return True
            return False
        if name in _ENDS:
            return token.is_command(_ENDS[name])
        if not token.is_command("end"):
            return False
        inside = self.stream.argument(token)
        if shown(stripped(inside)) == name:
            return True
        self.stream.push([Token("open", "{", token.place), *inside, Token("close", "}", token.place)])
        return False

    def environments(self, token: Token, opened: list[tuple[str, Place]], found: list[Token]) -> None:
        r"""``\begin`` and ``\end`` inside a formula."""
        if not token.is_command("begin", "end"):
            found.append(token)
            return
        inside = self.stream.argument(token)
        name = shown(stripped(inside))
        half = self.macros.get(f"{token.text} {name}")
        if half is not None:
            self.stream.push(call(self.stream, token, half))
            return
        if token.text == "begin":
            opened.append((name, token.place))
        elif not opened or opened[-1][0] != name:
            if opened and opened[-1][0] == "{":
                raise LatexError(opened[-1][1], "this { has no }")
            raise LatexError(token.place, f"\\end{{{name}}} has no \\begin{{{name}}}")
        else:
            opened.pop()
        found.extend((token, Token("open", "{", token.place), *inside, Token("close", "}", token.place)))
