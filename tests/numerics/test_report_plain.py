"""Texts of claims with their symbols set, and safe whatever they hold."""

from __future__ import annotations

import re

import pytest

from numerics.report.plain import plain
from theory import claims


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("alpha mu_OV", "α μ<sub>OV</sub>"),
        ("sigma2_QK [per_class, N] M-1 times", "σ<sup>2</sup><sub>QK</sub> [per_class, N] M-1 times"),
        ("e^(-alpha (mu_OV + 1)) - 1", "e<sup>-α (μ<sub>OV</sub> + 1)</sup> - 1"),
        ("e^(open", "e^(open"),
        ("1^T U, x^-2", "1<sup>⊤</sup> U, x<sup>−2</sup>"),
        ("alphabet, books, xi_", "alphabet, books, xi_"),
        ("<b onclick='x'> & 1 <= 2", "&lt;b onclick=&#x27;x&#x27;&gt; &amp; 1 ≤ 2"),
        ("a^(<script>)", "a<sup>&lt;script&gt;</sup>"),
    ],
)
def test_symbols_are_set_and_the_rest_is_escaped(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_no_text_of_the_theory_keeps_the_name_of_a_letter() -> None:
    texts = [text for c in claims() for text in (c.title, c.text, *c.stated, *(a.text for a in c.assumptions()))]
    assert len(texts) > 200
    for text in texts:
        assert not re.search(r"\b(alpha|mu|sigma|kappa|gamma|eta)(_|\b)|\boo\b|\^", plain(text)), text
