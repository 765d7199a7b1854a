r"""Names, numbers, functions, fractions, derivatives, integrals and fences of a formula.

The symbol table decides what a name is; a name that is not in it is refused with the nearest that is.
"""

from __future__ import annotations

from fractions import Fraction

from theory.latex.parser.derivatives import Derivatives
from theory.latex.parser.nodes import Constant, Derivative, Letter, Name, Node, Number, Power, Quotient
from theory.latex.parser.vocabulary import FUNCTIONS, MOVING, NAMED_FUNCTIONS, Key, read_base, read_key, unknown
from theory.latex.source.commands import ACCENTS
from theory.latex.source.items import (
    Environment,
    Group,
    Item,
    TextItem,
    is_command,
    is_letter,
    is_mark,
    key_text,
    text_of,
)
from theory.latex.source.tokens import LatexError, Place, Token

__all__ = ["FormulaReader"]

_FRACTIONS = ("frac", "tfrac", "dfrac", "cfrac")
_CONSTANTS = {"e": "e", "\\mathrm{e}": "e", "\\pi": "pi", "\\infty": "oo"}
_LONGEST = 200
_UNSUPPORTED = (
    *("sum", "prod", "lim", "sup", "inf", "det", "nabla", "binom", "dbinom", "tbinom", "pm", "mp", "iint", "oint"),
    *("Re", "Im", "gcd", "Pr", "arg", "langle", "dots", "ldots", "cdots", "vdots", "div", "ast", "star", "circ"),
    *("forall", "exists", "over", "atop", "choose", "substack", "lg", "hbar", "middle"),
)


