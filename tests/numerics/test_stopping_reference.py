"""Stopping states and times against 40 digits: the equations as the paper states them, solved here by mpmath alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from sympy import Rational, oo

from numerics.stopping import stopping_state
from theory.model import AttentionModel
from theory.task import TokenTask

#: The task of the published time courses.
M, B, m, n = 20, 50, 5, 50
PUBLISHED = AttentionModel(TokenTask(M, B, B, oo, m, n))
RATIOS = np.array([0.01, 0.1, 1.0, 10.0, 100.0])
LOSSES = np.geomspace(1.0, 1e-4, 50)
DIGITS = 40
#: Compare at every threshold and ratio; takes minutes.
LONG = "GRADLINE_LONG" in os.environ


def margin(loss: float, classes: int) -> mpf:
    return mpmath.log((classes - 1) / mpmath.expm1(mpf(loss)))


def published_state(ratio: float, loss: float) -> tuple[mpf, mpf]:
    """``(mu_OV, mu_QK)`` from the origin: ``Phi(q) - Phi(0) = kappa v^2/2`` and ``alpha v = ell``."""
    kappa, ell = mpf(ratio) * (M - 1) / (M * B), margin(loss, M)

    def value(q: mpf) -> mpf:
        odds = mpf(m) / n * mpmath.exp(q)
        return mpmath.sqrt(2 * (odds - mpf(m) / n + q) / kappa) * odds / (1 + odds)

    q = mpmath.findroot(lambda q: value(q) - ell, (mpf("1e-9"), mpf(40)), solver="anderson", tol=1e-60)
    return ell * (1 + mpf(n) / m * mpmath.exp(-q)), q


def published_time(ratio: float, last: mpf) -> mpf:
    """The quadrature over ``s``, ``mu_QK = s^2``, from the origin, with ``d mu_QK/dt`` as published."""
    kappa = mpf(ratio) * (M - 1) / (M * B)

    def pace(s: mpf) -> mpf:
        q = s * s
        odds = mpf(m) / n * mpmath.exp(q)
        share = odds / (1 + odds)
        v = mpmath.sqrt(2 * (mpf(m) / n * mpmath.expm1(q) + q) / kappa)
        speed = ratio * (M - 1) * share * (1 - share) * v / (M * B**2 * (mpmath.exp(share * v) + M - 1))
        return 2 * s / speed

    return mpmath.quad(pace, mpmath.linspace(0, mpmath.sqrt(last), 5))


@pytest.mark.parametrize("ratio", RATIOS if LONG else RATIOS[::2])
def test_published_curves(ratio: float) -> None:
    """The ends of the curves of figure 4, or all of them: states to 1e-12, times to 1e-11."""
    found = stopping_state(PUBLISHED, {"eta_OV": 1, "eta_QK": ratio}, loss=LOSSES, time=True)
    assert found.t is not None
    assert found.t_error_estimate is not None
    with mpmath.workdps(DIGITS):
        for i in range(0, 50, 1 if LONG else 49):
            v, q = published_state(ratio, LOSSES[i])
            errors = abs(found.mu_OV[i] - v) / (1 + v), abs(found.mu_QK[i] - q) / (1 + q)
            assert max(errors) <= found.error_estimate[i] <= 1e-12
            share = m * mpmath.exp(q) / (m * mpmath.exp(q) + n)
            # 4 roundings of the attention itself
            assert abs(found.attention[i] / share - 1) <= found.error_estimate[i] * (1 + q) + 1e-15
            late = abs(found.t[i] / published_time(ratio, q) - 1)
            assert late <= found.t_error_estimate[i] <= 1e-11


TASK = TokenTask(3, 2, 2, oo, 2, 1, score_scale=Rational(3, 2))
#: ``sigma^2``, ``b`` and ``K M b``, of that task.
SIGMA_OV, SIGMA_QK = 2, 12
GAMMA, WEIGHT = mpf(3) / 2, mpf(2)
C_OV, C_QK = Rational(-3, 2), Rational(1, 2)
OUTPUTS: dict[str, tuple[dict[str, Any], Callable[[mpf], mpf]]] = {
    "C": ({}, lambda v: v**2 / 2),
    "F": ({"ov": "factorized"}, lambda v: abs(v) / (2 * mpmath.sqrt(SIGMA_OV))),
    "I": (
        {"ov": "factorized", "imbalance_ov": C_OV},
        lambda v: mpmath.sqrt(mpf(9) / 4 + 4 * SIGMA_OV * v**2) / (4 * SIGMA_OV),
    ),
}
QUERIES: dict[str, tuple[dict[str, Any], Callable[[mpf], mpf], Callable[[mpf], mpf]]] = {
    "C": ({}, lambda q: WEIGHT / GAMMA * mpmath.exp(GAMMA * q) + q, lambda q: mpf(1)),
    "F": (
        {"qk": "factorized"},
        lambda q: mpmath.sign(q) * (WEIGHT * mpmath.ei(GAMMA * q) + mpmath.log(abs(q))) / (2 * mpmath.sqrt(SIGMA_QK)),
        lambda q: 2 * mpmath.sqrt(SIGMA_QK) * abs(q),
    ),
    "I": (
        {"qk": "factorized", "imbalance_qk": C_QK},
        lambda q: mpmath.quad(
            lambda s: (1 + WEIGHT * mpmath.exp(GAMMA * s)) / mpmath.sqrt(mpf(1) / 4 + 4 * SIGMA_QK * s**2), [0, q]
        ),
        lambda q: mpmath.sqrt(mpf(1) / 4 + 4 * SIGMA_QK * q**2),
    ),
}
#: ``(eta_QK/norm2_QK)/(eta_OV/norm2_OV) gamma`` for rates 1 and 5: ``norm2`` are ``K M b = 12`` and ``(M-1) b = 4``.
PULL = 5 * mpf(4) / 12 * GAMMA
STARTS = ((0.05, 0.03), (0.7, -0.4), (-0.8, 0.6))
CASES = [
    (q, o, start)
    for q in QUERIES
    for i, o in enumerate(OUTPUTS)
    for start in (STARTS if LONG or q != "I" else STARTS[i : i + 1])
]


@pytest.mark.parametrize(("query", "output", "start"), CASES)
def test_every_form_and_sign(query: str, output: str, start: tuple[float, float]) -> None:
    """The first integral of the table in section 6, both signs, and the margin: solved in the plane to 40 digits."""
    forms = {**OUTPUTS[output][0], **QUERIES[query][0]}
    X, Y = OUTPUTS[output][1], QUERIES[query][1]
    losses = [1.2 if start[0] < 0 and output == "F" else 0.4 if query == "I" else 1e-6]
    if start[0] < 0 and LONG:
        losses.append(1.15)
    found = stopping_state(
        AttentionModel(TASK, **forms),
        {"eta_OV": 1, "eta_QK": 5},
        dict(zip(("mu_OV", "mu_QK"), start, strict=True)),
        loss=losses,
    )
    with mpmath.workdps(DIGITS):
        begin = Y(mpf(start[1])) - PULL * X(mpf(start[0]))
        for i, loss in enumerate(losses):
            ell = margin(loss, 3)

            def output_at(q: mpf, ell: mpf = ell) -> mpf:
                return ell * (1 + mpmath.exp(-GAMMA * q) / WEIGHT)

            near = mpf(float(found.mu_QK[i]))
            if near == 0:
                # a balanced circuit that shrinks below the smallest double
                assert query == "F"
                assert start[1] < 0
                continue
            q = mpmath.findroot(
                lambda q: Y(q) - PULL * X(output_at(q)) - begin,
                (near * (1 + mpf("1e-7")), near),
                solver="secant",
                tol=1e-50,
            )
            v = output_at(q)
            errors = abs(found.mu_OV[i] - v) / (1 + abs(v)), abs(found.mu_QK[i] - q) / (1 + abs(q))
            assert max(errors) <= found.error_estimate[i] <= 1e-11


def test_a_reference_of_another_task_differs() -> None:
    """Twin: with one class more the same comparison fails by far."""
    found = stopping_state(PUBLISHED, {"eta_OV": 1, "eta_QK": 1}, loss=1e-2)
    ell = margin(1e-2, M + 1)
    assert abs(float(found.attention * found.mu_OV) - float(ell)) > 1e-2


@pytest.mark.parametrize(
    ("query", "output", "start"), [("C", "C", (-0.8, 0.6)), ("F", "F", (0.05, 0.03)), ("C", "I", (-0.8, 0.6))]
)
def test_times(query: str, output: str, start: tuple[float, float]) -> None:
    """Time over ``mu_OV``, with ``mu_QK`` on the curve solved to 25 digits at each node of mpmath's own quadrature."""
    forms = {**OUTPUTS[output][0], **QUERIES[query][0]}
    X, Y, loss = OUTPUTS[output][1], QUERIES[query][1], 0.4
    factor = {
        "C": lambda v: mpf(1),
        "F": lambda v: 2 * mpmath.sqrt(SIGMA_OV) * v,
        "I": lambda v: mpmath.sqrt(mpf(9) / 4 + 4 * SIGMA_OV * v**2),
    }
    named = dict(zip(("mu_OV", "mu_QK"), start, strict=True))
    found = stopping_state(AttentionModel(TASK, **forms), {"eta_OV": 1, "eta_QK": 5}, named, loss=loss, time=True)
    with mpmath.workdps(25):
        begin = Y(mpf(start[1])) - PULL * X(mpf(start[0]))

        def pace(v: mpf) -> mpf:
            low, high = (mpf(-60), mpf(60)) if query == "C" else (mpf("1e-3"), mpf(60))
            q = mpmath.findroot(lambda q: Y(q) - PULL * X(v) - begin, (low, high), solver="anderson", tol=1e-40)
            share = 1 / (1 + mpmath.exp(-GAMMA * q) / WEIGHT)
            return 2 * (mpmath.exp(share * v) + 2) / (share * factor[output](v))

        reference = mpmath.quad(
            pace, [mpf(start[0]), mpf(float(found.mu_OV)) / 2, mpf(float(found.mu_OV))], maxdegree=5
        )
        assert found.t is not None
        assert found.t_error_estimate is not None
        # the reference converges to 1e-14 with this many nodes
        assert abs(found.t / reference - 1) <= found.t_error_estimate + 1e-14
        assert found.t_error_estimate <= 1e-11
