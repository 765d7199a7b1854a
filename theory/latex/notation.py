r"""The symbol table of a paper: how each symbol is written, and in which style.

A `Notation` decides every name that is printed and every name that is read; nothing is guessed from the text of a name.

>>> from theory.symbols import mu_QK
>>> notation = Notation()
>>> print(notation.latex(mu_QK), notation.symbol(r"\mu_{QK}"))
\mu_{\mathrm{QK}} mu_QK
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from sympy import Function, Symbol

from theory.frozen import FrozenMap
from theory.latex.names import MATRICES, SCALARS, default_latex, name_key, spelled_out, spellings

__all__ = ["Notation", "Rate", "load_notation"]

DerivativeStyle = Literal["fraction", "dot"]
LogStyle = Literal["log", "ln"]
ExponentialStyle = Literal["power", "exp"]
DifferentialStyle = Literal["upright", "italic"]

_STYLES = {
    "derivative": DerivativeStyle,
    "log": LogStyle,
    "exponential": ExponentialStyle,
    "differential": DifferentialStyle,
}

#: Symbols from left to right in a product; sums follow their last symbol.
ORDER = (
    *("eta_OV", "eta_QK", "eta", "h", "r", "kappa", "gamma", "K", "M", "b", "N", "sigma_OV", "sigma_QK", "sigma"),
    *("norm2_OV", "norm2_QK", "c_OV", "c_QK", "c", "m", "n", "beta", "lambda"),
    *("alpha_0", "alpha", "ell", "mu_0", "v_0", "mu_OV", "mu_QK", "mu", "g", "t"),
)

#: Factors of one group stay together in a fraction: rates and sizes before what changes in time.
GROUPS = (
    (
        *("eta_OV", "eta_QK", "eta", "h", "r", "kappa", "gamma", "K", "M", "b", "N"),
        *("sigma_OV", "sigma_QK", "sigma", "norm2_OV", "norm2_QK"),
    ),
    ("m", "n", "alpha_0", "alpha", "mu_OV", "mu_QK", "mu", "t"),
)

#: Names that mean something else in every paper that is read.
_RESERVED = (
    *("e", r"\log", r"\ln", r"\exp", r"\frac", r"\sqrt", r"\operatorname", r"\mathrm"),
    r"\left",
    r"\right",
    r"\,",
)


class Rate(Function):
    """``d x/d t`` as it is written on the left of an equation, not computed.

    ``Rate(x, t)`` has two arguments, the quantity and the variable.

    >>> from theory.symbols import mu_OV, t
    >>> Rate(mu_OV, t)
    Rate(mu_OV, t)
    """

    nargs = 2
    is_real = True


@dataclass(frozen=True)
class Notation:
    r"""How a paper writes the theory.

    Parameters: ``names``, symbols (or their names) to LaTeX; ``matrices``, matrix letters to LaTeX; ``aliases``, other
    spellings that are read; ``derivative``, ``"fraction"`` or ``"dot"``; ``log``, ``"log"`` or ``"ln"``;
    ``exponential``, ``"power"`` (``e^x``) or ``"exp"``; ``differential``, an ``"upright"`` or ``"italic"`` d;
    ``order``, names from left to right in a product; ``groups``, names whose factors stay together in one fraction;
    ``prefix``, of every macro and label that documents define; ``overrides``, equations by id in the author's own
    LaTeX.

    Raises: ``ValueError`` for an unknown name (with the nearest), an unknown style, or two symbols of one LaTeX name.

    >>> from theory.symbols import mu_QK
    >>> Notation(names={"mu_QK": r"\muQK"}).symbol(r"\muQK") == mu_QK
    True
    >>> Notation(names={"mu_QK": r"\alpha"})
    Traceback (most recent call last):
    ...
    ValueError: names: mu_QK and alpha are both written \alpha; expected a name of its own for each
    """

    names: Mapping[Any, str] = FrozenMap({})
    matrices: Mapping[str, str] = FrozenMap({})
    aliases: Mapping[Any, tuple[str, ...]] = FrozenMap({})
    derivative: DerivativeStyle = "fraction"
    log: LogStyle = "log"
    exponential: ExponentialStyle = "power"
    differential: DifferentialStyle = "upright"
    order: tuple[str, ...] = ORDER
    groups: tuple[tuple[str, ...], ...] = GROUPS
    prefix: str = "gl"
    overrides: Mapping[str, str] = FrozenMap({})

    def __post_init__(self) -> None:
        for name, style in _STYLES.items():
            _check_choice(name, getattr(self, name), get_args(style))
        if not re.fullmatch(r"[A-Za-z]{2,12}", self.prefix):
            raise ValueError(f"prefix={self.prefix!r}: expected 2 to 12 letters, such as 'gl'")
        object.__setattr__(self, "names", FrozenMap({_known(k): v for k, v in self.names.items()}))
        object.__setattr__(self, "aliases", FrozenMap({_known(k): tuple(v) for k, v in self.aliases.items()}))
        object.__setattr__(self, "matrices", FrozenMap(dict(self.matrices)))
        object.__setattr__(self, "overrides", FrozenMap(dict(self.overrides)))
        object.__setattr__(self, "order", tuple(self.order))
        object.__setattr__(self, "groups", tuple(tuple(g) for g in self.groups))
        for symbol, latex in [*self.names.items(), *((s, a) for s, found in self.aliases.items() for a in found)]:
            _check_name(str(symbol), latex)
        for letter, latex in self.matrices.items():
            _check_name(letter, latex)
        _ = self.spellings

    @cached_property
    def table(self) -> Mapping[Symbol, str]:
        """Every scalar symbol with its LaTeX name."""
        own = {s.name for s in self.names if s not in SCALARS.values()}
        return FrozenMap({**{s: default_latex(s.name) for s in SCALARS.values() if s.name not in own}, **self.names})

    @cached_property
    def matrix_table(self) -> Mapping[str, str]:
        """Every matrix letter with its LaTeX name."""
        return FrozenMap({**MATRICES, **self.matrices})

    @cached_property
    def spellings(self) -> Mapping[str, Symbol]:
        r"""Every way to write a scalar, as `names.name_key` has it, with its symbol: ``\mu_{QK}`` beside the name
        itself, where that means nothing else.
        """
        found: dict[str, Symbol] = {}
        for symbol, latex in self.table.items():
            if symbol not in self.names:
                _put(found, latex, symbol)
        for symbol, latex in self.names.items():
            _put(found, latex, symbol)
        for symbol, given in self.aliases.items():
            for latex in given:
                _put(found, latex, symbol)
        for symbol, latex in self.table.items():
            for name in (latex, default_latex(symbol.name), spelled_out(symbol.name)):
                for other in (name, *spellings(name)):
                    found.setdefault(name_key(other), symbol)
        return FrozenMap(found)

    @cached_property
    def matrix_spellings(self) -> Mapping[str, str]:
        """Every way to write a matrix, as `names.name_key` has it, with its letter."""
        found: dict[str, str] = {}
        for letter, latex in self.matrix_table.items():
            for other in (latex, *spellings(latex)):
                found.setdefault(name_key(other), letter)
        return FrozenMap(found)

    def latex(self, symbol: Symbol) -> str:
        r"""The LaTeX name of a scalar symbol; a symbol that is not in the table is written by `names.default_latex`.

        Raises: ``ValueError`` where that name belongs to another symbol: give it one of its own in ``names``.

        >>> from sympy import Symbol
        >>> print(Notation().latex(Symbol("beta_max")))
        \beta_{\mathrm{max}}
        """
        if symbol in self.table:
            return self.table[symbol]
        latex = default_latex(symbol.name)
        other = self.spellings.get(name_key(latex))
        if other is not None:
            raise ValueError(
                f"symbol {symbol}: {latex} is the name of {other} with other assumptions; use theory.symbols or "
                "give it a name of its own in Notation(names=...)"
            )
        return latex

    def symbol(self, latex: str) -> Symbol:
        r"""The scalar symbol of a LaTeX name.

        Raises: ``ValueError`` with the nearest name.

        >>> Notation().symbol(r"\mu_{QL}")
        Traceback (most recent call last):
        ...
        ValueError: unknown symbol \mu_{QL}; did you mean \mu_{\mathrm{QK}}?
        """
        found: Symbol | None = self.spellings.get(name_key(latex))
        if found is None:
            raise ValueError(f"unknown symbol {latex}; did you mean {self.nearest(latex)}?")
        return found

    def nearest(self, latex: str) -> str:
        """The LaTeX name of the known symbol whose spelling is nearest."""
        near = get_close_matches(name_key(latex), list(self.spellings), 1, 0.0)[0]
        return self.table[self.spellings[near]]

    def matrix(self, letter: str) -> str:
        """The LaTeX name of a matrix letter."""
        return self.matrix_table[letter] if letter in self.matrix_table else default_latex(letter)

    def with_symbols(self, symbols: Mapping[Symbol, str] | Iterable[Symbol]) -> Notation:
        """The same notation with more symbols: given names, or those of `names.default_latex`."""
        given = symbols if isinstance(symbols, Mapping) else {s: default_latex(s.name) for s in symbols}
        return replace(self, names={**self.names, **given})

    def rank(self, symbol: Symbol) -> int:
        """The place of a symbol in a product; unknown ones come last."""
        return self.order.index(symbol.name) if symbol.name in self.order else len(self.order)

    def group(self, symbol: Symbol) -> int:
        """The number of the group of a symbol; symbols in no group belong to the last."""
        return next((i for i, g in enumerate(self.groups) if symbol.name in g), len(self.groups) - 1)


def _put(found: dict[str, Symbol], latex: str, symbol: Symbol) -> None:
    other = found.setdefault(name_key(latex), symbol)
    if other != symbol:
        raise ValueError(f"names: {symbol} and {other} are both written {latex}; expected a name of its own for each")


def _known(name: Any) -> Symbol:
    """A symbol, or the symbol of the theory with this name."""
    if isinstance(name, Symbol):
        return name
    if name not in SCALARS:
        near = get_close_matches(str(name), list(SCALARS), 1, 0.0)[0]
        raise ValueError(f"names: no symbol {name!r} in the theory; did you mean {near!r}?")
    return SCALARS[name]


def _check_choice(what: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        near = get_close_matches(str(value), choices, 1, 0.0)[0]
        raise ValueError(f"{what}={value!r}: expected {' or '.join(map(repr, choices))}; did you mean {near!r}?")


def _check_name(symbol: str, latex: Any) -> None:
    if not isinstance(latex, str) or not latex.strip():
        raise TypeError(f"names: {symbol}={latex!r}: expected LaTeX text, such as '\\mu'")
    if latex.strip() in _RESERVED:
        raise ValueError(f"names: {symbol} can't be written {latex}: it has a meaning of its own in formulas")
    outside = latex
    while (shorter := re.sub(r"\{[^{}]*\}", "", outside)) != outside:
        outside = shorter
    if re.search(r"[=<>&%#$~+\-*/(){}]|\\\\|^[\d^_]", outside):
        raise ValueError(f"names: {symbol}={latex!r}: expected one name, such as '\\mu_{{\\mathrm{{QK}}}}'")


def load_notation(path: str | Path) -> Notation:
    """Read a `Notation` from a TOML file with its fields as keys.

    Raises: ``ValueError`` for text that is not TOML and for an unknown key, with the nearest; ``OSError`` where the
    file can't be read.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "notation.toml"
    >>> _ = file.write_text('derivative = "dot"', encoding="utf-8")
    >>> load_notation(file).derivative
    'dot'
    """
    import tomllib

    try:
        given = tomllib.loads(Path(path).read_bytes().decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected a TOML file in UTF-8: {error}") from None
    known = [f.name for f in fields(Notation)]
    for key, value in given.items():
        if key not in known:
            near = get_close_matches(key, known, 1, 0.0)[0]
            raise ValueError(f"{path}: unknown key {key!r}; did you mean {near!r}?")
        expected = type(getattr(Notation, key, "")) if key in _STYLES or key == "prefix" else None
        shape = expected or (list if key in ("order", "groups") else dict)
        if not isinstance(value, shape):
            raise ValueError(f"{path}: {key}={value!r}: expected {_SHAPES[shape]}")
    return Notation(**given)


_SHAPES: Mapping[Any, str] = {str: "a text", list: "a list", dict: "a table"}
