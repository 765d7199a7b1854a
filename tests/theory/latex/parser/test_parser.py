"""The parser of LaTeX formulas: what it reads, and what it refuses, with line and column."""

from __future__ import annotations

from random import Random

import pytest
from sympy import Abs, E, Ei, Function, Integral, LambertW, Max, Rational, Symbol, exp, log, sqrt

from theory.latex.names import SCALARS
from theory.latex.notation import Notation, Rate
from theory.latex.parser import parse_latex
from theory.latex.source.tokens import LatexError
from theory.symbols import M, alpha, b, c_OV, eta_OV, gamma, m, mu_OV, mu_QK, n, t
from theory.words import matrix

x, y, z, L, A, kappa, mu, q, s = (SCALARS[k] for k in ("x", "y", "z", "L", "A", "kappa", "mu", "q", "s"))
sigma_OV, norm2_OV, norm2_QK = (SCALARS[k] for k in ("sigma_OV", "norm2_OV", "norm2_QK"))
U, V, G = matrix("U"), matrix("V"), matrix("G")
start = Symbol("mu_QK_0", real=True)
Phi = Function("Phi", real=True)

READ = [
    (r"\frac12 x", x / 2),
    (r"\tfrac{1}{2}x + \dfrac xy", x / 2 + x / y),
    ("x/y", x / y),
    ("x y/z", x * y / z),
    (r"(x+y)/(2z)", (x + y) / (2 * z)),
    ("0.5x", x / 2),
    ("-x^2", -(x**2)),
    ("x^{-1}", 1 / x),
    (r"\sqrt{x^2+y}", sqrt(x**2 + y)),
    (r"\sqrt[3]{x}", x ** Rational(1, 3)),
    (r"\sqrt b", sqrt(b)),
    (r"e^{\alpha\mu_{\mathrm{OV}}}+M-1", exp(alpha * mu_OV) + M - 1),
    (r"\mathrm{e}^x", exp(x)),
    ("e", E),
    (r"\exp(-x)\,y", exp(-x) * y),
    (r"\exp\left(x\right)y", exp(x) * y),
    (r"\log x + y", log(x) + y),
    (r"\ln\frac{x}{y}", log(x / y)),
    (r"\log^2 x", log(x) ** 2),
    (r"\log_2(x)", log(x) / log(2)),
    (r"2\log|x|", 2 * log(Abs(x))),
    (r"\log\bigl(1+(M-1)e^{-\alpha\mu_{OV}}\bigr)", log(1 + (M - 1) * exp(-alpha * mu_OV))),
    (r"W_0\!\left(\frac{e^{A/(M-1)}}{M-1}\right)", LambertW(exp(A / (M - 1)) / (M - 1))),
    (r"\operatorname{Ei}(\gamma\mu_{QK})", Ei(gamma * mu_QK)),
    (r"\mathrm{Ei}(x)\log y", Ei(x) * log(y)),
    (r"\Phi(\mu_{QK})-\Phi(0)", Phi(mu_QK) - Phi(0)),
    (r"\max(x,y)", Max(x, y)),
    *((text, mu_OV) for text in (r"\mu_{\mathrm{OV}}", r"\mu_{OV}", r"\mu_\text{OV}", r"\mu_{\rm OV}", r"{\mu}_{OV}")),
    (r"\mu_{\mathrm{OV}}(t)", mu_OV),
    (r"\mu_{\mathrm{QK}}(0)", start),
    (r"\mu_{QK,0}", start),
    (r"\mu^2_{OV}", mu_OV**2),
    (r"\alpha(1-\alpha)\mu_{OV}", alpha * (1 - alpha) * mu_OV),
    (r"\left[x+(y)z\right]^2", (x + y * z) ** 2),
    (r"\{x+y\}z", (x + y) * z),
    (r"{x+y}z", x + y * z),  # braces print nothing
    (r"x\cdot 2 \times y", 2 * x * y),
    (r"\lvert c_{OV}\rvert", Abs(c_OV)),
    (r"2\sigma_{OV}\left|\mu_{OV}\right|", 2 * sigma_OV * Abs(mu_OV)),
    (r"\lVert E_{\mathrm{OV}}\rVert^2", norm2_OV),
    (r"\|E_{QK}\|_F^2", norm2_QK),
    *(
        (text, Rate(mu_OV, t))
        for text in (
            r"\dot{\mu}_{\mathrm{OV}}",
            r"\dot\mu_{OV}",
            r"\dot{\mu_{OV}}",
            r"\frac{d\mu_{OV}}{dt}",
            r"\frac{\mathrm{d}\mu_{OV}(t)}{\mathrm dt}",
            r"\frac{d}{dt}\mu_{OV}",
            r"d\mu_{OV}/dt",
            r"\frac{d\mu_{OV}}{dt}(t)",
            r"\mu_{OV}'",
            r"\mu_{OV}'(t)",
        )
    ),
    (r"\frac{\partial L}{\partial\alpha}", Rate(L, alpha)),
    (r"\frac{d^2\mu}{dt^2}", Rate(Rate(mu, t), t)),
    (r"\frac{d}{dt}\left(\mu_{OV}^2\right)b", Rate(mu_OV**2, t) * b),
    (r"\int_0^{q} e^{\gamma s}\,\mathrm{d}s", Integral(exp(gamma * s), (s, 0, q))),
    (r"\underbrace{x+y}_{\text{small}}", x + y),
    (r"\textcolor{red}{x}\;\phantom{=}y", x * y),
    (r"\frac{m e^{\gamma\mu_{QK}}}{m e^{\gamma\mu_{QK}}+n}", m * exp(gamma * mu_QK) / (m * exp(gamma * mu_QK) + n)),
]


