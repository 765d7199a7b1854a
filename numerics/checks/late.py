"""Trajectory evidence for late times: log time to 1e60, with the two-sided bounds that the proofs rest on.

Convergence is logarithmically slow, so a ratio to a leading term is held to a bracket that is proved and that tightens,
never to a small number. Source: section 8 of the theory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sympy import Integer, Rational

from numerics.checks.cases import Array, Case, cases, evaluate
from numerics.checks.comparison import Comparison, Finding
from numerics.checks.formulas import setting_of, stated_for
from numerics.integrate import simulate
from numerics.predictions import general_flow
from numerics.trajectory import Trajectory
from theory.model import AttentionModel
from theory.registry import Claim
from theory.symbols import M, b, eta_OV, gamma, m, mu_OV, mu_QK, n, t

__all__ = ["CHECKS"]

LAST = 1e60
#: Relative error of the states of a run, and what a grid misses between two points that are e^0.5 apart in time.
SLACK = 1e-6


def _origin(case: Case) -> Case:
    return replace(case, values={**case.values, mu_OV: Integer(0), mu_QK: Integer(0)})


def _two(rng: np.random.Generator) -> list[Case]:
    """Two cases of different settings; a run to 1e60 takes half a second."""
    every = list(cases(rng, "CACO", 1))
    return [every[int(i)] for i in rng.permutation(len(every))[:2]]


def _late(case: Case) -> tuple[Array, Array, Array, Array]:
    """Times, coordinates and attention deficit of the reduced flow to 1e60, from the origin."""
    flow, known = general_flow(AttentionModel(case.task))
    run = simulate(flow, known | case.rates, until_time=LAST, time="log", rtol=1e-9, fast=False)
    if not isinstance(run, Trajectory):
        raise TypeError("one run expected")
    keep = run.t > 0
    return run.t[keep], run.mu_OV[keep], run.mu_QK[keep], run.loss[keep]


def _full(case: Case) -> tuple[Array, Array, Array, Array]:
    """The same from the full model, to a moderate time."""
    run = case.model().gradient_flow(case.rates, np.geomspace(1.0, 200.0, 12), rtol=1e-10, atol=1e-10)
    return run.t, run.mu_OV, run.mu_QK, run.loss


def _numbers(case: Case) -> dict[str, float]:
    value = {k: float(case.values[s]) for k, s in (("M", M), ("b", b), ("m", m), ("n", n), ("gamma", gamma))}
    ratio = setting_of(case).norm2_QK.xreplace(dict(case.values)) / ((case.values[M] - 1) * case.values[b])
    return value | {"kappa": case.rates["eta_QK"] / case.rates["eta_OV"] / float(ratio)}


def _deficit(case: Case, q: Array) -> Array:
    """``1 - alpha``, without cancellation."""
    x = _numbers(case)
    found: Array = 1 / (1 + x["m"] / x["n"] * np.exp(x["gamma"] * q))
    return found


def _limit(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """``X/(1 + m/n + X) <= (1-alpha) X <= X/(1 + m/n + X - log((n/m)(X + m/n)))`` with ``X = kappa gamma^2
    mu_OV^2/2``.
    """
    for drawn in _two(rng):
        case = _origin(drawn)
        x = _numbers(case)
        stated = stated_for(claim, "1 - alpha", case)
        for source, times in ((_late, (1e8, 1e30, LAST)), (_full, (200.0,))):
            grid, v, q, _ = source(case)
            for time in times:
                at = int(np.abs(np.log(grid / time)).argmin())
                X = x["kappa"] * x["gamma"] ** 2 * v[at] ** 2 / 2
                level = 1 + x["m"] / x["n"] + X
                low, high = X / level, X / (level - np.log(x["n"] / x["m"] * X + 1))
                lead = evaluate(stated, {**case.values, mu_OV: Rational(float(v[at]))})
                ratio = float(_deficit(case, q[at])) / lead
                middle, half = (low + high) / 2, (high - low) / 2
                yield Comparison(
                    f"(1-alpha) over its leading term at t={grid[at]:.3g}", middle, ratio, half + SLACK, case.describe()
                )


def _gain(case: Case, v: Array, q: Array) -> Array:
    """``R`` in ``d e^z/dt = (eta_OV/b) R``."""
    x, rest = _numbers(case), _deficit(case, q)
    share = 1 - rest
    grown: Array = 1 / (1 + (x["M"] - 1) * np.exp(-share * v)) * share**2
    return grown * (1 + x["kappa"] * x["gamma"] ** 2 * rest**2 * v**2)


def _rate(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """``e^z(t) - e^z(s)`` lies between ``(eta_OV/b)(t - s)`` times the extremes of ``R`` on ``[s, t]``, ``s =
    sqrt t``.
    """
    for drawn in _two(rng)[:1]:
        for ratio in (Rational(1, 3), Rational(3)):
            case = _origin(drawn)
            case = replace(case, values={**case.values, eta_OV: case.values[eta_OV] * ratio})
            for source, times in ((_late, (1e20, 1e40, LAST)), (_full, (200.0,))):
                yield from _bracket(claim, case, source(case), times)


def _bracket(claim: Claim, case: Case, run: Any, times: tuple[float, ...]) -> Iterator[Finding]:
    grid, v, q, losses = run
    x, gain = _numbers(case), _gain(case, v, q)
    speed = case.rates["eta_OV"] / x["b"]
    for time in times:
        at = int(np.abs(np.log(grid / time)).argmin())
        first = int(np.searchsorted(grid, np.sqrt(grid[at])))
        start, span = np.exp((1 - _deficit(case, q[first])) * v[first]), grid[at] - grid[first]
        between = gain[first : at + 1]
        # the extremes of R between the recorded times: a margin of the largest change from one to the next
        jump = float(np.abs(np.diff(between)).max()) + SLACK
        least = max(float(between.min()) - jump, 0.0)
        grown = [start + speed * span * least, start + speed * span * (between.max() + jump)]
        high, low = (np.log1p((x["M"] - 1) / y) for y in grown)
        lead = evaluate(claim.stated["L"], {**case.values, t: Rational(float(grid[at]))})
        middle, half = (low + high) / 2 / lead, (high - low) / 2 / lead
        what = f"L over its leading term at t={grid[at]:.3g}"
        yield Comparison(what, middle, float(losses[at]) / lead, half + SLACK, case.describe())
        # and the bracket is around 1: as far as R is from 1 on this stretch, and the start of the stretch
        off = max(abs(least - 1), abs(between.max() + jump - 1))
        away = (off + start / (speed * grid[at]) + grid[first] / grid[at]) / max(1e-3, 1 - off)
        yield Comparison(f"limit of {what}", 1.0, float(losses[at]) / lead, 2 * away + SLACK, case.describe())


CHECKS = {"limit": _limit, "rate": _rate}
