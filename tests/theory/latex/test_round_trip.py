"""What is printed reads back as the same expression, in every style and with an author's own names."""

from __future__ import annotations

import os
from typing import Any

import pytest
from sympy import Integral, symbols

from theory.errors import GradlineError
from theory.identities import prove_zero
from theory.latex import Notation, to_latex
from theory.latex.claims.equations import equations, folded
from theory.latex.parser import parse_latex
from theory.latex.source.tokens import LatexError
from theory.registry import claims
from theory.symbols import M, mu_OV
from theory.words import Words

#: Random expressions; ``GRADLINE_ROUND_TRIPS=20000`` tries more.
TRIPS = int(os.environ.get("GRADLINE_ROUND_TRIPS", "96"))
#: Seeds that once failed: a number before e, an integral in a product below, absolute values in absolute values, a
#: number and a sum before an integral.
HARD = (682, 1325, 1450, 1470, 1666, 3513, 3722, 4243, 5668, 16286)


def test_random_expressions_in_every_style(random_expression: Any, styles: Any) -> None:
    differences = []
    for seed in sorted({*range(TRIPS), *HARD}):
        value, style = random_expression(seed), styles[seed % len(styles)]
        latex = to_latex(value, style)
        try:
            same = parse_latex(latex, style) == value
        except LatexError as error:
            differences.append((seed, latex, str(error)))
        else:
            differences += [] if same else [(seed, latex)]
    assert differences == []


@pytest.mark.parametrize("claim", claims(), ids=lambda c: c.id)
def test_equations_of_claims(claim: Any, styles: Any) -> None:
    style = styles[len(claim.id) % len(styles)]
    for equation in {e.id: e for e in (*folded(claim), *equations(claim))}.values():
        for side in (equation.left, equation.right):
            if isinstance(side, Words):
                assert (parse_latex(to_latex(side, style), style) - side).is_zero()
            elif hasattr(side, "free_symbols"):
                assert parse_latex(to_latex(side, style), style) == side


def test_a_double_integral_is_refused() -> None:
    x, s = symbols("x s", real=True)
    with pytest.raises(GradlineError, match="one variable between two limits"):
        to_latex(2 * Integral(x * s, (x, 0, 1), (s, 0, 1)))


def test_a_changed_formula_reads_as_another_one(styles: Any) -> None:
    for style in styles:
        changed = to_latex(M + 2 * mu_OV, style).replace("2", "3")
        assert prove_zero(parse_latex(changed, style) - M - 2 * mu_OV).answer == "different"


def test_a_name_of_another_notation_is_refused() -> None:
    with pytest.raises(LatexError, match="muOV"):
        parse_latex(to_latex(mu_OV, Notation(names={"mu_OV": r"\muOV"})), Notation())
