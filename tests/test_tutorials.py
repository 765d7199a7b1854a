"""The tutorials run, and say what their text promises."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
SAYS = {
    "linear_net.py": [
        "states: A_1_1 B_1_1",
        "verdict: proved",
        "without the rates: refuted",
        "on the line: Checked(examples=6)",
        "product at the end: 0.99",
        r"\begin{aligned}\frac{\mathrm{d}w_{A}}{\mathrm{d}t}&=",
    ],
    "soft_attention.py": [
        "dmu_OV/dt = alpha*eta_OV/(M + exp(alpha*mu_OV) - 1)",
        "verdict: proved",
        "Checked(examples=3)",
    ],
    "own_attention.py": [
        "my theory: Checked(examples=8)",
        "extra outputs forgotten: the full model leaves the prediction at M=2, X=1,",
        "M for M - 1: the full model leaves the prediction at M=2, X=1,",
        "score scale forgotten: the full model leaves the prediction at M=2, X=1,",
    ],
}


def test_every_tutorial_is_tested() -> None:
    assert {p.name for p in (DOCS / "tutorials").glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_tutorial(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(DOCS / "tutorials" / name), run_name="__main__")
    said = capsys.readouterr().out
    for line in SAYS[name]:
        assert line in said
