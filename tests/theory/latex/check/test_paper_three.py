"""A third paper, in other authors' ways of writing: 25 right equations match, 15 with one error each differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from theory.latex.check import Checked, check_paper

PAPER = Path(__file__).parents[3] / "data" / "paper_three.tex"

#: The change, or else the factor, that is proposed for each seeded error; "" where none is found.
CHANGES = {
    "attention-mass:w1": "the other sign in the argument",
    "attention-mass:w2": r"\mu_{\mathrm{QK}} in place of \mu_{\mathrm{OV}}",
    "loss-on-line:w3": "a term - 1 more",
    "loss-on-line:w4": "- in place of +",
    "flow-collapsed:w5": r"1 - \alpha in place of \alpha",
    "flow-collapsed:w6": "gamma",
    "flow-collapsed:w7": "without this factor",  # which belongs to a finite N: right for N = oo
    "flow-published:w8": r"\eta_{\mathrm{QK}} in place of \eta_{\mathrm{OV}}",
    "flow-cafo:w9": "the square root of b",
    "product-flow:w10": "",
    "integral-caco:w11": "gamma for the terms in mu_OV",
    "integral-fafo:w12": "",
    "fixed-attention-collapsed:w13": "a factor 1/(M - 1)",
    "stopping-state:w14": "this power - 1 in place of this power",
    "early-time:w15": r"1 - \alpha_0 in place of \alpha_0",
}


@pytest.fixture(scope="module")
def found() -> dict[str, Checked]:
    return {e.labels[0].removeprefix("eq:"): e for e in check_paper(PAPER).equations}


def test_right_equations_match_and_seeded_errors_differ(found: dict[str, Checked]) -> None:
    right = {label: e for label, e in found.items() if label.partition(":")[2].startswith("r")}
    wrong = {label: e for label, e in found.items() if label.partition(":")[2].startswith("w")}
    assert (len(right), len(wrong), len(found)) == (25, 15, 40)
    assert {label: (e.status, e.reason) for label, e in right.items() if e.status != "match"} == {}
    assert {label: (e.status, e.reason) for label, e in wrong.items() if e.status != "differs"} == {}


def test_the_proposed_change_is_the_seeded_one(found: dict[str, Checked]) -> None:
    said = {}
    for label in CHANGES:
        finding = found[label].finding
        assert finding is not None
        said[label] = finding.repair.text if finding.repair is not None else finding.factor
    assert said == CHANGES


def test_settings_belong_to_the_change(found: dict[str, Checked]) -> None:
    finding = found["flow-collapsed:w7"].finding
    assert finding is not None
    assert finding.settings == ("shared, N = oo",)
    assumed = found["integral-fafo:w12"].finding
    assert assumed is not None
    assert assumed.assumptions == ("mu_OV > 0", "mu_QK > 0")  # each once, though claim and paper say it
    slope = found["flow-faco:r14"].finding
    assert slope is not None
    assert slope.assumptions[0] == "mu_QK != 0"
    assert any("balanced" in text for text in slope.assumptions[1:])  # what the claim assumes in words


TURNED = [
    ("flow-collapsed", r"\frac{1}{\dot\mu_{OV}} = \frac{b D}{\alpha\eta_{OV}}", "match"),
    ("flow-collapsed", r"\frac{1}{\dot\mu_{OV}} = \frac{b D}{\alpha\eta_{QK}}", "differs"),
    ("flow-collapsed", r"\frac{\dot\mu_{OV}}{\dot\mu_{OV}} = 1", "undecided"),  # says nothing
    (
        "attention-mass",
        r"\frac{\alpha}{e^{\alpha\mu_{OV}}} = \frac{m e^{-\alpha\mu_{OV}}}{m + n e^{-\gamma\mu_{QK}}}",
        "match",
    ),
    (
        "attention-mass",
        r"\frac{\alpha}{e^{\alpha\mu_{OV}}} = \frac{m e^{-\alpha\mu_{OV}}}{m + n e^{\gamma\mu_{QK}}}",
        "differs",
    ),
    ("flow-published", r"\frac{d\mu_{OV}}{d\mu_{QK}} = \frac{\eta_{OV}bM}{\eta_{QK}(M-1)(1-\alpha)\mu_{OV}}", "match"),
    ("flow-published", r"\frac{d\mu_{OV}}{d\mu_{QK}} = \frac{\eta_{OV}b}{\eta_{QK}(M-1)(1-\alpha)\mu_{OV}}", "differs"),
]


@pytest.mark.parametrize(("claim", "latex", "status"), TURNED)
def test_equations_turned_over(tmp_path: Path, claim: str, latex: str, status: str) -> None:
    path = tmp_path / "paper.tex"
    path.write_text(rf"\begin{{equation}}\label{{{claim}}}{latex}\end{{equation}}", encoding="utf-8")
    (equation,) = check_paper(path).equations
    assert equation.status == status, equation.reason
