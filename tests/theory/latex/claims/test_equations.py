"""Equations of the claims: every stated formula has one, and folding changes nothing."""

from __future__ import annotations

import pytest
from sympy import Eq, Gt, Ne

from theory.identities import prove_zero
from theory.latex import to_latex
from theory.latex.claims.equations import equations, folded
from theory.registry import Claim, claims, find
from theory.symbols import M, b, mu_OV

CLAIMS = claims()


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_every_stated_formula_is_an_equation(claim):
    found = equations(claim)
    assert {e.name for e in found} >= set(claim.stated)
    assert len({e.id for e in found}) == len(found)
    assert all(e.id.startswith(f"{claim.id}.") for e in found)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_folded_equations_expand_to_the_stated_ones(claim):
    stated = {e.id: e for e in equations(claim)}
    seen = set()
    for equation in folded(claim):
        for expanded in equation.expanded():
            same = stated[expanded.id]
            seen.add(expanded.id)
            if same.relation == "const" and equation.definitions:
                assert prove_zero(expanded.left - same.left).answer == "equal"
            elif equation.definitions:
                assert prove_zero(expanded.right - same.right).answer == "equal"
            else:
                assert (expanded.left, expanded.right) == (same.left, same.right)
    assert seen == set(stated)


def test_a_formula_that_is_wrong_in_one_setting_is_not_folded():
    right = find("integral-caco")
    wrong = right.with_stated(**{"slope [shared, N]": 2 * right.stated["slope [shared, N]"]})
    assert sum(e.family == "integral-caco.slope" for e in folded(right)) == 1
    assert sum(e.family == "integral-caco.slope" for e in folded(wrong)) == 4


def test_a_user_claim_is_its_own_equation():
    claim = Claim(
        "mine", {"first": Eq(mu_OV, M * b), "second": Gt(mu_OV, b), "third": Ne(mu_OV, 0)}, obligations=lambda s: ()
    )
    assert [(e.left, e.relation, e.right) for e in equations(claim)][:2] == [(mu_OV, "=", M * b), (mu_OV, ">", b)]
    assert [to_latex(e.right) for e in equations(claim)] == ["M b", "b", "0"]
