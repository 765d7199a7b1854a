"""Training on sampled sequences: the paper's experiments in batched runs, and the flow that predicts them.

`SequenceData` is the data, `FixedAttention` and `TrainedAttention` the models, `train` runs several seeds and
settings at once; `orbit_training_flow` is the gradient flow of the orbit values; `sampled_descent` trains the full
matrix model of a token task on sampled batches.

Source: arXiv 2608.06776, Figs. 2 and 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from theory.lazy import lazy_names

if TYPE_CHECKING:
    from numerics.training.data import SequenceData as SequenceData
    from numerics.training.models import FixedAttention as FixedAttention
    from numerics.training.models import TrainedAttention as TrainedAttention
    from numerics.training.optimizers import Optimizer as Optimizer
    from numerics.training.optimizers import Schedule as Schedule
    from numerics.training.orbit_flow import OrbitRun as OrbitRun
    from numerics.training.orbit_flow import SampledLoss as SampledLoss
    from numerics.training.orbit_flow import orbit_training_flow as orbit_training_flow
    from numerics.training.runs import Plan as Plan
    from numerics.training.runs import TrainingRun as TrainingRun
    from numerics.training.runs import fresh_batches as fresh_batches
    from numerics.training.runs import train as train
    from numerics.training.sampled import batch_slope as batch_slope
    from numerics.training.sampled import sampled_descent as sampled_descent

_HOME = {
    "SequenceData": "data",
    "FixedAttention": "models",
    "TrainedAttention": "models",
    "Optimizer": "optimizers",
    "Schedule": "optimizers",
    "OrbitRun": "orbit_flow",
    "SampledLoss": "orbit_flow",
    "orbit_training_flow": "orbit_flow",
    "Plan": "runs",
    "TrainingRun": "runs",
    "fresh_batches": "runs",
    "train": "runs",
    "batch_slope": "sampled",
    "sampled_descent": "sampled",
}

__all__ = [*_HOME]  # noqa: PLE0604
__getattr__, __dir__ = lazy_names("numerics.training", _HOME)
