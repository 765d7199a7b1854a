"""From evidence to verdicts: the logic, and a wrong formula that each kind of evidence refutes by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Function, Symbol, erf, erfc, exp

from numerics.evidence import KINDS, ClaimResult, ContradictionError, Evidence, Report, judge, verify, verify_claim
from theory.registry import Claim, Obligation, find
from theory.symbols import gamma
from theory.words import matrix

x = Symbol("x", real=True)
U = matrix("U")


def made(value: Any) -> Claim:
    return Claim("made", {"value": value}, lambda s: [Obligation("value", s["value"])], text="value = 0")


#: True, and beyond every exact method here.
BEYOND = erf(x) + erfc(x) - 1
#: The same with a function that has no enclosure either.
HIDDEN = BEYOND * Function("f", real=True)(x)
PROVED, UNDECIDED, REFUTED = made(x - x), made(HIDDEN), made(exp(x) - x)
YES, NO, OPEN = (Evidence("symbolic", answer, "") for answer in (True, False, None))
SEEN, BROKEN, MISSED = (Evidence("autograd", answer, "") for answer in (True, False, None))


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        ([YES], "proved"),
        ([YES, SEEN], "proved"),
        ([YES, MISSED], "proved"),
        ([OPEN, SEEN], "supported"),
        ([OPEN, SEEN, Evidence("trajectory", True, "")], "supported"),
        ([OPEN, SEEN, Evidence("trajectory", None, "")], "undecided"),
        ([OPEN], "undecided"),
        ([OPEN, MISSED], "undecided"),
        ([], "undecided"),
        ([SEEN], "supported"),
        ([NO], "refuted"),
        ([NO, BROKEN], "refuted"),
        ([NO, MISSED], "refuted"),
        ([OPEN, BROKEN], "refuted"),
    ],
)
def test_verdicts(evidence: list[Evidence], verdict: str) -> None:
    assert judge(PROVED, evidence) == verdict


def test_a_proof_against_the_full_model_is_an_error() -> None:
    with pytest.raises(ContradictionError, match="made: proved, but autograd contradicts it"):
        judge(PROVED, [YES, BROKEN])


@pytest.mark.parametrize(
    ("claim", "verdict", "code"), [(PROVED, "proved", 0), (UNDECIDED, "undecided", 3), (REFUTED, "refuted", 1)]
)
def test_made_claims_get_their_verdict(claim: Claim, verdict: str, code: int) -> None:
    report = verify([claim])
    assert report["made"].verdict == verdict
    assert report.exit_code == code


def test_refuted_goes_before_undecided() -> None:
    assert verify([UNDECIDED, REFUTED, PROVED]).exit_code == 1
    assert verify([]).exit_code == 0


def test_a_refutation_names_a_point() -> None:
    evidence, enclosure = verify_claim(REFUTED).evidence
    assert evidence.supports is False
    assert enclosure.supports is False
    assert "stated minus derived is in [" in evidence.detail
    assert "x=" in evidence.detail


def test_undecided_with_numerical_evidence_is_supported() -> None:
    """The right formulas with an obligation that no method decides."""
    claim = find("flow-cafo")
    open_claim = replace(claim, obligations=lambda _: [Obligation("open", BEYOND)])
    result = verify_claim(open_claim)
    assert result.verdict == "supported"
    assert [e.kind for e in result.evidence] == list(KINDS)
    assert [e.supports for e in result.evidence] == [None, True, True, True, True]


SEEDED = {
    # a factor 2 in one velocity, one slope, one attention
    "flow-faco": "mu_OV",
    "integral-cafo": "slope [shared, N]",
    "flow-published": "mu_QK",
}


def seeded(identity: str) -> Claim:
    claim = find(identity)
    return claim.with_stated(**{SEEDED[identity]: 2 * claim.stated[SEEDED[identity]]})


@pytest.mark.parametrize("identity", SEEDED)
def test_each_kind_of_evidence_refutes_a_seeded_error_by_itself(identity: str) -> None:
    right, wrong = verify_claim(find(identity)), verify_claim(seeded(identity))
    assert right.verdict == "proved"
    assert all(e.supports is True for e in right.evidence)
    assert [e.kind for e in wrong.evidence] == list(KINDS)
    assert [e.supports for e in wrong.evidence] == [False] * len(KINDS)
    assert wrong.verdict == "refuted"
    for evidence in wrong.evidence[2:]:
        assert evidence.numbers["worst_difference"] > 1e3 * evidence.numbers["bound"]


@pytest.mark.parametrize(
    ("identity", "name", "change"),
    [
        ("attention-mass", "alpha", lambda f: f.xreplace({gamma: gamma + 1})),
        ("loss-on-line", "L", lambda f: 2 * f),
        ("noise-correction", "shared", lambda f: f - f + 1),
        ("rescaling-balanced", "factor", lambda f: f / 2),
        ("isometry-criterion", "sigma2_QK [shared, N]", lambda f: 2 * f),
        ("gradient-parallel", "E_OV other", lambda f: 2 * f),
        ("balancedness", "conserved", lambda f: f + U.T @ U),
        ("product-flow", "dW/dt", lambda f: f + f),
    ],
)
def test_autograd_refutes_a_seeded_error(identity: str, name: str, change: Any) -> None:
    claim = find(identity)
    found = {e.kind: e for e in verify_claim(claim.with_stated(**{name: change(claim.stated[name])})).evidence}
    assert found["autograd"].supports is False
    assert found["symbolic"].supports is False


def without_time(report: Report) -> dict[str, Any]:
    data = report.to_dict()
    for claim in data["claims"]:
        assert claim.pop("seconds") >= 0
    return data


def test_the_same_seed_gives_the_same_report() -> None:
    chosen = [find("flow-collapsed"), find("attention-mass")]
    first, again, other = (without_time(verify(chosen, seed=seed)) for seed in (3, 3, 4))
    assert first == again
    assert first != other
    # cases of a claim do not depend on which others are verified
    alone = without_time(verify(chosen[1:], seed=3))
    assert alone["claims"] == first["claims"][1:]


def test_a_second_process_changes_nothing() -> None:
    """Claims of the theory travel, those of a user stay; a claim that contradicts itself is an error in both."""
    names = (
        "attention-mass",
        "product-flow",
        "balancedness",
        "balanced-root",
        "isometry-criterion",
        "noise-correction",
    )
    chosen = [*map(find, names), PROVED]
    one, two = (verify(chosen, seed=1, processes=count) for count in (1, 2))
    assert without_time(one) == without_time(two)
    assert {r.verdict for r in two.results} == {"proved"}
    with pytest.raises(ValueError, match="processes=3: expected 1 or 2"):
        verify(chosen, processes=3)


def test_reports_are_json() -> None:
    report = verify([find("flow-fafo"), find("product-flow"), find("isometry-criterion"), REFUTED])
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert [c["id"] for c in data["claims"]] == ["flow-fafo", "product-flow", "isometry-criterion", "made"]
    assert data["claims"][0]["verdict"] == "proved"
    assert data["claims"][0]["assumptions"]
    assert set(data["claims"][0]["evidence"][0]) == {"kind", "supports", "detail", "numbers"}
    with pytest.raises(KeyError, match="among flow-fafo"):
        report["flow-cafo"]


def test_progress_counts_every_claim() -> None:
    seen: list[tuple[int, int, str]] = []
    verify([PROVED, REFUTED], progress=lambda done, total, name: seen.append((done, total, name)))
    assert seen == [(0, 2, "made"), (1, 2, "made"), (2, 2, "")]


def test_evidence_without_a_case_decides_nothing() -> None:
    result = verify_claim(UNDECIDED)
    assert isinstance(result, ClaimResult)
    assert [e.supports for e in result.evidence] == [None, None]
    assert "undecided: value" in result.how
    assert np.isfinite(result.seconds)
