r"""Sums, products, fractions and powers of a formula; what has two readings is refused.

    sum     = [sign] product (sign product)*
    product = factor (factor | \cdot factor)* ["/" factor]
    factor  = atom ["^" exponent]

Atoms (names, numbers, functions, derivatives, fences) are in `theory.latex.parser.atoms`.
"""

from __future__ import annotations

from collections.abc import Sequence

from theory.latex.parser.nodes import Node, Power, Product, Quotient, Sum, Transpose
from theory.latex.parser.vocabulary import Key, Vocabulary, read_key
from theory.latex.source.items import Group, Item, is_command, is_mark, key_text, text_of
from theory.latex.source.tokens import LatexError, Place, Token

__all__ = ["RELATIONS", "Reader", "relation_at"]

#: Relations by what they are written as.
RELATIONS = {
    **dict.fromkeys(("coloneqq", "equiv", "triangleq", "eqqcolon", "coloneq", "doteq"), "="),
    **dict.fromkeys(("le", "leq", "leqslant"), "<="),
    **dict.fromkeys(("ge", "geq", "geqslant"), ">="),
    **dict.fromkeys(("ne", "neq"), "!="),
    **dict.fromkeys(("approx", "simeq", "sim", "asymp"), "~"),
    **dict.fromkeys(("to", "rightarrow", "longrightarrow"), "to"),
    **dict.fromkeys(("propto", "in", "mapsto", "ll", "gg", "lesssim"), "?"),
    **dict.fromkeys(("gtrsim", "implies", "iff", "Rightarrow", "Leftrightarrow", "cong", "notin", "subset"), "?"),
}


def relation_at(items: Sequence[Item], at: int) -> tuple[str, int] | None:
    r"""The relation that starts at a position, and the position behind it.

    Returns: ``"="``, ``"<"``, ``"<="``, ``">"``, ``">="``, ``"!="``, ``"~"``, ``"to"`` or ``"?"`` (not understood).
    """
    item = items[at]
    if not isinstance(item, Token):
        return None
    if item.is_mark(":") and at + 1 < len(items) and is_mark(items[at + 1], "="):
        return "=", at + 2
    if item.is_mark("=", "<", ">"):
        return item.text, at + 1
    if item.is_command("stackrel", "overset") and at + 2 < len(items):
        inner = items[at + 2]
        inside = inner.items if isinstance(inner, Group) else (inner,)
        found = relation_at(inside, 0) if inside else None
        return (found[0], at + 3) if found is not None and found[1] == len(inside) else None
    if item.kind == "command" and item.text in RELATIONS:
        return RELATIONS[item.text], at + 1
    return None


