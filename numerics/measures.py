"""Measures of attention, and their comparison at equal loss.

    mass = sum_(informative) p,   entropy = -sum p log p,   maximum = max p,   share of the sequences above a threshold

``p`` are weights over slots. Where they are given over tokens, ``counts`` says how many slots share a token's weight:
slots with the same token have equal weights. Runs with different rates reach a loss at different times, so they are
compared at the loss, not at the step.

Source: arXiv 2608.06776, attention on informative tokens against the stopping loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numerics.sizes import check_choice

__all__ = [
    "MEASURES",
    "EqualLoss",
    "at_equal_loss",
    "entropy",
    "informative_mass",
    "maximum",
    "measures_on_line",
    "share_above",
]

Array = NDArray[np.float64]
#: The measures of `measures_on_line`, by name.
MEASURES = ("mass", "entropy", "maximum")
#: Weights that sum to 1 up to single precision.
_SUM = 1e-5


def _weights(attention: ArrayLike, counts: ArrayLike | None) -> tuple[Array, Array]:
    """Weights (..., T) over tokens or slots, and those of a single slot."""
    p = np.asarray(attention, dtype=np.float64)
    if p.ndim == 0 or not np.isfinite(p).all() or (p < 0).any() or (np.abs(p.sum(-1) - 1) > _SUM).any():
        raise ValueError(
            f"attention of shape {p.shape}: expected weights of at least 0 that sum to 1 over the last axis"
        )
    if counts is None:
        return p, p
    number = np.asarray(counts, dtype=np.float64)
    if (number < 0).any() or (np.broadcast_to(number, p.shape)[p > 0] == 0).any():
        raise ValueError("counts: expected at least 1 slot wherever there is attention")
    return p, p / np.maximum(number, 1.0)


def informative_mass(attention: ArrayLike, informative: ArrayLike) -> Array:
    """The attention mass on informative tokens.

        alpha = sum_(t informative) p_t

    Parameters: ``attention``, weights (..., T); ``informative``, which slots or tokens are, booleans that broadcast
    to them. Returns: an array (...). Raises: ``ValueError`` for weights that do not sum to 1. Source: arXiv
    2608.06776, attention.

    >>> float(informative_mass([0.5, 0.25, 0.25], [True, False, True]))
    0.75
    """
    p, _ = _weights(attention, None)
    return np.asarray(np.where(np.asarray(informative, dtype=bool), p, 0.0).sum(-1))


def entropy(attention: ArrayLike, counts: ArrayLike | None = None) -> Array:
    """The entropy of attention over slots, in nats: the logarithm of how many slots it is spread over.

        H = -sum_t p_t log(p_t/c_t)

    Parameters: ``attention``, weights (..., T); ``counts``, the slots ``c`` of each token, 1 by default.
    Returns: an array (...). Raises: ``ValueError`` for weights that do not sum to 1.

    >>> float(entropy([1.0, 0.0])), float(np.exp(entropy([0.5, 0.5], [3, 3])).round(12))
    (0.0, 6.0)
    """
    p, slot = _weights(attention, counts)
    return np.asarray(-np.where(p > 0, p * np.log(np.where(p > 0, slot, 1.0)), 0.0).sum(-1) + 0.0)


def maximum(attention: ArrayLike, counts: ArrayLike | None = None) -> Array:
    """The largest weight of a slot.

    Parameters: as for `entropy`. Returns: an array (...). Raises: ``ValueError`` for weights that do not sum to 1.

    >>> float(maximum([0.6, 0.4])), float(maximum([0.6, 0.4], [3, 1]))
    (0.6, 0.4)
    """
    return np.asarray(_weights(attention, counts)[1].max(-1))


def share_above(values: ArrayLike, threshold: float, probabilities: ArrayLike | None = None) -> Array:
    """The share of sequences whose measure is above a threshold.

    Parameters: ``values`` (..., S) of a measure; ``threshold``; ``probabilities`` of the sequences, equal by default.
    Returns: an array (...).

    >>> float(share_above([0.2, 0.6, 0.9, 0.95], 0.5))
    0.75
    """
    above = np.asarray(values, dtype=np.float64) > threshold
    if probabilities is None:
        return np.asarray(above.mean(-1))
    weight = np.asarray(probabilities, dtype=np.float64)
    return np.asarray((above * weight).sum(-1) / weight.sum(-1))


def measures_on_line(attention: ArrayLike, informative_slots: int, noise_slots: int) -> dict[str, Array]:
    """The measures of a model on its line, where all slots of a kind have the same weight.

        p = alpha/m on informative slots, (1 - alpha)/n on noise slots

    Parameters: ``attention``, the masses ``alpha``; the numbers of slots ``m`` and ``n``. Returns: arrays by the
    names of `MEASURES`. Source: section 4 of the theory.

    >>> {name: float(x.round(3)) for name, x in measures_on_line(0.5, 1, 2).items()}
    {'mass': 0.5, 'entropy': 1.04, 'maximum': 0.5}
    """
    mass = np.asarray(attention, dtype=np.float64)
    p, counts = np.stack([mass, 1 - mass], -1), np.array([informative_slots, noise_slots])
    return {"mass": mass, "entropy": entropy(p, counts), "maximum": maximum(p, counts)}


@dataclass(frozen=True, eq=False)
class EqualLoss:
    """A measure of several runs at the same losses: ``runs``, their names; ``loss`` (L,); ``values`` (R, L), nan
    where a run does not reach the loss; ``at`` (R, L), where in its record a run reaches it, in steps of the record.
    """

    runs: tuple[str, ...]
    loss: Array
    values: Array
    at: Array

    def difference(self, run: str, other: str) -> Array:
        """The measure of a run less that of another, at every loss."""
        for name in (run, other):
            check_choice("run", name, self.runs)
        return self.values[self.runs.index(run)] - self.values[self.runs.index(other)]


def _crossing(loss: Array, targets: Array) -> Array:
    """Where the least loss so far first meets each target, between two records by its logarithm; nan where it does
    not.
    """
    best = np.minimum.accumulate(loss)
    after = np.searchsorted(-best, -targets, side="left")
    inside = after < loss.size
    here = np.clip(after, 1, loss.size - 1)
    low, high = np.log(best[here - 1]), np.log(best[here])
    part = np.where(low > high, (low - np.log(targets)) / np.where(low > high, low - high, 1.0), 1.0)
    place = np.where(after == 0, np.where(best[0] == targets, 0.0, np.nan), here - 1 + np.clip(part, 0.0, 1.0))
    return np.where(inside, place, np.nan)


def at_equal_loss(
    runs: Mapping[str, tuple[ArrayLike, ArrayLike]], loss: ArrayLike | None = None, *, points: int = 25
) -> EqualLoss:
    """Compare a measure across runs where they have the same loss.

    Parameters: ``runs``, the name of each run and its record: losses (E,) and a measure (E,), such as ``(run.loss,
    run.attention)`` of a `Trajectory`; ``loss``, where to compare, by default ``points`` losses, even in the
    logarithm, between what all runs start above and what all of them reach. A loss that goes up and down counts where
    it is first reached.

    Returns: an `EqualLoss`. Raises: ``ValueError`` for records that do not fit, or runs that have no loss in common.

    Source: arXiv 2608.06776, comparisons at a stopping loss.

    >>> slow, fast = ([1.0, 0.5, 0.25], [0.1, 0.2, 0.3]), ([1.0, 0.25, 0.0625], [0.1, 0.5, 0.9])
    >>> at_equal_loss({"slow": slow, "fast": fast}, [0.5, 0.25]).values.round(3).tolist()
    [[0.2, 0.3], [0.3, 0.5]]
    """
    records = {str(name): _record(str(name), record) for name, record in runs.items()}
    if not records:
        raise ValueError("no runs: expected at least one")
    if loss is None:
        high, low = min(r[0][0] for r in records.values()), max(r[0].min() for r in records.values())
        if low >= high:
            raise ValueError(
                f"the runs have no loss in common: one starts at {high:.6g}, another gets to {low:.6g} only"
            )
        targets = np.geomspace(high, low, points)
    else:
        targets = np.atleast_1d(np.asarray(loss, dtype=np.float64))
        if not (np.isfinite(targets) & (targets > 0)).all():
            raise ValueError("loss: expected finite numbers above 0")
    found, places = [], []
    for losses, values, steps in records.values():
        place = _crossing(losses, targets)
        counted = np.arange(losses.size)
        places.append(np.where(np.isnan(place), np.nan, np.interp(place, counted, steps)))
        found.append(np.where(np.isnan(place), np.nan, np.interp(place, counted, values)))
    return EqualLoss(tuple(records), targets, np.array(found), np.array(places))


def _record(name: str, record: Any) -> tuple[Array, Array, Array]:
    """The finite losses of a run, their values, and their steps in the record."""
    losses, values = (np.asarray(x, dtype=np.float64) for x in record)
    if losses.ndim != 1 or losses.shape != values.shape or losses.size < 2:
        raise ValueError(
            f"run {name!r}: expected as many losses as values, two at least, got {losses.shape}, {values.shape}"
        )
    keep = np.isfinite(losses)
    if not keep[0] or not (losses[keep] > 0).all():
        raise ValueError(f"run {name!r}: expected losses above 0")
    return losses[keep], values[keep], np.flatnonzero(keep).astype(np.float64)