@pytest.mark.parametrize(("latex", "expected"), READ, ids=[text for text, _ in READ])
def test_formula_is_read(latex: str, expected: object) -> None:
    assert parse_latex(latex) == expected


def test_matrices_keep_their_order() -> None:
    eta = SCALARS["eta"]
    assert parse_latex(r"-\eta\left(UU^\top G+GVV^{\mathsf T}\right)") == (-eta) * (U @ U.T @ G + G @ V @ V.T)
    assert parse_latex(r"U V^T") != parse_latex(r"V^T U")
    assert parse_latex(r"(U V^\top)^\top") == V @ U.T
    assert parse_latex(r"\frac{d}{dt}(U^\top U)") == matrix("dU/dt").T @ U + U.T @ matrix("dU/dt")


REFUSED = [
    ("x/yz", 4, "below or behind the slash"),
    (r"\alpha / b \mu", 12, "below or behind the slash"),
    ("x/y/z", 4, "below or behind the slash"),
    (r"\log x y", 8, "belongs to the argument"),
    (r"\log x \cdot y", 8, "belongs to the argument"),
    (r"\log(1+x)^2", 10, "raised to this power"),
    (r"\frac{d}{dt}\mu_{OV} b", 22, "belongs to the argument"),
    (r"\frac{d \mu b}{dt}", 13, "is derived"),
    (r"\kappa(t)", 1, "reads like a function of t"),
    ("b(M)", 1, "reads like a function of M"),
    (r"\frac{x}{y}^2", 12, "exponent behind a fraction"),
    ("x^12", 3, "only the 1 is in the exponent"),
    ("x^-1", 3, "- alone in an exponent"),
    ("x^{(2)}", 4, "reads like an index"),
    ("x^2^3", 4, "a second ^"),
    ("2 3", 3, "a number behind a number"),
    ("x 2", 3, "a number behind a factor"),
    ("x+-y", 3, "expected a factor"),
    ("x y)", 4, ") closes nothing"),
    ("(x]", 3, "] closes the ("),
    ("(x", 1, "this ( has no )"),
    (r"\left(x\right]", 14, "closes the"),
    (r"\left(x)", 8, "closes the"),
    (r"\mu_{QV}", 1, r"nearest known is \mu_{\mathrm{QK}}"),
    ("M_{OV}", 1, "unknown symbol M_{OV}"),
    ("k", 1, "unknown symbol k"),
    (r"\mathbf{W}", 1, r"unknown symbol \mathbf{W}"),
    (r"\gama", 1, r"nearest known is \gamma"),
    (r"\sum x", 1, r"\sum is not understood"),
    (r"x \pm y", 3, r"\pm is not understood"),
    ("x!", 2, "factorials"),
    (r"W_0 x", 1, "needs its argument in parentheses"),
    (r"\Phi", 1, "needs its argument in parentheses"),
    (r"\log", 1, "lacks its argument"),
    (r"\log^{-1}(x)", 5, "must be a number from 1 on"),
    (r"\frac{x}", 1, "lacks an argument"),
    (r"\frac{}{x}", 1, "an empty part"),
    (r"\frac{x}{0}", 10, "division by 0"),
    (r"\log(x-x)", 1, "log of 0"),
    (r"\sqrt{-1}", 1, "not real"),
    ("x=y", 2, "the relation = inside an expression"),
    ("x&y", 2, "& inside an expression"),
    ("x, y", 2, ", is not understood here"),
    ("", 1, "an empty formula"),
    ("αx", 1, "α is not understood"),
    (r"d\mu", 1, "a differential by itself"),
    (r"\text{const}^{\text{nothing}}", 15, "unknown symbol"),
    (r"\int_0 x\,ds", 1, "without both limits"),
    (r"\int_0^s s\,ds", 1, "also in the limits"),
    (r"U+x", 1, "a sum of a matrix and a scalar"),
    (r"\log(U)", 6, "a matrix as argument"),
    (r"x^\top", 2, "transpose of a scalar"),
    (r"9^{9^9}", 2, "a number to a power beyond"),
    ("1.2.3", 1, "no number"),
    ("x.", 2, "not understood here"),
    (r"\begin{pmatrix}x\end{pmatrix}", 1, "pmatrix"),
    ("(x+y)(t)", 6, "reads like a function of it"),
    (r"\frac{x}{y}\left(0\right)", 12, "reads like a function of it"),
    (r"\frac{d\mu}{dt}(0)", 16, "reads like a function of it"),
    ("1e-3", 2, "reads like a power of ten"),
    (r"\kappa'", 8, "does not move in time"),
]


