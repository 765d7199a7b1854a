"""Closed forms at fixed attention against a matrix model written here in torch, every entry of it trained."""

from __future__ import annotations

import itertools
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from sympy import Rational, lambdify

from numerics.fixed_attention import fixed_attention
from theory.flow import derive
from theory.model import AttentionModel
from theory.solutions import fixed_attention as solved
from theory.solutions import mu_0
from theory.symbols import alpha, eta_OV, mu_OV, t
from theory.task import TokenTask

M, B, N, SLOTS, NOISE = 3, 2, 2, 2, 1
TASK = TokenTask(M, B, 1, N, SLOTS, NOISE)
RATE = 0.7
TIMES = np.array([0.5, 4.0, 40.0])
C = Rational(-3, 2)
FORMS: dict[str, dict[str, Any]] = {
    "collapsed": {},
    "balanced": {"ov": "factorized"},
    "imbalanced": {"ov": "factorized", "imbalance_ov": C},
}
CASES = [
    ("collapsed", 0.0, 0.4),
    ("collapsed", -1.2, 0.9),
    ("collapsed", 0.8, 1.0),
    ("balanced", 0.1, 0.4),
    ("balanced", -0.9, 0.7),
    ("imbalanced", 0.0, 0.6),
    ("imbalanced", -0.7, 0.3),
]


def sequences() -> tuple[torch.Tensor, torch.Tensor]:
    """Every sequence of the population and its label: informative slots, then noise slots."""
    noise = range(M * B, M * B + N)
    found = [
        (*informative, *rest, label)
        for label in range(M)
        for informative in itertools.product(range(label * B, (label + 1) * B), repeat=SLOTS)
        for rest in itertools.product(noise, repeat=NOISE)
    ]
    table = torch.tensor(found)
    return table[:, :-1], table[:, -1]


def direction() -> np.ndarray:
    own = np.kron(np.eye(M), np.ones((1, B)))
    return np.hstack([own - 1 / M, np.zeros((M, N))])


def first_parameters(form: str, start: float) -> list[np.ndarray]:
    """``W``, or factors with ``U^T U - V^T V = c P`` and ``U V^T = mu E``: singular vectors with their own lengths."""
    E = direction()
    if form == "collapsed":
        return [start * E]
    left, sigma, right = np.linalg.svd(E)
    rank, c = M - 1, 0.0 if form == "balanced" else float(C)
    product = sigma[0] * start
    u = np.sqrt((c + np.hypot(c, 2 * product)) / 2) if c > 0 or product else 0.0
    v = np.sqrt((-c + np.hypot(c, 2 * product)) / 2)
    return [u * left[:, :rank], np.sign(product or 1.0) * v * right[:rank].T]


def trained(form: str, start: float, share: float) -> tuple[np.ndarray, np.ndarray]:
    """``mu_OV`` and the loss of the matrix model at `TIMES`, by gradient flow of every parameter."""
    tokens, labels = sequences()
    weights = torch.tensor([share / SLOTS] * SLOTS + [(1 - share) / NOISE] * NOISE, dtype=torch.float64)
    first = first_parameters(form, start)
    sizes = [p.size for p in first]

    def parts(flat: torch.Tensor) -> torch.Tensor:
        pieces = [x.view(p.shape) for x, p in zip(torch.split(flat, sizes), first, strict=True)]
        return pieces[0] if form == "collapsed" else pieces[0] @ pieces[1].T

    def loss(flat: torch.Tensor) -> torch.Tensor:
        logits = torch.einsum("cps,s->pc", parts(flat)[:, tokens], weights)
        return torch.nn.functional.cross_entropy(logits, labels)

    def velocity(_t: float, state: np.ndarray) -> np.ndarray:
        flat = torch.from_numpy(state.copy()).requires_grad_()
        return -RATE * torch.autograd.grad(loss(flat), flat)[0].numpy()

    begin = np.concatenate([p.ravel() for p in first])
    found = solve_ivp(velocity, (0, TIMES[-1]), begin, "DOP853", TIMES, rtol=1e-13, atol=1e-14)
    E = direction()
    states = [torch.from_numpy(x.copy()) for x in found.y.T]
    values = [float(np.vdot(parts(x).numpy(), E) / np.vdot(E, E)) for x in states]
    return np.array(values), np.array([float(loss(x)) for x in states])


