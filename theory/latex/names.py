r"""LaTeX names: how a symbol is written by default, which spellings mean the same name, and the symbols there are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sympy import Symbol

from theory.frozen import FrozenMap
from theory.symbols import SYMBOLS

__all__ = ["MATRICES", "SCALARS", "default_latex", "name_key", "spelled_out", "spellings"]

_GREEK = frozenset(
    (
        *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu"),
        *("xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
        *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega"),
    )
)
_WRITTEN = {
    "ell": r"\ell",
    "epsilon": r"\varepsilon",
    "mu_next": r"\mu_{+}",
    **{f"e_{kind}": rf"\xi_{{\mathrm{{{kind}}}}}" for kind in ("same", "other")},
    **{f"W_OV_{kind}": rf"w_{{\mathrm{{{kind}}}}}" for kind in ("same", "other", "noise")},
    "W_QK_informative": r"q_{\mathrm{info}}",
    **{f"W_QK_{kind}": rf"q_{{\mathrm{{{kind}}}}}" for kind in ("same", "other", "noise")},
    "norm2_OV": r"\lVert E_{\mathrm{OV}}\rVert^2",
    "norm2_QK": r"\lVert E_{\mathrm{QK}}\rVert^2",
}

_POSITIVE = (
    *("r", "kappa", "sigma_OV", "sigma_QK", "norm2_OV", "norm2_QK", "L", "v_0", "alpha_0", "h", "lambda", "beta"),
    *("eta", "sigma", "sigma_1", "sigma_2", "epsilon", "tau"),
)
_REAL = (
    *(
        "mu_0",
        "q_0",
        "ell",
        "A",
        "mu",
        "c",
        "g",
        "u",
        "v",
        "p",
        "s",
        "q",
        "x",
        "y",
        "z",
        "a",
        "f_OV",
        "f_QK",
        "mu_next",
        "e_same",
        "e_other",
    ),
    *("W_OV_same", "W_OV_other", "W_OV_noise"),
    *("W_QK_informative", "W_QK_noise", "W_QK_same", "W_QK_other"),
)

#: Scalars by name: those of `theory.symbols`, then those that claims use beside them.
SCALARS: Mapping[str, Symbol] = FrozenMap(
    {
        **{name: info.symbol for name, info in SYMBOLS.items()},
        **{name: Symbol(name, positive=True) for name in _POSITIVE},
        **{name: Symbol(name, real=True) for name in _REAL},
    }
)

#: Matrix letters of `theory.words` and of the line.
MATRICES: Mapping[str, str] = FrozenMap(
    {
        **{letter: letter for letter in "UVWGEABPI"},
        "1": r"\mathbf{1}",
        "B_W": "B_W",
        **{
            f"{letter}_{circuit}": rf"{letter}_{{\mathrm{{{circuit}}}}}" for letter in "WEG" for circuit in ("OV", "QK")
        },
    }
)


def _part(text: str) -> str:
    """One part of a subscript: Greek letters, single letters and numbers as they are, words in roman."""
    if text in _GREEK:
        return f"\\{text}"
    return text if len(text) == 1 or text.isdigit() else rf"\mathrm{{{text}}}"


def default_latex(name: str) -> str:
    r"""The LaTeX of a name: Greek letters, roman words, subscripts after underscores.

    Raises: ``ValueError`` for a name that is not made of letters and digits.

    >>> print(default_latex("mu_QK"), default_latex("mu_0"), default_latex("W_OV_same"), default_latex("speed"))
    \mu_{\mathrm{QK}} \mu_0 w_{\mathrm{same}} \mathrm{speed}
    """
    if name in SYMBOLS:
        return SYMBOLS[name].latex
    return _WRITTEN[name] if name in _WRITTEN else spelled_out(name)


def spelled_out(name: str) -> str:
    r"""The LaTeX of a name by its parts alone.

    Raises: ``ValueError`` for a name that is not made of letters and digits.

    >>> print(spelled_out("W_OV_same"))
    W_{\mathrm{OV},\mathrm{same}}
    """
    if not re.fullmatch(r"[A-Za-z]+[0-9]*(_[A-Za-z0-9]+)*", name):
        raise ValueError(f"symbol {name!r}: expected letters, digits, underscores; name it in Notation(names=...)")
    head, *rest = name.split("_")
    letters = head.rstrip("0123456789")
    if letters != head:
        rest.insert(0, head[len(letters) :])
    base = _part(letters)
    if not rest:
        return base
    subscript = ",".join(_part(part) for part in rest)
    return f"{base}_{subscript}" if len(subscript) == 1 else f"{base}_{{{subscript}}}"


_ROMAN = (r"\mathrm", r"\text", r"\textrm", r"\textnormal", r"\operatorname", r"\rm")
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\S")


def name_key(latex: str) -> str:
    r"""One text for all spellings of a name that differ in blanks, braces or the command for roman letters.

    >>> name_key(r"\mu_{\text{QK}}") == name_key(r"\mu _ \mathrm {QK}") == name_key(r"{\mu}_{\rm QK}")
    True
    >>> name_key(r"\mu_{QK}") == name_key(r"\mu_{\mathrm{QK}}")
    False
    """
    return _joined(_items(_TOKEN.findall(latex)))


def _items(tokens: list[str]) -> list[str]:
    """Tokens and groups in canonical form; braces without a partner stay."""
    found: list[str] = []
    opened: list[int] = []
    for token in tokens:
        if token == "}" and opened:
            start = opened.pop()
            inner = found[start + 1 :]
            found[start:] = [_group(inner)]
        else:
            if token == "{":
                opened.append(len(found))
            found.append(token)
            continue
        if len(found) > 1 and found[-2] in _ROMAN:
            found[-2:] = [_roman(found[-1])]
    return found


def _group(inner: list[str]) -> str:
    if inner and inner[0] == r"\rm":
        return _roman(_joined(inner[1:]))
    return inner[0] if len(inner) == 1 else f"{{{_joined(inner)}}}"


def _roman(text: str) -> str:
    return rf"\mathrm{{{text.removeprefix('{').removesuffix('}')}}}"


def _joined(items: list[str]) -> str:
    """Items without blanks, but one between a command and a letter."""
    text = ""
    for item in items:
        text += " " if re.search(r"\\[A-Za-z]+$", text) and item[:1].isalpha() else ""
        text += item
    return text


def spellings(latex: str) -> Iterator[str]:
    r"""Other ways to write a name with a roman subscript.

    >>> list(spellings(r"\mu_{\mathrm{QK}}"))
    ['\\mu_{QK}']
    """
    if r"_{\mathrm{" in latex and "^" not in latex:
        yield re.sub(r"\\mathrm\{([^{}]*)\}", r"\1", latex)
