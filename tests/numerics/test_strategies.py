"""The public strategies keep their bounds, cover what they promise and shrink to small and round values."""

from __future__ import annotations

import subprocess
import sys
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from sympy import oo

from numerics.population import population_size
from numerics.predictions import witness
from numerics.sizes import concrete_sizes
from numerics.strategies import decimals, experiments, models, off_line, rates, starts, tasks
from theory.model import PARAMETERIZATIONS, AttentionModel
from theory.task import TokenTask

SMALL = TokenTask(2, 1, 1, 1, 1, 1)
SHARED = TokenTask(3, 2, 2, 2, 2, 1)
# without the phase that explains a failure: it varies what has been shrunk, and `find` returns what it tried last
QUICK = settings(
    max_examples=500,
    phases=[Phase.generate, Phase.shrink],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
FOUND = settings(QUICK, phases=[Phase.generate])


def smallest(strategy: Any, condition: Any) -> Any:
    """What Hypothesis shrinks to, without randomness of its own."""
    return find(strategy, condition, settings=QUICK, random=Random(0))


@given(st.integers(6, 20_000).flatmap(lambda limit: st.tuples(st.just(limit), tasks(max_entries=limit))))
def test_tasks_keep_the_bound_on_the_population(drawn: tuple[int, TokenTask]) -> None:
    limit, task = drawn
    sizes = concrete_sizes(task)
    assert population_size(sizes) * sizes.tokens <= limit
    assert 2 <= sizes.classes <= 5
    assert max(sizes.block, sizes.queries, sizes.noise_tokens) <= 5
    assert max(sizes.informative_slots, sizes.noise_slots) <= 3


@pytest.mark.parametrize(
    "condition",
    [
        lambda task: task.noise is oo and task.query_kind == "per_class",
        lambda task: task.noise == 5,
        lambda task: task.classes == 5,
        lambda task: task.informative_slots == 3 and task.noise_slots == 3,
        lambda task: task.score_scale < 1,
    ],
)
def test_tasks_reach_every_corner(condition: Any) -> None:
    assert condition(smallest(tasks(), condition))


def test_tasks_shrink_to_the_smallest() -> None:
    assert smallest(tasks(), lambda _: True) == SMALL
    assert smallest(tasks(), lambda task: task.classes >= 4) == TokenTask(4, 1, 1, 1, 1, 1)
    assert smallest(tasks(), lambda task: task.score_scale != 1).score_scale == 2


@given(tasks(query_kind="per_class", noise="finite"))
def test_tasks_of_one_kind(task: TokenTask) -> None:
    assert task.query_kind == "per_class"
    assert task.noise_is_finite


@given(rates())
def test_rates_span_four_decades_in_round_numbers(drawn: dict[str, float]) -> None:
    for value in drawn.values():
        assert 0.01 <= value <= 100
        assert float(f"{value:.1e}") == value


def test_rates_reach_the_ends_and_shrink_to_one() -> None:
    assert smallest(rates(), lambda _: True) == {"eta_OV": 1.0, "eta_QK": 1.0}
    assert smallest(rates(), lambda drawn: drawn["eta_QK"] >= 100) == {"eta_OV": 1.0, "eta_QK": 100.0}
    assert smallest(rates(), lambda drawn: drawn["eta_OV"] <= 0.01) == {"eta_OV": 0.01, "eta_QK": 1.0}


@given(decimals(-3, 3, digits=2))
def test_decimals_are_never_subnormal(value: float) -> None:
    assert value == 0 or abs(value) >= 0.01
    assert round(value, 2) == value


@given(st.data())
def test_models_have_a_line_and_starts_that_move(data: st.DataObject) -> None:
    model = data.draw(models(data.draw(tasks(max_entries=500))))
    start = data.draw(starts(model))
    if model.task.query_kind == "per_class" and model.task.noise_is_finite:
        assert model.qk == "collapsed"
    for circuit in ("OV", "QK"):
        mu = start[f"mu_{circuit}"]
        assert abs(mu) <= 2
        assert mu != 0 or not model.is_balanced(circuit)  # type: ignore[arg-type]
    net = witness(model, start)
    # factors are rounded, so the line is met to rounding of products of numbers up to 10
    assert net.coordinates() == pytest.approx(start, abs=1e-14)
    assert max(net.distance_to_line().OV, net.distance_to_line().QK) < 1e-14


@pytest.mark.parametrize("code", PARAMETERIZATIONS)
def test_models_of_one_parameterization(code: str) -> None:
    assert smallest(models(SHARED, code=code), lambda _: True).parameterization == code
    if code != "CACO":
        skewed = smallest(models(SHARED, code=code, balanced=False), lambda _: True)
        assert {skewed.imbalance_qk, skewed.imbalance_ov} != {0}
        assert all(abs(c) <= 2 for c in (skewed.imbalance_qk, skewed.imbalance_ov))


def test_models_reach_both_signs_of_imbalance_and_wide_factors() -> None:
    for condition in (
        lambda model: model.imbalance_qk < 0,
        lambda model: model.imbalance_ov > 0,
        lambda model: model.width_qk == 3 and model.width_ov == 4,
        lambda model: model.qk == "factorized" and model.is_balanced("QK"),
    ):
        assert condition(smallest(models(SHARED), condition))


def test_starts_reach_zero_and_negative_where_the_circuit_allows() -> None:
    collapsed, balanced = AttentionModel(SHARED), AttentionModel(SHARED, ov="factorized")
    assert smallest(starts(collapsed), lambda start: start["mu_QK"] < 0) == {"mu_OV": 0.0, "mu_QK": -0.1}
    assert smallest(starts(balanced), lambda _: True) == {"mu_OV": 0.1, "mu_QK": 0.0}
    assert smallest(starts(balanced), lambda start: start["mu_OV"] < 0)["mu_OV"] == -0.1


@given(st.data())
def test_off_line_matrices_fit_the_model(data: st.DataObject) -> None:
    model = data.draw(models(data.draw(tasks(max_entries=500))))
    matrices = data.draw(off_line(model))
    net = witness(model, {"mu_OV": 1, "mu_QK": 1})
    net.set_matrices(**matrices)  # refuses a wrong name, shape or noise entry
    for name, value in net.named_parameters():
        assert np.array_equal(value.detach().numpy(), matrices[name])
        assert np.abs(matrices[name]).max() <= 2


def test_off_line_leaves_the_line_and_shrinks_to_zero() -> None:
    model = AttentionModel(SHARED)
    assert not any(value.any() for value in smallest(off_line(model), lambda _: True).values())

    def beside(matrices: dict[str, Any]) -> bool:
        net = witness(model)
        net.set_matrices(**matrices)
        return bool(min(net.distance_to_line().OV, net.distance_to_line().QK) > 0.5)

    assert beside(find(off_line(model), beside, settings=FOUND, random=Random(0)))


def test_experiments_follow_their_filters() -> None:
    strategy = experiments(code="FAFO", balanced=False, max_entries=100)
    found = find(strategy, lambda e: e.model.task.query_kind == "per_class", settings=FOUND, random=Random(0))
    assert found.model.task.noise is oo
    assert found.model.imbalance_qk != 0 != found.model.imbalance_ov


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tasks(max_entries=5), "max_entries=5: expected at least 6"),
        (lambda: tasks(noise="finit"), "noise='finit': expected one of any, finite, infinite; did you mean 'finite'?"),
        (lambda: tasks(query_kind="perclass"), "did you mean 'per_class'?"),  # type: ignore[arg-type]
        (lambda: decimals(1, -1), "decimals from 1 to -1: expected finite bounds in increasing order"),
        (lambda: rates(0, float("inf")), "rates from 0 to inf"),
        (lambda: models(SHARED, code="FACA"), "did you mean"),
        (
            lambda: models(TokenTask(3, 2, 2, 2, 2, 1, "per_class"), code="FAFO"),
            "code='FAFO': no line with query_kind='per_class'",
        ),
        (lambda: starts(AttentionModel(SHARED), largest=0.01), "largest=0.01: expected a finite number of at least"),
        (lambda: off_line(AttentionModel(TokenTask())), "the matrix model needs a concrete size"),
        (lambda: experiments(code="CAC"), "did you mean 'CACO'?"),
    ],
)
def test_wrong_input_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared below
        call()
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_without_hypothesis_the_error_says_what_to_install() -> None:
    program = "import sys; sys.modules['hypothesis'] = None; import numerics.strategies"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert "numerics.strategies needs hypothesis" in done.stderr.splitlines()[-1]
    assert "pip install 'gradline[test]'" in done.stderr.splitlines()[-1]
