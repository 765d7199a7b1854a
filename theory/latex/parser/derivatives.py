r"""Fractions, and derivatives as ``\frac{d x}{d t}``, ``dx/dt`` or ``\partial_t x``."""

from __future__ import annotations

from collections.abc import Sequence

from theory.latex.parser.fences import Fences
from theory.latex.parser.nodes import Derivative, Name, Node, Quotient
from theory.latex.source.items import Item, is_command, is_mark, key_text, nest, text_of
from theory.latex.source.tokens import LatexError, Place, tokenize

__all__ = ["Derivatives"]


class Derivatives(Fences):
    """Reads what stands over and under a line, and behind a differential operator."""

    def fraction(self) -> Node:
        r"""``\frac{a}{b}``, a derivative where both start with a differential."""
        of = self.take()
        top, bottom = self.argument(of), self.argument(of)
        if not top or not bottom:
            raise LatexError(of.place, f"an empty part of {text_of([of])}")
        upper, lower = self.differential_of(top), self.differential_of(bottom)
        if lower is not None and upper is not None:
            return self.derivative(of, upper, lower, top[0])
        return Quotient(self.inner(top, of.place), self.inner(bottom, of.place), of.place)

    def derivative(self, of: Item, top: Sequence[Item], bottom: Sequence[Item], sign: Item) -> Node:
        r"""``\frac{d x}{d t}`` or ``\frac{d}{d t} x``; ``top`` and ``bottom`` stand behind their differentials."""
        order, rest = self.split_order(top)
        variable, below = self.variable(bottom, of)
        if order != below:
            raise LatexError(of.place, f"a derivative of order {order} over one of order {below}")
        partial = is_command(sign, "partial")
        if rest:
            self.skip_time(variable)
            return Derivative(self.operand(rest, of.place), variable, order, partial, of.place)
        return self.applied(of, variable, order, partial)

    def applied(self, of: Item, variable: Name, order: int, partial: bool) -> Node:
        """The derivative of the factor that comes next."""
        if self.is_over():
            raise LatexError(of.place, "a derivative of nothing; expected what is differentiated")
        fenced = self.opens()
        start = self.take_factor()
        self.last_is_open = not fenced
        return Derivative(start, variable, order, partial, of.place)

    def skip_time(self, variable: Name) -> None:
        """``(t)`` behind a derivative in ``t`` says nothing new."""
        if not self.opens():
            return
        before = self.at
        if key_text(self.fenced()) != key_text(nest(tokenize(variable.latex), variable.place)):
            self.at = before

    def take_factor(self) -> Node:
        """What a differential operator is applied to: a name with its exponent, or a fence."""
        start = self.peek()
        fenced = self.opens()
        node = self.atom()
        if fenced and is_mark(self.peek(), "^"):
            raise self.error("it is not clear whether the derivative or what is derived is raised to this power")
        self.last_is_open = False
        return node if fenced or start is None else self.powers(node, start)

    def operand(self, items: Sequence[Item], place: Place) -> Node:
        """What stands beside the differential above the line: one factor."""
        reader = type(self)(items, self.words, place)
        node = reader.take_factor()
        if reader.peek() is not None:
            what = text_of([reader.peek()])  # type: ignore[list-item]
            raise reader.error(f"it is not clear whether {what} is derived; use parentheses")
        return node

    def split_order(self, items: Sequence[Item]) -> tuple[int, Sequence[Item]]:
        """The order in ``d^2 x``, and what follows."""
        if not items or not is_mark(items[0], "^"):
            return 1, items
        text = key_text(items[1:2])
        if not text.isdigit() or int(text) < 1:
            raise LatexError(items[0].place, "expected a whole number as order of a derivative")
        return int(text), items[2:]

    def variable(self, items: Sequence[Item], of: Item) -> tuple[Name, int]:
        """The variable of a derivative with its order, such as ``t^2``."""
        order = 1
        if len(items) > 2 and is_mark(items[-2], "^"):
            order, _ = self.split_order(items[-2:])
            items = items[:-2]
        reader = type(self)(items, self.words, of.place)
        node = reader.everything()
        if not isinstance(node, Name) or node.start:
            raise LatexError(of.place, f"d {text_of(items)} below a derivative; expected d and one name")
        return node, order

    def differential_of(self, items: Sequence[Item]) -> list[Item] | None:
        """What follows the differential at the start of items; None where there is none."""
        reader = type(self)(items, self.words, self.end)
        if not reader.is_differential():
            return None
        reader.take_differential()
        return reader.items[reader.at :]

    def inline_derivative(self) -> Node:
        r"""``dx/dt``."""
        of = self.peek()
        start = self.at
        self.take_differential()
        upper = self.name()
        if not is_mark(self.peek(), "/"):
            raise LatexError(self.place_of(of), f"{text_of(self.items[start : self.at])}: a differential by itself")
        self.take()
        self.peek()
        if not self.is_differential():
            raise self.error("expected d and a variable behind the slash of a derivative")
        self.take_differential()
        lower = self.name()
        if not isinstance(lower, Name):
            raise LatexError(self.place_of(of), "expected a scalar variable below a derivative")
        if not self.is_over():
            raise self.error("it is not clear whether this is below the slash; use \\frac or parentheses")
        return Derivative(upper, lower, 1, is_command(of, "partial"), self.place_of(of))

    def operator(self, of: Item) -> Node:
        r"""``\partial_t x`` and ``\partial_t^2 x``."""
        self.take()
        self.take()
        variable = type(self)(self.argument(of), self.words, of.place).everything()
        if not isinstance(variable, Name) or variable.start:
            raise LatexError(of.place, "expected one name as index of \\partial")
        order = 1
        if is_mark(self.peek(), "^"):
            order, _ = self.split_order(self.items[self.at : self.at + 2])
            self.at += 2
        return self.applied(of, variable, order, True)
