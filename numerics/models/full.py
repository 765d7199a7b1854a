"""A user's model entry by entry: no symmetry, no reduced formula, the witness of what is predicted for it.

The gradient of a torch loss comes from autograd, that of a SymPy loss from SymPy's own printer, not from the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sympy import Basic, Symbol, diff, lambdify

from numerics.conditions import Stop, read_times
from numerics.models.simulation import Problem, integrate_twice
from numerics.models.torch_loss import TorchLoss
from numerics.sizes import check_names, finite_number
from theory.inputs import exact
from theory.models import Model

__all__ = ["FullRun", "Line", "full_problem", "simulate_full"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FullRun:
    """A trajectory of all entries: ``t`` (R,); ``blocks``, name -> (R, *shape); ``loss`` (R,); ``error_estimate``."""

    t: Array
    blocks: Mapping[str, Array]
    loss: Array
    error_estimate: float

    @property
    def entries(self) -> Array:
        """All entries, (R, entries)."""
        return np.concatenate([value.reshape(len(self.t), -1) for value in self.blocks.values()], axis=1)


@dataclass(frozen=True, eq=False)
class Line:
    """The subspace on which states give the entries: ``entries = matrix @ states``, ``matrix`` (entries, states)."""

    states: tuple[Symbol, ...]
    matrix: Array

    @staticmethod
    def of_orbits(model: Model, orbits: Mapping[Symbol, Any]) -> Line:
        """The subspace of a symmetry: entries of one orbit are equal up to sign."""
        position = {s: i for i, s in enumerate(model.symbols)}
        matrix = np.zeros((len(position), len(orbits)))
        for column, members in enumerate(orbits.values()):
            for entry, sign in members:
                if entry not in position:
                    raise ValueError(f"line: {entry} is no entry of {model.name}; give the flow's line")
                matrix[position[entry], column] = sign
        return Line(tuple(orbits), matrix)

    @staticmethod
    def of_directions(model: Model, states: tuple[Symbol, ...], directions: Mapping[Any, Any]) -> Line:
        """The subspace ``block = sum_s s E_s``; ``directions`` maps a state to the arrays ``E_s`` by block.

        Raises: ``ValueError`` for unknown or missing states, unknown blocks, or wrong shapes.
        """
        named = check_names("line", directions, [s.name for s in states])
        missing = next((s.name for s in states if s.name not in named), None)
        if missing is not None:
            raise ValueError(f"line: no direction for {missing}; expected one for each state")
        names = [block.name for block in model.blocks]
        columns = []
        for state in states:
            arrays = check_names(f"line, {state}", named[state.name], names)
            parts = []
            for block in model.blocks:
                value = np.asarray(arrays.get(block.name, np.zeros(block.axes)), dtype=np.float64)
                if value.shape != block.axes:
                    raise ValueError(f"line, {state}: {block.name} has shape {value.shape}; expected {block.axes}")
                parts.append(value.ravel())
            columns.append(np.concatenate(parts))
        return Line(states, np.stack(columns, axis=1))

    def coordinates(self, entries: Array) -> Array:
        """The states nearest to entries, (R, entries) -> (R, states)."""
        return np.asarray(np.linalg.lstsq(self.matrix, entries.T, rcond=None)[0].T)

    def distance(self, entries: Array) -> Array:
        """The largest entry off the subspace, (R, entries) -> (R,)."""
        return np.asarray(np.abs(entries - self.coordinates(entries) @ self.matrix.T).max(axis=1))


def _functions(model: Model) -> tuple[Callable[[Array], float], Callable[[Array], Array], tuple[Symbol, ...]]:
    """The loss, its gradient, and the symbols of the loss that are no entries."""
    if not isinstance(model.loss, Basic):
        loss = TorchLoss(model.blocks, model.loss)
        return loss.value, lambda y: loss.gradient(y)[1], ()
    others = tuple(sorted(model.loss.free_symbols - set(model.symbols), key=lambda s: str(s.name)))
    values = lambdify([*model.symbols, *others], model.loss, "numpy", cse=True)
    slopes = lambdify([*model.symbols, *others], [diff(model.loss, s) for s in model.symbols], "numpy", cse=True)
    return values, slopes, others


def full_problem(model: Model, parameters: Mapping[str, float], start: Array) -> Problem:
    """The flow of all entries in numbers.

    Raises: ``ValueError`` for parameters that are missing.
    """
    value, slope, others = _functions(model)
    rates = [exact(block.rate) for block in model.blocks]
    needed = {s.name: s for s in {*others, *(s for r in rates for s in r.free_symbols)}}
    missing = sorted(set(needed) - set(parameters))
    if missing:
        raise ValueError(f"no value for {missing[0]}; {model.name} needs {', '.join(sorted(needed))}")
    known = {s: finite_number(name, parameters[name]) for name, s in needed.items()}
    numbers = zip(rates, model.blocks, strict=True)
    rate = np.concatenate([np.full(block.size, float(r.xreplace(known))) for r, block in numbers])
    if others:
        fixed = [known[s] for s in others]
        return Problem(
            lambda y: -rate * np.array(slope(*y, *fixed)),
            lambda y: float(value(*y, *fixed)),
            start,
            model.name,
        )
    if isinstance(model.loss, Basic):
        return Problem(
            lambda y: -rate * np.array(slope(*y), dtype=np.float64), lambda y: float(value(*y)), start, model.name
        )
    return Problem(lambda y: -rate * slope(y), value, start, model.name)


def simulate_full(
    model: Model,
    parameters: Mapping[Any, Any] | None = None,
    start: Mapping[str, ArrayLike] | Array | None = None,
    until_time: float | None = None,
    *,
    times: ArrayLike | None = None,
    rtol: float = 1e-10,
) -> FullRun:
    """Integrate every entry of a user's model, twice.

        dP/dt = -eta dL/dP     for each block P

    Parameters: ``model``; ``parameters``, a number for each symbol of its rates and loss; ``start``, block name ->
    array, or all entries in one vector; ``until_time`` or increasing ``times`` from 0 on; ``rtol``.

    Returns: a `FullRun`. Raises: ``ValueError`` or ``TypeError`` for wrong input; `IntegrationError` where both
    integrations differ.

    >>> from theory.models import Block
    >>> w = Block("w", 2)
    >>> run = simulate_full(Model([w], (w.symbols[0] ** 2 + 4 * w.symbols[1] ** 2) / 2), None, {"w": [1, 1]}, 1.0)
    >>> run.blocks["w"][-1].round(6).tolist()
    [0.367879, 0.018316]
    """
    if isinstance(start, Mapping):
        names = [block.name for block in model.blocks]
        given = check_names("start", start, names)
        missing = next((n for n in names if n not in given), None)
        if missing is not None:
            raise ValueError(f"start: no array for {missing}; expected {', '.join(names)}")
        line = Line.of_directions(model, (Symbol("s"),), {"s": given})
        first = line.matrix[:, 0].copy()
    else:
        first = np.asarray(start, dtype=np.float64)
        if first.shape != (len(model.symbols),):
            raise ValueError(f"start of shape {first.shape}: expected {len(model.symbols)} entries, or arrays by block")
    problem = full_problem(model, {str(k): v for k, v in (parameters or {}).items()}, first)
    grid = read_times(times, 1.0)
    if (until_time is None) == (grid is None):
        raise ValueError("simulate_full: expected exactly one of until_time and times")
    end = finite_number("until_time", until_time, positive=True) if grid is None else float(grid[-1])
    from numerics.gradient_flow import one_thread

    with one_thread():
        found = integrate_twice(problem, Stop(None, end), grid, rtol)
        losses = np.array([problem.loss(y) for y in found.values.T]) if problem.loss is not None else np.empty(0)
    parts = np.split(found.values.T, np.cumsum([block.size for block in model.blocks])[:-1], axis=1)
    shaped = {b.name: part.reshape(-1, *b.axes) for b, part in zip(model.blocks, parts, strict=True)}
    return FullRun(found.t, MappingProxyType(shaped), losses, found.error)