class FormulaReader(Derivatives):
    """Reads a formula whose relations are split off."""

    def atom(self) -> Node:
        """The next atom."""
        item = self.peek()
        if item is None:
            raise self.error("the formula ends here; expected a factor")
        if isinstance(item, TextItem):
            return self.name()
        if isinstance(item, Environment):
            raise self.error(f"\\begin{{{item.name}}} inside an expression is not understood")
        if isinstance(item, Token) and (item.kind == "digit" or item.is_mark(".")):
            return self.number()
        fence = self.fence(item)
        if fence is not None:
            return fence
        if isinstance(item, Token) and item.kind == "command":
            return self.command(item)
        if isinstance(item, Token) and item.kind == "letter" and self.is_differential():
            return self.inline_derivative()
        return self.name()

    def command(self, item: Token) -> Node:
        """An atom that starts with a command."""
        if item.text in _FRACTIONS:
            return self.fraction()
        if item.text == "sqrt":
            return self.root()
        if item.text == "int":
            return self.integral()
        if item.text == "partial" and is_mark(self.ahead(1), "_") and self.is_differential():
            return self.operator(item)
        if self.is_differential():
            return self.inline_derivative()
        if item.text in _UNSUPPORTED and f"\\{item.text}" not in self.words.bases:
            raise self.error(f"\\{item.text} is not understood")
        return self.name()

    # ---- numbers and roots ---------------------------------------------------------------------------------

    def number(self) -> Node:
        """Digits with at most one decimal point."""
        place = self.place_of(self.peek())
        digits = ""
        while self.is_number():
            following = self.ahead(1)
            last_point = is_mark(self.peek(), ".") and not (isinstance(following, Token) and following.kind == "digit")
            if last_point and digits:
                break
            if digits and not self.adjacent():
                raise self.error("a number behind a number; write \\cdot between them")
            digits += self.take().text  # type: ignore[union-attr]
        if is_letter(self.peek(), "e") and not is_mark(self.ahead(1), "^") and Key("e") not in self.words.scalars:
            raise self.error(f"{digits}e reads like a power of ten; write 10^ or put the number last with \\cdot")
        if digits.count(".") > 1 or digits[0] == ".":
            raise LatexError(place, f"{digits} is no number; expected digits with at most one point inside")
        if len(digits) > _LONGEST:
            raise LatexError(place, f"a number of more than {_LONGEST} digits")
        return Number(Fraction(digits), place)

    def adjacent(self) -> bool:
        """Whether the next character stands right behind the last one, or both come from one macro."""
        last, item = self.items[self.at - 1].place, self.items[self.at].place
        return last.line == item.line and 0 <= item.column - last.column <= 1

    def root(self) -> Node:
        r"""``\sqrt[n]{x}``."""
        of = self.take()
        order: tuple[Item, ...] = ()
        if self.at < len(self.items) and is_mark(self.items[self.at], "["):
            end = next((i for i in range(self.at, len(self.items)) if is_mark(self.items[i], "]")), None)
            if end is None:
                raise self.error("this [ has no ]")
            order = tuple(self.items[self.at + 1 : end])
            self.at = end + 1
        inside = self.inner(self.argument(of), of.place)
        two: Node = Number(Fraction(2), of.place)
        index = self.inner(order, of.place) if order else two
        return Power(inside, Quotient(Number(Fraction(1), of.place), index, of.place), of.place)

    # ---- names ---------------------------------------------------------------------------------------------

    def name(self) -> Node:
        """A name of the symbol table, a constant, a function with its arguments, or a dotted name."""
        item = self.peek()
        place = self.place_of(item)
        found = read_base(self.items, self.at)
        if found is None:
            raise self.error(f"{text_of([item])} is not understood" if item is not None else "expected a name")
        base, after = found
        dotted = self.dotted(item)
        if dotted and Key(base) not in self.words.scalars:
            return self.dot(dotted)
        self.at = after
        key, used = self.scripts(base)
        node = self.known(key, place, used)
        if node is None:
            return self.no_name(item, key, place)
        return node

    def dotted(self, item: Item | None) -> int:
        """The number of dots over a name."""
        return 1 if is_command(item, "dot") else 2 if is_command(item, "ddot") else 0

    def dot(self, order: int) -> Node:
        r"""``\dot{\mu}_{\mathrm{OV}}`` and ``\dot{\mu_{\mathrm{OV}}}`` alike."""
        of = self.take()
        inside = self.argument(of)
        if is_command(inside[0] if inside else None, *ACCENTS, "mathrm", "mathbf") and len(inside) == 1:
            inside = (*inside, Group(self.argument(of), of.place))
        self.items[self.at : self.at] = inside
        node = self.name()
        if not isinstance(node, Name | Letter) or (isinstance(node, Name) and node.start):
            raise LatexError(of.place, "a dot over something that is no name")
        return Derivative(node, self.time(of.place), order, False, of.place)

    def time(self, place: Place) -> Name:
        """The time, the variable of dots and primes."""
        symbol = next((s for s in self.words.latex if s.name == "t"), None)
        if symbol is None:
            raise LatexError(place, "a derivative in time, but the symbol table has no t")
        return Name(symbol, self.words.latex[symbol], place)

    def scripts(self, base: str) -> tuple[Key, int]:
        """The longest known name at this place, and how many items its scripts take."""
        found: dict[str, str] = {"_": "", "^": ""}
        best: tuple[Key, int] | None = None
        at, order = self.at, ""
        while at + 1 < len(self.items) and is_mark(self.items[at], "_", "^", "'"):
            mark = self.items[at].text  # type: ignore[union-attr]
            if mark == "'":
                break
            if found[mark]:
                raise LatexError(self.items[at].place, f"a second {mark} at one name; use braces")
            taken = self.script_length(at + 1)
            found[mark] = key_text(self.items[at + 1 : at + 1 + taken])
            order += mark
            at += 1 + taken
            key = Key(base, found["_"], found["^"])
            if key in self.words.scalars or key in self.words.starts or key in self.words.letters:
                best = key, at
        if best is None and "^" in order and found["_"]:
            best = self.swapped(Key(base, found["_"]), order)
        if best is None and found["_"] and order[0] == "_":
            best = Key(base, found["_"]), self.at + 1 + self.script_length(self.at + 1)
        key, after = best or (Key(base), self.at)
        used = after - self.at
        self.at = after
        return key, used

    def swapped(self, key: Key, order: str) -> tuple[Key, int] | None:
        r"""``x^2_{a}`` is ``x_{a}^2``: the exponent is moved behind the subscript."""
        if order != "^_":
            return None
        first = 1 + self.script_length(self.at + 1)
        second = 1 + self.script_length(self.at + first + 1)
        upper = self.items[self.at : self.at + first]
        lower = self.items[self.at + first : self.at + first + second]
        self.items[self.at : self.at + first + second] = [*lower, *upper]
        return key, self.at + second

    def script_length(self, at: int) -> int:
        """How many items a script takes: two where it is a font and its argument without braces."""
        fonts = ("mathrm", "mathit", "mathsf", "mathbf", "mathcal", "operatorname")
        return 2 if is_command(self.items[at], *fonts) and at + 1 < len(self.items) else 1

    def known(self, key: Key, place: Place, used: int) -> Node | None:
        """The node of a key; None where the symbol table has no such name."""
        words = self.words
        if key in words.scalars:
            symbol = words.scalars[key]
            return self.moving(Name(symbol, words.latex.get(symbol, str(key)), place))
        if key in words.starts:
            symbol = words.starts[key]
            return Name(symbol, words.latex[symbol], place, start=True)
        if key in words.letters:
            return Letter(words.letters[key], str(key), place)
        lambert = self.lambert(key)
        if lambert is not None:
            return self.call(lambert, place, bare=False)
        if key.base in NAMED_FUNCTIONS and not key.sub:
            return self.call(NAMED_FUNCTIONS[key.base], place, bare=False)
        if key.base in FUNCTIONS and not key.sup:
            return self.function(FUNCTIONS[key.base], key.sub, place)
        if str(key) in _CONSTANTS:
            return Constant(_CONSTANTS[str(key)], place)
        return None

    def lambert(self, key: Key) -> str | None:
        """The branch of the Lambert function that a key names."""
        if key.base not in ("W", "\\mathrm{W}", "\\mathrm{LambertW}") or key.sup:
            return None
        return {"0": "LambertW", "-1": "LambertW_-1"}.get(key.sub)

    def no_name(self, item: Item | None, key: Key, place: Place) -> Node:
        """Refuse a name."""
        known_base = key.base in self.words.bases
        simple = isinstance(item, Token) and item.kind == "command" and key.base == f"\\{item.text}"
        if simple and not known_base and not key.sub:
            near = self.words.nearest_command(key.base[1:])
            raise LatexError(place, f"unknown command {key.base}; the nearest known is {near}")
        raise unknown(self.words, key, place)

    def moving(self, name: Name) -> Node:
        """A name with what may stand behind it: a prime, ``(t)``, ``(0)``."""
        primes = 0
        while is_mark(self.peek(), "'") or (is_mark(self.peek(), "^") and self.is_prime()):
            primes += 1
            self.at += 1 if is_mark(self.peek(), "'") else 2
        moves = name.symbol.name in MOVING
        if primes and not moves:
            raise self.error(f"a prime at {name.latex}, which does not move in time")
        name = self.at_time(name, moves)
        if not primes:
            return name
        if name.start:
            raise LatexError(name.place, "a derivative of a value at time 0")
        return Derivative(name, self.time(name.place), primes, False, name.place)

    def is_prime(self) -> bool:
        r"""Whether ``^\prime`` comes next."""
        following = self.ahead(1)
        inside = following.items if isinstance(following, Group) else (following,)
        return len(inside) == 1 and is_command(inside[0], "prime")

    def at_time(self, name: Name, moves: bool) -> Name:
        """A name with ``(t)`` or ``(0)`` behind it; any other single name or number in parentheses is refused."""
        if not self.opens():
            return name
        before = self.at
        inside = self.fenced()
        after, self.at = self.at, before
        key = read_key(inside)
        symbol = self.words.scalars.get(key) if key is not None else None
        text = key_text(inside)
        if moves and symbol is not None and symbol.name == "t":
            self.at = after
            return name
        if moves and text == "0":
            self.at = after
            return Name(name.symbol, name.latex, name.place, start=True)
        if symbol is not None or text.isdigit():
            raise LatexError(name.place, f"{name.latex}({text}) reads like a function of {text}, which it is not")
        return name
