"""Linear attention with merged key and query on in-context regression, white covariance, aligned start.

Source: arXiv 2501.16265.
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Integer, diff, sqrt

from theory.models.trial import time
from theory.reference.common import reference_claim
from theory.reference.merged_run import D, N, a, full_model, growth, second_moment, sigma, starting, tau, trials, w, w0
from theory.registry import Claim, Obligation, Stated


def _obligations(stated: Stated) -> Iterator[Obligation]:
    yield Obligation("a", stated["a"] - second_moment())
    for size in (1, 2, 3):
        flow, u, v = full_model(size, a, 1 / tau)
        line = dict(zip(flow.states, starting(size, w), strict=True))
        known = {sigma: w**2 / sqrt(Integer(size)), D: Integer(size)}
        for i in range(size):
            for j in range(size):
                derived = flow.along(v * u[i, j]).xreplace(line)
                yield Obligation(
                    f"d(vU)[{i}, {j}]/dt, D = {size}", derived - (stated["rate"].xreplace(known) if i == j else 0)
                )
    solution = stated["solution"]
    yield Obligation("dsigma/dt", diff(solution, time) - stated["rate"].xreplace({sigma: solution}))
    yield Obligation("sigma(0)", solution.xreplace({time: Integer(0)}) - w0**2 / sqrt(D))


def claims() -> tuple[Claim, ...]:
    """`merged-linear-attention`."""
    stated = {
        "a": 1 + (1 + D) / N,
        "rate": 2 * sqrt(D) * sigma * (1 - a * sigma) / tau,
        "solution": growth / (a * (growth - 1) + sqrt(D) / w0**2),
    }
    text = "tau dsigma/dt = 2 sqrt(D) sigma (1 - a sigma), a = 1 + (1 + D)/N; the flow is shown for D = 1, 2, 3"
    assumptions = ("inputs and task vectors are white and Gaussian", "v = w, U = w I/sqrt(D) at the start, w_0 > 0")
    return (
        reference_claim(
            "merged-linear-attention",
            "Merged linear attention",
            text,
            stated,
            _obligations,
            "arXiv 2501.16265",
            assumptions,
            trials,
        ),
    )
