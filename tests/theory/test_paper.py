"""The claims of the theory: all there, proved; a wrong formula in any of them is refuted with a witness."""

from __future__ import annotations

from typing import Any

import pytest
from sympy import Integer, Rational

from theory.balls import enclose
from theory.paper.settings import SETTINGS
from theory.registry import Outcome, claims, find, prove
from theory.symbols import K, M, N, b, c_OV, gamma, mu_OV
from theory.words import matrix

IDS = (
    "attention-mass",
    "loss-on-line",
    "shift-conservation",
    "gradient-parallel",
    "flow-collapsed",
    "flow-published",
    "noise-correction",
    "product-flow",
    "balancedness",
    "balanced-root",
    "rescaling-balanced",
    "rescaling-imbalanced",
    "isometry-criterion",
    "flow-cafo",
    "flow-faco",
    "flow-fafo",
    "integral-caco",
    "integral-cafo",
    "integral-faco",
    "integral-fafo",
    "integral-imbalanced-ov",
)


def test_every_claim_is_there_once() -> None:
    found = [claim.id for claim in claims()]
    assert set(IDS) <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("identity", IDS)
def test_claim_is_proved(identity: str) -> None:
    claim = find(identity)
    outcomes = prove(claim)
    assert outcomes
    assert [o.obligation.name for o in outcomes if o.answer != "proved"] == []
    assert claim.title
    assert claim.text
    assert claim.source
    assert claim.assumptions()


@pytest.mark.parametrize(
    "identity", ["flow-collapsed", "integral-caco", "flow-fafo", "loss-on-line", "noise-correction"]
)
def test_derivations_leave_a_trace(identity: str) -> None:
    trace = find(identity).trace()
    assert len(trace) >= 2
    assert all(step.rule for step in trace)


def wrong(identity: str, name: str, change: Any) -> tuple[Outcome, ...]:
    claim = find(identity)
    return prove(claim.with_stated(**{name: change(claim.stated[name])}))


WRONG = [
    ("attention-mass", "alpha", lambda f: f.xreplace({gamma: 2 * gamma})),
    ("loss-on-line", "L", lambda f: f.xreplace({M - 1: M})),
    ("gradient-parallel", "a [shared]", lambda _: N / (b + N)),
    ("flow-collapsed", "mu_OV", lambda f: 2 * f),
    *[("flow-collapsed", f"mu_QK [{s.label}]", lambda f: f * M / (M - 1)) for s in SETTINGS],
    ("flow-published", "mu_QK", lambda f: f * b),
    ("noise-correction", "shared", lambda _: Integer(1)),
    ("noise-correction", "per_class", lambda _: 1 + M * b / N),
    ("rescaling-balanced", "factor", lambda f: f / 2),
    ("rescaling-imbalanced", "factor", lambda f: f + 1),
    ("isometry-criterion", "sigma2_QK [per_class, N] once", lambda f: f / K),
    ("flow-cafo", "mu_OV", lambda f: f / b),
    ("flow-faco", "mu_QK [shared, N]", lambda f: -f),
    ("flow-fafo", "mu_QK [per_class, N = oo]", lambda f: f * mu_OV),
    ("integral-caco", "slope [shared, N]", lambda f: 2 * f),
    ("integral-cafo", "slope [shared, N = oo]", lambda f: f / b),
    ("integral-imbalanced-ov", "CAFO: x", lambda f: f.xreplace({c_OV: 2 * c_OV})),
]


@pytest.mark.parametrize(
    ("identity", "name", "change"), WRONG, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_wrong_formula_is_refuted_with_a_witness(identity: str, name: str, change: Any) -> None:
    refuted = [o for o in wrong(identity, name, change) if o.answer == "refuted"]
    assert refuted
    decided = [o for o in refuted if o.decision is not None and o.obligation.relation == "= 0"]
    assert decided
    for outcome in decided:
        decision = outcome.decision
        assert decision is not None
        assert decision.enclosure is not None
        low, high = (Rational(x) for x in decision.enclosure)
        assert low * high > 0
        # the witness is rational, in the domain of the symbols, and the value there is in the enclosure
        assert decision.witness is not None
        assert all(value.is_Rational and (value > 0 or not s.is_positive) for s, value in decision.witness.items())
        assert decision.witness.get(M, 2) >= 2
        value = outcome.obligation.value
        ball = enclose(value, {s: decision.witness[s] for s in value.free_symbols}, bits=200)
        middle = Rational(str(ball.mid().str(40, radius=False)))
        assert min(low, high) <= middle <= max(low, high)


@pytest.mark.parametrize("identity", ["integral-faco", "integral-fafo"])
def test_a_wrong_branch_is_never_proved(identity: str) -> None:
    claim = find(identity)
    changed = claim.with_stated(**{name: 2 * f for name, f in claim.stated.items() if name.startswith("slope")})
    answers = {o.answer for o in prove(changed) if o.obligation.name.startswith("d/dt")}
    assert "refuted" in answers
    assert "proved" not in answers


def test_wrong_words_are_refuted() -> None:
    U, V, G = matrix("U"), matrix("V"), matrix("G")
    flow = find("product-flow").with_stated(**{"dW/dt": -1 * (U @ U.T @ G) + -1 * (G @ V @ V.T)})
    assert [o.answer for o in prove(flow)] == ["refuted"]
    balance = find("balancedness").with_stated(conserved=U.T @ U + V.T @ V)
    assert [o.answer for o in prove(balance)] == ["refuted"]
    # refuted by balanced matrices for which the square is another one
    root = find("balanced-root").with_stated(**{"U U^T": V @ V.T})
    answers = {o.obligation.name: o.answer for o in prove(root)}
    assert answers["(U U^T)^2"] == "refuted"
    assert answers["(V V^T)^2"] == "proved"


def test_wrong_sums_are_refuted() -> None:
    claim = find("shift-conservation")
    law = claim.stated["column sum, informative"]
    outcomes = prove(claim.with_stated(**{"column sum, informative": law.xreplace({M: M + 1})}))
    assert any(o.answer == "refuted" for o in outcomes)
    row = claim.stated["row sum [shared]"]
    outcomes = prove(claim.with_stated(**{"row sum [shared]": row.xreplace({N: 2 * N})}))
    assert any(o.answer == "refuted" for o in outcomes)
