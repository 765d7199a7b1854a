"""A model of the user's own, with symbols of its own: right forms match, wrong ones never do."""

from __future__ import annotations

from pathlib import Path

import pytest
from sympy import Eq, Symbol, exp

from theory import Claim
from theory.latex import Rate
from theory.latex.check import check_paper
from theory.symbols import t

s, tau, u_0 = (Symbol(name, positive=True) for name in ("s", "tau", "u_0"))
u, odd = Symbol("u", real=True), Symbol("x'", real=True)
GROWTH = exp(2 * s * t / tau)
CLAIMS = [
    Claim("mode-flow", Eq(Rate(u, t), 2 * u * (s - u) / tau, evaluate=False)),
    Claim("mode", Eq(u, s * GROWTH / (GROWTH - 1 + s / u_0), evaluate=False)),
    Claim("unwritable", Eq(odd, s, evaluate=False)),  # no LaTeX is made of such a name; the others can be checked
]

FORMS = [
    ("mode-flow", r"\tau\dot u = 2u(s-u)", "match", ""),
    ("mode-flow", r"\frac{\dot u}{u} = \frac{2}{\tau}(s-u)", "match", ""),
    ("mode-flow", r"\tau\dot u = 2us-u^2", "differs", "a factor 2"),
    ("mode", r"u = \frac{s e^{2st/\tau}}{e^{2st/\tau}-1+s/u_0}", "match", ""),
    ("mode", r"u = \frac{s e^{st/\tau}}{e^{2st/\tau}-1+s/u_0}", "differs", "a factor 2"),
    ("mode", r"u = \frac{s e^{2st/\tau}}{e^{2st/\tau}+s/u_0}", "differs", "a term - 1 more"),
    ("mode", r"v = s", "undecided", ""),
]


@pytest.mark.parametrize(("claim", "latex", "status", "change"), FORMS)
def test_forms(tmp_path: Path, claim: str, latex: str, status: str, change: str) -> None:
    path = tmp_path / "paper.tex"
    path.write_text(rf"\begin{{equation}}\label{{{claim}}}{latex}\end{{equation}}", encoding="utf-8")
    (found,) = check_paper(path, CLAIMS).equations
    assert (found.status, found.reason if found.status != status else "") == (status, "")
    proposed = found.finding.repair if found.finding is not None else None
    assert (proposed.text if proposed else "") == change
