"""Tokens that are taken one by one, with the groups and arguments of TeX."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from theory.latex.source.tokens import LatexError, Place, Token

__all__ = ["Stream", "stripped"]

_BLANKS = ("space", "par", "note")


def stripped(tokens: Iterable[Token]) -> tuple[Token, ...]:
    """Tokens without the blanks at both ends."""
    found = list(tokens)
    while found and found[-1].kind in _BLANKS:
        found.pop()
    start = next((i for i, token in enumerate(found) if token.kind not in _BLANKS), len(found))
    return tuple(found[start:])


class Stream:
    """Tokens still to be read; ``end`` is the place to name when they are over."""

    def __init__(self, tokens: Iterable[Token], end: Place) -> None:
        self.rest = deque(tokens)
        self.end = end

    @property
    def place(self) -> Place:
        """The place of the next token."""
        return self.rest[0].place if self.rest else self.end

    def peek(self) -> Token | None:
        """The next token."""
        return self.rest[0] if self.rest else None

    def take(self) -> Token:
        """The next token, taken away."""
        if not self.rest:
            raise LatexError(self.end, "the text ends here; expected more")
        return self.rest.popleft()

    def push(self, tokens: Iterable[Token]) -> None:
        """Put tokens before the rest."""
        self.rest.extendleft(reversed(list(tokens)))

    def skip_blanks(self) -> None:
        """Take blanks away."""
        while self.rest and self.rest[0].kind in _BLANKS:
            self.rest.popleft()

    def next_is(self, mark: str) -> bool:
        """Whether the next token that is no blank is this character; blanks are taken only if so."""
        position = next((i for i, token in enumerate(self.rest) if token.kind not in _BLANKS), None)
        if position is None or not self.rest[position].is_mark(mark):
            return False
        self.skip_blanks()
        return True

    def group(self) -> tuple[Token, ...]:
        """The inside of a group whose opening brace comes next."""
        start = self.take()
        depth = 1
        inside: list[Token] = []
        while self.rest:
            token = self.rest.popleft()
            if token.kind == "open":
                depth += 1
            elif token.kind == "close":
                depth -= 1
                if not depth:
                    return tuple(inside)
            inside.append(token)
        raise LatexError(start.place, "this { has no }")

    def argument(self, of: Token) -> tuple[Token, ...]:
        """The next argument of a command: a group, or one token."""
        self.skip_blanks()
        token = self.peek()
        if token is None or token.kind == "close":
            raise LatexError(of.place, f"{of.source} lacks an argument")
        return self.group() if token.kind == "open" else (self.take(),)

    def bracket(self) -> tuple[Token, ...] | None:
        """The inside of an optional argument in brackets; None where there is none."""
        if not self.next_is("["):
            return None
        start = self.take()
        depth = 0
        inside: list[Token] = []
        while self.rest:
            token = self.rest.popleft()
            if token.is_mark("]") and not depth:
                return tuple(inside)
            depth += (token.kind == "open") - (token.kind == "close")
            inside.append(token)
        raise LatexError(start.place, "this [ has no ]")

    def star(self) -> bool:
        """Whether a star comes next; it is taken."""
        if self.next_is("*"):
            self.take()
            return True
        return False