class Reader:
    """Items that are read from left to right; subclassed by the reader of atoms."""

    def __init__(self, items: Sequence[Item], words: Vocabulary, end: Place) -> None:
        self.items = list(items)
        self.words = words
        self.end = end
        self.at = 0

    # ---- helpers -------------------------------------------------------------------------------------------

    def peek(self) -> Item | None:
        """The next item; a group that is no argument prints no braces, so its items stand as if alone."""
        while self.at < len(self.items):
            item = self.items[self.at]
            if not isinstance(item, Group) or _switches(item):
                return item
            self.items[self.at : self.at + 1] = item.items
        return None

    def ahead(self, count: int) -> Item | None:
        """An item behind the next one, as it is written."""
        return self.items[self.at + count] if self.at + count < len(self.items) else None

    def take(self) -> Item:
        """The next item, taken."""
        item = self.peek()
        if item is None:
            raise LatexError(self.end, "the formula ends here; expected an expression")
        self.at += 1
        return item

    def place_of(self, item: Item | None) -> Place:
        """The place of an item; the end where there is none."""
        return self.end if item is None else item.place

    def error(self, message: str, item: Item | None = None) -> LatexError:
        """An error at an item, by default the next one."""
        return LatexError(self.place_of(item if item is not None else self.peek()), message)

    def inner(self, items: Sequence[Item], place: Place) -> Node:
        """All the items as one expression."""
        return type(self)(items, self.words, place).everything()

    def argument(self, of: Item) -> tuple[Item, ...]:
        """The argument of a command: a group or one item."""
        if self.at >= len(self.items):
            raise LatexError(of.place, f"{text_of([of])} lacks an argument")
        item = self.items[self.at]
        self.at += 1
        return item.items if isinstance(item, Group) and not _switches(item) else (item,)

    # ---- sums and products ---------------------------------------------------------------------------------

    def everything(self) -> Node:
        """The whole text as one expression."""
        if not self.items:
            raise LatexError(self.end, "an empty formula; expected an expression")
        node = self.sum()
        if self.peek() is not None:
            raise self.unexpected()
        return node

    def unexpected(self) -> LatexError:
        """The error for an item that fits nowhere."""
        item = self.peek()
        if is_mark(item, ")", "]") or is_command(item, "}", "rbrace", "rvert", "rVert", "right", "rangle"):
            return self.error(f"{text_of([item])} closes nothing")  # type: ignore[list-item]
        if is_mark(item, "&"):
            return self.error("& inside an expression; expected it between the sides of an equation")
        if isinstance(item, Token) and relation_at(self.items, self.at) is not None:
            return self.error(f"the relation {item.source} inside an expression")
        return self.error(f"{text_of([item])} is not understood here")  # type: ignore[list-item]

    def sum(self) -> Node:
        """Terms with signs."""
        place = self.place_of(self.peek())
        terms: list[Node] = []
        signs: list[int] = []
        sign = 1
        if is_mark(self.peek(), "+", "-"):
            sign = -1 if is_mark(self.take(), "-") else 1
        while True:
            terms.append(self.product())
            signs.append(sign)
            if not is_mark(self.peek(), "+", "-"):
                break
            sign = -1 if is_mark(self.take(), "-") else 1
        if len(terms) == 1 and signs == [1]:
            return terms[0]
        return Sum(tuple(terms), tuple(signs), place)

    def product(self) -> Node:
        """Factors side by side, and at most one slash, behind which one factor ends the product."""
        place = self.place_of(self.peek())
        factors: list[Node] = []
        while True:
            item = self.peek()
            explicit = is_command(item, "cdot", "times")
            if explicit:
                if not factors:
                    raise self.error(f"{text_of([self.take()])} has nothing on its left")
                self.at += 1
            elif factors and self.is_over():
                break
            elif is_mark(item, "/"):
                return self.slash(factors, place)
            elif factors and self.is_number():
                raise self.error("a number behind a factor; write it first, or with \\cdot")
            elif factors:
                self.check_application()
            factors.append(self.factor())
            if self.last_is_open:
                self.check_end_of_function()
        return factors[0] if len(factors) == 1 else Product(tuple(factors), place)

    def check_application(self) -> None:
        """``(...)(t)`` reads like a value at ``t``: one name or number in parentheses behind a factor is refused."""
        first = self.at + (1 if is_command(self.peek(), "left") else 0)
        if not is_mark(self.items[first] if first < len(self.items) else None, "("):
            return
        closing = next((i for i in range(first, len(self.items)) if is_mark(self.items[i], ")")), None)
        inside = self.items[first + 1 : closing]
        if inside and is_command(inside[-1], "right"):
            inside = inside[:-1]
        key = read_key(inside) if inside else None
        if (key is not None and key in self.words.scalars) or key_text(inside).isdigit():
            raise self.error(
                f"({text_of(inside)}) behind a factor reads like a function of it; leave out the parentheses"
            )

    last_is_open = False

    def check_end_of_function(self) -> None:
        """Behind a function or derivative without parentheses only the end of the product is clear."""
        self.last_is_open = False
        if self.is_over():
            return
        what = text_of([self.peek()])  # type: ignore[list-item]
        raise self.error(f"it is not clear whether {what} belongs to the argument before it; use parentheses")

    def slash(self, factors: list[Node], place: Place) -> Node:
        """``a/b``, where nothing follows ``b``."""
        if not factors:
            raise self.error("/ has nothing on its left")
        self.take()
        if is_mark(self.peek(), "+", "-"):
            raise self.error("a sign behind /; use parentheses")
        bottom = self.factor()
        self.last_is_open = False
        if not self.is_over():
            what = text_of([self.peek()])  # type: ignore[list-item]
            raise self.error(f"it is not clear whether {what} is below or behind the slash; use \\frac or parentheses")
        top = factors[0] if len(factors) == 1 else Product(tuple(factors), place)
        return Quotient(top, bottom, place)

    def is_over(self) -> bool:
        """Whether a product ends here."""
        item = self.peek()
        if item is None or is_mark(item, "+", "-", ",", ";", "&", ")", "]", ".") or self.closes():
            return True
        return relation_at(self.items, self.at) is not None

    def closes(self) -> bool:
        """Whether a closing fence comes next."""
        return is_command(self.peek(), "}", "rbrace", "rbrack", "rvert", "rVert", "right", "rangle", "\\")

    def is_number(self) -> bool:
        """Whether a number comes next."""
        item = self.peek()
        return isinstance(item, Token) and (item.kind == "digit" or item.is_mark("."))

    # ---- powers --------------------------------------------------------------------------------------------

    def factor(self) -> Node:
        """An atom with its exponent."""
        start = self.peek()
        if start is None or is_mark(start, "+", "-"):
            raise self.error("expected a factor here")
        node = self.atom()
        if self.last_is_open:
            return node
        return self.powers(node, start)

    def powers(self, node: Node, start: Item) -> Node:
        """The exponent behind an atom."""
        if is_mark(self.peek(), "'"):
            raise self.error("a prime here has no meaning; write the derivative as \\frac{d ...}{d ...}")
        if is_mark(self.peek(), "!"):
            raise self.error("factorials are not understood")
        if is_mark(self.peek(), "_"):
            raise self.error("a subscript at something that is no name")
        if not is_mark(self.peek(), "^"):
            return node
        mark = self.take()
        if is_command(start, "frac", "tfrac", "dfrac", "cfrac"):
            raise self.error("an exponent behind a fraction; put the fraction in parentheses", mark)
        items = self.exponent(mark)
        result: Node
        if self.is_transpose(items):
            result = Transpose(node, mark.place)
        else:
            result = Power(node, self.inner(items, mark.place), mark.place)
        if is_mark(self.peek(), "^"):
            raise self.error("a second exponent; use parentheses")
        if is_mark(self.peek(), "'", "_"):
            raise self.unexpected()
        return result

    def is_transpose(self, items: Sequence[Item]) -> bool:
        """Whether an exponent is a sign for the transpose: a T in any font, unless the table has a symbol T."""
        text = key_text(items)
        return text in ("\\top", "\\intercal") or (text == "T" and Key("T") not in self.words.scalars)

    def exponent(self, mark: Item) -> tuple[Item, ...]:
        """The items of an exponent."""
        font = self.items[self.at] if self.at < len(self.items) else None
        items = self.argument(mark)
        if is_command(font, "mathrm", "mathsf", "mathit", "operatorname") and len(items) == 1:
            inside = self.argument(font)  # type: ignore[arg-type]
            return inside if len(inside) == 1 and not is_mark(inside[0], "d") else (font, Group(inside, mark.place))  # type: ignore[return-value]
        if len(items) == 1 and isinstance(items[0], Token):
            only = items[0]
            if only.kind == "digit" and font is only and self.is_number():
                raise self.error(f"only the {only.text} is in the exponent; put braces around the number", only)
            if only.is_mark("-", "+", "*", "'", "(", "["):
                raise self.error(f"{only.text} alone in an exponent is not understood here", only)
            if only.kind == "command" and only.text in ("frac", "tfrac", "dfrac", "sqrt"):
                raise self.error(f"{only.source} in an exponent without braces", only)
        if items and is_mark(items[0], "(") and is_mark(items[-1], ")"):
            raise self.error("an exponent in parentheses reads like an index; leave out the parentheses", items[0])
        return items

    def atom(self) -> Node:
        """A name, a number, a function, a fraction, a derivative, or something in a fence."""
        raise NotImplementedError


def _switches(item: Group) -> bool:
    """Whether a group starts with a switch of fonts, such as ``{\\rm QK}``: it is read as one name."""
    return bool(item.items) and is_command(item.items[0], "rm", "bf", "it", "cal", "sf")
