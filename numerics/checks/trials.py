"""Trajectory evidence for a theory of the literature: runs of its explicit model, entry by entry.

Each run is integrated twice, at two tolerances; their difference measures the error that reaches a comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from sympy import lambdify

from numerics.checks.comparison import Comparison, Finding
from theory.errors import GradlineError
from theory.models.trial import Trial, time
from theory.registry import Claim

__all__ = ["CHECKS", "run_trial"]

Array = NDArray[np.float64]

_LOOSE, _TIGHT = 1e-9, 1e-12
_POINTS = 7
#: The looser run is off by its own error, so ten times its distance from the tighter one is above the error of that
#: one; rounding of the formulas themselves adds a few hundred units of 2^-52.
_TIMES, _ROUNDING = 10.0, 1e-13


def run_trial(trial: Trial, rtol: float) -> Array:
    """Integrate the explicit model; returns the states at evenly spaced times, the start included.

    Raises: `GradlineError` where the integration fails.
    """
    states = list(trial.flow.states)
    velocity = lambdify(states, [trial.flow.velocity[s] for s in states], "numpy", cse=True)
    start = np.array([float(trial.start[s]) for s in states])
    times = np.linspace(0.0, float(trial.until), _POINTS)

    def field(_: float, y: Array) -> Array:
        return np.array(velocity(*y), dtype=float)

    run = solve_ivp(field, (0.0, times[-1]), start, method="DOP853", t_eval=times, rtol=rtol, atol=rtol)
    if not run.success:
        raise GradlineError(f"{trial.label}: integration of the full model failed: {run.message}")
    return np.asarray(run.y.T)


def _trials(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    for trial in claim.subject[1]():
        runs = [run_trial(trial, rtol) for rtol in (_LOOSE, _TIGHT)]
        times = np.linspace(0.0, float(trial.until), _POINTS)
        for entry in trial.compare(claim.stated):
            values = lambdify([*trial.flow.states, time], [entry.actual, entry.predicted], "numpy", cse=True)
            pairs = [np.array([_floats(values(*y, t)) for y, t in zip(run, times, strict=True)]) for run in runs]
            for index in (1, _POINTS // 2, _POINTS - 1):
                found, stated = pairs[1][index]
                distance = float(np.abs(pairs[0][index] - pairs[1][index]).max())
                bound = _TIMES * distance + _ROUNDING * (1 + abs(found))
                case = f"{trial.label}, t = {times[index]:.3g}"
                yield Comparison(entry.name, stated, found, bound, case)


def _floats(pair: Any) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])


CHECKS = {"trials": _trials}
