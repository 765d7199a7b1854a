"""Counterexamples: small points, both values, and snippets that show them."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import pytest
from sympy import Eq, Function, Gt, Integer, Matrix, Rational, Symbol, exp, log, sqrt

from theory.balls import enclose
from theory.counterexamples import Counterexample, counterexample, lost_value, nonpositive, shrink
from theory.factorization import BALANCED, PROJECTION
from theory.mutation.judging import judge
from theory.mutation.statements import mutants
from theory.registry import Claim, Obligation, claims, decide, find, prove
from theory.symbols import M, b, gamma, mu_OV, mu_QK
from theory.word_instances import Instance, evaluate, find_instance
from theory.words import Rule, Words, matrix

x = Symbol("x", real=True)
U, V, A, B = (matrix(name) for name in "UVAB")


def refuted(claim: Claim) -> Counterexample:
    found = counterexample(claim, next(o for o in prove(claim) if o.answer == "refuted"))
    assert found is not None
    return found


def printed(snippet: str) -> dict[str, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(snippet, {})
    return dict(re.findall(r"(stated|derived) +(.*)", out.getvalue()))


# ---- points ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fails", "small"),
    [
        (lambda p: p[x] > 2, 3),
        (lambda p: p[x] != 0, 1),
        (lambda p: p[x] < 0, -1),
        (lambda p: 0 < p[x] < 1, Rational(1, 2)),
        (lambda p: 0 < p[x] < Rational(1, 2), Rational(1, 3)),
        (lambda p: p[x] == Rational(17, 29), Rational(17, 29)),
    ],
)
def test_shrinking_prefers_integers_then_halves_then_thirds(fails: Any, small: Any) -> None:
    start = next(
        Rational(v) for v in (Rational(17, 5), Rational(-7, 5), Rational(2, 5), Rational(17, 29)) if fails({x: v})
    )
    assert shrink({x: start}, fails) == {x: small}


def test_shrinking_stays_in_the_domain() -> None:
    # M is at least 2 and gamma is positive
    assert shrink({M: Integer(9), gamma: Rational(7, 3)}, lambda _: True) == {M: 2, gamma: 1}


@pytest.mark.parametrize(
    ("value", "assumptions"), [(M - b, ()), (M - 2, ()), (mu_OV, ()), (x**2 - 2 * x, ()), (x - 50, (x > 0,)), (-M, ())]
)
def test_a_value_that_is_not_positive_everywhere(value: Any, assumptions: Any) -> None:
    found = nonpositive(value, assumptions)
    assert found is not None
    assert found.answer == "different"
    assert value.xreplace(dict(found.witness)) <= 0
    assert found.enclosure is not None
    assert Rational(found.enclosure[1]) <= 0
    assert decide(Obligation("positive", value, "> 0", assumptions)).answer == "refuted"


@pytest.mark.parametrize(("value", "assumptions"), [(M - 1, ()), (exp(x), ()), (x, (x > 0,)), (x**2 + 1, ())])
def test_a_positive_value_has_no_such_point(value: Any, assumptions: Any) -> None:
    assert nonpositive(value, assumptions) is None
    assert decide(Obligation("positive", value, "> 0", assumptions)).answer == "proved"


def test_a_lost_value() -> None:
    assert lost_value(x, log(x)) == {x: -1}
    assert lost_value(x, log(x), (x > 0,)) is None
    assert lost_value(x, sqrt(x)) == {x: -1}
    assert lost_value(x, 1 / x) == {x: 0}
    # both have no value there: nothing is lost
    assert lost_value(log(x), 2 * log(x)) is None


# ---- both sides --------------------------------------------------------------------------------------------


def test_stated_and_derived_at_the_smallest_sizes() -> None:
    found = refuted(find("noise-correction").with_stated(shared=1 + M * b))
    assert found.point[b] == 1
    assert found.point[M] == 2
    assert (found.stated.low, found.derived.low) == ("3", "2")
    assert printed(found.snippet) == {"stated": "3.0000000000000000000", "derived": "2.0000000000000000000"}


def test_sides_of_relations() -> None:
    found = refuted(Claim("mine", Eq(x**2, 2 * x)))
    assert (found.stated.text, found.derived.text) == ("x**2", "2*x")
    assert {found.stated.low, found.derived.low} == {"1", "2"}
    found = refuted(Claim("mine", Gt(x**2, x, evaluate=False)))
    assert Rational(found.stated.high) <= Rational(found.derived.low)


def test_names_that_python_keeps_for_itself() -> None:
    odd = Symbol("lambda", positive=True)
    found = refuted(Claim("mine", Eq(2 * odd, odd + Rational(1, 2))))
    values = printed(found.snippet)
    assert float(values["stated"]) == 2
    assert float(values["derived"]) == 1.5


@pytest.mark.parametrize("identity", [c.id for c in claims()])
def test_snippets_print_what_was_enclosed(identity: str) -> None:
    checked = 0
    for mutant in mutants(find(identity), 5, 2):
        judged = judge(mutant)
        found = judged.counterexample()
        if judged.answer != "refuted" or found is None:
            continue
        checked += 1
        values = printed(found.snippet)
        for side in (found.stated, found.derived):
            shown = values[side.what.split()[0]]
            if shown.startswith("Matrix"):
                assert shown == f"Matrix({side.low})"
            else:
                # twenty digits are printed and the enclosure is of twenty digits: one unit of the last of them
                slack = Rational(1, 10**18) * (1 + abs(Rational(shown)))
                assert Rational(side.low) - slack <= Rational(shown) <= Rational(side.high) + slack
    assert checked or identity.startswith("line-")


def test_what_is_left_without_the_claim() -> None:
    wrong = find("flow-published").with_stated(mu_OV=2 * find("flow-published").stated["mu_OV"])
    outcome = next(o for o in prove(wrong) if o.answer == "refuted")
    found = counterexample(None, outcome)
    assert found is not None
    assert (found.stated.low, found.stated.high) == ("0", "0")
    values = {s: found.point[s] for s in outcome.obligation.value.free_symbols}
    assert enclose(outcome.obligation.value, values).overlaps(
        enclose(Rational(found.derived.low), {}).union(enclose(Rational(found.derived.high), {}))
    )


# ---- matrices ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "rules"),
    [
        (U @ V.T - V @ U.T, BALANCED),
        (U @ U.T - V @ V.T, BALANCED),
        (A @ B.T - B @ A.T, PROJECTION),
        (A - B, PROJECTION),
        (U @ V - V @ U, ()),
        (U + U, ()),
    ],
)
def test_instances_satisfy_the_hypotheses_and_refute(words: Words, rules: tuple[Rule, ...]) -> None:
    found = find_instance(words, rules)
    assert found is not None
    assert evaluate(words, found) != Matrix.zeros(found.size, found.size)
    every = find_instance(words, rules, tuple(r.image for r in rules))
    assert every is not None
    for rule in rules:
        if {name for name, _ in rule.word} <= set(every.matrices):
            assert evaluate(Words.of({rule.word: 1}) - rule.image, every).is_zero_matrix


def test_a_consequence_of_the_hypotheses_has_no_instance() -> None:
    # U^T U = V^T V, so that U U^T U = U V^T V
    assert find_instance(U @ U.T @ U - U @ V.T @ V, BALANCED) is None
    assert decide(Obligation("words", U @ U.T @ U - U @ V.T @ V, hypotheses=BALANCED)).answer == "undecided"
    # twin: without the hypothesis it is refuted
    assert decide(Obligation("words", U @ U.T @ U - U @ V.T @ V)).answer == "refuted"


def test_matrix_counterexamples() -> None:
    found = refuted(find("product-flow").with_stated(**{"dW/dt": -1 * (U @ U.T @ matrix("G"))}))
    assert printed(found.snippet) == {
        "stated": f"Matrix({found.stated.low})",
        "derived": f"Matrix({found.derived.low})",
    }
    assert found.stated.low != found.derived.low
    assert Instance({"U": Matrix([[2]])}, {}).size == 1


def test_values_of_both_signs_of_mu_qk_are_tried() -> None:
    assert nonpositive(mu_QK + 3) is not None


def test_a_claim_about_a_function_names_the_function_chosen() -> None:
    f = Function("f")
    found = refuted(Claim("made", Eq(f(x), x**2 + 1)))
    assert "f=Lambda(u, " in found.where
    shown = printed(found.snippet)
    assert abs(Rational(shown["stated"]) - found.point[f](found.point[x])) < Rational(1, 10**15)
    assert Rational(shown["derived"]) == found.point[x] ** 2 + 1
