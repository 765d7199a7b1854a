r"""The symbol table as the parser needs it: every spelling of a name as a key of its base and its scripts.

Fonts, braces and blanks inside a script do not matter (``\mu_{\mathrm{QK}}``, ``\mu_{QK}``, ``\mu_\text{QK}``);
the font of the base does (``\mathbf{W}`` is not ``W``). The author's macros are expanded in the table as in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from sympy import Symbol

from theory.latex.names import SCALARS, default_latex
from theory.latex.source.commands import ACCENTS, LATEX_COMMANDS
from theory.latex.source.items import Group, Item, TextItem, is_command, is_mark, key_text, nest
from theory.latex.source.macros import Macros, expand
from theory.latex.source.tokens import LatexError, Place, Token, tokenize
from theory.symbols import SYMBOLS

if TYPE_CHECKING:
    from theory.latex.notation import Notation

__all__ = [
    "CONSTANT",
    "FORMULA",
    "FUNCTIONS",
    "NAMED_FUNCTIONS",
    "Key",
    "Vocabulary",
    "next_step",
    "read_base",
    "read_key",
    "start_symbol",
    "vocabulary",
]


class Key(NamedTuple):
    """A name as base, subscript and superscript."""

    base: str
    sub: str = ""
    sup: str = ""

    def __str__(self) -> str:
        return self.base + (f"_{{{self.sub}}}" if self.sub else "") + (f"^{{{self.sup}}}" if self.sup else "")


#: Functions of the theory that are read as such and expanded by their definition.
NAMED_FUNCTIONS = {"\\Phi": "Phi", "\\Psi": "Psi"}

_ROMAN = ("mathrm", "operatorname", "rm")
_BOLD = ("boldsymbol", "bm", "pmb")
_OTHER_FONTS = ("mathit", "mathbf", "mathsf", "mathtt", "mathcal", "mathbb", "mathfrak", "mathscr", "bf", "cal", "sf")
_PLAIN = ("exp", "log", "sin", "cos", "tan", "cot", "sinh", "cosh", "tanh", "coth", "max", "min")

#: Base of a function -> its name; scripts are looked at by the parser.
FUNCTIONS: Mapping[str, str] = {
    **{f"\\{name}": name for name in _PLAIN},
    **{f"\\mathrm{{{name}}}": name for name in _PLAIN},
    "\\ln": "log",
    "\\mathrm{ln}": "log",
    "\\mathrm{Ei}": "Ei",
    "\\mathrm{sign}": "sign",
    "\\mathrm{sgn}": "sign",
    "\\mathrm{LambertW}": "LambertW",
    "\\mathrm{erf}": "erf",
    "\\mathrm{sech}": "sech",
    "\\mathrm{csch}": "csch",
    "\\sec": "sec",
    "\\csc": "csc",
    "\\arcsin": "asin",
    "\\arccos": "acos",
    "\\arctan": "atan",
    **{
        f"\\mathrm{{{prefix}{name}}}": f"a{name}"
        for name in ("sinh", "cosh", "tanh")
        for prefix in ("a", "ar", "arc", "arg")
    },
}

#: A constant of integration, whose value is not said.
CONSTANT = Symbol("const", real=True)
#: What a formula that stands alone, without a left side, is equal to.
FORMULA = Symbol("the formula", real=True)

#: The denominator of the velocities.
DENOMINATOR = Symbol("D", positive=True)

#: Quantities that move in time: ``(t)`` behind them says nothing new, ``(0)`` is their value at the start.
MOVING = ("mu_OV", "mu_QK", "mu", "alpha", "L", "ell", "A")


def start_symbol(symbol: Symbol) -> Symbol:
    """The value of a moving quantity at time 0, as a symbol.

    >>> from theory.symbols import mu_QK
    >>> start_symbol(mu_QK)
    mu_QK_0
    """
    known = SCALARS.get(f"{symbol.name}_0")
    if known is not None:
        return known
    return Symbol(f"{symbol.name}_0", positive=True) if symbol.is_positive else Symbol(f"{symbol.name}_0", real=True)


def read_base(items: Sequence[Item], at: int) -> tuple[str, int] | None:
    """The base of a name that starts at a position, and the position behind it; None where there is none."""
    if at >= len(items):
        return None
    item = items[at]
    if isinstance(item, Group):
        if item.items and is_command(item.items[0], "rm", "bf", "it", "cal", "sf"):
            font = item.items[0].text  # type: ignore[union-attr]
            name = "mathrm" if font == "rm" else f"math{font}"
            return f"\\{name}{{{key_text(item.items)}}}", at + 1
        inner = read_base(item.items, 0)
        return (inner[0], at + 1) if inner is not None and inner[1] == len(item.items) else None
    if isinstance(item, TextItem):
        words = item.words.removesuffix(".")
        return (f"\\mathrm{{{words}}}", at + 1) if words.isalpha() and not item.formulas else None
    if not isinstance(item, Token) or item.kind not in ("letter", "command"):
        return None
    if item.kind == "letter":
        return item.text, at + 1
    return _command_base(items, at, item)


def _command_base(items: Sequence[Item], at: int, item: Token) -> tuple[str, int] | None:
    name = item.text
    if name in (*_ROMAN, *_BOLD, *_OTHER_FONTS, *ACCENTS):
        if at + 1 >= len(items):
            return None
        canonical = "mathrm" if name in _ROMAN else "boldsymbol" if name in _BOLD else name
        inside = items[at + 1]
        text = key_text([inside])
        if name in ACCENTS and isinstance(inside, Token) and inside.kind == "command":
            inner = read_base(items, at + 1)
            return None if inner is None else (f"\\{canonical}{{{inner[0]}}}", inner[1])
        return f"\\{canonical}{{{text}}}", at + 2
    return (f"\\{name}", at + 1) if name.isalpha() else None


def read_key(items: Sequence[Item]) -> Key | None:
    """The key of a name that takes all the items; None where they are no name."""
    found = read_base(items, 0)
    if found is None:
        return None
    base, at = found
    scripts = {"_": "", "^": ""}
    while at < len(items):
        if is_mark(items[at], "'"):
            scripts["^"] += "'"
            at += 1
        elif is_mark(items[at], "_", "^") and at + 1 < len(items) and not scripts[items[at].text]:  # type: ignore[union-attr]
            mark = items[at].text  # type: ignore[union-attr]
            taken = 2 if is_command(items[at + 1], *_ROMAN, *_OTHER_FONTS) and at + 2 < len(items) else 1
            scripts[mark] = key_text(items[at + 1 : at + 1 + taken])
            at += 1 + taken
        else:
            return None
    return Key(base, scripts["_"], scripts["^"])


@dataclass(frozen=True)
class Vocabulary:
    """Scalars, matrices and norms by key; ``latex`` is how each symbol is shown."""

    scalars: Mapping[Key, Symbol]
    starts: Mapping[Key, Symbol]
    letters: Mapping[Key, str]
    norms: Mapping[Key, Symbol]
    latex: Mapping[Symbol, str]
    bases: frozenset[str] = field(default_factory=frozenset)

    def nearest(self, key: Key) -> str:
        """The known name that is spelled most alike, with its meaning."""
        spelled = {str(k): self.latex[s] for k, s in self.scalars.items()} | {str(k): str(k) for k in self.letters}
        spelled |= {f: f for f in FUNCTIONS if "mathrm" not in f or f in ("\\mathrm{Ei}",)}
        near = get_close_matches(str(key), sorted(spelled), 1, 0.0)[0]
        name = next((s.name for s, text in self.latex.items() if text == spelled[near]), "")
        meaning = f", {SYMBOLS[name].meaning}" if name in SYMBOLS else ""
        return f"{spelled[near]}{meaning}"

    def nearest_command(self, name: str) -> str:
        """The known command that is spelled most alike."""
        own = {k.base[1:] for k in self.scalars if k.base[:1] == "\\" and k.base[1:].isalpha()}
        return "\\" + get_close_matches(name, sorted(own | LATEX_COMMANDS), 1, 0.0)[0]


_PLACE = Place("notation", 1, 1)


def _parsed(latex: str, macros: Macros) -> tuple[Item, ...]:
    return nest(expand(tokenize(latex, "notation"), macros), _PLACE)


def _norm_key(items: Sequence[Item]) -> Key | None:
    r"""The key of the matrix in ``\lVert E\rVert^2``."""
    for left, right in (("lVert", "rVert"), ("|", "|"), ("Vert", "Vert")):
        if len(items) > 4 and is_command(items[0], left) and is_command(items[-3], right):
            return read_key(items[1:-3]) if key_text(items[-2:]) == "^2" else None
    return None


def next_step(letter: str) -> str:
    """The name of a matrix after one step."""
    return f"{letter}^+"


class _Builder:
    """Collects spellings; two symbols with one spelling are an error."""

    def __init__(self, macros: Macros) -> None:
        self.macros = macros
        self.scalars: dict[Key, Symbol] = {}
        self.norms: dict[Key, Symbol] = {}
        self.letters: dict[Key, str] = {}

    def add(self, symbol: Symbol, latex: str, required: bool) -> None:
        """One spelling of a scalar."""
        items = _parsed(latex, self.macros)
        key = read_key(items)
        table: dict[Key, Symbol] = self.scalars
        if key is None:
            key, table = _norm_key(items), self.norms
        if key is None:
            raise ValueError(f"names: {symbol} is written {latex}; expected a letter or command with scripts")
        other = table.get(key)
        if other is None or not required:
            table.setdefault(key, symbol)
        elif other != symbol:
            raise ValueError(
                f"names: {symbol} and {other} are both read from {latex}; expected a name of its own for each"
            )

    def constants(self) -> None:
        """An unspecified constant and the denominator ``D``, where their names are free."""
        for base in ("C", "\\mathrm{const}", "\\mathrm{constant}", "\\mathrm{const.}"):
            if Key(base) not in self.scalars and Key(base) not in self.letters:
                self.scalars[Key(base)] = CONSTANT
        if Key("D") not in self.scalars and Key("D") not in self.letters:
            self.scalars[Key("D")] = DENOMINATOR

    def letter(self, letter: str, latex: str) -> None:
        """One spelling of a matrix."""
        key = read_key(_parsed(latex, self.macros))
        if key is None or key in self.scalars:
            return
        self.letters.setdefault(key, letter)
        after = key._replace(sup="+")
        if not key.sup and letter not in ("I", "1") and after not in self.scalars:
            self.letters.setdefault(after, next_step(letter))


def vocabulary(notation: Notation, macros: Macros | None = None) -> Vocabulary:
    r"""The symbol table of a `Notation`, with the macros that are in force where it is used.

    >>> from theory.latex.notation import Notation
    >>> print(vocabulary(Notation()).scalars[Key("\\mu", "QK")])
    mu_QK
    """
    return _plain(notation) if not macros else _built(notation, macros)


@lru_cache(maxsize=32)
def _plain(notation: Notation) -> Vocabulary:
    """The symbol table of a notation without macros."""
    return _built(notation, {})


def _built(notation: Notation, macros: Macros) -> Vocabulary:
    builder = _Builder(macros)
    for symbol, latex in notation.table.items():
        builder.add(symbol, latex, required=True)
    for symbol, spellings in notation.aliases.items():
        for latex in spellings:
            builder.add(symbol, latex, required=True)
    for symbol in notation.table:
        builder.add(symbol, default_latex(symbol.name), required=False)
    for letter, latex in notation.matrix_table.items():
        builder.letter(letter, latex)
    builder.constants()
    starts: dict[Key, Symbol] = {}
    for key, symbol in builder.scalars.items():
        if symbol.name in MOVING and symbol.name != "mu":
            starts |= dict.fromkeys(_start_keys(key), symbol)
    starts = {key: symbol for key, symbol in starts.items() if key not in builder.scalars}
    bases = frozenset(key.base for table in (builder.scalars, builder.letters, starts) for key in table)
    shown = {**notation.table, CONSTANT: "\\text{const}", DENOMINATOR: "D"}
    return Vocabulary(builder.scalars, starts, builder.letters, builder.norms, shown, bases)


def _start_keys(key: Key) -> Iterable[Key]:
    if key.sup:
        return ()
    sub = f"{key.sub},0" if key.sub else "0"
    return (Key(key.base, sub), Key(key.base, key.sub, "0"), Key(key.base, key.sub, "(0)"))


def unknown(words: Vocabulary, key: Key, place: Place) -> LatexError:
    """The error for a name that is not in the table."""
    return LatexError(place, f"unknown symbol {key}; the nearest known is {words.nearest(key)}")
