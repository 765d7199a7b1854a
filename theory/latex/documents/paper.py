r"""A paper that stands alone and takes everything from the files beside it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

from theory.latex.documents.files import Figure
from theory.latex.documents.paper_macros import author_macros, title
from theory.latex.notation import Notation
from theory.latex.printer.sentences import paragraph
from theory.registry import Claim

__all__ = ["paper"]

_PREAMBLE = r"""\documentclass[10pt,twocolumn]{article}
\usepackage[letterpaper,textwidth=6.75in,textheight=9in,columnsep=0.25in]{geometry}
\usepackage{amsmath,amssymb,amsthm}
\usepackage{booktabs,graphicx,microtype}
\newtheorem{theorem}{Theorem}
\setlength{\emergencystretch}{2em}
\allowdisplaybreaks
"""

_SECTIONS = (
    ("The line and the flow on it", "lines"),
    ("Factorized circuits", "factors"),
    ("First integrals", "integrals"),
    ("Closed forms", "solutions"),
    ("What follows", "qualitative"),
    ("Beyond the flow", "optimizers"),
)


@lru_cache(maxsize=1)
def _words() -> Mapping[str, str]:
    return tomllib.loads((files("theory.latex.documents") / "paper.toml").read_text(encoding="utf-8"))


def _sections(claims: Sequence[Claim]) -> Iterable[tuple[str, list[Claim]]]:
    """The claims under the headings of the theory; those of a user stand last."""
    from importlib import import_module

    left = list(claims)
    for heading, module in _SECTIONS:
        known = {c.id for c in import_module(f"theory.paper.{module}").CLAIMS}
        found = [c for c in left if c.id in known and c.source != "user"]
        left = [c for c in left if c not in found]
        if found:
            yield heading, found
    if left:
        yield "Further statements", left


def _theorem(claim: Claim, p: str) -> str:
    return "\n".join(
        [
            rf"\begin{{theorem}}[{title(claim)}]\label{{{p}:{claim.id}}}",
            rf"\input{{{p}-statement-{claim.id}}}",
            r"\end{theorem}",
            r"\begin{proof}",
            rf"\input{{{p}-proof-{claim.id}}}",
            r"\end{proof}",
            "",
        ]
    )


def _table(p: str, name: str, caption: str, size: str = r"\small") -> str:
    return "\n".join(
        [
            r"\begin{table*}[tp]",
            rf"\centering{size}\caption{{{caption}}}\label{{{p}-table:{name}}}\smallskip",
            rf"\input{{{p}-table-{name}}}",
            r"\end{table*}",
            "",
        ]
    )


def _figure(p: str, figure: Figure) -> str:
    return "\n".join(
        [
            r"\begin{figure*}[tp]",
            rf"\centering\includegraphics{{{p}-figure-{figure.name}.pdf}}",
            rf"\caption{{{figure.caption}}}\label{{{p}-figure:{figure.name}}}",
            r"\end{figure*}",
            "",
        ]
    )


def _reference(notation: Notation, text: str) -> str:
    """A paragraph with references to claims."""
    return paragraph(text, lambda place: (f"\\{notation.prefix}ref{{{place.removeprefix('ref:')}}}", False), notation)


def paper(claims: Sequence[Claim], figures: Sequence[Figure], notation: Notation) -> str:
    """The source of a two-column article with every statement, proof, table and figure.

    Parameters: ``claims``, in order; ``figures``; ``notation``. Returns: LaTeX that inputs the files of
    `theory.latex.documents.files.bodies`.
    """
    p, words = notation.prefix, _words()
    parts = [
        _PREAMBLE + author_macros(notation),
        rf"\input{{{p}-macros}}",
        r"\title{Gradient flow of attention on the line}",
        r"\author{}",
        r"\date{}",
        r"\begin{document}",
        r"\maketitle",
        r"\begin{abstract}",
        _reference(notation, words["abstract"]),
        r"\end{abstract}",
        r"\section{Setting}",
        _reference(notation, words["setting"]),
        rf"Table~\ref{{{p}-table:symbols}} lists the symbols, Table~\ref{{{p}-table:settings}} the norms,",
        rf"Table~\ref{{{p}-table:integrals}} the first integrals and Table~\ref{{{p}-table:verdicts}} the verdicts.",
        *(rf"See Figure~\ref{{{p}-figure:{f.name}}}." for f in figures),
        "",
        _table(p, "symbols", "Symbols"),
        _table(p, "settings", "Norms and singular values by setting"),
        _table(p, "integrals", "First integrals $y - s x$ for positive coordinates"),
        *(_figure(p, f) for f in figures),
    ]
    for heading, found in _sections(claims):
        parts += [rf"\section{{{heading}}}", *(_theorem(claim, p) for claim in found)]
    parts += [
        _table(p, "verdicts", "Every claim with its verdict and how it was reached", r"\footnotesize"),
        r"\end{document}",
        "",
    ]
    return "\n".join(parts)
