"""Trajectory evidence: stated flows and first integrals against the integrated full model.

The full model is integrated with tolerance ``RTOL``; the error budget multiplies it by a margin for the
accumulation over the trajectory and, for first integrals, by their sensitivity to the coordinates.

Source: sections 4 to 6 of the theory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from sympy import Rational, lambdify

from numerics.checks.cases import Array, Case, Circuit, cases, evaluate
from numerics.checks.comparison import Comparison, Finding
from numerics.checks.formulas import integral_formula, published_case, velocity_formula
from numerics.matrix_model import MatrixModel
from theory.registry import Claim
from theory.symbols import c_OV, mu_OV, mu_QK

__all__ = ["CHECKS", "END", "MARGIN", "RTOL", "run_of"]

RTOL = 1e-11
#: Accumulated error of a run, per unit of tolerance: each of up to a few hundred steps adds an error of the tolerance,
#: and what is there grows by a small factor over `END`. The bound stays near 1e-8, far below what a wrong formula does.
MARGIN = 1e3
END = 5.0


def _times() -> Array:
    return np.linspace(0.0, END, 3)


def _values(case: Case, output: float, query: float) -> dict[Any, Any]:
    """The values of a case with other coordinates, exact."""
    return {**case.values, mu_OV: Rational(output), mu_QK: Rational(query)}


def run_of(net: MatrixModel, case: Case) -> Any:
    return net.gradient_flow(case.rates, _times(), rtol=RTOL, atol=RTOL)


def _velocity(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    published = claim.subject[1] == "published"
    for drawn in cases(rng, "CACO" if published else claim.subject[1], 1):
        yield from _against_prediction(claim, published_case(drawn) if published else drawn)


def _prediction(claim: Claim, case: Case) -> Array:
    """The stated flow, integrated from the coordinates of the case."""
    formulas = []
    for name in ("mu_OV", "mu_QK"):
        fixed = {s: v for s, v in case.values.items() if s not in (mu_OV, mu_QK)}
        formulas.append(velocity_formula(claim, name, case).xreplace(fixed))
    kernel = lambdify([mu_OV, mu_QK], formulas, "numpy")
    start = [float(case.values[mu_OV]), float(case.values[mu_QK])]
    times = _times()
    with np.errstate(all="ignore"):
        found = solve_ivp(
            lambda _t, y: np.array(kernel(y[0], y[1])), (0, END), start, "DOP853", times, rtol=RTOL, atol=RTOL
        )
    states: Array = np.full((2, times.size), np.nan)
    states[:, : found.y.shape[1]] = found.y
    return states


def _against_prediction(claim: Claim, case: Case) -> Iterator[Comparison]:
    run = run_of(case.model(), case)
    predicted = _prediction(claim, case)
    for name, stated, found in (("mu_OV", predicted[0], run.mu_OV), ("mu_QK", predicted[1], run.mu_QK)):
        # a stated flow that ends early leaves NaN, which is the largest deviation and agrees with nothing
        worst = int(np.abs(stated - found).argmax())
        bound = MARGIN * RTOL * (1 + float(np.abs(found).max()))
        yield Comparison(f"{name}(t)", float(stated[worst]), float(found[worst]), bound, case.describe())


def _integral(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    imbalanced = claim.subject[1] == "imbalanced-ov"
    for code in ("CAFO", "FAFO") if imbalanced else (claim.subject[1],):
        for case in cases(rng, code, 1):
            yield from _drift(claim, case, imbalanced)


def _drift(claim: Claim, case: Case, imbalanced: bool) -> Iterator[Comparison]:
    c: Mapping[Circuit, Any] | None = {"OV": case.values[c_OV]} if imbalanced else None
    run = run_of(case.model(imbalance=c), case)
    value = integral_formula(claim, case, imbalanced)
    points = [_values(case, o, q) for o, q in zip(run.mu_OV, run.mu_QK, strict=True)]
    along = np.array([evaluate(value, p) for p in points])
    slopes = max(abs(evaluate(value.diff(s), p)) for s in (mu_OV, mu_QK) for p in points)
    size = 1 + float(np.abs([run.mu_OV, run.mu_QK]).max())
    worst = int(np.abs(along - along[0]).argmax())
    bound = MARGIN * RTOL * size * (1 + slopes)
    yield Comparison("y - slope x along the run", float(along[0]), float(along[worst]), bound, case.describe())


CHECKS: dict[str, Callable[[Claim, np.random.Generator], Iterator[Finding]]] = {
    "velocity": _velocity,
    "integral": _integral,
}
