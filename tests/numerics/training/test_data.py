"""Sequences as token counts: the paper's distribution, exactly drawn, and refused sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numerics.training import SequenceData

#: Weights of the 50 tokens for class 2, written out.
CLASS_2 = [1.0] * 10 + [0.0] * 20 + [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0] + [0.0] * 10


def chi_square(counts: Any, expected: Any) -> float:
    """Standardized chi-square: mean 0, deviation 1 for the right distribution."""
    seen = expected > 0
    terms = (counts[seen] - expected[seen]) ** 2 / expected[seen]
    degrees = seen.sum() - 1
    return float((terms.sum() - degrees) / np.sqrt(2 * degrees))


def context_counts(data: SequenceData, label: int, number: int) -> Any:
    counts = data.sample(np.full(number, label), np.random.default_rng(3)).sum(0).astype(float)
    counts[data.last_tokens[label]] -= number
    return counts


@pytest.mark.parametrize("swapped", [False, True])
def test_tokens_have_the_published_weights(swapped: bool) -> None:
    data = SequenceData(swapped=swapped)
    counts = context_counts(data, 2, 4000)
    weights = np.array(CLASS_2)
    expected = 4000 * 62 * weights / weights.sum()
    assert counts[weights == 0].sum() == 0
    # 5 standard deviations
    assert abs(chi_square(counts, expected)) < 5
    np.testing.assert_allclose(data.probabilities()[2], weights / weights.sum(), rtol=1e-15)


@pytest.mark.parametrize("shift", [0.02, -0.02])
def test_chi_square_notices_wrong_weights(shift: float) -> None:
    weights = np.array(CLASS_2)
    weights[30:40] += shift
    assert abs(chi_square(context_counts(SequenceData(), 2, 4000), 4000 * 62 * weights / weights.sum())) > 5


@pytest.mark.parametrize("swapped", [False, True])
def test_last_token_names_the_class_and_is_counted(swapped: bool) -> None:
    data = SequenceData(length=3, swapped=swapped)
    labels = np.arange(4).repeat(50)
    counts = data.sample(labels, np.random.default_rng(0))
    assert (counts.sum(1) == 2).all()
    own = np.array([1, 2, 3, 4] if swapped else [5, 6, 7, 8])[labels]
    assert (counts[np.arange(200), own] >= 1).all()
    assert data.targets == ((5, 6, 7, 8) if swapped else (1, 2, 3, 4))


def test_sampling_depends_on_the_generator_alone() -> None:
    data, labels = SequenceData(), np.array([0, 1, 3])
    first, again, other = (data.sample(labels, np.random.default_rng(s)) for s in (5, 5, 6))
    assert (first == again).all()
    assert (first != other).any()


def test_weights_beyond_a_byte() -> None:
    data = SequenceData(classes=2, common=5, common_weight=100, block_weights=(300, 1))
    counts = context_counts(data, 0, 3000)
    expected = 3000 * 62 * np.array([100] * 5 + [300, 1, 0, 0]) / 801
    assert abs(chi_square(counts, expected)) < 5


def test_integers_of_numpy() -> None:
    assert SequenceData(length=np.int64(32)) == SequenceData(length=32)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"classes": 1}, ValueError, "at least 2"),
        ({"classes": 5}, ValueError, "common=10: expected an integer of at least 11"),
        ({"length": 2}, ValueError, "at least 3"),
        ({"length": 300}, ValueError, "at most 256"),
        ({"block_weights": ()}, ValueError, "empty"),
        ({"block_weights": (1, 0)}, ValueError, "at least 1"),
        ({"common_weight": 0.5}, TypeError, "integer"),
        ({"common": True}, TypeError, "integer"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        SequenceData(**changes)
