r"""Conditionals of a text: what ``\iffalse`` and the switches of ``\newif`` leave out is not read.

So is what ``\if0`` leaves out. Of a conditional that is not understood, such as ``\ifx``, both branches are read.
"""

from __future__ import annotations

from theory.latex.source.stream import Stream
from theory.latex.source.tokens import LatexError, Token

__all__ = ["Branches"]

_NO_CONDITIONALS = ("iff", "ifthenelse", "ifthen")


def _opens(token: Token) -> bool:
    return token.kind == "command" and token.text.startswith("if") and token.text not in _NO_CONDITIONALS


class Branches:
    r"""The conditionals that are open, and the switches that ``\newif`` defined.

    >>> from theory.latex.source.tokens import Place, shown, tokenize
    >>> stream = Stream(tokenize(r"\newif\ifdraft \ifdraft a\else b\fi"), Place("paper.tex", 1, 1))
    >>> branches, kept = Branches(stream), []
    >>> while stream.rest:
    ...     token = stream.take()
    ...     branches.take(token) if branches.concerns(token) else kept.append(token)
    >>> shown(kept)
    'b'
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.switches = {"iffalse": False, "iftrue": True}
        self.open: list[bool] = []
        self._taken = False

    def concerns(self, token: Token) -> bool:
        """Whether a command opens, divides or closes a conditional, or sets a switch."""
        return _opens(token) or token.is_command("newif", "else", "fi") or self._switched(token) is not None

    def _switched(self, token: Token) -> tuple[str, bool] | None:
        r"""The switch that a command such as ``\drafttrue`` sets, and to what."""
        for suffix, value in (("true", True), ("false", False)):
            name = f"if{token.text.removesuffix(suffix)}"
            if token.kind == "command" and token.text.endswith(suffix) and name in self.switches:
                return name, value
        return None

    def take(self, token: Token) -> None:
        """Do what a command says.

        Raises: `LatexError` for a conditional without its end.
        """
        switched = self._switched(token)
        if switched is not None and switched[0] not in ("iftrue", "iffalse"):
            self.switches[switched[0]] = switched[1]
        elif token.text == "newif":
            self.stream.skip_blanks()
            self.switches[self.stream.take().text] = False
        elif token.text == "fi":
            self.open = self.open[:-1]
        elif token.text == "else":
            if self.open and self.open[-1]:
                self._skip(token)
                self.open.pop()
        elif (token.text == "if" and self._equal() is False) or self.switches.get(token.text) is False:
            if self._skip(token) == "else":
                self.open.append(False)
        else:
            self.open.append(self.switches.get(token.text) is True or (token.text == "if" and self._taken))

    def _equal(self) -> bool | None:
        r"""Whether the two characters behind ``\if`` are equal; they are taken if so. None where one is a command."""
        self._taken = False
        first = self.stream.peek()
        if first is None or first.kind != "digit":
            return None
        self.stream.take()
        second = self.stream.peek()
        if second is None or (second.kind == "command" and second.text not in ("begin", "[", "fi")):
            return None
        self._taken = (second.kind, second.text) == (first.kind, first.text)
        if self._taken:
            self.stream.take()
        return self._taken

    def _skip(self, start: Token) -> str:
        r"""Leave out what stands before the ``\else`` or ``\fi`` of a conditional; says which it was."""
        depth = 1
        while self.stream.rest:
            token = self.stream.take()
            if token.is_command("fi") or (token.is_command("else") and depth == 1):
                depth -= 1
                if not depth:
                    return token.text
            elif _opens(token):
                depth += 1
        raise LatexError(start.place, f"\\{start.text} has no \\fi")
