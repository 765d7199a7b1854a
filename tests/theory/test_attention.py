"""The forward pass and its derivatives against the population loss written out in SymPy, exactly."""

from __future__ import annotations

from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest
import sympy
from sympy import Integer, Symbol, diff, exp, oo

from theory.attention import attention_derivative, orbit_flow
from theory.identities import prove_zero
from theory.symbols import alpha, eta_OV, eta_QK, gamma, m, n
from theory.task import TokenTask

RATE = {"OV": eta_OV, "QK": eta_QK}
# (classes, block, queries, noise, informative slots, noise slots, kind, scale): few sequences
CASES = [
    (2, 1, 1, 1, 1, 1, "shared", 1),
    (3, 1, 1, 2, 1, 2, "shared", Fraction(1, 2)),
    (2, 2, 1, 1, 2, 1, "shared", 3),
    (2, 1, 2, None, 1, 2, "shared", 1),
    (3, 1, 1, 2, 1, 1, "per_class", 2),
    (2, 1, 1, None, 2, 1, "per_class", Fraction(1, 2)),
]


def written_out(reference: ModuleType, case: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """The task, its orbit flow, and the enumerated loss with one symbol for each orbit."""
    *counts, kind, scale = case
    sizes = reference.Sizes(*counts, kind, Fraction(scale))
    task = TokenTask(*counts[:3], oo if sizes.noise is None else sizes.noise, *counts[4:], kind, sizes.score_scale)
    flow = orbit_flow(task)
    symbols = {o.symbol.name: o.symbol for found in flow.orbits.values() for o in found}
    entries = {c: {pair: symbols[reference.orbit_name(c, pair)] for pair in sizes.pairs(c)} for c in ("OV", "QK")}
    losses = [
        reference.sequence_loss(sizes, entries["OV"], entries["QK"], s, sympy) for s in reference.sequences(sizes)
    ]
    distinct = {loss: losses.count(loss) for loss in losses}
    return task, flow, sum(loss * times for loss, times in distinct.items()) / Integer(len(losses))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_loss_and_velocity_are_those_of_the_enumerated_model(reference: ModuleType, case: tuple[Any, ...]) -> None:
    task, flow, loss = written_out(reference, case)
    explicit = {alpha: flow.attention}
    frozen = {o.symbol: Integer(0) for found in flow.orbits.values() for o in found if o.frozen}
    for circuit, found in flow.orbits.items():
        for orbit in found:
            velocity = flow.velocity[orbit.symbol].xreplace(explicit).xreplace(frozen)
            wanted = 0 if orbit.frozen else -RATE[circuit] * diff(loss, orbit.symbol).xreplace(frozen) / orbit.size
            assert prove_zero(velocity - wanted).answer == "equal", (task, orbit.symbol)


@pytest.mark.parametrize("case", CASES[:2], ids=str)
def test_wrong_velocities_are_told_apart(reference: ModuleType, case: tuple[Any, ...]) -> None:
    """Twins: twice the velocity, the other circuit's rate, one more class in the orbit's size."""
    task, flow, loss = written_out(reference, case)
    for circuit, other, found in (("OV", "QK", flow.orbits["OV"]), ("QK", "OV", flow.orbits["QK"])):
        orbit = found[0]
        velocity = flow.velocity[orbit.symbol].xreplace({alpha: flow.attention})
        wanted = -RATE[circuit] * diff(loss, orbit.symbol) / orbit.size
        wrong = (2 * wanted, wanted / RATE[circuit] * RATE[other], wanted * task.classes / (task.classes + 1), -wanted)
        assert [prove_zero(velocity - w).answer for w in wrong] == ["different"] * 4


def test_loss_at_zero_is_that_of_guessing(reference: ModuleType) -> None:
    for classes in (2, 3, 7):
        flow = orbit_flow(TokenTask(classes))
        zero = {s: Integer(0) for s in flow.velocity}
        assert flow.attention.xreplace(zero) == m / (m + n)
        assert flow.loss.xreplace(zero | {alpha: m / (m + n)}) == sympy.log(classes)


def test_attention_derivative_in_terms_of_attention() -> None:
    value = Symbol("w", real=True)
    mass = m * exp(gamma * value) / (m * exp(gamma * value) + n)
    slope = attention_derivative(mass, value)
    assert prove_zero(slope - gamma * alpha * (1 - alpha)).answer == "equal"
    assert prove_zero(slope - alpha * (1 - alpha)).answer == "different"
    assert prove_zero(slope.xreplace({alpha: mass}) - diff(mass, value)).answer == "equal"


def test_zero_embeddings_do_not_move() -> None:
    flow = orbit_flow(TokenTask(noise=oo))
    still = [o.symbol for found in flow.orbits.values() for o in found if o.frozen]
    assert [s.name for s in still] == ["W_OV_noise", "W_QK_noise"]
    assert all(flow.velocity[s] == 0 for s in still)
    seen = [*flow.velocity.values(), flow.attention, flow.loss]
    assert all(s not in v.free_symbols for v in seen for s in still)
    moving = orbit_flow(TokenTask()).velocity
    assert moving[Symbol("W_QK_noise", real=True)] != 0
