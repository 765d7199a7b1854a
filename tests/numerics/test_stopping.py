"""States at a loss without integration: against integrated runs, signs and imbalances, the edges of the domain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sympy import Rational, oo

from numerics.integrate import simulate
from numerics.stopping import StoppingState, stopping_state
from theory.model import AttentionModel
from theory.task import TokenTask

TASK = TokenTask(3, 2, 2, oo, 2, 1, score_scale=Rational(3, 2))
RATES = {"eta_OV": 1.0, "eta_QK": 5.0}
FORMS: list[dict[str, Any]] = [
    {},
    {"ov": "factorized"},
    {"qk": "factorized"},
    {"qk": "factorized", "ov": "factorized"},
    {"ov": "factorized", "imbalance_ov": Rational(-3, 2)},
    {"qk": "factorized", "imbalance_qk": Rational(1, 2)},
    {"qk": "factorized", "ov": "factorized", "imbalance_qk": Rational(-1, 3), "imbalance_ov": Rational(2)},
]
STARTS = [(0.05, 0.05), (0.7, -0.4), (-0.8, 0.6)]


def model(**forms: Any) -> AttentionModel:
    return AttentionModel(TASK, **forms)


@pytest.mark.parametrize("forms", FORMS)
@pytest.mark.parametrize("start", STARTS)
def test_agrees_with_integration(forms: dict[str, Any], start: tuple[float, float]) -> None:
    flow = model(**forms)
    named = {"mu_OV": start[0], "mu_QK": start[1]}
    stuck = start[0] < 0 and forms.get("ov") == "factorized" and "imbalance_ov" not in forms
    for loss in (1.2, 0.7, 1e-5):
        if (loss > 1.1 and start[0] > 0) or (loss < 1.1 and stuck):
            with pytest.raises(ValueError, match="loss="):
                stopping_state(flow, RATES, named, loss=loss)
            continue
        run = simulate(flow, RATES, named, until_loss=loss, rtol=1e-10)
        found = stopping_state(flow, RATES, named, loss=loss, time=True)
        # the run is held to two integrations within 100 rtol = 1e-8; what was seen is below 1e-9
        assert found.t is not None
        np.testing.assert_allclose(found.mu_OV, run.end.mu_OV, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.mu_QK, run.end.mu_QK, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.attention, run.end.attention, rtol=1e-9)
        np.testing.assert_allclose(found.t, run.end.t, rtol=1e-8)


def test_a_wrong_ratio_is_noticed() -> None:
    right = stopping_state(model(), RATES, loss=0.1)
    wrong = stopping_state(model(), RATES | {"eta_QK": 5.001}, loss=0.1)
    assert abs(float(right.mu_QK - wrong.mu_QK)) > 1e-5


def test_the_statement_itself() -> None:
    """The loss is met, and the first integral of CACO keeps its value, in the formulas as published."""
    found = stopping_state(model(), RATES, {"mu_OV": 0.2, "mu_QK": -0.3}, loss=[0.5, 1e-3, 1e-9, 1e-200])
    np.testing.assert_allclose(np.log1p(2 * np.exp(-found.attention * found.mu_OV)), found.loss, rtol=1e-12)
    kappa, gamma = (5 / 12) / (1 / 4), 1.5

    def level(q: Any, v: Any) -> Any:
        return 2 / gamma * np.exp(gamma * q) + q - kappa * gamma * v**2 / 2

    # both terms of the level grow to 1e5: rounding of 1e-15 of them is 1e-10
    np.testing.assert_allclose(level(found.mu_QK, found.mu_OV), level(-0.3, 0.2), atol=1e-9)


def test_published_attention() -> None:
    """Figure 4: attention at loss 1e-4 for five ratios, as integration gives it."""
    task = TokenTask(20, 50, 50, oo, 5, 50)
    ratios = np.array([0.01, 0.1, 1, 10, 100])
    found = stopping_state(AttentionModel(task), {"eta_OV": 1, "eta_QK": ratios}, loss=1e-4)
    run = simulate(AttentionModel(task), {"eta_OV": 1, "eta_QK": ratios}, until_loss=1e-4)
    np.testing.assert_allclose(found.attention, run.end.attention, rtol=1e-9)
    assert np.all(np.diff(found.attention) > 0)


def test_negative_start_reverses_the_order() -> None:
    """Section 8: sharper with the ratio is false for a negative start."""
    flow = AttentionModel(TokenTask(3, 2, 2, oo, 2, 1))
    found = stopping_state(flow, {"eta_OV": 1, "eta_QK": [1, 2, 5]}, {"mu_OV": -1, "mu_QK": 0}, loss=0.9)
    assert found.mu_QK.round(3).tolist() == [-0.043, -0.087, -0.22]


def test_at_the_turning_point() -> None:
    flow = AttentionModel(TokenTask(2, 1, 1, oo, 1, 1))
    near = [math.log(2) * (1 + e) for e in (1e-9, 0.0, -1e-9)]
    found = stopping_state(flow, {"eta_OV": 1, "eta_QK": 1}, {"mu_OV": -1, "mu_QK": 0}, loss=near)
    assert found.mu_OV[0] < found.mu_OV[1] < found.mu_OV[2]
    # mu_OV is about 4e-9 here and mu_QK is stationary at the turning point
    np.testing.assert_allclose(found.mu_OV, 0, atol=1e-8)
    np.testing.assert_allclose(found.mu_QK, found.mu_QK[1], rtol=1e-12)


def test_arrays_broadcast() -> None:
    start = {"mu_OV": np.array([[0.1], [0.2]])}
    found = stopping_state(model(), RATES, start, loss=[0.5, 0.1, 0.01])
    assert found.mu_OV.shape == found.loss.shape == (2, 3)
    assert found.t is None
    one = stopping_state(model(), RATES, {"mu_OV": 0.2}, loss=0.1)
    assert isinstance(one, StoppingState)
    assert one.mu_OV.shape == ()
    assert float(found.mu_QK[1, 1]) == float(one.mu_QK)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": 0.0}, "loss=0.0: expected a finite number above 0"),
        ({"loss": 2.0}, "loss=2.0: expected a loss below that of the start, 1.098"),
        ({"loss": [[0.1, 0.2]], "start": {"mu_OV": [0.1, 0.2, 0.3]}}, "does not broadcast"),
        ({"parameters": {"eta_OV": 1}}, "no value for eta_QK"),
        ({"start": {"mu_VO": 1}}, "did you mean 'mu_OV'"),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    given = {"parameters": RATES, "start": None, "loss": 0.1} | change
    with pytest.raises(ValueError, match=message):
        stopping_state(model(), given.pop("parameters"), given.pop("start"), **given)


def test_never_reached() -> None:
    with pytest.raises(ValueError, match=r"never reached, mu_OV < 0 keeps its sign"):
        stopping_state(model(ov="factorized"), RATES, {"mu_OV": -1}, loss=1.0)
    with pytest.raises(TypeError, match="expected a mapping"):
        stopping_state(model(), 3, loss=1.0)  # type: ignore[arg-type]
