"""Tables for booktabs: symbols, settings, first integrals, verdicts. Each is one whole ``tabular``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from theory.latex.claims.displays import SETTING_WORDS
from theory.latex.claims.folding import definitions_of, fold
from theory.latex.names import SCALARS
from theory.latex.notation import Notation
from theory.latex.printer import to_latex
from theory.latex.printer.sentences import escape, formula, typeset
from theory.paper.settings import SETTINGS
from theory.registry import Claim, find
from theory.symbols import SYMBOLS

__all__ = ["integrals_table", "settings_table", "symbols_table", "verdicts_table"]


#: Room above and below rows of displayed fractions.
_STRUT, _APART = r"\rule{0pt}{3.6ex}", "[1.8ex]"


def tabular(columns: str, head: Sequence[str], rows: Iterable[Sequence[str]], apart: str = "") -> str:
    r"""A ``tabular`` with a head between rules; ``apart``, such as ``[1ex]``, is put between rows.

    >>> print(tabular("ll", ["a", "b"], [["1", "2"]]).splitlines()[2])
    a & b \\
    """
    lines = [rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule", " & ".join(head) + r" \\", r"\midrule"]
    lines += [(_STRUT if apart else "") + " & ".join(row) + rf" \\{apart}" for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def symbols_table(notation: Notation) -> str:
    """The symbols of the theory with their ranges and meanings."""

    def space(text: str) -> str:
        formulas = text.partition(";")[0]
        if "<" in formulas:
            return f"${formula(formulas, notation)}$"
        kind, _, rest = formulas.partition(" ")
        return f"{kind} ${formula(rest, notation)}$" if rest[:1] == ">" else escape(formulas)

    rows = [[f"${notation.latex(info.symbol)}$", space(info.space), escape(info.meaning)] for info in SYMBOLS.values()]
    return tabular("lll", ["symbol", "range", "meaning"], rows)


def _displayed(value: Any, notation: Notation) -> str:
    return rf"$\displaystyle {to_latex(value, notation)}$"


def settings_table(notation: Notation) -> str:
    """Norms and singular values of the directions, and the ratio of the circuits' speeds, in every setting."""
    named = [SCALARS[name] for name in ("norm2_QK", "sigma_QK", "kappa")]
    rows = []
    for setting in SETTINGS:
        values = definitions_of(setting.label)
        cells = [_displayed(values[s], notation) if s in values else "several" for s in named]
        rows.append([typeset(SETTING_WORDS[setting.label], notation), *cells])
    return tabular("llll", ["setting", *(f"${notation.latex(s)}$" for s in named)], rows, _APART)


def integrals_table(notation: Notation) -> str:
    """The first integrals ``y - s x`` of the four parameterizations, for positive coordinates."""
    rows = []
    for code in ("caco", "cafo", "faco", "fafo"):
        stated = find(f"integral-{code}").stated
        y, x = (next(v for key, v in stated.items() if key.startswith(letter)) for letter in ("y", "x"))
        labels = [s.label for s in SETTINGS if f"slope [{s.label}]" in stated]
        slope = fold({label: stated[f"slope [{label}]"] for label in labels})
        shown = slope.value if slope is not None else stated[f"slope [{labels[0]}]"]
        rows.append([code.upper(), *(_displayed(v, notation) for v in (y, x, shown))])
    return tabular("llll", ["model", "$y$", "$x$", "slope $s$"], rows, _APART)


def verdicts_table(claims: Iterable[Claim], verdicts: Mapping[str, tuple[str, str]], notation: Notation) -> str:
    """Every claim with its verdict and how it was reached.

    Parameters: ``claims``; ``verdicts``, by id the verdict and how; ``notation``, whose prefix the references have.
    """
    rows = [
        [rf"\{notation.prefix}ref{{{claim.id}}}", rf"\texttt{{{escape(claim.id)}}}", *map(escape, verdicts[claim.id])]
        for claim in claims
    ]
    return tabular("llll", ["claim", "id", "verdict", "how"], rows)
