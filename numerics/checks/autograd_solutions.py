"""Autograd evidence for first integrals and closed forms: derivatives of torch losses at random points.

Source: sections 6 to 8 of the theory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sympy import Rational, diff, sign

from numerics.checks.autograd import ROUNDING, along
from numerics.checks.cases import Case, Circuit, cases, evaluate, exact, matrix_velocities, with_attention
from numerics.checks.comparison import Comparison, Finding, Ordering
from numerics.checks.fixed_attention import torch_velocity
from numerics.checks.formulas import integral_formula
from numerics.checks.instance_solutions import closed_form, fixed_values
from theory.paper.solutions import loss
from theory.registry import Claim
from theory.symbols import alpha, c_OV, mu_OV, mu_QK, t

__all__ = ["CHECKS"]


def _speeds(case: Case, code: str, imbalance: Any = None) -> dict[str, float]:
    net = case.model(code, imbalance)
    directions = {"OV": net.directions().E_OV, "QK": net.directions().E_QK}
    return {c: along(v, directions[c]) for c, v in matrix_velocities(net, case.rates).items()}


def _integral(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """The stated constant does not change along the velocity of the full model."""
    imbalanced = claim.subject[1] == "imbalanced-ov"
    for code in ("CAFO", "FAFO") if imbalanced else (claim.subject[1],):
        for case in cases(rng, code, 2):
            used: dict[Circuit, Any] | None = {"OV": case.values[c_OV]} if imbalanced else None
            speeds = _speeds(case, code, used)
            value = integral_formula(claim, case, imbalanced)
            slopes = {"OV": evaluate(diff(value, mu_OV), case.values), "QK": evaluate(diff(value, mu_QK), case.values)}
            parts = [slopes[c] * speeds[c] for c in ("OV", "QK")]
            bound = ROUNDING * (1 + sum(abs(s) for s in slopes.values()) + sum(abs(p) for p in parts))
            yield Comparison("d/dt of y - slope x", 0.0, sum(parts), bound, case.describe())


def _compare(what: str, stated: float, found: float, case: Case) -> Comparison:
    return Comparison(what, stated, found, ROUNDING * (1 + abs(found) + abs(stated)), case.describe())


def _fixed(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    for case in cases(rng, "CACO", 2):
        values = fixed_values(case, rng)
        if claim.subject[1] == "collapsed":
            formula = closed_form(claim)
            point = float(exact(formula, values))
            speed = torch_velocity(case, "C", point, float(values[alpha]))[0]
            yield _compare("d mu_OV/dt", evaluate(diff(formula, t), values), speed, case)
            continue
        conserved = claim.stated["mu_0 > 0" if values[mu_OV] > 0 else "mu_0 < 0"]
        speed = torch_velocity(case, "F", float(values[mu_OV]), float(values[alpha]))[0]
        moved = evaluate(diff(conserved, mu_OV), values) * speed
        yield _compare("d/dt of the constant", -evaluate(diff(conserved, t), values), moved, case)


def _sensitivity(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    for case in cases(rng, "CACO", 2):
        values = fixed_values(case, rng)
        found = -torch_velocity(case, "C", float(values[mu_OV]), float(values[alpha]))[1]
        yield _compare("-dL/dalpha", evaluate(claim.stated["-dL/dalpha"], values), found, case)


def _stopping(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """The full model has the loss at the stated margin."""
    for case in cases(rng, "CACO", 2):
        target = Rational(int(rng.integers(1, 30)), 20)
        margin = claim.stated["alpha mu_OV"].xreplace({loss: target})
        share = with_attention(alpha).xreplace({mu_QK: case.values[mu_QK]})
        stop = replace(case, values={**case.values, mu_OV: exact(margin / share, case.values)})
        yield _compare("loss at the margin", float(target), float(stop.model().loss().detach()), case)


def _time(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    for drawn in cases(rng, "CACO", 1):
        values = {**drawn.values, mu_QK: abs(drawn.values[mu_QK])}
        key = f"[{drawn.label}]"
        curve = claim.stated[f"mu_OV {key}"]
        case = replace(drawn, values={**values, mu_OV: exact(curve, values)})
        speeds = _speeds(case, "CACO")
        pace = evaluate(with_attention(claim.stated[f"dt/dmu_QK {key}"]), case.values)
        # a product of two numbers that are each good to rounding relative to their size
        yield Comparison("dt/dmu_QK times dmu_QK/dt", 1.0, pace * speeds["QK"], ROUNDING * (1 + pace), case.describe())
        slope = evaluate(diff(curve, mu_QK), values)
        yield _compare("slope of the curve", slope * speeds["QK"], speeds["OV"], case)


def _monotone(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """``d alpha/dt`` and ``dL/dt`` along the flow of the parameters of the full model."""
    for code in ("CACO", "CAFO", "FACO", "FAFO"):
        for drawn in cases(rng, code, 1):
            case = replace(drawn, values={**drawn.values, mu_OV: abs(drawn.values[mu_OV])})
            net = case.model(code)
            named = dict(net.named_parameters())
            slopes = dict(zip(named, torch.autograd.grad(net.loss(), list(named.values())), strict=True))
            speeds = {k: -case.rates[f"eta_{k[-2:]}"] * g for k, g in slopes.items()}
            falls = float(sum((slopes[k] * speeds[k]).sum() for k in named))
            step = 1e-5
            shares = []
            for side in (step, -step):
                with torch.no_grad():
                    moved = {k: p + side * speeds[k] for k, p in named.items()}
                    matrices = (net.effective(c, moved) for c in ("OV", "QK"))
                    shares.append(float(net.on_population(*matrices)[1]))
            rises = (shares[0] - shares[1]) / (2 * step)
            for name, value, bound in (("dalpha/dt", rises, 1e-9), ("dL/dt", falls, ROUNDING)):
                # a central difference of step 1e-5: rounding 1e-16/1e-5 and a third derivative times 1e-10
                stated = int(sign(claim.stated[f"sign {name}"]))
                yield Ordering(f"{name} times its stated sign", stated * value, 0.0, bound, case.describe())


CHECKS = {
    "integral": _integral,
    "fixed": _fixed,
    "sensitivity": _sensitivity,
    "stopping": _stopping,
    "time": _time,
    "monotone": _monotone,
}
