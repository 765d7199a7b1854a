"""What curves are made of: constants of a flow as numbers, parameters and starts as checked arrays.

Source: sections 4 to 6 of the theory.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numerics.circuits import Circuit
from numerics.conditions import read_parameters, read_start
from numerics.curve import Curve
from numerics.kernels import Kernel, compile_kernel
from theory.flow import ReducedFlow
from theory.line import COORDINATES
from theory.orbits import Circuit as Name

__all__ = ["Given", "circuit_of", "constants_of", "curve_of", "read_given"]

Array = NDArray[np.float64]
Given = Mapping[Any, Any]


@lru_cache(maxsize=64)
def _constants(flow: ReducedFlow) -> tuple[dict[str, float], tuple[str, ...], Kernel]:
    """What a curve needs: the numbers, the names of what depends on parameters, and the function that computes it."""
    task = flow.task
    wanted: dict[str, Any] = {
        "classes": task.classes,
        "block": task.block,
        "weight": task.informative_slots / task.noise_slots,
    }
    wanted |= {"scale": task.score_scale, "pull": flow.definitions["kappa"] * task.score_scale}
    for circuit in COORDINATES:
        if flow.model.form(circuit) == "factorized":
            wanted |= {f"sigma_{circuit}": flow.definitions[f"sigma_{circuit}"]}
            wanted |= {f"imbalance_{circuit}": flow.model.imbalance(circuit)}
    moving = {name: value for name, value in wanted.items() if value.free_symbols}
    numbers = {name: float(value) for name, value in wanted.items() if name not in moving}
    return numbers, tuple(moving), compile_kernel(list(moving.values()), args=list(flow.parameters))


def constants_of(flow: ReducedFlow, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What a curve needs, for checked parameters: numbers and arrays."""
    numbers, names, kernel = _constants(flow)
    found = kernel(*(parameters[s.name] for s in flow.parameters))
    return numbers | dict(zip(names, found, strict=True))


def circuit_of(flow: ReducedFlow, name: Name, known: Mapping[str, Any]) -> Circuit:
    """A circuit of a flow, given its constants and its start, ``mu_OV`` or ``mu_QK``."""
    if flow.model.form(name) == "collapsed":
        return Circuit("collapsed")
    sigma = known[f"sigma_{name}"]
    if flow.model.is_balanced(name):
        return Circuit("balanced", sigma, sign=np.copysign(1.0, known[f"mu_{name}"]))
    return Circuit("imbalanced", sigma, np.abs(known[f"imbalance_{name}"]) / (2 * sigma))


def _over(value: Any, shape: tuple[int, ...]) -> Any:
    """A flat array over the curves; a number where all curves have the same."""
    if np.ndim(value) == 0:
        return float(value)
    flat = np.broadcast_to(value, shape).ravel()
    return float(flat[0]) if flat.size and (flat == flat[0]).all() else flat


def curve_of(
    flow: ReducedFlow, parameters: Mapping[str, Any], start: Mapping[str, Any], shape: tuple[int, ...]
) -> Curve:
    """The curves of a flow for checked parameters and starts that broadcast to a shape."""
    known = {name: _over(value, shape) for name, value in {**constants_of(flow, parameters), **start}.items()}
    return Curve(
        output=circuit_of(flow, "OV", known),
        query=circuit_of(flow, "QK", known),
        classes=known["classes"],
        block=known["block"],
        log_weight=np.log(known["weight"]),
        scale=known["scale"],
        pull=known["pull"],
        rate=_over(parameters["eta_OV"], shape),
        v_0=known["mu_OV"],
        q_0=known["mu_QK"],
    )


def read_given(flow: ReducedFlow, parameters: Given, start: Given | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Checked parameters and starts; arrays are checked entry by entry only where one of them is wrong."""
    mappings = [parameters, {} if start is None else start]
    if not all(isinstance(m, Mapping) for m in mappings):
        return read_parameters(flow, parameters), read_start(flow, start)
    first = [{k: np.ravel(v)[0] if np.ndim(v) else v for k, v in m.items()} for m in mappings]
    known: list[dict[str, Any]] = [*_one(flow, first)]
    for which, mapping in enumerate(mappings):
        for key, value in mapping.items():
            if np.ndim(value):
                known[which][str(key)] = _entries(flow, first, which, key, np.asarray(value))
    return known[0], known[1]


def _one(flow: ReducedFlow, given: list[dict[Any, Any]]) -> tuple[dict[str, float], dict[str, float]]:
    return read_parameters(flow, given[0]), read_start(flow, given[1])


def _entries(flow: ReducedFlow, first: list[dict[Any, Any]], which: int, key: Any, array: Any) -> Array:
    """An array of a parameter or a start, every entry checked as a number of its own; rates all at once."""
    numbers = array.dtype.kind in "fiu" and bool(np.isfinite(array).all())
    if not (numbers and str(key) in ("eta_OV", "eta_QK") and bool((array > 0).all())):
        for entry in np.unique(array) if numbers else array.ravel():
            trial = [dict(mapping) for mapping in first]
            trial[which][key] = entry
            _one(flow, trial)
    return np.asarray(array, dtype=np.float64)
