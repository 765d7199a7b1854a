r"""Line breaks at the top-level ``+``, ``-`` and relation signs of a formula that is wider than its column.

Widths are estimated in units of the font size, from the tokens of the formula as displayed.

>>> width(r"\frac{a}{b+c}") < width("a b + c d") < width(r"\eta_{\mathrm{QK}} + \eta_{\mathrm{OV}} + 1")
True
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from theory.latex.printer.expressions import Term

__all__ = ["COLUMN", "broken", "rows", "width"]

#: Width of a column of a two-column paper (3.25 inches at 10 points), less an equation number.
COLUMN = 20.5

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[^\s]")
_WIDE = {"+": 1.22, "-": 1.22, "=": 1.33, "<": 1.33, ">": 1.33, r"\sim": 1.33, r"\ge": 1.33, r"\le": 1.33, r"\to": 1.5}
_OTHER = {r"\,": 0.17, r"\cdot": 0.72, r"\int": 1.0, r"\quad": 1.0, r"\qquad": 2.0, r"\top": 0.78, r"\infty": 1.0}
_NOTHING = frozenset(
    (r"\left", r"\right", r"\mathrm", r"\mathbf", r"\text", r"\operatorname", r"\dot", r"\displaystyle")
)
_DELIMITERS = frozenset((*"()[]|,.;!", r"\lvert", r"\rvert", r"\lVert", r"\rVert"))


def width(latex: str) -> float:
    """The estimated width of a formula in units of the font size."""
    tokens = _TOKEN.findall(latex)
    return _span(tokens, 0, len(tokens), 0)


def _group(tokens: Sequence[str], start: int) -> int:
    """The end of the argument that begins here."""
    if start >= len(tokens) or tokens[start] != "{":
        return min(start + 1, len(tokens))
    depth = 0
    for i in range(start, len(tokens)):
        depth += (tokens[i] == "{") - (tokens[i] == "}")
        if depth == 0:
            return i + 1
    return len(tokens)


def _span(tokens: Sequence[str], start: int, end: int, nested: int) -> float:
    total, i = 0.0, start
    while i < end:
        token = tokens[i]
        if token == r"\frac":
            middle = _group(tokens, i + 1)
            last = _group(tokens, middle)
            size = 0.72 if nested else 1.0
            above, below = (_span(tokens, a, b, nested + 1) for a, b in ((i + 1, middle), (middle, last)))
            total, i = total + size * max(above, below) + 0.24, last
        elif token in "^_":
            after = _group(tokens, i + 1)
            script = 0.72 * _span(tokens, i + 1, after, nested + 1)
            if after < end and tokens[after] in "^_":
                last = _group(tokens, after + 1)
                script = max(script, 0.72 * _span(tokens, after + 1, last, nested + 1))
                after = last
            total, i = total + script + 0.05, after
        else:
            total, i = total + _token(token), i + 1
    return total


def _token(token: str) -> float:
    if token in _WIDE:
        return _WIDE[token]
    if token in _OTHER:
        return _OTHER[token]
    if token in _NOTHING or token in "{}":
        return 0.0
    if token in _DELIMITERS:
        return 0.42
    if token == r"\sqrt":
        return 0.9
    if token.isdigit():
        return 0.5
    if token in (r"\log", r"\ln", r"\exp"):
        return 1.5
    return 0.8 if token.isupper() else 0.6


def rows(left: str, sign: str, terms: Sequence[Term], column: float = COLUMN) -> list[tuple[str, str]]:
    r"""The rows of an alignment: what stands before ``&`` and what behind it.

    Parameters: ``left`` side, relation ``sign``, summands ``terms`` of the right side, width of the ``column``.

    >>> rows("y", "=", [Term("+", "a"), Term("-", "b")])
    [('y', '=a-b')]
    >>> rows("y", "=", [Term("+", "a"), Term("-", "b")], column=4)
    [('y', '=a'), ('', '\\quad-b')]
    >>> rows("y", "=", [Term("+", "a b c")], column=3)
    [('', 'y'), ('', '\\quad=a b c')]
    """
    first = "-" if terms and terms[0].sign == "-" else ""
    line = sign + (" " if sign.startswith("\\") else "") + first + (terms[0].text if terms else "")
    before, found = left, list[tuple[str, str]]()
    used = width(left)
    if left and used + width(line) > column:
        found.append(("", left))
        before, line, used = "", rf"\quad{line}", 0.0
    for term in terms[1:]:
        longer = f"{line}{term.sign}{term.text}"
        if used + width(longer) > column:
            found.append((before, line))
            before, line = "", rf"\quad{term.sign}{term.text}"
        else:
            line = longer
    return [*found, (before, line)]


def broken(left: str, sign: str, terms: Sequence[Term], column: float = COLUMN) -> str:
    r"""A formula without environment around it, on one line where it fits, otherwise in ``aligned``.

    >>> print(broken("y", "=", [Term("+", "a"), Term("-", "b")], column=4))
    \begin{aligned}
    y&=a\\
    &\quad-b
    \end{aligned}
    """
    found = rows(left, sign, terms, column)
    if len(found) == 1:
        return "".join(found[0])
    body = "\\\\\n".join(f"{before}&{line}" for before, line in found)
    return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"
