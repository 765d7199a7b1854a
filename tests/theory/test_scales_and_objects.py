"""Score scales that are expressions, user symbols for sizes, and results that travel between processes."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import pytest
import sympy
from sympy import Abs, Integer, Symbol, diff, exp

from theory import AttentionModel, GradlineError, NoLineError, TokenTask, derive, first_integral
from theory.flow import Velocity
from theory.identities import prove_zero
from theory.symbols import M, gamma, mu_OV, mu_QK

d = Symbol("d", positive=True)
SCALES = [1 / sympy.sqrt(50), sympy.pi, sympy.log(2), sympy.sqrt(2) * gamma, gamma + 1, exp(gamma), 1 / sympy.sqrt(d)]


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("qk", ["collapsed", "factorized"])
def test_any_positive_scale(scale: Any, qk: Any) -> None:
    """The flow is that of the symbol with the scale put in, and its first integral is proved."""
    flow = derive(AttentionModel(TokenTask(score_scale=scale), qk=qk))
    generic = derive(AttentionModel(TokenTask(score_scale=gamma), qk=qk))
    for state in flow.states:
        assert prove_zero(flow.velocity[state] - generic.velocity[state].xreplace({gamma: scale})).answer == "equal"
    law = first_integral(flow)
    one_sign = {Abs(mu_QK): mu_QK}
    drift = sum((diff(law.value, s) * flow.velocity[s].xreplace(one_sign) for s in flow.states), Integer(0))
    assert prove_zero(drift, (sympy.Gt(mu_QK, 0, evaluate=False),)).answer == "equal"
    wrong = drift + diff(law.value, mu_QK) * flow.velocity[mu_QK].xreplace(one_sign)
    assert prove_zero(wrong, (sympy.Gt(mu_QK, 0, evaluate=False),)).answer == "different"


def test_class_symbol_of_the_user() -> None:
    """A class symbol other than M is at least 2 as well."""
    C = Symbol("C", integer=True, positive=True)
    flow = derive(AttentionModel(TokenTask(C, query_kind="per_class")))
    reference = derive(AttentionModel(TokenTask(query_kind="per_class")))
    assert flow.velocity[mu_QK] == reference.velocity[mu_QK].xreplace({M: C})
    with pytest.raises(NoLineError, match=r"E E\^T E = sigma\^2 E"):
        derive(AttentionModel(TokenTask(C, query_kind="per_class"), qk="factorized"))


def _with_ratio(factor: Any) -> Any:
    flow = derive(AttentionModel(TokenTask()))
    return replace(flow, velocity=Velocity({mu_OV: flow.velocity[mu_OV], mu_QK: flow.velocity[mu_QK] * factor}))


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (mu_QK**2, "no antiderivative"),
        (sympy.sin(mu_QK), "not rational in"),
        (Abs(mu_QK), "not rational in"),
        ((mu_QK**2 + 1) ** sympy.Rational(1, 3), "not rational in"),
        (1 + mu_OV * mu_QK, "mixes"),
    ],
    ids=str,
)
def test_what_has_no_integral_is_refused(factor: Any, message: str) -> None:
    with pytest.raises(GradlineError, match=message):
        first_integral(_with_ratio(factor))


@pytest.mark.parametrize("factor", [exp(mu_QK) + exp(2 * mu_QK), exp(-mu_QK), exp(mu_QK**2), 2 + mu_OV**2], ids=str)
def test_integrals_of_modified_flows(factor: Any) -> None:
    """Flows that still separate have an integral that depends on both states."""
    law = first_integral(_with_ratio(factor))
    assert law.value.has(mu_OV)
    assert law.value.has(mu_QK)


def test_results_travel() -> None:
    """Flows and integrals survive pickling and copying, with their assumptions."""
    flow = derive(AttentionModel(TokenTask(), ov="factorized"))
    law = first_integral(flow)
    for thing in (flow, flow.line, law):
        assert pickle.loads(pickle.dumps(thing)) == thing
        assert copy.deepcopy(thing) == thing
        assert hash(copy.deepcopy(thing)) == hash(thing)
    other = derive(AttentionModel(TokenTask(noise=sympy.oo), ov="factorized"))
    assert pickle.loads(pickle.dumps(other)) != flow


@pytest.mark.parametrize("call", [lambda: derive(TokenTask()), lambda: first_integral(3)])  # type: ignore[arg-type]
def test_wrong_types(call: Any) -> None:
    with pytest.raises(TypeError, match="expected a"):
        call()
