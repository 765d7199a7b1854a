"""The paper's experiments at small sizes: what is measured, and that processes change nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from numerics.training import FixedAttention, Plan, Schedule, SequenceData, TrainedAttention, fresh_batches, train
from numerics.training.experiments import BINS, Setting, attention_heatmap, fixed_curves, marked_epochs
from numerics.training.processes import run_jobs

SMALL: dict[str, Any] = {"alphas": (0.3, 0.9), "epochs": 3, "steps": 20, "batch": 16, "fresh": 20}
CACO = Setting("CACO", "collapsed", "collapsed", epochs=2, steps=20, rate=0.5, until_loss=None)


@pytest.mark.parametrize("ov", ["collapsed", "factorized"])
def test_fixed_curves_are_those_of_training(ov: Any) -> None:
    found = fixed_curves(ov, 5, **SMALL)
    model = FixedAttention(SequenceData(swapped=True), ov, (0.3, 0.9))
    plan = Plan(3, 20, 16, {"OV": Schedule(0.01)}, balanced=True)
    run = train(model, plan, [5])
    assert (found.loss == run.loss[:, 0]).all()
    assert found.marks.tolist() == [1, 2, 3]
    fresh = list(fresh_batches(model, plan, [5], 20).steps())
    means = np.mean([model.losses(run.parameters, b)[0] for b in fresh], axis=0)
    # single precision of losses of size 4
    assert np.abs(found.final - means).max() < 1e-5
    few = list(fresh_batches(model, plan, [5], 2).steps())
    gaps = [(model.losses(run.parameters, b) - model.losses(run.parameters, b, 0.005))[0] for b in few]
    # losses of size 4 in single precision, divided by 0.005
    assert np.abs(found.quotient[-1] - np.mean(gaps, axis=0) / 0.005).max() < 1e-3


def test_fresh_sequences_are_not_those_of_training() -> None:
    model = FixedAttention(SequenceData(swapped=True), "collapsed", (0.5,))
    plan = Plan(1, 1, 16, {"OV": Schedule(0.01)}, balanced=True)
    first, second = fresh_batches(model, plan, [5], 2).counts
    assert (first != second).any()
    assert fixed_curves("collapsed", 5, **SMALL).final[0] != fixed_curves("collapsed", 6, **SMALL).final[0]


def test_heatmap_counts_every_sequence_once() -> None:
    found = attention_heatmap(CACO, [0, 1], fresh=3)
    model = TrainedAttention(SequenceData(), "collapsed", "collapsed")
    plan = Plan(2, 20, 32, {"OV": Schedule(0.5), "QK": Schedule(0.5)})
    run = train(model, plan, [0, 1])
    seen = [model.measure(run.parameters, b) for b in fresh_batches(model, plan, [0, 1], 3).steps()]
    percent = np.zeros((5, 5))
    for measured in seen:
        for p, a in zip(measured.probability.ravel().tolist(), measured.attention.ravel().tolist(), strict=True):
            percent[min(int(5 * p), 4), min(int(5 * a), 4)] += 100 / 192
    assert np.abs(found.percent - percent).max() < 1e-9
    assert found.seeds.shape == (2, 5, 5)
    assert found.seeds.sum((1, 2)) == pytest.approx(100)
    assert (found.seeds[0] != found.seeds[1]).any()
    assert (found.percent > 0).sum() > 1
    assert found.epochs.tolist() == [2, 2]
    assert found.loss.tolist() == run.loss[-1].tolist()
    assert np.diff(BINS) == pytest.approx(0.2)


def test_ratio_start_and_length_matter() -> None:
    base = attention_heatmap(CACO, [0], fresh=3)
    for changes in ({"ratio": 20.0}, {"length": 20}, {"start_ov": 1e-6}):
        other = attention_heatmap(replace(CACO, **changes), [0], fresh=3)
        assert abs(other.loss[0] - base.loss[0]) > 1e-4


def test_a_faster_setting_takes_the_same_time_of_flow() -> None:
    setting = Setting("FAFO", "factorized", "factorized")
    quick = setting.faster(20)
    assert quick.rate * quick.epochs == pytest.approx(setting.rate * setting.epochs)
    assert (quick.check_every, quick.steps) == (5, 250)


def test_marks() -> None:
    marks = marked_epochs(500)
    assert (marks[0], marks[-1]) == (1, 500)
    assert (np.diff(marks) > 0).all()


def test_processes_change_nothing() -> None:
    jobs: Any = [(fixed_curves, ("collapsed", seed), SMALL) for seed in (0, 1)]
    told: list[int] = []
    here, there = run_jobs(jobs, 1), run_jobs(jobs, 2, told.append)
    assert told == [0, 1, 2]
    for one, two in zip(here, there, strict=True):
        # threads may sum in another order
        assert np.abs(one.loss - two.loss).max() < 1e-6
    assert np.abs(here[0].loss - here[1].loss).max() > 1e-3


def test_an_error_of_a_job_is_passed_on() -> None:
    for processes in (1, 2):
        with pytest.raises(ValueError, match="invalid literal"):
            run_jobs([(int, ("three",), {})] * 2, processes)
    with pytest.raises(ValueError, match="processes=0"):
        run_jobs([], 0)
