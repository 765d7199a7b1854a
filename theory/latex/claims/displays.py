r"""Equations of claims as LaTeX: bare bodies, displays of several, and where they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from theory.latex.claims.equations import Equation
from theory.latex.notation import Notation
from theory.latex.printer import sum_terms, to_latex
from theory.latex.printer.expressions import Term
from theory.latex.printer.linebreak import COLUMN, broken, rows, width
from theory.latex.printer.sentences import typeset

__all__ = ["SETTING_WORDS", "body", "condition", "display", "inline"]

_SIGNS: Mapping[str, str] = {
    **{"=": "=", "~": r"\sim", ">": ">", "<": "<", "to": r"\to", ">=": r"\ge", "<=": r"\le", "!=": r"\ne", "const": "="}
}

#: Settings in words.
SETTING_WORDS: Mapping[str, str] = {
    "shared, N": "shared queries, finite $N$",
    "shared, N = oo": "shared queries, $N = oo$",
    "per_class, N": "class-specific queries, finite $N$",
    "per_class, N = oo": "class-specific queries, $N = oo$",
}
_SHORT: Mapping[str, str] = {
    **{"shared, N": "shared", "shared, N = oo": "shared, $N = oo$"},
    **{"per_class, N": "class-specific", "per_class, N = oo": "class-specific, $N = oo$"},
}


#: Room for the number of an equation, in units of the font size.
_NUMBER = 2.2


def _sides(equation: Equation, notation: Notation) -> tuple[str, str, tuple[Term, ...]]:
    """Left side, sign and summands of the right side; a formula without a left side stands alone."""
    sign = _SIGNS[equation.relation]
    if equation.relation == "const":
        return to_latex(equation.left, notation), sign, (Term("+", r"\mathrm{const}"),)
    if equation.left is None:
        return "", "", sum_terms(equation.right, notation)
    return to_latex(equation.left, notation), sign, sum_terms(equation.right, notation)


def _rows(equation: Equation, notation: Notation, column: float) -> list[tuple[str, str]]:
    left, sign, terms = _sides(equation, notation)
    if equation.relation == "const":  # the left side is long: break that
        found = rows("", "", (*sum_terms(equation.left, notation), Term(sign, terms[0].text)), column)
        return [("", line) for _, line in found]
    return rows(left, sign, terms, column)


def inline(equation: Equation, notation: Notation) -> str:
    """An equation on one line."""
    left, sign, terms = _sides(equation, notation)
    return "".join(rows(left, sign, terms, float("inf"))[0])


def body(equation: Equation, notation: Notation, column: float = COLUMN) -> str:
    """An equation without environment or number, for ``equation`` or a cell of ``align``."""
    if equation.id in notation.overrides:
        return notation.overrides[equation.id]
    left, sign, terms = _sides(equation, notation)
    if equation.relation == "const":
        return broken("", "", (*sum_terms(equation.left, notation), Term(sign, terms[0].text)), column)
    return broken(left, sign, terms, column)


def condition(equation: Equation, notation: Notation) -> str:
    """When an equation holds, for math mode: the branch, or the setting in words; empty where it always does."""
    words = equation.note or _SHORT.get(equation.setting, "")
    parts = [to_latex(relation, notation) for relation in equation.branch]
    return ",\\ ".join([*parts, *([rf"\text{{{typeset(words, notation)}}}"] if words else [])])


def display(equations: Iterable[Equation], notation: Notation, column: float = COLUMN) -> str:
    """Several equations in one unnumbered display, aligned at their relations; there is room for no number."""
    column += _NUMBER
    lines: list[tuple[str, str]] = []
    for equation in equations:
        if equation.id in notation.overrides:
            found = [("", notation.overrides[equation.id])]
        else:
            found = _rows(equation, notation, column)
        where = condition(equation, notation)
        if where:
            before, last = found[-1]
            if width(before + last) + width(where) + 3 <= column:
                found[-1] = (before, rf"{last}\quad({where})")
            else:
                found.append(("", rf"\quad({where})"))
        lines += found
    if any(not before and not line.startswith("\\quad") for before, line in lines):
        lines = [("", before + line) for before, line in lines]
    if len(lines) == 1:
        return f"\\begin{{equation*}}\n{''.join(lines[0])}\n\\end{{equation*}}"
    rows_ = "\\\\\n".join(f"{before}&{_unary(line) if not before else line}" for before, line in lines)
    return f"\\begin{{align*}}\n{rows_}\n\\end{{align*}}"


def _unary(line: str) -> str:
    """A minus sign at the beginning of a cell is no binary one."""
    return "{-}" + line[1:] if line.startswith("-") else line