@pytest.mark.parametrize(("form", "start", "share"), CASES)
def test_against_the_matrix_model(form: str, start: float, share: float) -> None:
    mu, loss = trained(form, start, share)
    model = AttentionModel(TASK, **FORMS[form])
    found = fixed_attention(model, {"eta_OV": RATE}, {"mu_OV": start}, attention=share, t=TIMES)
    # the integration is held to 1e-13 a step; what was seen is below 1e-12
    np.testing.assert_allclose(found.mu_OV, mu, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.loss, loss, rtol=0, atol=1e-10)
    assert np.all(found.error_estimate < 1e-12)


def test_another_attention_is_noticed() -> None:
    """Twin: attention off by one in a million is far outside."""
    mu, _ = trained("collapsed", 0.0, 0.4)
    found = fixed_attention(AttentionModel(TASK), {"eta_OV": RATE}, attention=0.400001, t=TIMES)
    assert np.abs(found.mu_OV - mu).max() > 1e-7


@pytest.mark.parametrize(("form", "start", "share"), CASES)
def test_the_derived_relation(form: str, start: float, share: float) -> None:
    """The derived ``T(mu) - T(mu_0)`` is the time, in 40 digits, also where exponentials overflow."""
    law = solved(derive(AttentionModel(TASK, **FORMS[form])), -1 if start < 0 and form == "balanced" else 1)
    elapsed = lambdify((mu_OV, alpha, eta_OV), law.elapsed.doit() if form != "imbalanced" else law.elapsed, "mpmath")
    times = np.array([1e-6, 3.0, 1e9, 1e200 if form != "imbalanced" else 1e30])
    model = AttentionModel(TASK, **FORMS[form])
    found = fixed_attention(model, {"eta_OV": RATE}, {"mu_OV": start}, attention=share, t=times)
    with mpmath.workdps(40):
        slope = mpmath.mpf(RATE)
        for time, mu, error in zip(times, found.mu_OV, found.error_estimate, strict=True):
            if form == "balanced" and start < 0 and abs(mu) < 1e-300:
                continue  # mu decays to 0 and leaves the range of doubles, where its error bound means nothing
            first, last = (elapsed(mpmath.mpf(float(x)), mpmath.mpf(share), slope) for x in (start, mu))
            mu_ = mpmath.mpf(float(mu))
            # dT/dmu turns the error of mu into one of the time
            pace = abs(mpmath.diff(lambda x: elapsed(x, mpmath.mpf(share), slope), mu_))
            assert abs(last - first - mpmath.mpf(time)) <= pace * error * (1 + abs(mu_))


def test_the_closed_form() -> None:
    """The explicit solution in terms of Lambert's function, derived from the flow, for a negative start."""
    law = solved(derive(AttentionModel(TASK)))
    value = law.mu_OV.xreplace({alpha: Rational(9, 10), eta_OV: Rational(7, 10), mu_0: Rational(-6, 5), t: 4})
    found = fixed_attention(AttentionModel(TASK), {"eta_OV": RATE}, {"mu_OV": -1.2}, attention=0.9, t=4.0)
    assert float(found.mu_OV) == pytest.approx(float(value.evalf(30)), abs=1e-14)
    assert solved(derive(AttentionModel(TASK, ov="factorized"))).mu_OV is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attention": 0.0}, "attention=0.0: expected a number above 0 and at most 1"),
        ({"t": [-1.0]}, "t=-1.0: expected a finite time of at least 0"),
        ({"parameters": {}}, "no value for eta_OV"),
    ],
)
def test_refusals(change: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"parameters": {"eta_OV": 1}, "attention": 0.5, "t": 1.0} | change
    with pytest.raises(ValueError, match=words):
        fixed_attention(AttentionModel(TASK), given.pop("parameters"), **given)


def test_a_balanced_circuit_needs_a_start_and_a_solution_a_sign() -> None:
    with pytest.raises(ValueError, match="no start for mu_OV"):
        fixed_attention(AttentionModel(TASK, ov="factorized"), {"eta_OV": 1}, attention=0.5, t=1.0)
    with pytest.raises(ValueError, match="expected 1 or -1"):
        solved(derive(AttentionModel(TASK)), 0)
