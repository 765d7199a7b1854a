r"""Commands of LaTeX, amsmath and mathtools that formulas use, by what they do."""

from __future__ import annotations

__all__ = [
    "ACCENTS",
    "DISPLAYS",
    "FONTS",
    "INVISIBLE",
    "INVISIBLE_WITH_ARGUMENT",
    "LATEX_COMMANDS",
    "NUMBERED",
    "ONE_EQUATION",
    "SIZES",
    "TEXTS",
    "TRANSPARENT",
    "is_invisible",
]

#: Displayed formulas whose equations are numbered; each has a starred form that is not.
NUMBERED = frozenset(
    ("equation", "align", "gather", "multline", "flalign", "alignat", "eqnarray", "dmath", "IEEEeqnarray")
)
#: Environments and other displays that hold formulas.
DISPLAYS = NUMBERED | {f"{name}*" for name in NUMBERED} | {"displaymath", "math"}
#: Displays whose line breaks end no equation.
ONE_EQUATION = frozenset(("equation", "multline", "displaymath", "math", "dmath"))

#: Blanks, sizes and switches that leave the meaning as it is.
INVISIBLE = frozenset(
    (
        *(",", ";", ":", "!", ">", " ", "/", "quad", "qquad", "enspace", "enskip", "thinspace", "medspace"),
        *("thickspace", "negthinspace", "negmedspace", "negthickspace", "displaystyle", "textstyle", "scriptstyle"),
        *("scriptscriptstyle", "limits", "nolimits", "nonumber", "notag", "allowdisplaybreaks", "hfill", "hfil"),
        *("strut", "mathstrut", "relax", "protect", "xspace", "allowbreak", "nobreak", "noindent", "centering"),
        *("IEEEyesnumber", "IEEEnonumber", "IEEEyessubnumber", "IEEEnosubnumber", "IEEEeqnarraynumspace"),
        *("small", "footnotesize", "scriptsize", "normalsize", "hss", "null"),
    )
)
#: Commands that leave nothing of the given number of arguments behind.
INVISIBLE_WITH_ARGUMENT = {
    **dict.fromkeys(("hspace", "vspace", "mspace", "phantom", "hphantom", "vphantom", "label", "tag", "color"), 1),
    **dict.fromkeys(("displaybreak", "raisetag", "shortintertext", "intertext", "noeqref"), 1),
}
#: Commands whose last argument is all that counts, with the number of arguments before it.
TRANSPARENT = {
    **dict.fromkeys(("boxed", "ensuremath", "mathop", "mathbin", "mathrel", "mathord", "mathclose", "mathopen"), 0),
    **dict.fromkeys(("mathinner", "smash", "mathstrut", "fbox", "underline", "mathpunct"), 0),
    **dict.fromkeys(("textcolor", "colorbox"), 1),
}
#: Sizes before a delimiter.
SIZES = frozenset(f"{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m"))
#: Fonts of letters.
FONTS = frozenset(
    (
        *("mathrm", "mathit", "mathbf", "mathsf", "mathtt", "mathcal", "mathbb", "mathfrak", "mathscr", "mathnormal"),
        *("boldsymbol", "bm", "pmb", "operatorname", "rm", "bf", "it", "cal", "sf"),
    )
)
#: Words inside a formula.
TEXTS = frozenset(("text", "textrm", "textnormal", "textit", "textup", "textsf", "textbf", "mbox", "hbox", "textsc"))
ACCENTS = frozenset(
    (
        "dot",
        "ddot",
        "hat",
        "bar",
        "tilde",
        "widehat",
        "widetilde",
        "overline",
        "vec",
        "check",
        "breve",
        "acute",
        "grave",
    )
)

_GREEK = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "varepsilon",
    "zeta",
    "eta",
    "theta",
    "vartheta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
    "pi",
    "varpi",
    "rho",
    "varrho",
    "sigma",
    "varsigma",
    "tau",
    "upsilon",
    "phi",
    "varphi",
    "chi",
    "psi",
    "omega",
    "Gamma",
    "Delta",
    "Theta",
    "Lambda",
    "Xi",
    "Pi",
    "Sigma",
    "Upsilon",
    "Phi",
    "Psi",
    "Omega",
    "ell",
    "partial",
    "infty",
    "nabla",
    "hbar",
    "Re",
    "Im",
]
_MATH = [
    "frac",
    "tfrac",
    "dfrac",
    "cfrac",
    "sqrt",
    "log",
    "ln",
    "lg",
    "exp",
    "sin",
    "cos",
    "tan",
    "cot",
    "sec",
    "csc",
    "sinh",
    "cosh",
    "tanh",
    "coth",
    "arcsin",
    "arccos",
    "arctan",
    "max",
    "min",
    "sup",
    "inf",
    "lim",
    "det",
    "dim",
    "ker",
    "Pr",
    "arg",
    "gcd",
    "hom",
    "deg",
    "left",
    "right",
    "middle",
    "lvert",
    "rvert",
    "lVert",
    "rVert",
    "langle",
    "rangle",
    "vert",
    "Vert",
    "lbrace",
    "rbrace",
    "lbrack",
    "rbrack",
    "cdot",
    "times",
    "div",
    "ast",
    "star",
    "pm",
    "mp",
    "sum",
    "prod",
    "int",
    "iint",
    "oint",
    "top",
    "bot",
    "prime",
    "to",
    "mapsto",
    "le",
    "leq",
    "ge",
    "geq",
    "neq",
    "ne",
    "equiv",
    "sim",
    "simeq",
    "approx",
    "propto",
    "ll",
    "gg",
    "in",
    "notin",
    "subset",
    "begin",
    "end",
    "stackrel",
    "overset",
    "underset",
    "underbrace",
    "overbrace",
    "binom",
    "dbinom",
    "tbinom",
    "dots",
    "ldots",
    "cdots",
    "vdots",
    "ddots",
    "text",
    "iff",
    "implies",
    "Rightarrow",
    "forall",
    "exists",
]

#: What LaTeX and amsmath define, so that ``\providecommand`` leaves it alone.
LATEX_COMMANDS = frozenset(
    (
        *_GREEK,
        *_MATH,
        *INVISIBLE,
        *INVISIBLE_WITH_ARGUMENT,
        *TRANSPARENT,
        *SIZES,
        *FONTS,
        *TEXTS,
        *ACCENTS,
    )
) - {"xspace", "bm", "textcolor", "colorbox", "color", "medspace", "noeqref", "shortintertext", "mathscr"}


def is_invisible(name: str) -> bool:
    """Whether a command without arguments leaves the meaning of a formula as it is.

    >>> is_invisible("quad"), is_invisible("frac")
    (True, False)
    """
    return name in INVISIBLE
