"""The known theories of the literature: proved, run, and refuted where a formula is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from sympy import Expr, Integer

from numerics.checks.trials import CHECKS
from theory import reference
from theory.models.trial import Trial
from theory.reference.merged_run import second_moment
from theory.registry import Claim, prove, reference_claims
from theory.words import Words

CLAIMS = reference_claims()
IDS = [claim.id for claim in CLAIMS]
by_id = pytest.mark.parametrize("claim", CLAIMS, ids=IDS)


def test_every_row_of_the_table_is_there() -> None:
    assert set(IDS) == {
        "saxe-mode",
        "arora-end-to-end",
        "imbalanced-product",
        "kunin-single-neuron",
        "merged-linear-attention",
        "soft-attention-2023",
        "value-softmax",
        "activation-balance",
        "weight-decay-balance",
    }


def test_each_theory_is_short() -> None:
    files = [p for p in Path(reference.__file__).parent.glob("*.py") if not p.name.startswith("__")]
    long = {p.name: n for p in files if (n := len(p.read_text(encoding="utf-8").splitlines())) >= 80}
    assert len(files) >= 9
    assert not long


@by_id
def test_proved(claim: Claim) -> None:
    outcomes = prove(claim)
    assert outcomes
    assert {o.answer for o in outcomes} == {"proved"}, [(o.obligation.name, o.how) for o in outcomes]


@by_id
def test_the_explicit_model_agrees(claim: Claim) -> None:
    kind, trials = claim.subject
    assert kind == "trials"
    assert all(isinstance(trial, Trial) for trial in trials())
    findings = list(CHECKS["trials"](claim, None))
    assert len(findings) >= 6
    assert all(f.holds for f in findings), [f.says for f in findings if not f.holds]


#: A wrong version of each theory, in a formula that its runs rest on.
WRONG = {
    "saxe-mode": "solution",
    "arora-end-to-end": "dW/dt, N = 3",
    "imbalanced-product": "rate",
    "kunin-single-neuron": "rate",
    "merged-linear-attention": "solution",
    "soft-attention-2023": "nu",
    "value-softmax": "two slots",
    "activation-balance": "tanh",
    "weight-decay-balance": "rate",
}


def _wrong(claim: Claim) -> Claim:
    formula: Any = claim.stated[WRONG[claim.id]]
    if isinstance(formula, Words):
        return claim.with_stated(**{WRONG[claim.id]: 2 * formula})
    assert isinstance(formula, Expr)
    # a conserved value times 2 is conserved: there one term is changed
    terms = formula.as_ordered_terms() if claim.id in ("value-softmax", "activation-balance") else [formula]
    changed = sum(terms[1:], Integer(0)) + 2 * terms[0]
    return claim.with_stated(**{WRONG[claim.id]: changed})


@by_id
def test_a_wrong_formula_is_refuted_by_proof_and_by_run(claim: Claim) -> None:
    wrong = _wrong(claim)
    answers = {o.answer for o in prove(wrong)}
    assert answers != "proved"
    assert answers & {"refuted"}, answers
    findings = list(CHECKS["trials"](wrong, None))
    assert not all(f.holds for f in findings), "no run of the explicit model contradicts it"


def test_the_second_moment_of_white_inputs_by_enumeration() -> None:
    """Inputs of signs have the fourth moment 1, Gaussians 3: the formula's own counting, with 1 in place of 3."""
    D, N = 2, 2
    from itertools import product

    total = 0
    for signs in product((1, -1), repeat=D * N):
        rows = [signs[i * D : (i + 1) * D] for i in range(N)]
        S = [[sum(r[i] * r[j] for r in rows) for j in range(D)] for i in range(D)]
        total += sum(S[0][k] * S[k][0] for k in range(D))
    mean = Integer(total) / (2 ** (D * N) * N**2)
    gaussian = second_moment()
    names = {s.name: s for s in gaussian.free_symbols}
    at = gaussian.xreplace({names["D"]: Integer(D), names["N"]: Integer(N)})
    # the N equal pairs each carry the fourth moment once: 3 - 1 more, over N^2
    assert at - mean == Integer(2) * N / N**2


@pytest.mark.skipif(
    "GRADLINE_SEEDS" not in os.environ, reason="minutes: all mutants of the reference theories; set GRADLINE_SEEDS=1"
)
def test_no_mutant_survives() -> None:
    from numerics.mutation import try_mutants

    report = try_mutants(CLAIMS, seed=0)
    assert not report.survivors
