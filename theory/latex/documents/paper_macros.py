r"""The macros of a set of documents: names of symbols, references, titles and verdicts of claims.

All are defined by ``\providecommand`` or under names that only this package uses, so an author's own come first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from theory.latex.documents.statements import prose
from theory.latex.names import SCALARS
from theory.latex.notation import Notation
from theory.latex.printer.sentences import escape
from theory.registry import Claim
from theory.symbols import SYMBOLS

__all__ = ["Verdicts", "author_macros", "macros", "title"]

#: By claim id: the verdict and how it was reached.
Verdicts = Mapping[str, tuple[str, str]]

_DIGITS = {
    **{"0": "Zero", "1": "One", "2": "Two", "3": "Three", "4": "Four"},
    **{"5": "Five", "6": "Six", "7": "Seven", "8": "Eight", "9": "Nine"},
}


def title(claim: Claim) -> str:
    """The title of a claim in LaTeX."""
    known = prose().get(claim.id, {}) if claim.source != "user" else {}
    return escape(known.get("title") or claim.title or claim.id)


def macro_name(prefix: str, name: str) -> str:
    r"""The macro of a symbol.

    >>> print(macro_name("gl", "mu_QK"), macro_name("gl", "mu_0"))
    \glmuQK \glmuZero
    """
    return f"\\{prefix}" + "".join(_DIGITS.get(c, c) for c in name if c != "_")


def macros(claims: Iterable[Claim], verdicts: Verdicts, notation: Notation) -> str:
    r"""The file of macros, for the preamble or before the first body.

    ``\glmuQK`` and the like name symbols; ``\glref{ID}`` refers to a claim by the author's label ``gl:ID`` or, where
    there is none, by its title; ``\gltitle{ID}``, ``\glverdict{ID}`` and ``\glhow{ID}`` are what was computed of it;
    ``\glcheck{ID}`` shows the verdict behind a statement and may be defined empty before.
    """
    p = notation.prefix
    lines = []
    for name in SYMBOLS:
        latex = notation.latex(SCALARS[name])
        lines.append(rf"\providecommand{{{macro_name(p, name)}}}{{\ensuremath{{{latex}}}}}")
    for what in ("title", "verdict", "how"):
        lines.append(rf"\providecommand{{\{p}{what}}}[1]{{\csname {p}-{what}-#1\endcsname}}")
    lines += [
        rf"\providecommand{{\{p}ref}}[1]{{\ifcsname r@{p}:#1\endcsname",
        rf"  \ifcsname cref\endcsname\cref{{{p}:#1}}\else Theorem~\ref{{{p}:#1}}\fi",
        rf"  \else ``\{p}title{{#1}}''\fi}}",
        rf"\providecommand{{\{p}check}}[1]{{\par{{\noindent\normalfont\small\raggedright",
        rf"  [\{p}verdict{{#1}}: \{p}how{{#1}}]\par}}}}",
    ]
    for claim in claims:
        verdict, how = verdicts[claim.id]
        for what, text in (("title", title(claim)), ("verdict", escape(verdict)), ("how", escape(how))):
            lines.append(rf"\expandafter\def\csname {p}-{what}-{claim.id}\endcsname{{{text}}}")
    return "\n".join(lines)


def author_macros(notation: Notation) -> str:
    """Definitions of the commands that an author's notation uses, for a document that stands alone."""
    found = []
    defaults = Notation()
    for symbol, latex in notation.names.items():
        if re.fullmatch(r"\\[A-Za-z]+", latex) and symbol in defaults.table and latex != defaults.latex(symbol):
            found.append(rf"\providecommand{{{latex}}}{{{defaults.latex(symbol)}}}")
    return "\n".join(found)
