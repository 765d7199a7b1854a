"""Stochastic gradient descent scatters around the line by a distance that shrinks as one over the root of the batch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from numerics.matrix_model import MatrixModel
from numerics.predictions import witness
from numerics.strategies import Experiment, experiments
from numerics.training import batch_slope, sampled_descent
from theory.model import PARAMETERIZATIONS
from theory.task import TokenTask

STEPS, RUNS = 5, 48
#: The largest step of a circuit: five of them change entries by a quarter of a gradient, whose entries are below 1.
STEP = 0.05
BATCHES = (256, 1024, 4096)
#: Beside the linear response to noise of size 1/16 (one over the root of the smallest batch) there is a quadratic one;
#: its share of the distance is below 1/16 times the change of 0.25, and a share s of one end of the fit over a factor
#: 16 bends the slope by s/log(16).
BENT = 0.25 / 16 / 2.77
#: A normal error exceeds six standard deviations twice in 1e9; theirs are estimated from 48 squares to about 20%.
ERRORS = 6.0
#: Distances that are rounding alone: the sampled gradient is parallel to the direction whatever the batch.
ROUNDING = 1e-12


def slopes(net: MatrixModel, rates: dict[str, float], seed: int = 0) -> dict[str, tuple[float, float]]:
    """Slope and standard error of every circuit that scatters."""
    step = STEP / max(rates.values())
    found = [
        sampled_descent(net, rates, STEPS, size, runs=RUNS, seed=seed + at, step_size=step)
        for at, size in enumerate(BATCHES)
    ]
    distances = {circuit: [getattr(f, circuit) for f in found] for circuit in ("OV", "QK")}
    return {c: batch_slope(BATCHES, d) for c, d in distances.items() if min(x.min() for x in d) > ROUNDING}


def excess(slope: float, error: float) -> float:
    """How far a slope is from -1/2, over the statistical bound."""
    return abs(slope + 0.5) / (ERRORS * error + BENT)


@pytest.mark.parametrize("code", PARAMETERIZATIONS)
@settings(max_examples=max(1, settings.default.max_examples // 4))
@given(data=st.data())
def test_the_distance_shrinks_as_one_over_the_root_of_the_batch(code: str, data: st.DataObject) -> None:
    drawn: Experiment = data.draw(experiments(code=code, max_entries=400))
    found = slopes(witness(drawn.model, drawn.start), drawn.rates)
    assume(found)
    assert all(excess(*fit) < 1 for fit in found.values()), found


def small(**start: Any) -> MatrixModel:
    return MatrixModel(TokenTask(3, 2, 2, 2, 2, 1), start=start)


def test_a_measured_slope() -> None:
    """400 runs at each of six sizes pin the exponent to a percent."""
    sizes = [2**k for k in range(8, 14)]
    rates = {"eta_OV": 1.0, "eta_QK": 2.0}
    net = small(mu_OV=0.4, mu_QK=0.3)
    found = [sampled_descent(net, rates, STEPS, n, runs=400, seed=n, step_size=0.1) for n in sizes]
    for circuit in ("OV", "QK"):
        slope, error = batch_slope(sizes, [getattr(f, circuit) for f in found])
        assert error < 0.01
        assert abs(slope + 0.5) < ERRORS * error + BENT


def test_a_start_beside_the_line_is_noticed() -> None:
    """A distance that noise has no part in does not shrink."""
    net = small(mu_OV=0.4, mu_QK=0.3)
    pushed = net.W_OV.detach().clone()
    pushed[0, 0] += 0.05
    net.set_matrices(W_OV=pushed)
    assert excess(*slopes(net, {"eta_OV": 1.0, "eta_QK": 1.0})["OV"]) > 5


def test_noise_that_does_not_average_is_noticed() -> None:
    """Batches of one size whatever they are called have a slope of 0."""
    net = small(mu_OV=0.4, mu_QK=0.3)
    rates = {"eta_OV": 1.0, "eta_QK": 1.0}
    same = [sampled_descent(net, rates, STEPS, 256, runs=RUNS, seed=k, step_size=STEP).OV for k in range(3)]
    assert excess(*batch_slope(BATCHES, same)) > 3


def test_bad_input() -> None:
    net = small(mu_OV=0.4)
    with pytest.raises(ValueError, match="batch=0: expected an integer of at least 1"):
        sampled_descent(net, {"eta_OV": 1, "eta_QK": 1}, 1, 0)
    with pytest.raises(ValueError, match="two different sizes"):
        batch_slope([4, 4], [net.W_OV.detach().numpy()] * 2)
