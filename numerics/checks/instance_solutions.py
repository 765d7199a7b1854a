"""Instance evidence for closed forms: fixed attention, sensitivity, stopping state, time, monotone attention.

A coordinate that is a stated formula is replaced by a rational number within ``2^-500`` of it, far below the
rounding of the balls it enters. Source: sections 7 and 8 of the theory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sympy import Integer, Rational, Symbol, diff, sign

from numerics.checks.cases import Case, cases, enclosed, exact, with_attention
from numerics.checks.comparison import Finding
from numerics.checks.enclosure import Positive
from numerics.checks.explicit_model import ExplicitModel, direction
from numerics.checks.fixed_attention import enclosed_loss
from numerics.checks.instance import LARGEST, speed, worst
from numerics.checks.tape import ball
from theory.paper.solutions import A, loss, mu_0
from theory.registry import Claim
from theory.symbols import alpha, b, eta_OV, mu_OV, mu_QK, t

__all__ = ["CHECKS", "closed_form", "fixed_values"]


def fixed_values(case: Case, rng: np.random.Generator) -> dict[Symbol, Rational]:
    """The values of a case with an attention, a start and a time."""
    share, time = Rational(int(rng.integers(1, 20)), 20), Rational(int(rng.integers(1, 60)), 10)
    return {**case.values, alpha: share, t: time, mu_0: case.values[mu_OV]}


def closed_form(claim: Claim) -> Any:
    """The stated ``mu_OV(t)`` at fixed attention, collapsed output."""
    return claim.stated["alpha mu_OV"].xreplace({A: claim.stated["A"]}) / alpha


def _fixed_speed(case: Case, values: dict[Symbol, Rational], coordinate: Rational) -> Any:
    """``d mu_OV/dt`` of the collapsed circuit at fixed attention."""
    E = direction(case, "OV")
    W = [[ball(coordinate) * ball(e) for e in row] for row in E]
    return -ball(values[eta_OV]) * speed(enclosed_loss(case, W, values[alpha])[1], E)


def _fixed(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    for case in cases(rng, "CACO", 1, LARGEST):
        values = fixed_values(case, rng)
        if claim.subject[1] == "collapsed":
            formula = closed_form(claim)
            start = enclosed(formula.xreplace({t: Integer(0)}), values)
            yield worst("mu_OV(0) minus mu_0", [start - ball(values[mu_0])], case)
            found = _fixed_speed(case, values, exact(formula, values))
            yield worst("d mu_OV/dt", [enclosed(diff(formula, t), values) - found], case)
            continue
        conserved = claim.stated["mu_0 > 0" if values[mu_OV] > 0 else "mu_0 < 0"]
        # the rate of a balanced circuit is 2 sigma |mu| times that of the collapsed one, sigma^2 = b
        factor = 2 * ball(values[b]).sqrt() * abs(ball(values[mu_OV]))
        moved = enclosed(diff(conserved, mu_OV), values) * factor * _fixed_speed(case, values, values[mu_OV])
        yield worst("d/dt of the constant", [moved + enclosed(diff(conserved, t), values)], case)


def _sensitivity(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    for case in cases(rng, "CACO", 2, LARGEST):
        values = fixed_values(case, rng)
        W = [[ball(values[mu_OV]) * ball(e) for e in row] for row in direction(case, "OV")]
        found = -enclosed_loss(case, W, values[alpha])[2]
        yield worst("-dL/dalpha", [enclosed(claim.stated["-dL/dalpha"], values) - found], case)


def _stopping(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """The enumerated loss at the stated margin."""
    for case in cases(rng, "CACO", 2, LARGEST):
        target = Rational(int(rng.integers(1, 30)), 20)
        margin = claim.stated["alpha mu_OV"].xreplace({loss: target})
        share = with_attention(alpha).xreplace({mu_QK: case.values[mu_QK]})
        stop = replace(case, values={**case.values, mu_OV: exact(margin / share, case.values)})
        yield worst("loss minus L", [ExplicitModel.on_line(stop).loss() - ball(target)], case)


def _time(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """On the stated curve: its slope, and the stated integrand, against the velocities."""
    for drawn in cases(rng, "CACO", 1, LARGEST):
        values = {**drawn.values, mu_QK: abs(drawn.values[mu_QK])}
        key = f"[{drawn.label}]"
        curve = claim.stated[f"mu_OV {key}"]
        case = replace(drawn, values={**values, mu_OV: exact(curve, values)})
        velocities = ExplicitModel.on_line(case).velocities()
        output, query = (speed(velocities[c], direction(case, c)) for c in ("OV", "QK"))
        pace = enclosed(with_attention(claim.stated[f"dt/dmu_QK {key}"]), case.values)
        yield worst("dt/dmu_QK times dmu_QK/dt - 1", [pace * query - 1], case)
        yield worst("slope of the curve", [enclosed(diff(curve, mu_QK), values) * query - output], case)


def _monotone(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    for code in ("CACO", "CAFO", "FACO", "FAFO"):
        for drawn in cases(rng, code, 1, 1):
            case = replace(drawn, values={**drawn.values, mu_OV: abs(drawn.values[mu_OV])})
            rises, falls = ExplicitModel.on_line(case, code).attention_velocity()
            for name, value in (("dalpha/dt", rises), ("dL/dt", falls)):
                stated = int(sign(claim.stated[f"sign {name}"]))
                yield Positive(f"{name} times its stated sign", stated * value, case.describe())


CHECKS = {
    "fixed": _fixed,
    "sensitivity": _sensitivity,
    "stopping": _stopping,
    "time": _time,
    "monotone": _monotone,
}
