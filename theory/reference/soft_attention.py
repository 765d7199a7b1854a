"""Soft attention over patches, one of them informative: a case of the built-in model.

Sources: arXiv 2307.13421; the first integral is derived here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import Integer, exp, oo

from theory.flow import ReducedFlow, derive
from theory.integrals import first_integral
from theory.model import AttentionModel
from theory.reference.common import reference_claim
from theory.reference.soft_attention_run import C, alpha, m, mu, nu, trials
from theory.registry import Claim, Obligation, Stated
from theory.symbols import M, eta_OV, eta_QK, mu_OV, mu_QK, n
from theory.task import TokenTask


def built_in() -> ReducedFlow:
    """One informative token for each class, one informative slot, noise that never repeats, one query."""
    return derive(AttentionModel(TokenTask(M, 1, 1, oo, 1, n)))


def _translate(expr: Any) -> Any:
    return expr.xreplace({alpha: ALPHA}).xreplace({C: M, m: n + 1, mu: mu_OV, nu: mu_QK})


ALPHA = exp(nu) / (exp(nu) + m - 1)


def _obligations(stated: Stated) -> Iterator[Obligation]:
    flow = built_in()
    unit = {eta_OV: Integer(1), eta_QK: Integer(1)}
    yield Obligation("alpha", _translate(stated["alpha"]) - flow.attention)
    for name, state in (("mu", mu_OV), ("nu", mu_QK)):
        yield Obligation(f"d{name}/dt", _translate(stated[name]) - flow.velocity[state].xreplace(unit))
    law = first_integral(flow)
    origin = {mu_OV: Integer(0), mu_QK: Integer(0)}
    from_zero = (law.value - law.value.xreplace(origin)).xreplace(unit)
    yield Obligation("curve from zero", _translate(stated["curve"]) - from_zero)


def claims() -> tuple[Claim, ...]:
    """`soft-attention-2023`."""
    below = exp(alpha * mu) + C - 1
    stated = {
        "alpha": ALPHA,
        "mu": alpha / below,
        "nu": (C - 1) * alpha * (1 - alpha) * mu / (C * below),
        "curve": nu + (exp(nu) - 1) / (m - 1) - (C - 1) * mu**2 / (2 * C),
    }
    text = "the two coordinates of soft attention from zero keep nu + (e^nu - 1)/(m - 1) = (C - 1) mu^2/(2 C)"
    return (
        reference_claim(
            "soft-attention-2023",
            "Soft attention over patches",
            text,
            stated,
            _obligations,
            "arXiv 2307.13421",
            ("one informative of m patches", "unit learning rates", "start at zero"),
            trials,
        ),
    )
