"""The error budget of a run holds what it promises and is small enough to notice a wrong prediction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sympy import Rational, oo

from numerics.gradient_flow import Objective
from numerics.predictions import confront, extreme_curvatures, general_flow, integral_drift, observe, witness
from numerics.sideways import sideways_growth
from theory.flow import Velocity, derive
from theory.integrals import first_integral
from theory.model import AttentionModel
from theory.symbols import mu_QK
from theory.task import TokenTask

RATES = {"eta_OV": 1.0, "eta_QK": 10.0}
TASK = TokenTask(3, 2, 2, 2, 2, 1, "shared", Rational(1, 2))
MODELS = (
    AttentionModel(TASK),
    AttentionModel(TASK, ov="factorized", imbalance_ov=Rational(-1, 2), width_ov=4),
    AttentionModel(TokenTask(2, 3, 2, oo, 1, 2, "per_class"), qk="factorized", imbalance_qk=1),
    AttentionModel(TokenTask(2, 2, 1, oo, 1, 1), qk="factorized", ov="factorized"),
)
START = {"mu_OV": 0.3, "mu_QK": 0.4}
TIMES = np.linspace(0, 4, 5)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.parameterization)
def test_general_flow_is_the_flow_of_the_model(model: AttentionModel) -> None:
    general, values = general_flow(model)
    flow = derive(model)
    point = {**values, **RATES, "mu_OV": 0.7, "mu_QK": -0.3}
    for state in flow.states:
        one, other = (
            float(v.xreplace({s: point[s.name] for s in v.free_symbols}).evalf())
            for v in (flow.velocity[state], general.velocity[state])
        )
        # both are evaluated in double precision, some 20 operations
        assert one == pytest.approx(other, rel=1e-14)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.parameterization)
def test_budget_bounds_what_a_looser_run_gets_wrong(model: AttentionModel) -> None:
    loose = observe(model, RATES, START, TIMES, rtol=1e-5, atol=1e-6)
    tight = observe(model, RATES, START, TIMES, rtol=1e-11, atol=1e-12)
    for name in ("OV", "QK"):
        error = np.abs(getattr(loose.run, f"W_{name}") - getattr(tight.run, f"W_{name}")).max(axis=(1, 2))
        assert (error <= getattr(loose, f"budget_{name}")).all()
        # the looser run does err, by more than rounding
        assert error.max() > 1e-14
        assert (getattr(tight, f"budget_{name}") < 1e-5 * getattr(loose, f"budget_{name}")).all()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.parameterization)
def test_growth_by_curvature_bounds_the_linearized_flow(model: AttentionModel) -> None:
    """A disturbance followed by the linearized flow grows no more than the logarithmic norm allows."""
    net = witness(model, START)
    grown = sideways_growth(net, RATES, time=4.0)
    objective = Objective(net, RATES)
    run = net.gradient_flow(RATES, np.linspace(0, 4, 17), rtol=1e-9, atol=1e-9)
    states = np.concatenate([p.reshape(run.t.size, -1) for p in run.parameters.values()], axis=1)
    pace = [max(0.0, -extreme_curvatures(objective, state)[0]) for state in states]
    exponent = float(np.sum(0.25 * np.maximum(pace[1:], pace[:-1])))
    # from entries to norms and back, across the two rates, and from factors to their product
    norm = np.sqrt(states.shape[1] * max(RATES.values()) / min(RATES.values()))
    product = max(np.abs(states).max() * 2 * np.sqrt(states.shape[1]), 1.0)
    assert max(grown.OV, grown.QK) <= np.exp(exponent) * norm * product


def test_extreme_curvatures_are_those_of_the_hessian() -> None:
    net = witness(MODELS[1], START)
    objective = Objective(net, RATES)
    size, h = objective.start.size, 1e-5
    root = np.sqrt(objective.rates)
    columns = [
        (objective.gradient(objective.start + h * row) - objective.gradient(objective.start - h * row)) / (2 * h)
        for row in np.eye(size)
    ]
    values = np.linalg.eigvalsh(root[:, None] * np.array(columns) * root)
    low, high = extreme_curvatures(objective, objective.start)
    # 24 products of the Lanczos method, moved outward by what is left: to a percent, and never inside by more than that
    assert low == pytest.approx(values[0], rel=0.01)
    assert high == pytest.approx(values[-1], rel=0.01)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.parameterization)
def test_a_rate_that_is_off_by_a_ten_thousandth_is_noticed(model: AttentionModel) -> None:
    flow, values = general_flow(model)
    seen = observe(model, RATES, START, TIMES)
    assert confront(flow, values, seen).holds
    law = first_integral(flow)
    assert integral_drift(law, values, seen).holds
    factor = 1 + Rational(1, 10**4)
    changed = {s: v * (factor if s == mu_QK else 1) for s, v in flow.velocity.items()}
    compact = {s: v * (factor if s == mu_QK else 1) for s, v in flow.compact.items()}
    wrong = replace(flow, velocity=Velocity(changed), compact=Velocity(compact))
    assert not confront(wrong, values, seen).holds
    assert confront(wrong, values, seen).worst[1] > 1
    assert not integral_drift(replace(law, slope=law.slope * factor), values, seen).holds
