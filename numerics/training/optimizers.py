"""Optimizers and learning-rate schedules for stacked runs, with a rate for each circuit and each run.

SGD:  ``d = g + decay p``, ``v <- momentum v + d``, ``p <- p - rate (v, or d + momentum v for Nesterov)``
Adam: ``p <- p - rate m/(1 - beta1^k) / (sqrt(s/(1 - beta2^k)) + eps)``, ``m`` and ``s`` running means of ``d``, ``d^2``

Source: arXiv 2608.06776, section on experiments; conventions of `torch.optim`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from numerics.training.models import Array, Parameters

__all__ = ["Optimizer", "Schedule", "circuit_of", "stepper"]

_RUNS = "a number, or one for each run"


@dataclass(frozen=True)
class Schedule:
    """A learning rate that is constant, or goes linearly from ``start`` to ``end`` in ``steps`` steps and stays there.

    ``start`` and ``end`` are numbers, or arrays with one entry for each run.

    >>> Schedule(0.01, end=0.05, steps=4)(1)
    array(0.02)
    """

    start: Any
    end: Any = None
    steps: int = 0

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            value = getattr(self, name)
            if name == "end" and value is None:
                continue
            rates = np.asarray(value, dtype=np.float64)
            if not (np.isfinite(rates) & (rates >= 0)).all():
                raise ValueError(f"{name}={value!r}: expected a learning rate of at least 0 ({_RUNS})")
        if (self.end is None) != (self.steps == 0) or self.steps < 0:
            raise ValueError(
                f"end={self.end!r}, steps={self.steps}: a ramp needs both, steps at least 1; neither is constant"
            )

    def __call__(self, step: int) -> Array:
        """Return the rates at a step, counted from 0."""
        start = np.asarray(self.start, dtype=np.float64)
        if self.end is None:
            return start
        return np.asarray(start + (np.asarray(self.end, dtype=np.float64) - start) * min(step / self.steps, 1.0))


@dataclass(frozen=True)
class Optimizer:
    """The rule of a step: ``"sgd"`` with heavy-ball or Nesterov momentum and weight decay, or ``"adam"``.

    Parameters: ``kind``; ``momentum`` (0 or more, below 1; SGD only); ``nesterov``; ``weight_decay``, added to the
    gradient as a multiple of the parameter; ``betas`` and ``epsilon`` of Adam.

    Raises: ``ValueError`` for values outside these ranges.
    """

    kind: Literal["sgd", "adam"] = "sgd"
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if self.kind not in ("sgd", "adam"):
            raise ValueError(f"kind={self.kind!r}: expected 'sgd' or 'adam'")
        for name, value in (("momentum", self.momentum), ("betas", self.betas[0]), ("betas", self.betas[1])):
            if not 0 <= value < 1:
                raise ValueError(f"{name}: {value} is not at least 0 and below 1")
        if self.kind == "adam" and (self.momentum or self.nesterov):
            raise ValueError("momentum and nesterov belong to kind='sgd'; Adam has betas")
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov=True needs a momentum above 0")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ValueError(f"weight_decay={self.weight_decay}: expected a number of at least 0")
        if not self.epsilon > 0:
            raise ValueError(f"epsilon={self.epsilon}: expected a number above 0")


def circuit_of(name: str) -> str:
    """Return ``"OV"`` or ``"QK"`` from the name of a parameter.

    >>> circuit_of("U_QK"), circuit_of("bias_OV")
    ('QK', 'OV')
    """
    return name.rpartition("_")[2]


def _sgd(optimizer: Optimizer, memory: Parameters, name: str, direction: Array) -> Array:
    if not optimizer.momentum:
        return direction
    memory[name] = optimizer.momentum * memory[name] + direction if name in memory else direction
    return direction + optimizer.momentum * memory[name] if optimizer.nesterov else memory[name]


def _adam(optimizer: Optimizer, memory: Parameters, name: str, direction: Array, step: int) -> Array:
    means = []
    for key, value, beta in zip("ms", (direction, direction**2), optimizer.betas, strict=True):
        place, new = f"{key} {name}", (1 - beta) * value
        memory[place] = beta * memory[place] + new if place in memory else new
        means.append(memory[place] / (1 - beta ** (step + 1)))
    found: Array = means[0] / (np.sqrt(means[1]) + optimizer.epsilon)
    return found


def _plain(rate: Array) -> Any:
    """A number where all runs have the same rate."""
    return float(rate) if rate.ndim == 0 else rate


def stepper(
    optimizer: Optimizer, rates: Mapping[str, Schedule]
) -> Callable[[int, Parameters, Parameters, Array | None], None]:
    """Return a function ``(step, parameters, gradients, active)`` that updates stacked parameters in place.

    ``active``, one number for each run, multiplies its rates: a run with 0 does not move.
    """
    memory: Parameters = {}
    constant = {circuit: _plain(schedule(0)) for circuit, schedule in rates.items() if schedule.end is None}

    def step(number: int, parameters: Parameters, gradients: Parameters, active: Array | None = None) -> None:
        now = {c: constant[c] if c in constant else _plain(schedule(number)) for c, schedule in rates.items()}
        for name, value in parameters.items():
            direction = gradients[name]
            if optimizer.weight_decay:
                direction = direction + optimizer.weight_decay * value
            if optimizer.kind == "sgd":
                direction = _sgd(optimizer, memory, name, direction)
            else:
                direction = _adam(optimizer, memory, name, direction, number)
            rate = now[circuit_of(name)]
            if active is not None:
                rate = active * rate
            if not isinstance(rate, float):
                rate = rate.reshape(*rate.shape, *[1] * (value.ndim - rate.ndim)).astype(value.dtype)
            np.subtract(value, rate * direction, out=value)

    return step
