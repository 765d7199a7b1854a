r"""Statements that are no equation of scalars: formulas alone, inequalities, limits, steps and roots of matrices.

Every equation that the documents print must be read back as what the claim states; each form here has a wrong twin.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from sympy import Eq, Gt, Lt, Symbol

from theory.latex import Notation
from theory.latex.check import Checked, check_paper
from theory.latex.claims.displays import body
from theory.latex.claims.equations import Equation, folded
from theory.registry import Claim, claims
from theory.symbols import M, mu_OV

_TIME = "time-on-curve"
_LIMIT = r"\frac{\mu_{OV}^2}{\mu_{QK}} \to \frac{2(m+n)}{\kappa\gamma n}"
KINDS = [
    ("rescaling-balanced", r"2|\mu|\sigma", "match"),
    ("rescaling-balanced", r"2\sigma\mu", "differs"),
    ("rescaling-balanced", r"\sigma|\mu|", "differs"),
    ("rescaling-balanced", r"a = 2\sigma|\mu|", "undecided"),  # what a stands for, the claim does not say
    ("rescaling-balanced", r"2\sigma\mu,\quad \mu > 0", "match"),
    ("rescaling-balanced", r"2\sigma\mu,\quad \mu < 0", "differs"),
    ("noise-correction", r"\frac{N+Mb}{N}", "match"),
    ("noise-correction", r"\frac{N+K b}{N}", "differs"),
    ("line-gradient-descent", r"W^+ - W = - hG", "match"),
    ("line-gradient-descent", r"W^{+} = W + hG", "differs"),
    ("line-gradient-descent", r"W = W^{+} - hG", "differs"),
    ("line-momentum", r"B_W^{+} = G + \beta B_W", "match"),
    ("line-momentum", r"B_W^{+} = G + \beta W", "differs"),
    (_TIME, _LIMIT, "match"),
    (_TIME, _LIMIT + r",\quad t\to 0", "match"),
    (_TIME, _LIMIT + r" \quad\text{as $\mu_{QK} \to 0^+$}", "match"),
    (_TIME, _LIMIT + r",\quad (\mu_{OV} \to 0)", "match"),
    (_TIME, _LIMIT + r" \quad\text{as $t\to\infty$}", "undecided"),
    (_TIME, _LIMIT.replace("m+n", "m-n"), "differs"),
    (_TIME, _LIMIT.replace(r"\to", "="), "undecided"),
    (_TIME, r"\frac{\mu_{OV}^2}{\mu_{QK}} \to \frac{2(m+n)}{\kappa\gamma \mu_{OV}}", "undecided"),
    (_TIME, r"\mu_{OV}^2 \sim \frac{2(m+n)}{\kappa\gamma n}\mu_{QK}", "match"),
    (_TIME, r"\mu_{OV}^2 \sim \frac{2(m+n)}{\kappa\gamma n}\mu_{QK}^2", "differs"),
    ("early-time", r"\mu_{OV} \to t", "unparsed"),
    ("loss-on-line", r"L = \log(1+(M-1)e^{-\alpha\mu_{OV}}), t \to\infty", "match"),
    ("loss-on-line", r"L \to \log(1+(M-1)e^{-\alpha\mu_{OV}})", "unparsed"),
    ("attention-limit", r"t \to \infty", "unparsed"),
    ("loss-on-line", r"L = \log(1+(M-1)e^{-\alpha\mu_{OV}}), \quad \Phi(\mu_{OV}) > 0", "undecided"),
    ("loss-on-line", r"L = \log(1+(M-1)e^{-\alpha\mu_{OV}}), \quad \sin(\mu_{OV}) > 2", "undecided"),
    ("loss-on-line", r"L = \log(1+(M-1)e^{-\alpha\mu_{OV}}), \quad N < \infty", "match"),
    ("loss-on-line", r"L = \log(1+(M-1)e^{-\alpha\mu_{OV}}), \quad N > \infty", "undecided"),
    ("loss-on-line", r"L = \log(1+(M-1)e^{-\alpha\mu_{OV}}), \quad \dot\mu_{OV} > 0", "unparsed"),
    ("loss-on-line", r"L = \begin{cases} 1 & \dot\mu_{OV} > 0 \\ 2 & \mu_{OV} < 0 \end{cases}", "unparsed"),
    ("attention-mass", r"\alpha = \frac{m}{m+n}, \quad \mu_{QK} = 0", "match"),
    ("attention-mass", r"\alpha = \frac{m}{m+n} \qquad (\mu_{QK} = 0)", "match"),
    ("attention-mass", r"\alpha = \frac{m}{m-n} \quad \text{at } \mu_{QK} = 0", "differs"),
    ("loss-on-line", r"L = \log M \quad \text{at } \mu_{OV} = 0", "match"),
    ("loss-on-line", r"L = \log M \quad \text{at } t = 0", "undecided"),  # where it starts, the claim does not say
    ("loss-on-line", r"L = \log M, \quad L = 1", "differs"),  # what the claim is about is no condition
    ("flow-collapsed", r"\dot\mu_{QK} = 0, \quad \mu_{OV} = 0", "undecided"),
    (
        "integral-caco",
        r"\Phi(\mu_{QK}) - \frac{m}{n\gamma} = \frac{\kappa\gamma}{2}\mu_{OV}^2, \quad \mu_{QK}(0) = \mu_{OV}(0) = 0",
        "match",
    ),
    (
        "integral-caco",
        r"\Phi(\mu_{QK}) - \frac{m}{n\gamma} = \frac{\kappa\gamma}{2}\mu_{OV}^2, \quad \mu_{QK}(0) = \mu_{OV}(0) = 1",
        "differs",
    ),
    ("loss-rate", r"L \sim \frac{(M-1)b}{\eta_{OV}t} \qquad (t \to \infty)", "match"),
    ("loss-rate", r"L \sim \frac{(M-1)b}{\eta_{OV}t} \qquad (t \to 0)", "undecided"),
    ("loss-rate", r"L \sim \frac{(M-1)b}{\eta_{OV}t} (t \to \infty)", "unparsed"),
    ("rescaling-balanced", r"2\sigma \quad \mu", "unparsed"),  # a product or two formulas
    ("flow-collapsed", r"\partial_t \mu_{OV} = \frac{\eta_{OV}}{b}\frac{\alpha}{D}", "match"),
    ("flow-collapsed", r"\partial_t^2 \mu_{OV} = \frac{\eta_{OV}}{b}\frac{\alpha}{D}", "undecided"),
    ("flow-collapsed", r"\partial_{0} \mu_{OV} = \frac{\eta_{OV}}{b}\frac{\alpha}{D}", "unparsed"),
    ("attention-sensitivity", r"\partial_\alpha L = -\mu_{OV}(1-e^{-L})", "match"),
    ("balancedness", r"U^\top U = V^\top V + C", "match"),
    ("balancedness", r"U^\top U = V V^\top + C", "differs"),
    ("attention-monotone", r"\dot\alpha > 0", "match"),
    ("attention-monotone", r"\dot\alpha \ge 0", "match"),
    ("attention-monotone", r"\dot\alpha \le 0", "differs"),
    ("attention-monotone", r"-\dot L < 0", "differs"),
    ("attention-monotone", r"0 > \frac{d L}{d t}, \quad \frac{d\alpha}{dt} > 0", "match"),
    ("attention-monotone", r"0 > \frac{d L}{d t}, \quad \frac{d\alpha}{dt} < 0", "differs"),
    ("attention-monotone", r"\dot\alpha > 1", "undecided"),
    ("attention-monotone", r"\dot\alpha \ne 0", "undecided"),
    ("attention-monotone", r"\alpha > 0", "undecided"),
    ("loss-on-line", r"L > 0", "undecided"),
    ("sharper-with-ratio", r"\frac{d\alpha}{dr} > 0,\quad \frac{d\mu_{OV}}{dr} < 0", "match"),
    ("sharper-with-ratio", r"\frac{d\alpha}{dr} < 0", "differs"),
    ("parameterization-order", r"\mu_{OV} < \frac{1}{\sqrt b} - v_0", "match"),
    ("parameterization-order", r"\mu_{OV} > \frac{1}{\sqrt b} - v_0", "differs"),
    ("parameterization-order", r"\mu_{OV} < \frac{1}{b} - v_0", "differs"),
    ("parameterization-order", r"\mu_{OV} \le \frac{1}{\sqrt b} - v_0", "undecided"),
    ("balanced-root", r"UU^\top = \sqrt{WW^\top}", "match"),
    ("balanced-root", r"UU^\top = \sqrt{W^\top W}", "differs"),
    ("balanced-root", r"(UU^\top)^2 = WW^\top", "match"),
    ("balanced-root", r"(UU^\top)^2 = W^\top W", "differs"),
    ("balanced-root", r"UU^\top = \sqrt{W}", "unparsed"),
]


def _one(folder: Path, claim: str, latex: str, known: list[Claim] | None = None) -> Checked:
    paper = folder / "paper.tex"
    paper.write_text(f"% gradline: {claim}\n\\begin{{equation}}{latex}\\end{{equation}}", encoding="utf-8")
    (found,) = check_paper(paper, known).equations
    return found


@pytest.mark.parametrize(("claim", "latex", "status"), KINDS, ids=[f"{c}: {x}" for c, x, _ in KINDS])
def test_kinds_of_statements(tmp_path: Path, claim: str, latex: str, status: str) -> None:
    found = _one(tmp_path, claim, latex)
    assert (found.status, found.reason if found.status != status else "") == (status, "")


def test_a_formula_alone_is_repaired_on_its_own_side(tmp_path: Path) -> None:
    finding = _one(tmp_path, "rescaling-balanced", r"2\sigma\mu").finding
    assert finding is not None
    assert finding.repair is not None
    assert finding.repair.text == r"|\mu| in place of \mu"
    assert finding.values["the formula"] != finding.values["right"]


def test_inequalities_of_a_user(tmp_path: Path) -> None:
    c = Symbol("c", real=True)
    mine = [
        Claim("bound", Lt(c, M * mu_OV, evaluate=False), assumptions=(Gt(mu_OV, 0),)),
        Claim("rate", Eq(c, mu_OV, evaluate=False)),
    ]
    assert _one(tmp_path, "bound", r"\frac{c}{M\mu_{OV}} < 1", mine).status == "match"
    assert _one(tmp_path, "bound", r"c < \mu_{OV}", mine).status == "differs"
    assert _one(tmp_path, "bound", r"c \le M\mu_{OV}", mine).status == "undecided"
    assert _one(tmp_path, "rate", r"c > \mu_{OV}", mine).status == "undecided"


def _own() -> list[Equation]:
    return [equation for claim in claims() for equation in folded(claim)]


@pytest.mark.parametrize("style", [Notation(), Notation(derivative="dot", log="ln")], ids=["fractions", "dots"])
def test_the_printed_equations_match_their_claims(tmp_path: Path, style: Notation) -> None:
    own = _own()
    text = "".join(f"% gradline: {e.claim}\n\\begin{{equation}}{body(e, style)}\\end{{equation}}\n" for e in own)
    (tmp_path / "paper.tex").write_text(text, encoding="utf-8")
    found = check_paper(tmp_path / "paper.tex", notation=style).equations
    assert [(e.id, c.reason) for e, c in zip(own, found, strict=True) if c.status not in ("match", "enclosed")] == []
    assert len(own) > 60


def test_none_of_them_matches_with_a_factor_too_much(tmp_path: Path) -> None:
    own = [e for e in _own() if e.relation == "=" and e.right is not None and e.right != 0]
    text = "".join(
        f"% gradline: {e.claim}\n\\begin{{equation}}{body(e, Notation())} \\cdot 7\\end{{equation}}\n"
        for e in own
        if "\\begin" not in body(e, Notation())
    )
    (tmp_path / "paper.tex").write_text(text, encoding="utf-8")
    found = check_paper(tmp_path / "paper.tex").equations
    assert [c.latex for c in found if c.status in ("match", "enclosed")] == []
    assert sum(c.status == "differs" for c in found) > 30