@pytest.mark.parametrize(("latex", "column", "reason"), REFUSED, ids=[text for text, *_ in REFUSED])
def test_formula_is_refused_at_its_place(latex: str, column: int, reason: str) -> None:
    with pytest.raises(LatexError) as caught:
        parse_latex(latex)
    assert reason in caught.value.message
    assert (caught.value.place.line, caught.value.place.column) == (1, column)


def test_places_count_lines() -> None:
    with pytest.raises(LatexError) as caught:
        parse_latex("x +\n  y +\n    k")
    assert (caught.value.place.line, caught.value.place.column) == (3, 5)


def test_table_decides_what_a_name_is() -> None:
    """``e``, ``d`` and a product are what the author's table says."""
    v, u = SCALARS["v"], SCALARS["u"]
    notation = Notation(names={"v": "d", "u": r"\mathrm{e}"})
    assert parse_latex(r"d x", notation) == v * x
    assert parse_latex(r"\mathrm{e}^2", notation) == u**2
    assert parse_latex(r"\frac{\mathrm{d}\mu}{\mathrm{d}t}", notation) == Rate(mu, t)
    assert parse_latex(r"\eta_{OV}\alpha") == eta_OV * alpha


def test_deep_nesting_is_refused_in_one_line() -> None:
    for text in ("(" * 5000 + "x" + ")" * 5000, "{" * 5000 + "x" + "}" * 5000, r"\left(" * 100 + "x"):
        with pytest.raises(LatexError, match="nested more than 60 deep"):
            parse_latex(text)


_TEXT = r"""\frac \sqrt \log \exp \alpha \mu \mu_{OV} \left( \right) ( ) [ ] { } ^ _ x y b M 2 1 0 . , + - / \cdot = & |
\| \dot \mathrm \operatorname \text d t e \int \begin{cases} \end{cases} \\ ' ! \, \big \lVert \rVert W_0 \Phi U V^\top
\frac{d}{dt} # $ ~ % α \partial \infty \max"""
_PIECES = _TEXT.split()


def outcome(text: str) -> str:
    """Why a formula is refused; nothing else may be raised."""
    try:
        parse_latex(text)
    except LatexError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("seed", range(3))
def test_garbage_is_refused_or_read_and_never_crashes(seed: int) -> None:
    random = Random(seed)
    read = 0
    for _ in range(150):
        text = " ".join(random.choice(_PIECES) for _ in range(random.randint(1, 12)))
        message = outcome(text)
        read += not message
        assert "\n" not in message
    assert 0 < read < 150
