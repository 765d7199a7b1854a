"""Runs of a generated integrator: loaded once, from the cache folder if it is there, and shared out to all cores."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numerics.backends.cache import imported

__all__ = ["Ends", "integrate", "load"]

Array = NDArray[np.float64]

_CAPACITY = 512  # steps of a run; one that needs more is left to SciPy
_CHUNK = 128  # runs that a thread takes at a time


@dataclass(frozen=True)
class Ends:
    """Ends of runs, arrays (runs,), and the steps (lanes, steps + 1, 11) of the runs last in each lane."""

    x: Array
    y: Array
    t: Array
    loss: Array
    attention: Array
    steps: Array
    error: Array
    status: Array
    unit: Array
    nodes: Array


@lru_cache(maxsize=32)
def load(source: str) -> Any:
    """The module of an integrator."""
    return imported("integrator", source)


def integrate(module: Any, settings: Array, given: Array, most: int) -> Ends:
    """Integrate runs, on all cores if there are many.

    Parameters: ``module`` of `load`; ``settings`` (runs, 6): x, y, target loss or 0, time limit or inf, rtol, atol;
    ``given`` (runs, COUNT); ``most``, steps of a run.
    """
    runs = len(settings)
    ends = np.zeros((runs, 9))
    capacity = min(most, _CAPACITY) + 1

    def part(first: int) -> Array:
        last = min(first + _CHUNK, runs)
        nodes = np.empty((module.LANES, capacity, 11))
        module.integrate(settings[first:last], given[first:last], ends[first:last], nodes)
        return nodes

    if runs <= _CHUNK:
        nodes = part(0)
    else:
        with ThreadPoolExecutor(_cores()) as pool:
            *_, nodes = pool.map(part, range(0, runs, _CHUNK))
    x, y, t, loss, attention, steps, error, status, unit = ends.T
    return Ends(x, y, t, loss, attention, steps, error, status, unit, nodes)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
