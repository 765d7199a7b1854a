"""Functions with their arguments, differentials and integrals."""

from __future__ import annotations

from fractions import Fraction

from theory.latex.parser.grammar import Reader
from theory.latex.parser.nodes import Call, Integrated, Name, Node, Number, Power, Quotient
from theory.latex.parser.vocabulary import Key
from theory.latex.source.items import Group, Item, TextItem, is_command, is_mark, key_text, text_of
from theory.latex.source.tokens import LatexError, Place, Token

__all__ = ["Calls"]

_ROMAN = ("mathrm", "operatorname", "rm")
_MANY = ("max", "min")


class Calls(Reader):
    """The part of the reader that knows functions."""

    def opens(self) -> bool:
        """Whether a parenthesis comes next."""
        raise NotImplementedError

    def fenced(self) -> tuple[Item, ...]:
        """The items between a parenthesis and its partner, which are taken."""
        raise NotImplementedError

    def name(self) -> Node:
        """A name of the symbol table."""
        raise NotImplementedError

    # ---- functions -----------------------------------------------------------------------------------------

    def function(self, name: str, base: str, place: Place) -> Node:
        r"""A function with ``base`` of a logarithm, an exponent on its name, and its argument."""
        exponent: Node | None = None
        if is_mark(self.peek(), "^"):
            mark = self.take()
            items = self.exponent(mark)
            exponent = self.inner(items, mark.place)
            if not isinstance(exponent, Number) or exponent.value < 1:
                raise LatexError(mark.place, "an exponent of a function's name must be a number from 1 on")
        if base and name != "log":
            raise LatexError(place, f"a subscript at the function {name}")
        result = self.call(name, place, bare=True)
        if base:
            lower = self.inner((self.base_item(base, place),), place)
            result = Quotient(result, Call("log", (lower,), place), place)
        return result if exponent is None else Power(result, exponent, place)

    def base_item(self, base: str, place: Place) -> Item:
        """The base of a logarithm, a number."""
        if not base.isdigit():
            raise LatexError(place, f"a logarithm to the base {base}; expected a number")
        return Group(tuple(Token("digit", d, place) for d in base), place)

    def call(self, name: str, place: Place, *, bare: bool) -> Node:
        """A function of what stands in parentheses behind it, or, where ``bare``, of one factor."""
        if is_mark(self.peek(), "^", "_", "'"):
            raise self.error(f"a script at the function {name} is not understood")
        if self.opens():
            inside = self.fenced()
            if is_mark(self.peek(), "^"):
                raise self.error(f"it is not clear whether {name} or its argument is raised to this power")
            return Call(name, self.arguments(name, inside, place), place)
        if not bare:
            raise LatexError(place, f"the function {name} needs its argument in parentheses")
        if self.is_over():
            raise LatexError(place, f"the function {name} lacks its argument")
        argument = self.factor()
        self.last_is_open = True
        if name in _MANY:
            raise LatexError(place, f"{name} needs its arguments in parentheses")
        return Call(name, (argument,), place)

    def arguments(self, name: str, items: tuple[Item, ...], place: Place) -> tuple[Node, ...]:
        """The arguments between parentheses; only ``max`` and ``min`` take several."""
        parts: list[list[Item]] = [[]]
        depth = 0
        for item in items:
            if is_mark(item, "(", "["):
                depth += 1
            elif is_mark(item, ")", "]"):
                depth -= 1
            if is_mark(item, ",") and not depth:
                parts.append([])
            else:
                parts[-1].append(item)
        if len(parts) > 1 and name not in _MANY:
            raise LatexError(place, f"{name} takes one argument, found {len(parts)}")
        if len(parts) == 1 and name in _MANY:
            raise LatexError(place, f"{name} takes several arguments, found one")
        return tuple(self.inner(part, place) for part in parts)

    # ---- differentials -------------------------------------------------------------------------------------

    def is_differential(self) -> bool:
        """Whether the d of a differential comes next: upright, curly, or italic where no symbol is called d."""
        item = self.peek()
        if is_command(item, "partial"):
            return Key("\\partial") not in self.words.scalars
        if isinstance(item, Token) and item.kind == "letter":
            return item.text == "d" and Key("d") not in self.words.scalars
        if is_command(item, *_ROMAN):
            following = self.ahead(1)
            return (
                following is not None and key_text([following]) == "d" and Key("\\mathrm{d}") not in self.words.scalars
            )
        upright = isinstance(item, TextItem) and item.words == "d"
        switched = isinstance(item, Group) and key_text([item]) == "d" and is_command(item.items[0], "rm")
        return upright or switched

    def take_differential(self) -> None:
        """Take the d."""
        self.at += 2 if is_command(self.peek(), *_ROMAN) else 1

    def integral(self) -> Node:
        r"""``\int_a^b f\,ds``."""
        of = self.take()
        limits: dict[str, tuple[Item, ...]] = {}
        while is_mark(self.peek(), "_", "^"):
            mark = self.take()
            name = text_of([mark])
            if name in limits:
                raise LatexError(mark.place, "a second limit of this integral")
            limits[name] = self.argument(mark)
        if set(limits) != {"_", "^"}:
            raise LatexError(of.place, "an integral without both limits is not understood")
        first, end = self.at, self.last_differential(of)
        body = self.items[first:end]
        self.at = end
        self.take_differential()
        variable = self.name()
        if not isinstance(variable, Name):
            raise LatexError(of.place, "expected a name as variable of integration")
        if not body:
            inside: Node = Number(Fraction(1), of.place)
        else:
            inside = self.inner(body, of.place)
        self.last_is_open = True
        low, high = (self.inner(limits[mark], of.place) for mark in ("_", "^"))
        return Integrated(inside, variable, low, high, of.place)

    def last_differential(self, of: Item) -> int:
        """Where the differential that closes an integral stands: the first one outside of fractions and fences."""
        depth = 0
        before = self.at
        for position in range(before, len(self.items)):
            item = self.items[position]
            if is_mark(item, "(", "[") or is_command(item, "left"):
                depth += 1
            elif is_mark(item, ")", "]") or is_command(item, "right"):
                depth -= 1
            if is_command(item, "int"):
                raise LatexError(item.place, "an integral inside an integral is not understood")
            self.at = position
            found = not depth and not isinstance(item, Group) and self.is_differential()
            self.at = before
            if found:
                return position
        raise LatexError(of.place, f"{text_of([of])} has no differential")
