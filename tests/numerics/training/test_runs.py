"""Batched training runs: independent of their neighbors, stopped by the rule, refused plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numerics.training import FixedAttention, Plan, Schedule, SequenceData, TrainedAttention, fresh_batches, train

SMALL = SequenceData(classes=2, common=5, common_weight=2, block_weights=(10, 20, 20), length=12)
RATE = {"OV": Schedule(1.0), "QK": Schedule(1.0)}


def plan(**changes: Any) -> Plan:
    return Plan(**({"epochs": 6, "steps": 5, "batch": 8, "rates": RATE} | changes))


@pytest.mark.parametrize("ov", ["collapsed", "factorized"])
def test_a_run_does_not_depend_on_its_neighbors(ov: Any) -> None:
    model = TrainedAttention(SMALL, "factorized", ov)
    together = train(model, plan(), (4, 7), dtype=np.float64)
    alone = train(model, plan(), (7,), dtype=np.float64)
    other = train(model, plan(), (5,), dtype=np.float64)
    # 30 steps of products that may be summed in another order
    assert np.abs(together.loss[:, 1:] - alone.loss).max() < 1e-12
    assert np.abs(together.loss[:, 1:] - other.loss).max() > 1e-3
    assert (train(model, plan(), (7,), dtype=np.float64).loss == alone.loss).all()


def test_curves_of_a_seed_share_its_sequences() -> None:
    several = FixedAttention(SMALL, "collapsed", (0.3, 0.8))
    single = FixedAttention(SMALL, "collapsed", (0.8,))
    found = [train(m, plan(balanced=True), (1, 2), dtype=np.float64) for m in (several, single)]
    assert found[0].loss.shape == (6, 2, 2)
    assert np.abs(found[0].loss[..., 1:] - found[1].loss).max() < 1e-12
    assert (found[0].loss[-1] < found[0].loss[0]).all()


def test_single_precision_is_close() -> None:
    model = TrainedAttention(SMALL, "collapsed", "collapsed")
    single, double = (train(model, plan(), (1,), dtype=t) for t in (np.float32, np.float64))
    # 30 steps of relative rounding 6e-8, amplified by rates of 1
    assert 0 < np.abs(single.loss - double.loss).max() < 1e-5


def test_stops_are_looked_at_after_epochs_3_5_7() -> None:
    model = TrainedAttention(SMALL, "collapsed", "collapsed")
    free = train(model, plan(epochs=9), (1, 2, 3), dtype=np.float64)
    goal = float(np.median(free.loss[4]))
    stopped = train(model, plan(epochs=9, until_loss=goal, check_every=2), (1, 2, 3), dtype=np.float64)
    for run in range(3):
        reached = [e + 1 for e in range(2, 9, 2) if free.loss[e, run] <= goal]
        wanted = reached[0] if reached else 9
        assert stopped.epochs[run] == wanted
        assert np.array_equal(stopped.loss[:wanted, run], free.loss[:wanted, run])
        assert np.isnan(stopped.loss[wanted:, run]).all()
    assert len(set(stopped.epochs)) > 1
    first = int(np.argmin(stopped.epochs))
    short = train(model, plan(epochs=int(stopped.epochs[first])), (1, 2, 3), dtype=np.float64)
    assert (stopped.parameters["W_OV"][first] == short.parameters["W_OV"][first]).all()


def test_stop_needs_the_mean_of_an_epoch() -> None:
    """A goal that a first epoch reaches is not looked at before the third."""
    model = TrainedAttention(SMALL, "collapsed", "collapsed")
    assert train(model, plan(until_loss=100.0, check_every=2), (1,)).epochs.tolist() == [3]


def test_watch_sees_every_epoch() -> None:
    seen = []
    train(
        TrainedAttention(SMALL, "collapsed", "collapsed"),
        plan(epochs=3),
        (1,),
        watch=lambda epoch, parameters: seen.append((epoch, float(parameters["W_OV"].sum()))),
    )
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    assert len({total for _, total in seen}) == 3


def test_balanced_batches_and_fresh_sequences() -> None:
    model = FixedAttention(SMALL, "collapsed", (0.5,))
    batches = fresh_batches(model, plan(balanced=True), (1, 2), 3)
    assert batches.counts.shape == (3, 2, 8, 11)
    assert (batches.classes.sum(2) == 4).all()
    drawn = fresh_batches(model, plan(), (1,), 20)
    assert len({float(n) for n in drawn.classes.sum(2)[..., 0].ravel()}) > 1
    with pytest.raises(ValueError, match="multiple of the 2 classes"):
        fresh_batches(model, plan(balanced=True, batch=7), (1,), 1)


@pytest.mark.parametrize("changes", [{"epochs": 0}, {"steps": 2.5}, {"batch": True}, {"until_loss": 0.0}])
def test_wrong_plans_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        plan(**changes)
