"""The printer: golden formulas of each kind, styles, and what it refuses."""

from __future__ import annotations

import pytest
from sympy import (
    Abs,
    Ei,
    Eq,
    Float,
    Function,
    Ge,
    Integer,
    Integral,
    LambertW,
    Ne,
    Rational,
    Symbol,
    asinh,
    exp,
    log,
    sqrt,
)
from sympy import (
    gamma as gamma_function,
)

from theory.errors import GradlineError
from theory.latex import Notation, Rate, to_latex
from theory.registry import find
from theory.symbols import K, M, N, alpha, b, eta_OV, gamma, m, mu_OV, mu_QK, n, t
from theory.words import matrix

q, s, L = (Symbol(x, real=True) for x in "qsz")
U, V, G, W = (matrix(x) for x in "UVGW")

GOLDEN = [
    (
        find("flow-published").stated["mu_QK"],
        r"\frac{\eta_{\mathrm{QK}}(M-1)}{M b^2}\,"
        r"\frac{\alpha(1-\alpha)\mu_{\mathrm{OV}}}{e^{\alpha\mu_{\mathrm{OV}}}+M-1}",
    ),
    (find("attention-mass").stated["alpha"], r"\frac{m e^{\gamma\mu_{\mathrm{QK}}}}{m e^{\gamma\mu_{\mathrm{QK}}}+n}"),
    (find("loss-on-line").stated["L"], r"\log((M-1)e^{-\alpha\mu_{\mathrm{OV}}}+1)"),
    (m / n * Ei(gamma * q) + log(q), r"\frac{m}{n}\,\operatorname{Ei}(\gamma q)+\log(q)"),
    (q - LambertW(q / n), r"q-W_0\left(\frac{q}{n}\right)"),
    (sqrt(K * M * b * N / (M * b + N)), r"\frac{\sqrt{K M b N}}{\sqrt{M b+N}}"),
    (sqrt(q / n + 1), r"\sqrt{\frac{q}{n}+1}"),
    (q ** Rational(1, 3), r"\sqrt[3]{q}"),
    (q ** Rational(-2, 3), r"\frac{1}{q^{2/3}}"),
    (-q / 2, r"-\frac{q}{2}"),
    (Rational(-3, 2), r"-\frac{3}{2}"),
    (Integer(1), "1"),
    (Integer(0), "0"),
    (2**q * 3, r"3\cdot 2^q"),
    (M * 2**q, r"M\cdot 2^q"),
    ((-q) ** Rational(1, 2), r"\sqrt{-q}"),
    (log(q) ** 2, r"(\log(q))^2"),
    (log(Abs(q)), r"\log\lvert q\rvert"),
    (Abs(q / 2), r"\frac{\lvert q\rvert}{2}"),
    (asinh(q), r"\operatorname{arsinh}(q)"),
    (-(q + s) * n, r"n(-q-s)"),
    (exp(1), "e"),
    (exp(2 * q), "e^{2q}"),
    (exp(q), "e^q"),
    (exp((q + 1) * (s + 1)), "e^{{(q+1)(s+1)}}"),
    (Integral(exp(s) / s, (s, 1, q)), r"\int_1^q \frac{e^s}{s}\,\mathrm{d}s"),
    (Integral(exp(s), (s, 0, q)) + q, r"q+\int_0^q e^s\,\mathrm{d}s"),
    (Integral(exp(s) + s, (s, 0, q)) * q / 2, r"\frac{q}{2}\,\int_0^q (e^s+s)\,\mathrm{d}s"),
    (Integral(s, (s, 0, q)) ** 2, r"\left(\int_0^q s\,\mathrm{d}s\right)^2"),
    (Eq(Rate(mu_OV, t), alpha), r"\frac{\mathrm{d}\mu_{\mathrm{OV}}}{\mathrm{d}t}=\alpha"),
    (Rate(alpha * mu_OV, t), r"\frac{\mathrm{d}}{\mathrm{d}t}(\alpha\mu_{\mathrm{OV}})"),
    (Ge(M, 2, evaluate=False), r"M\ge 2"),
    (Ne(mu_OV, 0, evaluate=False), r"\mu_{\mathrm{OV}}\ne 0"),
    (-eta_OV * (U @ U.T @ G + G @ V @ V.T), r"-\eta_{\mathrm{OV}}(G V V^{\top}+U U^{\top} G)"),
    (U.T @ U - V.T @ V, r"U^{\top} U-V^{\top} V"),
    (W - W, "0"),
]


@pytest.mark.parametrize(("value", "latex"), GOLDEN, ids=[str(i) for i in range(len(GOLDEN))])
def test_formulas(value, latex):
    assert to_latex(value) == latex


@pytest.mark.parametrize(
    ("style", "value", "latex"),
    [
        ({"derivative": "dot"}, Rate(mu_OV, t), r"\dot{\mu}_{\mathrm{OV}}"),
        ({"derivative": "dot", "names": {"mu_OV": r"\muOV"}}, Rate(mu_OV, t), r"\dot{\muOV}"),
        ({"derivative": "dot"}, Rate(t, mu_QK), r"\frac{\mathrm{d}t}{\mathrm{d}\mu_{\mathrm{QK}}}"),
        ({"differential": "italic"}, Rate(mu_OV, t), r"\frac{d\mu_{\mathrm{OV}}}{d t}"),
        ({"log": "ln"}, log(q), r"\ln(q)"),
        ({"exponential": "exp"}, exp(-q), r"\exp(-q)"),
        ({"order": ["b", "M"]}, M * b, "b M"),
        ({"groups": [["M", "b", "alpha"]]}, M * alpha / (b * (alpha + M)), r"\frac{M\alpha}{b(M+\alpha)}"),
        ({"names": {"mu_QK": r"\muQK"}}, mu_QK * M, r"M\muQK"),
        ({"names": {"mu_QK": r"\muQK"}}, mu_QK**2 * t, r"\muQK^2 t"),
    ],
)
def test_styles(style, value, latex):
    assert to_latex(value, Notation(**style)) == latex


@pytest.mark.parametrize("value", [Function("f")(q), gamma_function(q), Float("0.5"), Integral(q, q)])
def test_what_has_no_latex_is_refused_by_name(value):
    with pytest.raises(GradlineError, match="LaTeX of"):
        to_latex(value)


def test_no_style_changes_what_is_written_for_the_reader(random_expression, styles):
    for seed in range(12):
        texts = [to_latex(random_expression(seed), style) for style in styles]
        for text in texts:
            assert text.count("{") == text.count("}")
            assert text.count(r"\left") == text.count(r"\right")
            assert "++" not in text
            assert "--" not in text
            assert "+-" not in text


def test_different_expressions_have_different_latex(random_expression):
    found = {}
    for seed in range(200):
        value = random_expression(seed)
        assert found.setdefault(to_latex(value), value) == value


def test_a_claim_is_a_display_of_its_equations():
    assert to_latex(find("loss-on-line")) == (
        "\\begin{equation*}\nL=\\log((M-1)e^{-\\alpha\\mu_{\\mathrm{OV}}}+1)\n\\end{equation*}"
    )
    assert to_latex(find("flow-collapsed")).startswith("\\begin{align*}")


def test_public_name():
    import theory

    assert theory.to_latex(M) == "M"
