"""The reduced flow against section 4 in every setting, the enumerated model, and across hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest
from sympy import Abs, Float, Integer, Rational, Symbol, exp, log, oo, sqrt

from theory.errors import NoLineError
from theory.flow import ReducedFlow, derive
from theory.identities import prove_zero
from theory.line import collapsed_line
from theory.model import PARAMETERIZATIONS, AttentionModel
from theory.symbols import (
    PARAMETERS,
    STATES,
    K,
    M,
    N,
    alpha,
    b,
    c_OV,
    c_QK,
    eta_OV,
    eta_QK,
    gamma,
    m,
    mu_OV,
    mu_QK,
    n,
)
from theory.task import TokenTask

SETTINGS = [(kind, noise) for kind in ("shared", "per_class") for noise in (N, oo)]
SURVIVING = [
    (kind, noise, name)
    for kind, noise in SETTINGS
    for name in PARAMETERIZATIONS
    if (kind, noise) != ("per_class", N) or PARAMETERIZATIONS[name][0] == "collapsed"
]


def model_of(name: str, task: TokenTask, **options: Any) -> AttentionModel:
    qk, ov = PARAMETERIZATIONS[name]
    return AttentionModel(task, qk=qk, ov=ov, **options)


def norm2_qk(kind: str, noise: Any) -> Any:
    size = b if kind == "per_class" else M * b
    copies = M * K if kind == "per_class" else K
    return copies * size if noise is oo else copies * size * N / (size + N)


def sigma2_qk(kind: str, noise: Any) -> Any:
    return K * b if kind == "per_class" else norm2_qk(kind, noise)


def expected(kind: str, noise: Any, name: str, scale: Any, c: dict[str, Any]) -> dict[Symbol, Any]:
    """Section 4 with the factors of section 5, in terms of alpha."""
    qk, ov = PARAMETERIZATIONS[name]
    d = exp(alpha * mu_OV) + M - 1
    velocity = {
        mu_OV: eta_OV * alpha / (b * d),
        mu_QK: eta_QK * scale * (M - 1) * alpha * (1 - alpha) * mu_OV / (norm2_qk(kind, noise) * d),
    }
    squares = {mu_OV: b, mu_QK: sigma2_qk(kind, noise)}
    for state, form, imbalance in ((mu_OV, ov, c.get("ov", 0)), (mu_QK, qk, c.get("qk", 0))):
        if form == "factorized":
            balanced = 2 * sqrt(squares[state]) * Abs(state)
            velocity[state] *= sqrt(imbalance**2 + 4 * squares[state] * state**2) if imbalance else balanced
    return velocity


def attention(scale: Any) -> Any:
    return m * exp(scale * mu_QK) / (m * exp(scale * mu_QK) + n)


def assert_flow(flow: ReducedFlow, wanted: dict[Symbol, Any], scale: Any) -> None:
    for state, value in wanted.items():
        assert prove_zero(flow.compact[state] - value).answer == "equal", state
        assert flow.velocity[state] == flow.compact[state].xreplace({alpha: flow.attention})
        assert alpha not in flow.velocity[state].free_symbols
    assert prove_zero(flow.attention - attention(scale)).answer == "equal"
    loss = log(1 + (M - 1) * exp(-attention(scale) * mu_OV))
    assert prove_zero(flow.loss - loss).answer == "equal"
    free = set().union(*(v.free_symbols for v in flow.velocity.values()), flow.loss.free_symbols)
    assert free <= {*flow.states, *flow.parameters}


@pytest.mark.parametrize(("kind", "noise", "name"), SURVIVING)
def test_velocity_loss_and_attention_of_section_4(kind: Any, noise: Any, name: str) -> None:
    flow = derive(model_of(name, TokenTask(noise=noise, query_kind=kind, score_scale=gamma)))
    assert flow.states == STATES == (mu_OV, mu_QK)
    assert flow.model.parameterization == name
    assert_flow(flow, expected(kind, noise, name, gamma, {}), gamma)


def test_wrong_velocities_are_different() -> None:
    """Twins of the comparison above: factor 2, b for b^2, rates swapped, M for M-1, the noise correction dropped."""
    flow = derive(model_of("CACO", TokenTask(score_scale=gamma)))
    right = expected("shared", N, "CACO", gamma, {})
    dropped = expected("shared", oo, "CACO", gamma, {})
    wrong = [
        (mu_OV, 2 * right[mu_OV]),
        (mu_OV, right[mu_OV] / b),
        (mu_OV, right[mu_OV] / eta_OV * eta_QK),
        (mu_OV, -right[mu_OV]),
        (mu_QK, 2 * right[mu_QK]),
        (mu_QK, right[mu_QK] * M / (M - 1)),
        (mu_QK, right[mu_QK] / eta_QK * eta_OV),
        (mu_QK, right[mu_QK] / gamma),
        (mu_QK, dropped[mu_QK]),
    ]
    for state, value in wrong:
        assert prove_zero(flow.compact[state] - value).answer == "different"


@pytest.mark.parametrize("name", ["CAFO", "FACO", "FAFO"])
@pytest.mark.parametrize(("kind", "noise"), [("shared", N), ("per_class", oo)])
@pytest.mark.parametrize("sign", [1, -2])
def test_imbalanced_circuits(kind: Any, noise: Any, name: str, sign: int) -> None:
    qk, ov = PARAMETERIZATIONS[name]
    c = {"qk": sign * c_QK} if qk == "factorized" else {}
    c |= {"ov": sign * c_OV} if ov == "factorized" else {}
    model = model_of(name, TokenTask(noise=noise, query_kind=kind), **{f"imbalance_{k}": v for k, v in c.items()})
    flow = derive(model)
    assert_flow(flow, expected(kind, noise, name, 1, c), 1)
    changed = {k: 2 * v for k, v in c.items()}
    state = mu_OV if ov == "factorized" else mu_QK
    wrong = expected(kind, noise, name, 1, changed)[state]
    assert prove_zero(flow.compact[state] - wrong).answer == "different"


@pytest.mark.parametrize("sizes", [(None, None, None, None), (3, 2, 4, 5), (2, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("name", PARAMETERIZATIONS)
def test_no_line_for_class_specific_queries_with_finite_noise(name: str, sizes: tuple[Any, ...]) -> None:
    given = dict(zip(("classes", "block", "queries", "noise"), sizes, strict=True))
    task = TokenTask(**{k: v for k, v in given.items() if v is not None}, query_kind="per_class")
    for options in ({}, {"imbalance_qk": 1}):
        if PARAMETERIZATIONS[name][0] == "factorized":
            with pytest.raises(NoLineError, match=r"E E\^T E = sigma\^2 E") as caught:
                derive(model_of(name, task, **options))
            assert name in str(caught.value)
            assert "noise=oo" in str(caught.value), "the remedy is named"
            assert "\n" not in str(caught.value)
    if PARAMETERIZATIONS[name][0] == "collapsed":
        assert derive(model_of(name, task)).velocity


@pytest.mark.parametrize("kind", ["shared", "per_class"])
def test_published_system(kind: Any) -> None:
    """K = b, N = oo and gamma = 1, by substitution and by concrete arguments."""
    d = exp(alpha * mu_OV) + M - 1
    published = {
        mu_OV: eta_OV * alpha / (b * d),
        mu_QK: eta_QK * (M - 1) * alpha * (1 - alpha) * mu_OV / (M * b**2 * d),
    }
    general = derive(model_of("CACO", TokenTask(noise=oo, query_kind=kind, score_scale=gamma)))
    direct = derive(model_of("CACO", TokenTask(noise=oo, queries=b, query_kind=kind)))
    for state, value in published.items():
        assert prove_zero(general.compact[state].xreplace({K: b, gamma: Integer(1)}) - value).answer == "equal"
        assert prove_zero(direct.compact[state] - value).answer == "equal"
    wrong = published[mu_QK] * b
    assert prove_zero(direct.compact[mu_QK] - wrong).answer == "different"


@pytest.mark.parametrize(("kind", "correction"), [("shared", 1 + M * b / N), ("per_class", 1 + b / N)])
def test_noise_correction(kind: Any, correction: Any) -> None:
    finite, infinite = (derive(model_of("CACO", TokenTask(noise=noise, query_kind=kind))) for noise in (N, oo))
    other = 1 + M * b / N if kind == "per_class" else 1 + b / N
    assert prove_zero(finite.compact[mu_QK] - correction * infinite.compact[mu_QK]).answer == "equal"
    assert prove_zero(finite.compact[mu_QK] - other * infinite.compact[mu_QK]).answer == "different"
    assert prove_zero(finite.compact[mu_QK] - infinite.compact[mu_QK]).answer == "different"
    assert prove_zero(finite.compact[mu_OV] - infinite.compact[mu_OV]).answer == "equal"


CONCRETE = {M: 4, b: 3, K: 2, N: 5, m: 2, n: 7}


@pytest.mark.parametrize("scale", [Rational(1, 3), 0.125, 2])
@pytest.mark.parametrize("name", PARAMETERIZATIONS)
def test_concrete_sizes_are_substituted_exactly(name: str, scale: Any) -> None:
    concrete = derive(model_of(name, TokenTask(*CONCRETE.values(), score_scale=scale)))
    symbolic = derive(model_of(name, TokenTask(score_scale=gamma)))
    values = {s: Integer(v) for s, v in CONCRETE.items()} | {gamma: Rational(str(scale))}
    assert concrete.parameters == (eta_OV, eta_QK)
    for state in STATES:
        assert prove_zero(concrete.velocity[state] - symbolic.velocity[state].xreplace(values)).answer == "equal"
        assert not concrete.velocity[state].atoms(Float)
    assert prove_zero(concrete.loss - symbolic.loss.xreplace(values)).answer == "equal"
    off = values | {N: Integer(6)}
    assert prove_zero(concrete.velocity[mu_QK] - symbolic.velocity[mu_QK].xreplace(off)).answer == "different"


def test_other_symbols_follow_the_canonical_ones() -> None:
    names = ("C", "B", "Q", "Z", "i", "j")
    other = [Symbol(name, integer=True, positive=True) for name in names]
    scale = Symbol("g", positive=True)
    flow = derive(model_of("FAFO", TokenTask(*other, score_scale=scale)))
    plain = derive(model_of("FAFO", TokenTask(score_scale=gamma)))
    values = dict(zip((M, b, K, N, m, n, gamma), (*other, scale), strict=True))
    assert set(flow.parameters) == {*other, scale, eta_OV, eta_QK}
    for state in STATES:
        assert prove_zero(flow.velocity[state] - plain.velocity[state].xreplace(values)).answer == "equal"
    assert any(a.text == "C is an integer >= 2" for a in flow.assumptions)


def test_parameters_are_in_canonical_order() -> None:
    model = model_of("FAFO", TokenTask(score_scale=gamma), imbalance_qk=c_QK, imbalance_ov=c_OV)
    assert derive(model).parameters == PARAMETERS
    assert derive(model_of("CACO", TokenTask(noise=oo))).parameters == (M, b, K, m, n, eta_OV, eta_QK)


def test_velocity_by_symbol_or_name() -> None:
    velocity = derive(model_of("CACO", TokenTask())).velocity
    assert velocity["mu_OV"] is velocity[mu_OV]
    assert velocity["mu_QK"] is velocity[mu_QK]
    assert list(velocity) == list(STATES)
    assert len(velocity) == 2
    assert ("mu_OV" in velocity, "mu" in velocity, velocity.get("mu")) == (True, False, None)
    with pytest.raises(KeyError, match="expected one of mu_OV, mu_QK; did you mean mu_OV"):
        velocity["mu_OVV"]
    with pytest.raises(KeyError, match="expected one of"):
        velocity[alpha]


def test_assumptions_name_what_the_flow_needs() -> None:
    flow = derive(model_of("FAFO", TokenTask(noise=oo, score_scale=gamma), imbalance_ov=c_OV))
    texts = [str(a) for a in flow.assumptions]
    for needed in ("M is an integer >= 2", "gamma > 0", "eta_OV > 0", "c_OV is real and not 0"):
        assert needed in texts
    joined = " | ".join(texts)
    for part in ("N = oo", "on the line", "QK: U^T U = V^T V (balanced)", "OV: U^T U - V^T V = c_OV P", "rank M - 1"):
        assert part in joined
    collapsed = " | ".join(str(a) for a in derive(model_of("CACO", TokenTask())).assumptions)
    assert "finite in number" in collapsed
    assert "balanced" not in collapsed


def test_definitions() -> None:
    named = derive(model_of("CACO", TokenTask())).definitions
    assert prove_zero(named["kappa"] - eta_QK * (M - 1) * b / (eta_OV * norm2_qk("shared", N))).answer == "equal"
    assert named["norm2_OV"] == b * (M - 1)
    assert named["r"] == eta_QK / eta_OV
    assert named["sigma_OV"] == sqrt(b)
    failed = derive(model_of("CACO", TokenTask(query_kind="per_class"))).definitions
    assert "sigma_QK" not in failed


@pytest.mark.parametrize("name", PARAMETERIZATIONS)
def test_velocity_of_the_enumerated_model(reference: ModuleType, name: str) -> None:
    """Explicit factors on the line, the gradient of the enumerated loss, the product flow: the velocity."""
    sizes = reference.Sizes(2, 2, 1, 3, 1, 1)
    flow = derive(model_of(name, TokenTask(2, 2, 1, 3, 1, 1)))
    start = {mu_OV: Rational(6, 5), mu_QK: Rational(-3, 4)}
    rates = {eta_OV: Rational(1, 2), eta_QK: Rational(3, 1)}
    exact = {c: reference.direction(sizes, c) for c in ("OV", "QK")}
    coordinate = {"OV": (mu_OV, eta_OV), "QK": (mu_QK, eta_QK)}
    with mpmath.workdps(reference.DIGITS):
        entries = {
            c: {
                p: mpmath.mpf(v.numerator * (s := start[coordinate[c][0]]).p) / (v.denominator * s.q)
                for p, v in e.items()
            }
            for c, e in exact.items()
        }
        gradients = {
            c: {p: reference.gradient(sizes, entries["OV"], entries["QK"], c, p) for p in e} for c, e in exact.items()
        }
    for circuit, (state, rate) in coordinate.items():
        e, g = (reference.array(sizes, circuit, x[circuit]) for x in (exact, gradients))
        eta = float(rates[rate])
        moved = -eta * g
        if flow.model.form(circuit) == "factorized":  # type: ignore[arg-type]
            left, singular, right = np.linalg.svd(float(start[state]) * e, full_matrices=False)
            u, v = left * np.sqrt(singular), right.T * np.sqrt(singular)
            moved = -eta * (u @ u.T @ g + g @ v @ v.T)
        speed = float(flow.velocity[state].xreplace({**start, **rates}).evalf(30))
        # Double precision on matrices with entries below 1; the smallest speed is of order 1e-2.
        assert np.allclose(moved, speed * e, rtol=0, atol=1e-12)
        assert not np.allclose(moved, 1.01 * speed * e, rtol=0, atol=1e-12)


def test_every_step_leaves_a_trace() -> None:
    flow = derive(model_of("FAFO", TokenTask(), imbalance_qk=1))
    rules = [step.rule for step in flow.trace]
    for rule in ("symmetry", "softmax", "gradient flow", "null space", "parallel", "square root", "projection", "flow"):
        assert rule in rules
    assert len(derive(model_of("CACO", TokenTask())).trace) < len(flow.trace)


def test_derive_is_pure() -> None:
    one = derive(model_of("CAFO", TokenTask(3, noise=oo)))
    other = derive(model_of("CAFO", TokenTask(3, noise=float("inf"))))
    assert one == other
    assert hash(one) == hash(other)
    collapsed_line.cache_clear()
    derive.cache_clear()
    assert derive(model_of("CAFO", TokenTask(3, noise=oo))) == one


PRINT = """
from sympy import oo, srepr
from theory import AttentionModel, TokenTask, derive, first_integral
from theory.symbols import c_OV, c_QK, gamma
for qk, ov, kind, more, c in (
    ("collapsed", "factorized", "per_class", {}, {}),
    ("factorized", "factorized", "shared", {}, {"imbalance_qk": c_QK, "imbalance_ov": c_OV}),
    ("factorized", "collapsed", "per_class", {"noise": oo}, {}),
):
    flow = derive(AttentionModel(TokenTask(query_kind=kind, score_scale=gamma, **more), qk=qk, ov=ov, **c))
    law = first_integral(flow)
    print(flow.compact, flow.loss, flow.parameters, dict(flow.definitions))
    print(srepr(tuple(flow.velocity.values())), srepr(law.value))
    print(*flow.assumptions, *flow.trace, *law.trace, sep="\\n")
"""


def test_printed_system_does_not_depend_on_the_hash_seed() -> None:
    root = Path(__file__).parents[2]
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-c", PRINT]
    outputs = {}
    for seed in ("0", "1", "4242"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
        outputs[seed] = run.stdout
    assert len(outputs["0"]) > 5000
    assert outputs["0"] == outputs["1"] == outputs["4242"]
