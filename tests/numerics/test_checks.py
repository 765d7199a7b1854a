"""Each numerical kind by itself: a wrong stated formula that it contradicts, and what it needs to say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flint import arb
from sympy import Function, Rational, Symbol, exp, oo, sqrt

from numerics.checks.cases import cases, exact
from numerics.checks.comparison import WIDTH, Comparison, Ordering, Residual
from numerics.checks.enclosure import Positive, enclosure_findings
from numerics.checks.explicit_model import ExplicitModel, direction, sequences
from numerics.checks.gather import KINDS, Evidence, all_evidence, numerical_evidence
from numerics.checks.tape import constant, gradient, precision, total
from numerics.evidence import ContradictionError, confront, judge
from numerics.gradient_flow import one_thread
from theory.registry import Claim, Obligation, Outcome, decide, find
from theory.symbols import M, N, alpha, gamma, mu_OV, t
from theory.words import matrix

W, G, U = matrix("W"), matrix("G"), matrix("U")
h = Symbol("h", positive=True)
Change = Callable[[str, Any], Any]


def doubled(_name: str, formula: Any) -> Any:
    return formula + formula


def flipped(_name: str, formula: Any) -> Any:
    return -formula


def named(*names: str, by: Change = doubled) -> Change:
    return lambda name, formula: by(name, formula) if name.startswith(names) else formula


#: For each claim a wrong version that leaves no kind of evidence anything to support.
WRONG: Mapping[str, Change] = {
    "attention-mass": lambda _, f: f.xreplace({gamma: gamma + 1}),
    "loss-on-line": doubled,
    "shift-conservation": lambda name, f: (
        f + (G.T @ U if name.endswith("OV") else Symbol("W_OV_same", real=True))
        if not name.endswith(("OV", "QK"))
        else f
    ),
    "gradient-parallel": named("E_OV other", "a [", by=doubled),
    "flow-collapsed": doubled,
    "flow-published": doubled,
    "noise-correction": lambda _, f: f + 1,
    "product-flow": doubled,
    "balancedness": lambda _, f: f + U.T @ U,
    "balanced-root": doubled,
    "rescaling-balanced": doubled,
    "rescaling-imbalanced": doubled,
    "isometry-criterion": doubled,
    "flow-cafo": doubled,
    "flow-faco": doubled,
    "flow-fafo": doubled,
    "integral-caco": named("slope"),
    "integral-cafo": named("slope"),
    "integral-faco": named("slope"),
    "integral-fafo": named("slope"),
    "integral-imbalanced-ov": named("CAFO: slope", "FAFO: slope"),
    "fixed-attention-collapsed": named("A", by=lambda _, f: f.xreplace({t: 2 * t})),
    "fixed-attention-factorized": lambda _, f: f.xreplace({t: 2 * t}),
    "attention-sensitivity": doubled,
    "stopping-state": doubled,
    "time-on-curve": named("dt/dmu_QK"),
    "sharper-with-ratio": named("sign dalpha/dr", by=flipped),
    "attention-monotone": flipped,
    "early-time": named("mu_OV"),
    "loss-rate": doubled,
    "attention-limit": doubled,
    "parameterization-order": lambda _, f: f * 40,
    "line-gradient-descent": lambda _, f: W - h * (G @ G.T @ G),
    "line-momentum": named("heavy-ball step", by=lambda _, f: W - h * (G @ G.T @ G)),
    "line-weight-decay": lambda _, f: W - h * (G @ G.T @ G),
    "adam-leaves-line": lambda _, f: f + 1,
    "integral-drift-order": named("collapsed", by=lambda _, f: f + h / 1000),
}

#: What applies where, beyond *symbolic* and *enclosure*.
EXPECTED = {
    "noise-correction": {"instance", "autograd"},
    "product-flow": {"instance", "autograd"},
    "balancedness": {"instance", "autograd", "trajectory"},
    "balanced-root": {"instance", "autograd"},
    "rescaling-balanced": {"instance", "autograd"},
    "rescaling-imbalanced": {"instance", "autograd"},
    "isometry-criterion": {"instance", "autograd"},
    "attention-sensitivity": {"instance", "autograd"},
    "sharper-with-ratio": {"trajectory"},
    "early-time": {"trajectory"},
    "loss-rate": {"trajectory"},
    "attention-limit": {"trajectory"},
    "parameterization-order": {"trajectory"},
    "line-gradient-descent": {"instance", "trajectory"},
    "line-momentum": {"instance", "trajectory"},
    "line-weight-decay": {"instance", "trajectory"},
    "adam-leaves-line": {"instance"},
    "integral-drift-order": {"trajectory"},
}


def wrong(identity: str) -> Claim:
    claim = find(identity)
    return claim.with_stated(**{name: WRONG[identity](name, f) for name, f in claim.stated.items()})


@pytest.mark.parametrize("identity", WRONG)
def test_every_numerical_kind_contradicts_a_wrong_formula(identity: str) -> None:
    with one_thread():
        found = {e.kind: e for e in numerical_evidence(wrong(identity), 0)}
    assert set(found) == EXPECTED.get(identity, set(KINDS[2:]))
    for evidence in found.values():
        assert evidence.supports is False, evidence
        assert evidence.numbers["broken"] > 0
        assert set(evidence.broken) <= set(evidence.parts)
        assert set(evidence.parts) <= set(find(identity).stated)


@pytest.mark.parametrize("identity", ["attention-mass", "time-on-curve", "early-time", "loss-rate", "adam-leaves-line"])
def test_enclosures_contradict_a_wrong_formula(identity: str) -> None:
    found = {e.kind: e for e in all_evidence(wrong(identity), 0)}
    assert found["symbolic"].supports is False
    assert found["enclosure"].supports is False


def test_the_table_names_every_claim() -> None:
    from theory.registry import claims

    assert set(WRONG) == {c.id for c in claims()}


def test_a_formula_without_a_value_decides_nothing() -> None:
    claim = find("loss-on-line").with_stated(L=Function("f")(mu_OV))
    found = {e.kind: e for e in all_evidence(replace(claim, obligations=lambda _: []), 0)}
    assert found["instance"].supports is None
    assert found["instance"].detail.startswith("not evaluated: ")


def test_comparisons() -> None:
    assert Comparison("x", 1.0, 1.0 + 1e-12, 1e-11, "").holds
    assert not Comparison("x", 1.0, 1.0 + 1e-10, 1e-11, "").holds
    assert not Comparison("x", float("nan"), 1.0, 1e-11, "").holds
    assert [Ordering("x", a, 0.0, 0.1, "").holds for a in (1.0, 0.05, -1.0)] == [True, None, False]


def test_residuals_need_a_narrow_ball_around_0() -> None:
    tiny = arb(10) ** -30
    found = [Residual("x", ball, "").holds for ball in (arb(0), arb(0, tiny), arb(1), arb("nan"), arb(tiny, tiny / 2))]
    assert found == [True, None, False, None, False]
    assert WIDTH == 1e-40
    assert [Positive("x", ball, "").holds for ball in (arb(1), arb(-1), arb(0, 1))] == [True, False, None]


def enclose_one(value: Any, relation: Any = "= 0", *assumptions: Any) -> list[bool | None]:
    outcome = Outcome(Obligation("o", value, relation, assumptions), "undecided", "")
    return [f.holds for f in enclosure_findings([outcome], np.random.default_rng(0))[0]]


def test_enclosures() -> None:
    x = Symbol("x", real=True)
    one = (exp(x) + 1) ** 2 - exp(2 * x) - 2 * exp(x) - 1
    assert enclose_one(one) == [True, True]
    # a difference of 1e-30 that no float would show
    assert enclose_one(one - Rational(1, 10**30)) == [False, False]
    assert enclose_one(sqrt(x)) in ([], [False], [False, False])
    assert enclose_one(x, "> 0", x > 0) == [True, True]
    assert enclose_one(-x, "> 0", x > 0) == [False, False]
    assert enclose_one(Function("f")(x)) == []
    # below the stated width nothing is seen: an enclosure supports and does not prove
    assert enclose_one(one - exp(x) / 10**100) == [True, True]


def test_an_enclosure_is_taken_at_the_counterexample() -> None:
    """Different only for M = 2 and large numbers: the point that the exact decision found is one of those tried."""
    outcome = decide(Obligation("o", M - 2, "> 0"))
    assert outcome.answer == "refuted"
    findings, figures = enclosure_findings([outcome], np.random.default_rng(0))
    assert figures["counterexamples"] == 1
    assert findings[0].case == "M=2"


def test_tape_against_difference_quotients() -> None:
    with precision():
        x, y = constant(Rational(1, 3)), constant(2)
        value = (x * y + x.exp() / y - (x + y).log()).scaled(arb(3))
        slopes = gradient(total([value, x]), [x, y])
        step = arb(2) ** -80

        def shifted(dx: Any, dy: Any) -> Any:
            a, b = constant(x.value + dx), constant(y.value + dy)
            return ((a * b + a.exp() / b - (a + b).log()).scaled(arb(3)) + a).value

        for slope, (dx, dy) in zip(slopes, ((step, 0), (0, step)), strict=True):
            quotient = (shifted(dx, dy) - shifted(-dx, -dy)) / (2 * step)
            # second order in a step of 2^-80
            assert abs(quotient - slope) < arb(2) ** -150


@pytest.mark.parametrize("code", ["CACO", "FAFO"])
def test_the_written_out_model_agrees_with_torch(code: str) -> None:
    for case in cases(np.random.default_rng(1), code, 1):
        with precision():
            found = ExplicitModel.on_line(case, code)
            # rounding of torch in double precision
            assert abs(float(found.loss()) - float(case.model(code).loss().detach())) < 1e-13
            assert abs(float(found.attention()) - float(case.model(code).attention())) < 1e-13
            for circuit, W in found.matrices().items():
                E = np.array([[float(e) for e in row] for row in direction(case, circuit)])
                mu = float(case.values[{"OV": mu_OV}.get(circuit, Symbol("mu_QK", real=True))])
                np.testing.assert_allclose([[float(x) for x in row] for row in W], mu * E, atol=1e-14)


def test_sequences_are_counted() -> None:
    case = next(cases(np.random.default_rng(0), "CACO", 1))
    task = case.task
    expected = task.classes * task.queries * task.block**task.informative_slots * task.noise**task.noise_slots
    assert task.noise != oo
    assert len(set(sequences(case))) == len(list(sequences(case))) == expected


def test_a_factorized_circuit_without_a_line_is_refused() -> None:
    rng = np.random.default_rng(0)
    case = next(c for c in cases(rng, "CACO", 1) if c.query_kind == "per_class" and c.finite)
    with pytest.raises(ValueError, match="does not stay on its line"):
        ExplicitModel.on_line(case, "FACO")


def test_exact_values_are_close() -> None:
    with precision(600):
        gap = arb(2).exp() - arb(int(exact(exp(alpha), {alpha: Rational(2)}) * 2**520)) / arb(2) ** 520
        assert abs(gap) < arb(2) ** -500


def test_cases_have_all_signs_and_sizes() -> None:
    found = list(cases(np.random.default_rng(3), "CACO", 1))
    assert {(c.values[mu_OV] > 0, c.values[Symbol("mu_QK", real=True)] > 0) for c in found} == {
        (a, b) for a in (True, False) for b in (True, False)
    }
    assert {int(c.values[M]) for c in found} == {2, 3}


YES, NO = (Evidence("symbolic", answer, "") for answer in (True, False))


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_proof_and_a_contradiction_of_any_kind_are_an_error(kind: str) -> None:
    claim = find("loss-on-line")
    with pytest.raises(ContradictionError, match=f"proved, but {kind} contradicts it"):
        judge(claim, confront([YES, Evidence(kind, False, "")]))


def test_numerical_kinds_that_disagree_are_an_error_where_they_look_at_the_same_thing() -> None:
    claim, undecided = find("loss-on-line"), Evidence("symbolic", None, "")
    broken = Evidence("autograd", False, "", parts=("a", "b"), broken=("a",))
    same, other = (Evidence("instance", True, "", parts=parts) for parts in (("a", "b"), ("b",)))
    with pytest.raises(ContradictionError, match="supported by instance, but autograd contradicts it"):
        judge(claim, confront([undecided, same, broken]))
    assert judge(claim, confront([undecided, other, broken])) == "refuted"


def test_samples_that_miss_an_exact_counterexample_support_nothing() -> None:
    claim = find("loss-on-line")
    evidence = confront([NO, Evidence("instance", True, "8 comparisons", parts=("L",))])
    assert [e.supports for e in evidence] == [False, None]
    assert judge(claim, evidence) == "refuted"
    # an enclosure was taken at the counterexample itself
    at_it = Evidence("enclosure", True, "", {"counterexamples": 1})
    with pytest.raises(ContradictionError):
        judge(claim, confront([NO, at_it]))
    assert judge(claim, confront([NO, replace(at_it, numbers={})])) == "refuted"


def shift_with(**changes: Any) -> dict[str, Any]:
    claim = find("shift-conservation")
    with one_thread():
        return {e.kind: e.supports for e in numerical_evidence(claim.with_stated(**changes), 0)}


@pytest.mark.parametrize("name", ["row sum [shared]", "row sum [per_class]", "column sum, informative"])
def test_autograd_contradicts_a_wrong_size_in_a_stated_law(name: str) -> None:
    law = find("shift-conservation").stated[name]
    size = M if name.startswith("column") else N
    (noise,) = (s for s in law.free_symbols if s.name in ("W_QK_noise", "W_OV_other"))
    assert shift_with(**{name: law.xreplace({noise: noise * size})})["autograd"] is False
    # twin: twice a conserved sum is conserved
    assert shift_with(**{name: 2 * law})["autograd"] is True


def test_a_law_in_words_is_differentiated() -> None:
    ones, U, V = (matrix(name) for name in "1UV")
    # ones are constant; ones U V^T are not, off the line
    assert shift_with(**{"ones U of OV": ones.T})["autograd"] is True
    assert shift_with(**{"ones U of OV": ones.T @ U @ V.T})["autograd"] is False
