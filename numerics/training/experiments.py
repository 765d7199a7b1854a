"""The paper's training experiments as plain functions of their settings, with the paper's numbers as defaults.

Source: arXiv 2608.06776, Figs. 2 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from numerics.training.data import SequenceData
from numerics.training.models import Batch, FixedAttention, Parameters, TrainedAttention
from numerics.training.optimizers import Schedule
from numerics.training.runs import Plan, fresh_batches, train

__all__ = ["ALPHAS", "BINS", "FixedCurves", "Heatmap", "Setting", "attention_heatmap", "fixed_curves", "marked_epochs"]

Array = NDArray[np.float64]

#: Attention on the tokens of a block in Fig. 3.
ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)
#: Edges of the bins of Fig. 2, for attention and probability alike.
BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
#: Step of the difference quotient of Fig. 3.
STEP = 0.005
_RATE = 0.01


def marked_epochs(epochs: int, number: int = 40) -> NDArray[np.int64]:
    """Return about ``number`` epochs from 1 to ``epochs``, evenly in the logarithm.

    >>> marked_epochs(10, 5).tolist()
    [1, 2, 3, 6, 10]
    """
    return np.unique(np.geomspace(1, epochs, number).round().astype(np.int64))


@dataclass(frozen=True)
class FixedCurves:
    """Training under fixed attention, of one seed.

    ``loss`` (epochs, A), the mean over each epoch's batches; difference ``quotient`` (marks, A) after the epochs
    ``marks``; ``final`` (A,), the loss on fresh sequences at the end.
    """

    loss: Array
    marks: NDArray[np.int64]
    quotient: Array
    final: Array


def fixed_curves(
    ov: Literal["collapsed", "factorized"],
    seed: int,
    *,
    alphas: tuple[float, ...] = ALPHAS,
    epochs: int = 500,
    steps: int = 250,
    batch: int = 128,
    fresh: int = 1000,
) -> FixedCurves:
    """Train output-value circuits under fixed attention, all ``alphas`` at once, with rate 0.01.

    Parameters: ``ov``; ``seed``; ``alphas`` (A,); ``epochs`` of ``steps`` steps; ``batch`` sequences, equally many of
    every class; ``fresh``, batches of the final evaluation (a tenth of them for the quotients).

    Returns: `FixedCurves`.

    Source: arXiv 2608.06776, Fig. 3.

    >>> found = fixed_curves("collapsed", 0, alphas=(0.5,), epochs=4, steps=25, fresh=10)
    >>> found.loss.shape, bool(found.final[0] < found.loss[0, 0])
    ((4, 1), True)
    """
    model = FixedAttention(SequenceData(swapped=True), ov, alphas)
    plan = Plan(epochs, steps, batch, {"OV": Schedule(_RATE)}, balanced=True)
    marks = marked_epochs(epochs)
    few = fresh_batches(model, plan, [seed], max(1, fresh // 10))
    whole = Batch(*(x.reshape(1, -1, *x.shape[3:]) for x in (few.counts, few.targets, few.classes)))
    quotients = []

    def watch(epoch: int, parameters: Parameters) -> None:
        if epoch in marks:
            here, there = (model.losses(parameters, whole, shift)[0] for shift in (0.0, STEP))
            quotients.append((here - there) / STEP)

    run = train(model, plan, [seed], watch=watch)
    last = fresh_batches(model, plan, [seed], fresh)
    final = np.mean([model.losses(run.parameters, b)[0] for b in last.steps()], axis=0)
    return FixedCurves(run.loss[:, 0], marks, np.array(quotients), final)


@dataclass(frozen=True)
class Setting:
    """A panel of Fig. 2: how to train, from where, and how long."""

    name: str
    qk: Literal["collapsed", "factorized"]
    ov: Literal["collapsed", "factorized"]
    start_qk: float | None = None
    start_ov: float | None = None
    ratio: float = 1.0
    length: int = 64
    epochs: int = 2500
    steps: int = 250
    until_loss: float | None = 1e-3
    rate: float = _RATE
    check_every: int = 100

    def faster(self, times: int) -> Setting:
        """Return the setting with all rates ``times`` as large and as much fewer epochs."""
        from dataclasses import replace

        checks = max(1, self.check_every // times)
        return replace(self, rate=self.rate * times, epochs=max(1, self.epochs // times), check_every=checks)


@dataclass(frozen=True)
class Heatmap:
    """Shares of sequences in percent: ``seeds`` (S, 5, 5), rows by probability of the target, columns by attention.

    Both increase. ``epochs`` (S,) that the runs took, ``loss`` (S,) of the last one.
    """

    seeds: Array
    epochs: NDArray[np.int64]
    loss: Array

    @property
    def percent(self) -> Array:
        """The mean over the seeds (5, 5)."""
        found: Array = self.seeds.mean(0)
        return found


def attention_heatmap(setting: Setting, seeds: Sequence[int], *, batch: int = 32, fresh: int = 200) -> Heatmap:
    """Train the attention model and sort fresh sequences by their attention on the block and by the probability of
    the target.

    Parameters: ``setting``; ``seeds``, all in one batched run; ``batch`` sequences of a step; ``fresh``, batches of
    every seed that are sorted.

    Returns: `Heatmap`.

    Source: arXiv 2608.06776, Fig. 2.

    >>> quick = Setting("CACO", "collapsed", "collapsed", epochs=1, steps=2)
    >>> found = attention_heatmap(quick, [0, 1], fresh=2)
    >>> found.percent.shape, round(float(found.percent.sum()), 9), found.epochs.tolist()
    ((5, 5), 100.0, [1, 1])
    """
    model = TrainedAttention(
        SequenceData(length=setting.length), setting.qk, setting.ov, setting.start_qk, setting.start_ov
    )
    rates = {"OV": Schedule(setting.rate), "QK": Schedule(setting.ratio * setting.rate)}
    plan = Plan(
        setting.epochs, setting.steps, batch, rates, until_loss=setting.until_loss, check_every=setting.check_every
    )
    run = train(model, plan, seeds)
    seen: Any = [model.measure(run.parameters, b) for b in fresh_batches(model, plan, seeds, fresh).steps()]
    # single precision rounds a mass or a probability of 1 to either side
    probability = np.concatenate([s.probability for s in seen], 1).clip(0, 1)
    attention = np.concatenate([s.attention for s in seen], 1).clip(0, 1)
    counts = [np.histogram2d(p, a, bins=[BINS, BINS])[0] for p, a in zip(probability, attention, strict=True)]
    last = np.array([run.loss[n - 1, s] for s, n in enumerate(run.epochs)])
    return Heatmap(100 * np.array(counts) / attention.shape[1], run.epochs, last)
