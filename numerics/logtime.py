"""Logarithmic time ``u = log(1 + t/t_0)``, without overflow at either end."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["log_time", "time_of"]

Array = NDArray[np.float64]


def time_of(u: Array, unit: float) -> Array:
    """Time ``t`` of log time ``u``; ``unit`` is ``t_0``.

    >>> float(time_of(np.log(np.array(3.0)), 2.0))
    4.0
    """
    with np.errstate(over="ignore"):
        near = unit * np.expm1(u)
    return np.where(u < 1, near, np.exp(u + math.log(unit)) - unit)


def log_time(t: Array, unit: float) -> Array:
    """Log time ``u`` of time ``t``; ``unit`` is ``t_0``."""
    with np.errstate(over="ignore", divide="ignore"):
        ratio = t / unit
        return np.where(np.isfinite(ratio), np.log1p(ratio), np.log(t) - math.log(unit))
