"""The reduced flow of a torch model: states, metric and orbits of `theory.models.GradientFlow`, values by autograd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Symbol

from numerics.models.torch_loss import TorchLoss
from numerics.sizes import check_names, finite_number
from theory.models import Block, Model
from theory.models.reduction import EntryOrbit

__all__ = ["NumericFlow"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NumericFlow:
    """The gradient flow of the orbit values of a torch loss.

        dv/dt = -(1/g_v) dL/dv,    g_v = |O| / eta

    ``model``; ``states``, the first entry of each orbit; ``metric``, the ``g_v`` by state; ``orbits``, for each state
    its entries with signs; ``parameters``, the symbols among the learning rates, by name.
    """

    model: Model
    states: tuple[Symbol, ...]
    metric: Mapping[Symbol, Any]
    orbits: Mapping[Symbol, tuple[tuple[Symbol, int], ...]]
    parameters: tuple[Symbol, ...]
    _orbits: tuple[EntryOrbit, ...] = field(repr=False)
    _loss: TorchLoss = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model.name

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The trained arrays."""
        return self.model.blocks

    def vector(self, values: Mapping[Any, Any] | Sequence[float] | Array) -> Array:
        """State values in the order of ``states``, from a mapping by name or symbol, or a sequence.

        Raises: ``ValueError`` or ``TypeError`` naming what is missing or too many.
        """
        names = [s.name for s in self.states]
        if isinstance(values, Mapping):
            named = check_names("values", values, names)
            missing = [n for n in names if n not in named]
            if missing:
                raise ValueError(f"values: no value for {missing[0]}; expected {', '.join(names)}")
            return np.array([finite_number(n, named[n]) for n in names])
        found = np.asarray(values, dtype=np.float64)
        if found.shape != (len(names),):
            raise ValueError(
                f"values of shape {found.shape}: expected {len(names)}, one for each of {', '.join(names)}"
            )
        return found

    def entries(self, values: Mapping[Any, Any] | Sequence[float] | Array) -> Array:
        """All entries of the model at state values, in the order of ``model.symbols``."""
        flat = np.zeros(sum(block.size for block in self.blocks))
        for value, orbit in zip(self.vector(values), self._orbits, strict=True):
            flat[list(orbit.positions)] = value * np.array(orbit.signs)
        return flat

    def loss(self, values: Mapping[Any, Any] | Sequence[float] | Array) -> float:
        """The loss at state values."""
        return self._loss.value(self.entries(values))

    def metric_values(self, parameters: Mapping[Any, Any] | None = None) -> Array:
        """The metric in numbers, in the order of ``states``.

        Raises: ``ValueError`` or ``TypeError`` for parameters other than the flow's.
        """
        names = [s.name for s in self.parameters]
        if not names and parameters:
            raise ValueError(
                f"parameters: {next(iter(parameters))} given; the learning rates of this model are numbers"
            )
        named = check_names("parameters", parameters or {}, names) if names else {}
        missing = [n for n in names if n not in named]
        if missing:
            raise ValueError(f"no value for {missing[0]}; this flow needs {', '.join(names)}")
        known = {s: finite_number(s.name, named[s.name], positive=True) for s in self.parameters}
        return np.array([float(self.metric[s].xreplace(known)) for s in self.states])

    def velocity(
        self, values: Mapping[Any, Any] | Sequence[float] | Array, parameters: Mapping[Any, Any] | None = None
    ) -> dict[str, float]:
        """The velocity of each state by name, ``-(1/g) dL/dv``."""
        speed = self.slopes(self.vector(values)) / -self.metric_values(parameters)
        return {s.name: float(v) for s, v in zip(self.states, speed, strict=True)}

    def slopes(self, vector: Array) -> Array:
        """``dL/dv`` for each state: the sum over its orbit, with signs."""
        _, gradient = self._loss.gradient(self.entries(vector))
        return np.array([gradient[list(o.positions)] @ np.array(o.signs) for o in self._orbits])
