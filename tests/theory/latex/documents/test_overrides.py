"""Equations in an author's own hand: the same in other words is accepted, anything else is refused."""

from __future__ import annotations

import pytest

from theory.latex import Notation
from theory.latex.documents import claim_files
from theory.latex.documents.overrides import check_overrides
from theory.latex.source.tokens import LatexError
from theory.registry import find

RATE = r"\frac{\mathrm{d}\mu_{\mathrm{OV}}}{\mathrm{d}t}"
RIGHT = r"\frac{\alpha\eta_{\mathrm{OV}}}{b(e^{\alpha\mu_{\mathrm{OV}}}+M-1)}"
ACCEPTED = {
    "flow-published.mu_OV": f"{RATE}={RIGHT}",
    "integral-caco.conserved": r"\mu_{QK}+\frac{m}{\gamma n}e^{\gamma\mu_{QK}}"
    r"-\tfrac12\gamma\kappa\mu_{OV}^2=\mathrm{const}",
    "product-flow.dW-dt": r"\frac{dW}{dt}=-\eta U U^\top G-\eta G V V^\top",
    "loss-rate.L": r"L\sim\frac{b(M-1)}{t\eta_{\mathrm{OV}}}",
    "rescaling-balanced.factor": r"2\lvert\mu\rvert\sigma",
    "line-gradient-descent.step": r"W^+ = -hG + W",
    "balanced-root.U-U-T": r"U U^\top = \sqrt{W W^\top}",
    "time-on-curve.limit": r"\frac{\mu_{OV}^2}{\mu_{QK}} \to 2\frac{m+n}{n\kappa\gamma}",
    "attention-monotone.dL-dt": r"\dot{L} < 0",
}
REFUSED = {
    f"{RATE}={RIGHT.replace('-1', '')}": "is not",
    f"{RATE}={RIGHT}={RIGHT}": "expected one =",
    RIGHT: "expected one =",
    f"{RATE}<{RIGHT}": "expected one =",
    f"{RATE}={RIGHT}+0<1": "expected one =",
    f"{RATE.replace('OV', 'QK')}={RIGHT}": "is not",
    f"{RATE}={RIGHT[:-1]}": "1:",
    f"{RATE}=-{RIGHT}": "is not",
}


@pytest.mark.parametrize("identity", ACCEPTED)
def test_the_same_in_other_words(identity: str) -> None:
    claim = find(identity.partition(".")[0])
    notation = Notation(overrides={identity: ACCEPTED[identity]})
    check_overrides([claim], notation)
    assert any(ACCEPTED[identity] in text for text in claim_files(claim, notation).values())


@pytest.mark.parametrize(("latex", "message"), REFUSED.items())
def test_anything_else_is_refused(latex: str, message: str) -> None:
    with pytest.raises((ValueError, LatexError), match=message):
        check_overrides([find("flow-published")], Notation(overrides={"flow-published.mu_OV": latex}))


def test_an_unknown_equation_is_named_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'flow-published\.mu_OV'"):
        check_overrides([find("flow-published")], Notation(overrides={"flow-published.mu_0V": "x"}))
