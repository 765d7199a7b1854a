"""The integrated full model stays on the predicted line, with the predicted coordinates, loss, attention and integral.

The bounds are those of `numerics.predictions`: tolerances of both integrators times steps, times the growth of an error
by the linearized full model. Nothing in them depends on the reduced flow that is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from numerics.gradient_flow import Objective
from numerics.predictions import (
    Observation,
    confront,
    extreme_curvatures,
    general_flow,
    integral_drift,
    observe,
    witness,
)
from numerics.strategies import Experiment, decimals, experiments
from theory.integrals import FirstIntegral, first_integral
from theory.model import PARAMETERIZATIONS, AttentionModel
from theory.task import TokenTask

ENTRIES = 1_500
#: A budget above this proves nothing: it is far above any tolerance, far below what a wrong formula changes.
VACUOUS = 1e-3


def watched(experiment: Experiment, horizon: float) -> Observation:
    """Run the full model for about the time in which output-value moves by 1, but no longer than errors allow."""
    task, objective = experiment.model.task, Objective(witness(experiment.model, experiment.start), experiment.rates)
    slots = float((task.informative_slots + task.noise_slots) / task.informative_slots)
    natural = float(task.classes * task.block) * slots / experiment.rates["eta_OV"]
    # errors grow by e^(pace t) at first: by less than e^6 within this time unless the pace rises a lot
    pace = max(-extreme_curvatures(objective, objective.start)[0], 1e-9)
    end = horizon * min(natural, 2 / pace)
    return observe(experiment.model, experiment.rates, experiment.start, np.linspace(0, end, 6))


def law_of(experiment: Experiment) -> tuple[FirstIntegral, dict[str, float]]:
    flow, values = general_flow(experiment.model)
    return first_integral(flow, {name: 1 if mu >= 0 else -1 for name, mu in experiment.start.items()}), values


@pytest.mark.parametrize("code", PARAMETERIZATIONS)
@settings(max_examples=max(1, settings.default.max_examples // 3))
@given(data=st.data())
def test_full_model_follows_the_reduced_flow(code: str, data: st.DataObject) -> None:
    drawn = data.draw(st.tuples(experiments(code=code, max_entries=ENTRIES), decimals(0.1, 3)))
    experiment, horizon = drawn
    seen = watched(experiment, horizon)
    assume(max(seen.budget_OV[1], seen.budget_QK[1]) < VACUOUS)
    found = confront(*general_flow(experiment.model), seen)
    assert found.holds, found.worst
    drift = integral_drift(*law_of(experiment), seen)
    assert drift.holds, drift.worst


def test_a_wrong_flow_is_noticed(wrong: Any, counterexample: Callable[..., Any]) -> None:
    strategy = st.tuples(experiments(noise=wrong.noise, max_entries=ENTRIES), decimals(0.5, 3))

    def fails(drawn: tuple[Experiment, float]) -> bool:
        if not wrong.applies(drawn[0]):
            return False
        flow, values = general_flow(drawn[0].model)
        return not confront(wrong.flow(flow), values, watched(*drawn)).holds

    experiment, horizon = counterexample(strategy.filter(lambda drawn: wrong.applies(drawn[0])), fails)
    # the right flow holds on the very example that shows the wrong one
    assert confront(*general_flow(experiment.model), watched(experiment, horizon)).holds


def test_a_wrong_slope_is_noticed(wrong: Any, counterexample: Callable[..., Any]) -> None:
    """The integral of the wrong flow is not constant along the run of the full model."""
    strategy = st.tuples(experiments(noise=wrong.noise, max_entries=ENTRIES), decimals(0.5, 3))

    def fails(drawn: tuple[Experiment, float]) -> bool:
        flow, values = general_flow(drawn[0].model)
        signs = {name: 1 if mu >= 0 else -1 for name, mu in drawn[0].start.items()}
        return not integral_drift(first_integral(wrong.flow(flow), signs), values, watched(*drawn)).holds

    experiment, horizon = counterexample(strategy.filter(lambda drawn: wrong.applies(drawn[0])), fails)
    assert integral_drift(*law_of(experiment), watched(experiment, horizon)).holds


def test_a_wrong_line_is_noticed() -> None:
    """A factorized query-key circuit without a line leaves what would be its line, far beyond the budget."""
    model = AttentionModel(TokenTask(3, 2, 2, 2, 2, 1, "per_class"), qk="factorized")
    seen = observe(model, {"eta_OV": 1, "eta_QK": 2}, {"mu_OV": 0.5, "mu_QK": 0.5}, np.linspace(0, 2, 5))
    assert seen.run.distance_QK[-1] > 100 * seen.budget_QK[-1]
    assert (seen.run.distance_OV <= seen.budget_OV).all()
