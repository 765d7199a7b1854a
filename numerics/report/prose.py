r"""LaTeX text of the derivations as HTML: sentences, formulas, displays, references to claims.

>>> print(prose(r"by \claimref{balanced-root}, 5\%"))
<p>by <a href="#claim-balanced-root">balanced-root</a>, 5%</p>
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from numerics.report.mathml import mathml
from numerics.report.plain import anchor

__all__ = ["formula_html", "prose"]

_DISPLAY = re.compile(r"\\begin\{(equation\*?|align\*?)\}(.*?)\\end\{\1\}", re.DOTALL)
_PIECE = re.compile(
    r"\$([^$]*)\$|\\[A-Za-z]*ref\{([^{}]*)\}|\\emph\{([^{}]*)\}|\\(text[a-z]+)\{\}|\\([&%#_{}])|([^\\$]+)|(.)",
    re.DOTALL,
)
_CHARACTERS = {"textless": "<", "textgreater": ">", "textbar": "|", "textbackslash": "\\"}
_CHARACTERS |= {"textasciitilde": "~", "textasciicircum": "^"}


def formula_html(latex: str, block: bool = False) -> str:
    """A formula as MathML, or its LaTeX as it is where that is beyond what is known."""
    try:
        return mathml(latex, block)
    except (ValueError, RecursionError):
        return f"<code>{escape(latex)}</code>"


def prose(latex: str) -> str:
    """Paragraphs of a text with formulas."""
    parts, at = [], 0
    for found in _DISPLAY.finditer(latex):
        parts += [_paragraph(latex[at : found.start()]), _display(found)]
        at = found.end()
    return "".join([*parts, _paragraph(latex[at:])])


def _display(found: Any) -> str:
    body = found[2].strip()
    if found[1].startswith("align"):
        body = rf"\begin{{aligned}}{body}\end{{aligned}}"
    return f'<div class="display">{formula_html(body, block=True)}</div>'


def _paragraph(latex: str) -> str:
    text = "".join(_piece(found) for found in _PIECE.finditer(" ".join(latex.split()))).strip()
    return f"<p>{text}</p>" if text else ""


def _piece(found: Any) -> str:
    formula, claim, stressed, character, special, plain, other = found.groups()
    if formula is not None:
        return formula_html(formula)
    if claim is not None:
        return f'<a href="#{anchor(claim)}">{escape(claim)}</a>'
    if stressed is not None:
        return f"<em>{escape(stressed)}</em>"
    return escape(_CHARACTERS.get(character, "") if character else special or plain or other or "")
