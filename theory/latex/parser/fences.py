"""Parentheses, absolute values and norms of a formula."""

from __future__ import annotations

from theory.latex.parser.calls import Calls
from theory.latex.parser.nodes import Call, Node, Norm
from theory.latex.parser.vocabulary import read_key
from theory.latex.source.items import Item, is_command, is_mark, key_text, text_of
from theory.latex.source.tokens import LatexError, Token

__all__ = ["Fences"]

_FENCES = {"(": ")", "[": "]"}
_COMMAND_FENCES = {"{": "}", "lbrace": "rbrace", "lbrack": "rbrack", "lparen": "rparen"}
_BARS = {"lvert": "rvert", "vert": "vert"}
_NORMS = {"lVert": "rVert", "|": "|", "Vert": "Vert"}


class Fences(Calls):
    """The part of the reader that knows what stands between delimiters."""

    def opens(self) -> bool:
        """Whether a parenthesis comes next."""
        item = self.peek()
        if is_mark(item, *_FENCES):
            return True
        if is_command(item, "left"):
            following = self.ahead(1)
            return is_mark(following, *_FENCES) or is_command(following, *_COMMAND_FENCES)
        return is_command(item, *_COMMAND_FENCES)

    def fence(self, item: Item) -> Node | None:
        """Parentheses, an absolute value or a norm; None where none starts."""
        if self.opens():
            place = self.place_of(item)
            inside = self.fenced()
            return self.inner(inside, place)
        left = is_command(item, "left")
        opening = self.ahead(1) if left else item
        if is_mark(opening, "|") or is_command(opening, *_BARS):
            return Call("Abs", (self.inner(self.barred(), self.place_of(item)),), self.place_of(item))
        if is_command(opening, *_NORMS):
            return self.norm(item)
        if left:
            raise self.error(f"\\left{text_of([opening] if opening else [])} is not understood")
        return None

    def fenced(self) -> tuple[Item, ...]:
        """The items between a parenthesis and its partner, which are taken."""
        start = self.peek()
        stack: list[tuple[str, Item]] = []
        first = self.at
        while self.at < len(self.items):
            self.step_fence(stack)
            if not stack:
                skip = 2 if is_command(start, "left") else 1
                return tuple(self.items[first + skip : self.at - skip])
        closing = stack[0][0].replace("right", "\\right")
        raise LatexError(stack[0][1].place, f"this {text_of([stack[0][1]])} has no {closing}")

    def step_fence(self, stack: list[tuple[str, Item]]) -> None:
        """One item inside a fence; parentheses are kept on the stack as what closes them."""
        item = self.items[self.at]
        self.at += 1
        if is_command(item, "left", "right"):
            if self.at >= len(self.items):
                raise LatexError(item.place, f"{text_of([item])} lacks a delimiter")
            delimiter = self.items[self.at]
            self.at += 1
            side = "left" if is_command(item, "left") else "right"
            self.count(delimiter, stack, side)
        else:
            self.count(item, stack, "")

    def count(self, item: Item, stack: list[tuple[str, Item]], side: str) -> None:
        """Open or close a fence at an item."""
        text = item.text if isinstance(item, Token) and item.kind in ("mark", "command") else ""
        table = _FENCES if isinstance(item, Token) and item.kind == "mark" else _COMMAND_FENCES
        closing = table.get(text)
        if side == "left" and closing is None:
            stack.append(("right", item))
        elif closing is not None and side != "right":
            stack.append((f"{side and 'right'}{closing}", item))
        elif side == "right" or text in table.values():
            if not stack:
                raise LatexError(item.place, f"{text} closes nothing")
            expected, opened = stack.pop()
            if expected != f"{side}{text}" and not (expected == "right" and side == "right"):
                raise LatexError(item.place, f"{text} closes the {text_of([opened])} at {opened.place}")

    def barred(self) -> tuple[Item, ...]:
        """The items between two bars."""
        start = self.take()
        sized = is_command(start, "left")
        opening = self.take() if sized else start
        closing = _BARS.get(opening.text, "") if is_command(opening, *_BARS) else ""  # type: ignore[union-attr]
        first, depth, inner = self.at, 0, 0
        while self.at < len(self.items):
            item = self.items[self.at]
            if sized and is_command(item, "left"):
                depth += 1
            if sized and is_command(item, "right"):
                if not depth:
                    return self.close_bar(first, item)
                depth -= 1
            elif not sized and is_command(item, "left"):
                depth += 1
            elif not sized and is_command(item, "right"):
                depth -= 1
            elif not sized and not depth and closing == "rvert" and is_command(item, "lvert"):
                inner += 1
            elif not sized and not depth and (is_mark(item, "|") if not closing else is_command(item, closing)):
                if not inner:
                    self.at += 1
                    return tuple(self.items[first : self.at - 1])
                inner -= 1
            self.at += 1
        raise LatexError(start.place, "this | has no partner")

    def close_bar(self, first: int, item: Item) -> tuple[Item, ...]:
        r"""The end of ``\left| ... \right|``."""
        inside = tuple(self.items[first : self.at])
        self.at += 1
        last = self.take()
        if not is_mark(last, "|") and not is_command(last, "rvert", "vert"):
            raise LatexError(item.place, f"\\right{text_of([last])} closes a bar")
        return inside

    def norm(self, item: Item) -> Node:
        r"""``\lVert E\rVert`` of a matrix of the symbol table, with or without the F of Frobenius."""
        sized = is_command(item, "left")
        if sized:
            self.take()
        opening = self.take()
        closing = _NORMS[opening.text]  # type: ignore[union-attr]
        first = self.at
        while self.at < len(self.items) and not is_command(self.items[self.at], closing):
            self.at += 1
        if self.at >= len(self.items):
            raise LatexError(item.place, f"{text_of([opening])} has no partner")
        inside = self.items[first : self.at - (1 if sized else 0)]
        self.at += 1
        if is_mark(self.peek(), "_"):
            mark = self.take()
            if key_text(self.argument(mark)) != "F":
                raise self.error("a norm other than the Frobenius norm is not understood", mark)
        key = read_key(inside)
        if key is None or key not in self.words.norms:
            known = ", ".join(f"\\lVert {k}\\rVert" for k in sorted(map(str, self.words.norms)))
            raise LatexError(item.place, f"the norm of {text_of(inside)} is not in the symbol table; known: {known}")
        return Norm(self.words.norms[key], item.place)
