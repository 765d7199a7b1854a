"""Roots of many increasing functions at once: Newton's rule held between bounds that close in.

Source: the safeguarded Newton method, as in Press et al., Numerical Recipes, section 9.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from theory.errors import GradlineError

__all__ = ["increasing_root"]

_EPS = float(np.finfo(np.float64).eps)
_STEPS = 400


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def increasing_root(
    function: Callable[[Any], tuple[Any, Any]],
    low: Any,
    high: Any,
    guess: Any,
    floor: float = 0.0,
    last_step: float = 1e-9,
) -> Any:
    """Find the root of each of many increasing functions.

    Parameters: ``function``, from points to values (infinite ones allowed) and steps that converge quadratically,
    such as Newton's ``value/slope``; ``low`` and ``high``, where the values are at most and at least 0; ``guess``,
    where to begin; ``floor``, the size below which a root need only be right absolutely; ``last_step``, the relative
    size of a step that is the last: the next would be its square, below rounding. Arrays of one shape.

    Returns: the roots, to rounding. Raises: `GradlineError` where bounds don't close.

    >>> cube = lambda x: (x**3 - np.array([8.0, 1e-30]), (x**3 - np.array([8.0, 1e-30])) / (3 * x**2))
    >>> increasing_root(cube, np.zeros(2), np.full(2, 1e9), np.ones(2)).tolist()
    [2.0, 1e-10]
    """
    x = np.clip(guess, low, high)
    last = np.full(np.shape(x), np.inf)
    settled = np.zeros(np.shape(x), dtype=bool)
    for _ in range(_STEPS):
        value, step = function(x)
        below = value <= 0
        low, high = np.where(below, x, low), np.where(value >= 0, x, high)
        new, size = x - step, np.abs(step)
        # a step that leaves the bounds, or does not shrink, gives way to a bisection
        good = (new >= low) & (new <= high) & (size <= 0.5 * last) & np.isfinite(value)
        if not good.all():
            stays = value == 0
            middle = np.sinh(0.5 * (np.arcsinh(low) + np.arcsinh(high)))
            middle = np.where((middle > low) & (middle < high), middle, 0.5 * (low + high))
            new = np.where(stays | settled, x, np.where(good, new, middle))
            settled |= stays | (high - low <= 2 * _EPS * np.maximum(np.abs(high), floor))
            size = np.where(good, size, np.where(np.isfinite(value), high - low, np.inf))
        settled |= good & (size <= last_step * np.maximum(np.abs(new), floor))
        x, last = new, size
        if settled.all():
            return x
    raise GradlineError("root: bounds don't close in double precision; start closer to 0 or take a larger loss")
