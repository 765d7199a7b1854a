"""Training runs: several seeds and settings in one batched run, reproducible from the seeds alone.

Single precision by default: gradients of a batch scatter by far more than its rounding of 6e-8, and it halves the time
of a step. Pass ``dtype=np.float64`` to compare with exact statements.

Source: arXiv 2608.06776, section on experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from numerics.training.data import SequenceData
from numerics.training.models import Batch, FixedAttention, Parameters, TrainedAttention
from numerics.training.optimizers import Optimizer, Schedule, stepper

__all__ = ["Plan", "TrainingRun", "batches", "fresh_batches", "train"]

Model = FixedAttention | TrainedAttention


@dataclass(frozen=True)
class Plan:
    """How to train: ``epochs`` of ``steps`` batches of ``batch`` sequences, with a rate for each circuit: a number, an
    array with one entry for each run, or a `Schedule`.

    ``balanced`` batches hold equally many sequences of every class, others draw the classes. With ``until_loss`` a run
    stops when the mean loss of an epoch is at most that, looked at only every ``check_every`` epochs: after epochs
    ``check_every + 1``, ``2 check_every + 1``, ...
    """

    epochs: int
    steps: int
    batch: int
    rates: Mapping[str, Any]
    optimizer: Optimizer = field(default_factory=Optimizer)
    balanced: bool = False
    until_loss: float | None = None
    check_every: int = 100

    def __post_init__(self) -> None:
        rates = {circuit: r if isinstance(r, Schedule) else Schedule(r) for circuit, r in self.rates.items()}
        object.__setattr__(self, "rates", rates)
        for name in ("epochs", "steps", "batch", "check_every"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name}={value!r}: expected an integer of at least 1")
        if self.until_loss is not None and not self.until_loss > 0:
            raise ValueError(f"until_loss={self.until_loss!r}: expected a loss above 0")


@dataclass(frozen=True)
class TrainingRun:
    """What training gives.

    ``loss`` (epochs, runs), the mean over each epoch's batches, nan after a run stopped; final ``parameters``;
    ``epochs`` (runs), how many each run took.
    """

    loss: NDArray[np.float64]
    parameters: Parameters
    epochs: NDArray[np.int64]


def _labels(data: SequenceData, number: int, plan: Plan, generator: np.random.Generator) -> NDArray[np.int64]:
    if not plan.balanced:
        return generator.integers(0, data.classes, number)
    if plan.batch % data.classes:
        raise ValueError(f"batch={plan.batch}: expected a multiple of the {data.classes} classes")
    return np.tile(np.repeat(np.arange(data.classes), plan.batch // data.classes), number // plan.batch)


def batches(
    model: Model, plan: Plan, generators: Sequence[np.random.Generator], number: int, dtype: DTypeLike
) -> Batch:
    """Return ``number`` batches along the first axis, each with the sequences of every run."""
    drawn, chosen = [], []
    for generator in generators:
        labels = _labels(model.data, number * plan.batch, plan, generator)
        drawn.append(model.data.sample(labels, generator).reshape(number, plan.batch, -1))
        chosen.append(labels.reshape(number, plan.batch))
    return model.features(np.stack(drawn, 1), np.stack(chosen, 1), dtype)


def fresh_batches(model: Model, plan: Plan, seeds: Sequence[int], number: int, dtype: DTypeLike = np.float32) -> Batch:
    """Return fresh batches that training with these seeds never sees.

    >>> from numerics.training import FixedAttention, SequenceData
    >>> model = FixedAttention(SequenceData(), "collapsed", (0.5,))
    >>> fresh_batches(model, Plan(1, 1, 8, {"OV": 0.1}), [0], 2).targets.shape
    (2, 1, 8)
    """
    return batches(model, plan, [np.random.default_rng([seed, 2]) for seed in seeds], number, dtype)


def train(
    model: Model,
    plan: Plan,
    seeds: Sequence[int],
    *,
    dtype: DTypeLike = np.float32,
    watch: Callable[[int, Parameters], None] | None = None,
    start: Parameters | None = None,
) -> TrainingRun:
    """Train one run for each seed (and each setting of the model) at once.

    Parameters: ``model``; ``plan``; ``seeds`` of starts and sequences; ``dtype``; ``watch``, called with the number of
    finished epochs and the parameters (not to be changed); ``start``, stacked parameters, by default ``model.start``.

    Returns: `TrainingRun`; the same seeds give the same numbers whatever other seeds run along, up to rounding.

    >>> from numerics.training import FixedAttention, SequenceData
    >>> model = FixedAttention(SequenceData(), "collapsed", (0.5,))
    >>> run = train(model, Plan(epochs=2, steps=3, batch=8, rates={"OV": 0.1}), seeds=[0, 1])
    >>> run.loss.shape
    (2, 2, 1)
    """
    parameters = {n: np.array(v, dtype=dtype) for n, v in (start or model.start(tuple(seeds), dtype)).items()}
    generators = [np.random.default_rng([seed, 1]) for seed in seeds]
    update = stepper(plan.optimizer, plan.rates)
    active: NDArray[Any] | None = None
    history: list[NDArray[np.float64]] = []
    for epoch in range(plan.epochs):
        total: Any = 0.0
        for at, batch in enumerate(batches(model, plan, generators, plan.steps, dtype).steps()):
            losses, gradients = model.gradients(parameters, batch)
            update(epoch * plan.steps + at, parameters, gradients, active)
            total = total + losses.astype(np.float64)
        mean = total / plan.steps
        history.append(np.where(active > 0, mean, np.nan) if active is not None else mean)
        if watch is not None:
            watch(epoch + 1, parameters)
        if plan.until_loss is not None and epoch and epoch % plan.check_every == 0:
            active = (np.ones_like(mean) if active is None else active) * (mean > plan.until_loss)
            if not bool(active.any()):
                break
    loss = np.stack(history)
    return TrainingRun(loss, parameters, np.isfinite(loss).sum(0))
