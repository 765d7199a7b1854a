"""Measures of attention against the full model, and comparisons at equal loss against the first integral."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numerics.integrate import simulate
from numerics.matrix_model import MatrixModel
from numerics.measures import at_equal_loss, entropy, informative_mass, maximum, measures_on_line, share_above
from numerics.stopping import stopping_state
from theory.model import AttentionModel
from theory.task import TokenTask

TASK = TokenTask(3, 2, 2, 4, 2, 3)


def attention_of(net: MatrixModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attention over tokens of every sequence, written out, with the counts and the informative tokens."""
    rows = net.population()
    counts = rows.counts.numpy()
    odds = counts * np.exp(net.W_QK.detach().numpy()[rows.queries.numpy()])
    return odds / odds.sum(-1, keepdims=True), counts, np.arange(counts.shape[1]) < 6


def test_on_the_line_as_in_the_full_model() -> None:
    net = MatrixModel(TASK, start={"mu_OV": 0.3, "mu_QK": 1.1})
    p, counts, informative = attention_of(net)
    mass = informative_mass(p, informative)
    assert np.ptp(mass) < 1e-14
    theory = measures_on_line(mass, 2, 3)
    # equal up to rounding of sums over ten tokens
    np.testing.assert_allclose(entropy(p, counts), theory["entropy"], rtol=1e-13)
    np.testing.assert_allclose(maximum(p, counts), theory["maximum"], rtol=1e-13)
    assert abs(entropy(p) - theory["entropy"]).max() > 0.1  # twin: without the counts it is another number


def test_slots_and_tokens_agree() -> None:
    """Weights over slots, and the same over tokens that several slots share."""
    slots = np.array([0.1, 0.1, 0.3, 0.5])
    tokens, counts = np.array([0.2, 0.3, 0.5]), np.array([2, 1, 1])
    assert float(entropy(slots)) == pytest.approx(float(entropy(tokens, counts)), abs=1e-15)
    assert float(maximum(slots)) == float(maximum(tokens, counts)) == 0.5


def test_share_above() -> None:
    values = np.array([[0.1, 0.4, 0.8], [0.6, 0.7, 0.9]])
    assert share_above(values, 0.5).tolist() == [1 / 3, 1.0]
    assert share_above(values, 0.5, [0.5, 0.25, 0.25]).tolist() == [0.25, 1.0]


def test_equal_loss_is_the_stopping_state() -> None:
    """Two runs compared at equal loss: the attention of the stopping states; at equal steps it is another."""
    flow = AttentionModel(TASK)
    runs = {f"{r}": simulate(flow, {"eta_OV": 1, "eta_QK": r}, until_loss=1e-3, time="log") for r in (1, 10)}
    losses = np.array([0.5, 0.05, 2e-3])
    found = at_equal_loss({name: (run.loss, run.attention) for name, run in runs.items()}, losses)
    exact = stopping_state(flow, {"eta_OV": 1, "eta_QK": np.array([[1], [10]])}, loss=losses).attention
    # linear between records that are 1/257 of the log time apart
    np.testing.assert_allclose(found.values, exact, atol=2e-3)
    np.testing.assert_allclose(found.difference("10", "1"), exact[1] - exact[0], atol=4e-3)
    assert np.all(found.difference("10", "1") > 0.04)
    assert np.all(found.at[0] != found.at[1])


def test_noisy_losses_and_what_is_never_reached() -> None:
    noisy = [1.0, 0.5, 0.7, 0.3, 0.4, 0.2]
    found = at_equal_loss({"a": (noisy, range(6)), "b": ([1.0, 0.6, np.nan], [0, 1, 2])}, [1.0, 0.5, 0.25, 0.1])
    assert found.values[0, :2].tolist() == [0.0, 1.0]
    assert 4 < found.values[0, 2] < 5
    assert np.isnan(found.values[0, 3])
    assert np.isnan(found.values[1, 1:]).all()
    common = at_equal_loss({"a": (noisy, range(6)), "b": ([0.9, 0.6], [0, 1])}, points=3)
    np.testing.assert_allclose(common.loss[[0, -1]], [0.9, 0.6])
    assert np.isfinite(common.values).all()


def test_steps_of_the_record_where_losses_are_missing() -> None:
    found = at_equal_loss({"run": ([1.0, np.nan, 0.5, 0.25], [0.0, 9.0, 2.0, 3.0])}, loss=[0.5, 0.25])
    assert found.at.tolist() == [[2.0, 3.0]]
    assert found.values.tolist() == [[2.0, 3.0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: entropy([0.5, 0.6]), "sum to 1"),
        (lambda: entropy([0.5, 0.5], [1, 0]), "at least 1 slot"),
        (lambda: at_equal_loss({"a": ([1, 2], [1])}), "as many losses as values"),
        (lambda: at_equal_loss({"a": ([1, 0.5], [0, 1]), "b": ([0.4, 0.1], [0, 1])}), "no loss in common"),
        (lambda: at_equal_loss({"ab": ([1, 0.5], [0, 1])}).difference("ab", "ac"), "did you mean 'ab'"),
    ],
)
def test_refusals(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
