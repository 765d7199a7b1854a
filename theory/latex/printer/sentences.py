r"""Sentences with formulas: text is written with ``$...$`` around formulas in the names of the theory, and typeset in a
notation.

>>> from theory.latex.notation import Notation
>>> print(typeset("where $U^T U = V^T V$ and $mu_OV >= 0$, 5%", Notation(names={"mu_OV": r"\muOV"})))
where $U^{\top} U = V^{\top} V$ and $\muOV\ge 0$, 5\%
"""

from __future__ import annotations

import re
from collections.abc import Callable

from theory.latex.names import SCALARS
from theory.latex.notation import Notation

__all__ = ["escape", "formula", "paragraph", "typeset"]

_SPECIAL = {
    **{c: f"\\{c}" for c in "&%#_{}"},
    **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
}
_SIGNS = {">=": r"\ge ", "<=": r"\le ", "!=": r"\ne ", "->": r"\to ", "~": r"\sim ", "oo": r"\infty", "...": r"\dots "}
_PIECE = re.compile(r"\\[A-Za-z]+|\|\|.*?\|\||>=|<=|!=|->|\.\.\.|[A-Za-z]+[0-9]*(?:_[A-Za-z0-9]+)*|\^T|.")


def escape(text: str) -> str:
    """Plain text for LaTeX."""
    return "".join(_SPECIAL.get(c, c) for c in text)


def formula(text: str, notation: Notation) -> str:
    r"""A formula in the names of the theory, such as ``W_OV = mu_OV E_OV``; LaTeX commands in it stay.

    >>> print(formula("W_OV = mu_OV E_OV", Notation()))
    W_{\mathrm{OV}} = \mu_{\mathrm{OV}} E_{\mathrm{OV}}
    """
    found: list[str] = []
    for piece in _PIECE.findall(text):
        if piece in _SIGNS:
            if found and found[-1] == " ":
                found.pop()
            found.append(_SIGNS[piece])
        elif piece == "^T":
            found.append(r"^{\top}")
        elif piece == " " and found and (found[-1].endswith(" ") or found[-1].startswith("\\")):
            found.append("" if found[-1].endswith(" ") else " ")
        elif piece == "ones":
            found.append(notation.matrix("1"))
        elif piece in notation.matrix_table and piece not in SCALARS and piece != "1":
            found.append(notation.matrix(piece))
        elif piece in SCALARS:
            found.append(notation.latex(SCALARS[piece]))
        else:
            found.append(piece)
    return _tight("".join(found))


def _tight(text: str) -> str:
    """No blanks that TeX does not need."""
    text = re.sub(r"(?<=[A-Za-z}]) (?=\\[A-Za-z])", " ", text)
    return re.sub(r" +", " ", text).strip()


def typeset(text: str, notation: Notation) -> str:
    """A sentence; what is not between dollars is plain text.

    Raises: ``ValueError`` for a dollar without its partner.
    """
    parts = text.split("$")
    if len(parts) % 2 == 0:
        raise ValueError(f"sentence {text!r}: expected $ in pairs around formulas")
    return "".join(f"${formula(p, notation)}$" if i % 2 else escape(p) for i, p in enumerate(parts))


_PLACE = re.compile(r"\[\[([^]]*)\]\]")
#: The LaTeX of a place by its name, and whether it is displayed.
Place = Callable[[str], tuple[str, bool]]


def paragraph(template: str, place: Place, notation: Notation) -> str:
    """Sentences with formulas in their places ``[[NAME]]``; blanks and line ends do not matter.

    >>> paragraph("Then [[x]] holds.", lambda name: (f"${name}$", False), Notation())
    'Then $x$ holds.'
    """
    first, *rest = _PLACE.split(" ".join(template.split()))
    out = typeset(first, notation)
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        shown, displayed = place(name)
        if displayed:
            mark = text[0] if text[:1] in tuple(".,;") else ""
            head, _, end = shown.rpartition("\n")
            out = f"{out.rstrip()}\n{head}{mark}\n{end}\n" + typeset(text[len(mark) :].lstrip(), notation)
        else:
            out += shown + typeset(text, notation)
    return _wrap_text(out.strip())


def _wrap_text(text: str) -> str:
    """Long lines of text broken, those of displays left as they are."""
    lines, inside = [], False
    for line in text.splitlines():
        inside = inside or line.startswith("\\begin")
        lines.append(line if inside else _wrapped(line))
        inside = inside and not line.startswith("\\end{equation*}") and not line.startswith("\\end{align*}")
    return "\n".join(lines)


def _wrapped(line: str, length: int = 100) -> str:
    """A line broken at blanks outside formulas."""
    if len(line) <= length:
        return line
    lines = [""]
    for word in re.findall(r"(?:\$[^$]*\$|\S)+", line):
        if lines[-1] and len(lines[-1]) + len(word) >= length:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
