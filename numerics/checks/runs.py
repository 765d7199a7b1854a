"""Trajectory evidence for what the theory says: runs of the full model, to a time or to a loss.

Source: sections 3, 4, 7 and 8 of the theory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import quad
from sympy import Integer, Rational, lambdify, sign

from numerics.checks.cases import Array, Case, cases, evaluate, with_attention
from numerics.checks.comparison import Comparison, Finding, Ordering
from numerics.checks.fixed_attention import torch_run
from numerics.checks.instance import LARGEST
from numerics.checks.instance_solutions import closed_form, fixed_values
from numerics.checks.trajectory import END, MARGIN, RTOL, run_of
from numerics.gradient_flow import MatrixRun
from theory.paper.qualitative import v_0
from theory.paper.solutions import loss
from theory.registry import Claim
from theory.symbols import alpha, eta_OV, eta_QK, mu_OV, mu_QK, t

__all__ = ["CHECKS"]

_TINY = Rational(1, 10**30)
CODES = ("CACO", "CAFO", "FACO", "FAFO")


def _bound(found: Any, slope: float = 1.0) -> float:
    """The error of a run, as it reaches a quantity through a slope."""
    return MARGIN * RTOL * (1 + float(np.abs(found).max())) * (1 + slope)


def _to_loss(case: Case, code: str, target: float) -> MatrixRun:
    return case.model(code).gradient_flow(case.rates, until_loss=target, rtol=RTOL, atol=RTOL)


def _forward(case: Case, **changes: Any) -> Case:
    """The case with ``mu_OV > 0`` and other values."""
    values = {**case.values, mu_OV: abs(case.values[mu_OV])}
    return replace(case, values=values | changes.get("values", {}))


def _first_loss(case: Case, code: str) -> float:
    return float(case.model(code).loss().detach())


def _on_line(name: str, formula: str) -> Any:
    """A formula of the coordinates holds along a run of the full model."""

    def check(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
        for case in cases(rng, "CACO", 1):
            run = run_of(case.model(), case)
            stated = with_attention(claim.stated[formula])
            for i in (1, -1):
                point = {**case.values, mu_OV: Rational(run.mu_OV[i]), mu_QK: Rational(run.mu_QK[i])}
                found = float(getattr(run, name)[i])
                # exact coordinates of the state that was measured: the distance from the line is what is left
                bound = _bound(run.mu_OV, float(np.abs(run.distance_OV).max() + np.abs(run.distance_QK).max()))
                yield Comparison(f"{name} along the run", evaluate(stated, point), found, bound, case.describe())

    return check


def _directions(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """Entries of ``W`` keep the stated proportions along a run."""
    for case in cases(rng, "CACO", 1):
        run = run_of(case.model(), case)
        block, W = int(case.task.block), run.W_OV[-1]
        names = ("E_OV same", "E_OV other")
        same, other = (evaluate(claim.stated[name], case.values) for name in names)
        yield Comparison(
            "own entry over others", same * float(W[0, block]), float(W[0, 0]) * other, _bound(W), case.describe()
        )
        if case.finite:
            a, c = (evaluate(claim.stated[f"{k} [{case.query_kind}]"], case.values) for k in "ac")
            row = run.W_QK[-1, 0]
            left, right = -c * float(row[0]), a * float(row[-1])
            yield Comparison("informative entry over noise", left, right, _bound(row), case.describe())


def _fixed(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    times = np.linspace(0.0, END, 4)
    for case in cases(rng, "CACO", 1, LARGEST):
        values = fixed_values(case, rng)
        code = "C" if claim.subject[1] == "collapsed" else "F"
        run = torch_run(case, code, float(values[mu_OV]), float(values[alpha]), times, RTOL)
        if code == "C":
            formula = closed_form(claim)
            stated = [evaluate(formula, values | {t: Rational(x)}) for x in times]
            for s, f in zip(stated, run.mu_OV, strict=True):
                yield Comparison("mu_OV(t)", s, float(f), _bound(run.mu_OV), case.describe())
            continue
        conserved = claim.stated["mu_0 > 0" if values[mu_OV] > 0 else "mu_0 < 0"]
        points = [values | {t: Rational(x), mu_OV: Rational(v)} for x, v in zip(times, run.mu_OV, strict=True)]
        along = [evaluate(conserved, p) for p in points]
        slope = max(abs(evaluate(conserved.diff(mu_OV), p)) for p in points)
        for value in along[1:]:
            yield Comparison("constant along the run", along[0], value, _bound(run.mu_OV, slope), case.describe())


def _stopping(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """Runs of the full model that end at a loss: the stated margin, and the state without integration."""
    from numerics.predictions import general_flow
    from numerics.stopping import stopping_state
    from theory.model import PARAMETERIZATIONS, AttentionModel

    for code in CODES:
        case = _forward(next(cases(rng, code, 1)))
        target = 0.5 * _first_loss(case, code)
        run = _to_loss(case, code, target)
        stated = evaluate(claim.stated["alpha mu_OV"].xreplace({loss: Rational(target)}), case.values)
        margin = float(run.attention[-1] * run.mu_OV[-1])
        # d margin/dL = D/(M - 1) at a loss that is met to 1e-12
        yield Comparison("margin at the loss", stated, margin, _bound(margin, np.exp(margin)), case.describe())
        qk, ov = PARAMETERIZATIONS[code]
        flow, known = general_flow(AttentionModel(case.task, qk, ov))
        start = {"mu_OV": float(case.values[mu_OV]), "mu_QK": float(case.values[mu_QK])}
        state = stopping_state(flow, known | case.rates, start, loss=target)
        for name in ("mu_OV", "mu_QK"):
            found = getattr(run, name)
            yield Comparison(name, float(getattr(state, name)), float(found[-1]), _bound(found, np.exp(margin)), code)


def _time(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """The time that the full model takes from the origin, against the stated quadrature in ``s = sqrt(mu_QK)``."""
    for drawn in cases(rng, "CACO", 1):
        case = replace(drawn, values={**drawn.values, mu_OV: Integer(0), mu_QK: Integer(0)})
        run = run_of(case.model(), case)
        key = f"[{case.label}]"
        fixed = {s: v for s, v in case.values.items() if s not in (mu_OV, mu_QK)}
        pace = with_attention(claim.stated[f"dt/dmu_QK {key}"]).xreplace({mu_OV: claim.stated[f"mu_OV {key}"]})
        kernel = lambdify([mu_QK], pace.xreplace(fixed), "math")
        last = float(run.mu_QK[-1])

        def integrand(s: float, kernel: Any = kernel) -> float:
            return 2 * s * float(kernel(s * s))

        # Phi(q) - Phi(0) loses digits for q below 1e-6: there the integrand is a straight line from its stated limit
        tiny = {**case.values, mu_OV: _TINY}
        slow = evaluate(with_attention(claim.stated[f"dt/dmu_QK {key}"]), tiny) * float(_TINY)
        first = 2 * slow / np.sqrt(evaluate(claim.stated[f"limit {key}"], case.values))
        low = min(1e-3, np.sqrt(last) / 4)
        found, error = quad(integrand, low, np.sqrt(last), epsrel=1e-12)
        total = found + low * (integrand(low) + first) / 2
        # a tenth of the line's rise for the curvature, and the error of the run through dt/dmu_QK
        bent = 0.1 * low * abs(integrand(low) - first) + 1e-9
        bound = 10 * error + bent + _bound(1.0, float(kernel(last)))
        yield Comparison("time of the run", total, float(run.t[-1]), bound, case.describe())


def _sharper(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """Two runs of the full model with different ratios, to one loss."""
    names = (("mu_QK", "sign dmu_QK/dr"), ("attention", "sign dalpha/dr"), ("mu_OV", "sign dmu_OV/dr"))
    for code in CODES:
        drawn = _forward(next(cases(rng, code, 1)))
        # a small ratio: query-key does not reach the end of its range, where states no longer differ
        slow = replace(drawn, values={**drawn.values, eta_QK: drawn.values[eta_OV] / 10})
        fast = replace(slow, values={**slow.values, eta_QK: 3 * slow.values[eta_QK]})
        target = 0.5 * _first_loss(slow, code)
        runs = [_to_loss(case, code, target) for case in (slow, fast)]
        for name, key in names:
            ends = [float(getattr(run, name)[-1]) for run in runs]
            direction = int(sign(claim.stated[key]))
            bound = max(_bound(e, float(slow.values[mu_OV]) + 10) for e in ends)
            yield Ordering(f"{name} at three times r", direction * ends[1], direction * ends[0], bound, slow.describe())


def _monotone(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    for code in CODES:
        case = _forward(next(cases(rng, code, 1)))
        run = run_of(case.model(code), case)
        for name, values in (("dalpha/dt", run.attention), ("dL/dt", run.loss)):
            direction = int(sign(claim.stated[f"sign {name}"]))
            for before, after in pairwise(values):
                bound = MARGIN * RTOL
                yield Ordering(f"{name} over a run", direction * after, direction * before, bound, case.describe())


def _ratios(claim: Claim, case: Case, times: Array) -> tuple[Array, Array]:
    """Both coordinates of a run from the origin over the stated leading terms."""
    run = case.model().gradient_flow(case.rates, times, rtol=1e-10, atol=1e-15)
    lead = [evaluate(claim.stated["mu_OV"], {**case.values, t: Rational(x)}) for x in times]
    key = f"mu_QK [{case.label}]"
    second = [evaluate(claim.stated[key], {**case.values, mu_OV: Rational(v)}) for v in run.mu_OV]
    return run.mu_OV / lead, run.mu_QK / second


def _early(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """Richardson: the ratio to the leading term, extrapolated to time 0, is 1; halved times halve its distance
    from 1.
    """
    for drawn in cases(rng, "CACO", 1):
        case = replace(drawn, values={**drawn.values, mu_OV: Integer(0), mu_QK: Integer(0)})
        times = 0.02 / max(case.rates.values()) * np.array([0.25, 0.5, 1.0])
        for name, ratios in zip(("mu_OV", "mu_QK"), _ratios(claim, case, times), strict=True):
            fine, coarse = 2 * ratios[0] - ratios[1], 2 * ratios[1] - ratios[2]
            # the extrapolation leaves second order in a time of 0.02: its change between two levels is 3/4 of it
            bound = 4 * abs(fine - coarse) + 1e-9
            yield Comparison(f"{name} over its leading term", 1.0, float(fine), bound, case.describe())


def _order(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """Both models from one start to one loss, before and after the crossing."""
    formula = claim.stated["sigma_OV (mu_OV + v_0)"]
    for i, drawn in enumerate(cases(rng, "CAFO", 1)):
        size = [Rational(1, 20), Rational(1)][i % 2]
        case = replace(drawn, values={**drawn.values, mu_OV: size})
        target = (0.9 if i < 2 else 0.3) * _first_loss(case, "CAFO")
        ends = {}
        for code in ("CAFO", "CACO"):
            run = _to_loss(case, code, target)
            ends[code] = float(run.mu_OV[-1]), float(run.attention[-1])
        for code in ends:
            value = evaluate(formula, {**case.values, mu_OV: Rational(ends[code][0]), v_0: size})
            above = 1 if value < 1 else -1
            first, second = above * ends["CAFO"][1], above * ends["CACO"][1]
            yield Ordering(
                f"attention, criterion {value:.3g} at {code}", first, second, _bound(1.0, 10.0), case.describe()
            )


CHECKS = {
    "attention": _on_line("attention", "alpha"),
    "loss": _on_line("loss", "L"),
    "directions": _directions,
    "fixed": _fixed,
    "stopping": _stopping,
    "time": _time,
    "sharper": _sharper,
    "monotone": _monotone,
    "early": _early,
    "order": _order,
}
