r"""LaTeX formulas as presentation MathML, which browsers show without any library.

Knows what the printers of this package and of SymPy write; everything else is refused by name.

>>> print(mathml(r"\frac{1}{M b}"))
<math alttext="\frac{1}{M b}"><mfrac><mn>1</mn><mrow><mi>M</mi><mi>b</mi></mrow></mfrac></math>
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from numerics.backends.printer import words

__all__ = ["GREEK", "mathml"]

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.DOTALL)
_NAMES_OF_LETTERS = """
    alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi
    varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell
"""
#: Letters by their names in LaTeX.
GREEK: Mapping[str, str] = dict(zip(_NAMES_OF_LETTERS.split(), "αβγδϵεζηθικλμνξπρστυϕφχψωΓΔΘΛΞΠΣΥΦΨΩℓ", strict=True))
_NAMES = words("""
    log ln exp sin cos tan cot sec csc asin acos atan sinh cosh tanh coth max min sign lim det arcsin arccos arctan arg
    dim Pr
""")
_OPERATORS: Mapping[str, str] = {
    **{"cdot": "·", "times": "×", "pm": "±", "ge": "≥", "geq": "≥", "le": "≤", "leq": "≤", "ne": "≠", "neq": "≠"},
    **{"sim": "∼", "to": "→", "in": "∈", "int": "∫", "sum": "∑", "prod": "∏", "partial": "∂", "wedge": "∧", "vee": "∨"},
    **{"lvert": "|", "rvert": "|", "lVert": "‖", "rVert": "‖", "mid": "|", "top": "⊤", "dots": "…", "ldots": "…"},
    **{"cdots": "⋯", "infty": "∞", "neg": "¬", "approx": "≈", "propto": "∝", "langle": "⟨", "rangle": "⟩"},
    **{"lfloor": "⌊", "rfloor": "⌋", "lbrace": "{", "rbrace": "}", "ll": "≪", "gg": "≫", "quad": "", "qquad": ""},
}
_LETTERS = frozenset(("infty", "top", "partial"))
_SPACES = {
    **{r"\,": "0.17em", r"\:": "0.22em", r"\;": "0.28em", r"\ ": "0.3em", r"\quad": "1em", r"\qquad": "2em"},
    **{"~": "0.3em", r"\!": "0"},
}
_ACCENTS = {"dot": "˙", "ddot": "¨", "hat": "^", "bar": "¯", "tilde": "~", "overline": "¯", "vec": "→"}
_FONTS = {"mathrm": "normal", "operatorname": "normal", "mathbf": "bold", "boldsymbol": "bold", "mathit": "italic"}
_FONTS |= {"mathcal": "normal", "mathbb": "normal"}
_IGNORED = frozenset((r"\displaystyle", r"\textstyle", r"\limits", r"\nolimits", r"\big", r"\Big", r"\bigl", r"\bigr"))
_TIGHT = {"lspace": "0", "rspace": "0"}
_HIGH = re.compile("<m(frac|sup|subsup|sqrt|root|over|table)")
_CLOSING = {"(": ")", "[": "]"}
_ENVIRONMENTS = frozenset(
    ("aligned", "align", "align*", "matrix", "cases", "equation", "equation*", "split", "gathered")
)


def mathml(latex: str, block: bool = False) -> str:
    """MathML of a formula in LaTeX.

    Parameters: ``latex``, without dollars, perhaps an ``align*`` or ``aligned`` environment; ``block``, as a display.
    Returns: a ``math`` element with the LaTeX as its alternative text.
    Raises: ``ValueError`` naming a command that is not known, or a brace that is not closed.
    """
    reader = _Reader(_TOKEN.findall(latex))
    rows = reader.table(None)
    display = ' display="block"' if block else ""
    return f'<math{display} alttext="{escape(" ".join(latex.split()))}">{_table(rows)}</math>'


def _row(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"


def _table(rows: list[list[list[str]]]) -> str:
    if len(rows) == 1 and len(rows[0]) == 1:
        parts = rows[0][0]
        return "".join(parts)
    lines = ("".join(f"<mtd>{''.join(cell)}</mtd>" for cell in row) for row in rows)
    return f'<mtable class="aligned">{"".join(f"<mtr>{line}</mtr>" for line in lines)}</mtable>'


def _operator(text: str, **attributes: str) -> str:
    given = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<mo{given}>{escape(text)}</mo>"


def _stretch(inside: str) -> dict[str, str]:
    """Brackets around what is no higher than a letter do not stretch: the larger signs of fonts stand wide apart."""
    return {"stretchy": "true" if _HIGH.search(inside) else "false"}


def _space(width: str) -> str:
    return f'<mspace width="{width}"></mspace>'


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0

    def peek(self) -> str:
        while self.at < len(self.tokens) and self.tokens[self.at].isspace():
            self.at += 1
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def raw(self) -> str:
        """The text of an argument in braces, as it is written."""
        if self.next() != "{":
            raise ValueError("formula: expected { after a command that takes text")
        depth, begin = 1, self.at
        while self.at < len(self.tokens):
            depth += (self.tokens[self.at] == "{") - (self.tokens[self.at] == "}")
            self.at += 1
            if depth == 0:
                return "".join(self.tokens[begin : self.at - 1])
        raise ValueError("formula: a brace is not closed")

    def argument(self) -> str:
        """The next group or atom."""
        if self.peek() == "{":
            self.next()
            return _row(self.row(frozenset("}"), closed=True))
        return self.atom()

    def row(self, end: frozenset[str], closed: bool = False) -> list[str]:
        """Atoms with their scripts up to a token of ``end``, which is read if the group is ``closed`` by it."""
        parts: list[str] = []
        while (token := self.peek()) not in end:
            if token == "":
                if closed:
                    raise ValueError(f"formula: expected {' or '.join(sorted(end))} before its end")
                return parts
            found = self.scripted(self.atom() if token not in "^_" else "<mrow></mrow>")
            if found == "<mo>−</mo>" and (not parts or parts[-1].startswith("<mo")):
                found = _operator("−", form="prefix")
            if found:
                parts.append(found)
        if closed:
            self.next()
        return parts

    def scripted(self, base: str) -> str:
        scripts: dict[str, str] = {}
        while (sign := self.peek()) in ("^", "_", "'") and sign:
            self.next()
            scripts["^" if sign == "'" else sign] = _operator("′") if sign == "'" else self.argument()
        if not scripts:
            return base
        if len(scripts) == 2:
            return f"<msubsup>{base}{scripts['_']}{scripts['^']}</msubsup>"
        tag = "msup" if "^" in scripts else "msub"
        return f"<{tag}>{base}{next(iter(scripts.values()))}</{tag}>"

    def atom(self) -> str:
        token = self.next()
        if token in _SPACES:
            return _space(_SPACES[token])
        if token.startswith("\\") and len(token) > 1:
            return self.command(token)
        if token == "{":
            return _row(self.row(frozenset("}"), closed=True))
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        if token in _CLOSING:
            return self.fenced(token)
        if token in "/|":
            return _operator(token, stretchy="false", **_TIGHT)
        return _operator("−" if token == "-" else token)

    def fenced(self, opening: str) -> str:
        """Brackets with what is inside, so that they are as high as that; an opening one alone stays alone."""
        begin = self.at
        try:
            inside = self.row(frozenset((_CLOSING[opening], "&", r"\\")))
        except ValueError:
            inside = []
        if self.peek() != _CLOSING[opening]:
            self.at = begin
            return _operator(opening, stretchy="false")
        around = {**_TIGHT, **_stretch("".join(inside))}
        return f"<mrow>{_operator(opening, **around)}{''.join(inside)}{_operator(self.next(), **around)}</mrow>"

    def command(self, token: str) -> str:
        name = token[1:]
        if token in (r"\{", r"\}", r"\|", r"\%", r"\_", r"\&", r"\#"):
            return _operator("‖" if name == "|" else name)
        if name in GREEK:
            return f"<mi>{GREEK[name]}</mi>"
        if name in _NAMES:
            return f"<mi>{name}</mi>{_operator(chr(0x2061))}"
        if name in _LETTERS:
            return f"<mi>{_OPERATORS[name]}</mi>"
        if name[:1] in "lr" and name[1:] in ("vert", "Vert"):
            return _operator(_OPERATORS[name], form="prefix" if name[0] == "l" else "postfix", **_TIGHT)
        if name in _OPERATORS:
            return _operator(_OPERATORS[name])
        if token in _IGNORED:
            return ""
        return self.structure(name)

    def structure(self, name: str) -> str:
        if name in ("frac", "tfrac", "dfrac"):
            return f"<mfrac>{self.argument()}{self.argument()}</mfrac>"
        if name == "sqrt":
            degree = ""
            if self.peek() == "[":
                self.next()
                degree = _row(self.row(frozenset("]"), closed=True))
            inside = self.argument()
            return f"<mroot>{inside}{degree}</mroot>" if degree else f"<msqrt>{inside}</msqrt>"
        if name in _ACCENTS:
            return f'<mover accent="true">{self.argument()}{_operator(_ACCENTS[name])}</mover>'
        if name in _FONTS:
            return self.named(name)
        if name in ("text", "textrm", "mbox"):
            parts = self.raw().split("$")
            return "".join(
                "".join(_Reader(_TOKEN.findall(p)).row(frozenset()))
                if i % 2
                else f"<mtext>{escape(_spaced(p))}</mtext>"
                for i, p in enumerate(parts)
                if p
            )
        if name == "left":
            return self.stretched()
        if name == "begin" and (kind := self.raw()) in _ENVIRONMENTS:
            return _table(self.table(kind))
        raise ValueError(
            f"formula: unknown command \\{name}; expected one that the printers of gradline or SymPy write"
        )

    def named(self, font: str) -> str:
        text = self.raw()
        variant = ' mathvariant="normal"' if len(text) == 1 and _FONTS[font] == "normal" else ""
        style = ' style="font-weight:bold"' if _FONTS[font] == "bold" else ""
        after = _operator(chr(0x2061)) if font == "operatorname" else ""
        return f"<mi{variant}{style}>{escape(text)}</mi>{after}"

    def stretched(self) -> str:
        r"""``\left( ... \right)``."""
        opening = self.next()
        inside = "".join(self.row(frozenset((r"\right",)), closed=True))
        return f"<mrow>{self.delimiter(opening, inside)}{inside}{self.delimiter(self.next(), inside)}</mrow>"

    def delimiter(self, token: str, inside: str) -> str:
        if token == ".":
            return ""
        sign = _OPERATORS.get(token[1:], token[1:]) if token.startswith("\\") else token
        return _operator(sign, **_stretch(inside))

    def table(self, kind: str | None) -> list[list[list[str]]]:
        r"""Rows of cells up to ``\end{kind}`` or the end; an environment that is all there is gives its own rows."""
        if kind is None and self.peek() == r"\begin":
            self.next()
            return self.table(self.raw())
        rows: list[list[list[str]]] = [[[]]]
        while True:
            rows[-1][-1] = self.row(frozenset(("&", r"\\", r"\end")))
            token = self.next()
            if token == "&":
                rows[-1].append([])
            elif token == r"\\":
                rows.append([[]])
            elif token == r"\end":
                self.raw()
                return rows
            elif kind is None:
                return rows
            else:
                raise ValueError(rf"formula: expected \end{{{kind}}}")


def _spaced(text: str) -> str:
    """Blanks at the ends of a text stay visible."""
    text = re.sub(r"\\([%_&#{}])", r"\1", text)
    return re.sub(r"^ | $", "\u00a0", text)
