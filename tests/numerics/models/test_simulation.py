"""Any gradient flow simulated: against closed forms, against the model entry by entry, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sympy import Rational, Symbol, symbols

import numerics
from numerics.models.full import Line, simulate_full
from numerics.models.simulation import FlowRun
from numerics.run_errors import IntegrationError, TimeLimitError
from theory.models import Block, GradientFlow, Model, reduce_model

u, v = symbols("u v", real=True)
k = Symbol("k", positive=True)
TURN = GradientFlow({u: k * v, v: k * u}, name="turn")
#: Both integrations hold their steps to 1e-11 and 3e-13: a short smooth run stays within 1e-9.
CLOSE = 1e-9


def test_against_a_closed_form() -> None:
    run = numerics.simulate(TURN, {"k": 2}, {"u": 0, v: 1}, until_time=1.0)
    assert isinstance(run, FlowRun)
    assert np.abs(run.u - np.sinh(2 * run.t)).max() < CLOSE
    assert np.abs(run["v"] - np.cosh(2 * run.t)).max() < CLOSE
    assert np.abs(run[u] - np.sinh(2.001 * run.t)).max() > 1e3 * CLOSE, "the twin: another rate is told apart"
    assert run.loss is None
    assert run.error_estimate < CLOSE
    at = numerics.simulate(TURN, {"k": 2}, {"u": 0, "v": 1}, until_time=1, times=[0, 0.25, 1], method="LSODA")
    assert at.t.tolist() == [0, 0.25, 1]
    assert np.abs(at.u - np.sinh(2 * at.t)).max() < 1e-8, "LSODA's steps are longer"


def _quadratic() -> GradientFlow:
    w = Block("w", 2, Rational(1, 2))
    a, b = w.symbols
    return reduce_model(Model([w], (a + b - 1) ** 2 / 2, symmetry=[{"w": ([1, 0],)}]))


def test_until_a_loss() -> None:
    # dv/dt = -(2v - 1)/2: L = e^(-2t)/2 from v = 0, so L = 0.01 at t = log(50)/2
    run = numerics.simulate(_quadratic(), start={"w_1": 0}, until_loss=0.01)
    assert run.t[-1] == pytest.approx(np.log(50) / 2, abs=CLOSE)
    assert run.loss is not None
    assert run.loss[-1] == pytest.approx(0.01, abs=CLOSE)
    with pytest.raises(TimeLimitError, match=r"until_loss=0.01: not reached by t=1, the loss is 0.0676676"):
        numerics.simulate(_quadratic(), start={"w_1": 0}, until_loss=0.01, until_time=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parameters": {}, "start": {"u": 0, "v": 1}}, "no value for k"),
        ({"parameters": {"k": -1}, "start": {"u": 0, "v": 1}}, "k=-1: expected a finite number above 0"),
        ({"start": {"u": 0}}, "no start for v; expected u, v"),
        ({"start": {"u": 0, "w": 1}}, "unknown name 'w' in start"),
        ({"start": {"u": 0, "v": 0}}, "stationary, every velocity is 0"),
        ({"until_loss": 0.1}, "this flow has no loss; expected until_time"),
        ({"until_time": None}, "expected until_loss, until_time or both"),
        ({"time": "log"}, "time: only for the flow of the two coordinates"),
        ({"rtol": 1e-20}, "expected a tolerance from 1e-11 to 1e-3"),
        ({"method": "RK45"}, "expected one of DOP853, LSODA"),
        ({"times": [0, 2]}, "times: 2 lies beyond the end of the run, t=1"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    given = {"parameters": {"k": 1}, "start": {"u": 0, "v": 1}, "until_time": 1.0} | arguments
    with pytest.raises(ValueError, match=message):
        numerics.simulate(TURN, **given)


def test_a_flow_that_ends_in_finite_time_is_refused() -> None:
    with pytest.raises(IntegrationError, match="blow: "):
        numerics.simulate(GradientFlow({u: u**2}, name="blow"), start={"u": 1}, until_time=2)


def test_kernels_of_a_gradient_flow() -> None:
    kernel = numerics.compile_kernel(_quadratic())
    assert kernel.outputs == ("d_w_1", "loss")
    assert [float(x) for x in kernel(0.25)] == pytest.approx([0.25, 0.125], abs=1e-15)
    turn = numerics.compile_kernel(TURN, outputs=["d_v"])
    assert turn.arguments == ("u", "v", "k")
    assert turn(2.0, 3.0, 5.0)[0] == 10.0
    with pytest.raises(ValueError, match="output 'attention': expected some of d_u, d_v"):
        numerics.compile_kernel(TURN, outputs=["attention"])
    numeric = numerics.reduce_model(Model([Block("w", 2)], lambda w: (w**2).sum()))
    with pytest.raises(TypeError, match="no expressions to compile"):
        numerics.compile_kernel(numeric)


def _net(loss: Any) -> Model:
    """Two layers, ``L = |B A - 1|^2/2``, with hidden units and outputs permuted."""
    blocks = (Block("A", (2, 3)), Block("B", (2, 2), Rational(1, 2)))
    if loss is None:
        product = blocks[1].array * blocks[0].array
        loss = sum((e - 1) ** 2 for e in product) / 2
    swap = [1, 0]
    return Model(blocks, loss, [{"A": (swap, None), "B": (None, swap)}, {"B": (swap, None)}, {"A": (None, [1, 2, 0])}])


def test_the_model_entry_by_entry_stays_on_the_subspace_of_its_symmetry() -> None:
    torch_loss = lambda A, B: ((B @ A - torch.ones(2, 3, dtype=torch.float64)) ** 2).sum() / 2  # noqa: E731
    runs = []
    for model in (_net(None), _net(torch_loss)):
        flow = numerics.reduce_model(model)
        assert [s.name for s in flow.states] == ["A_1_1", "B_1_1"]
        line = Line.of_orbits(model, flow.orbits)
        start = {"A_1_1": 0.1, "B_1_1": -0.3}
        run = numerics.simulate(flow, start=start, until_time=0.5, times=[0, 0.2, 0.5])
        full = simulate_full(model, None, line.matrix @ np.array([0.1, -0.3]), times=[0, 0.2, 0.5])
        assert line.distance(full.entries).max() < 1e-12, "sums of six terms, in any order"
        assert np.abs(line.coordinates(full.entries) - np.stack([run.A_1_1, run.B_1_1], axis=1)).max() < CLOSE
        assert np.abs(full.loss - run.loss).max() < CLOSE
        assert full.blocks["A"].shape == (3, 2, 3)
        runs.append(full.entries)
    assert np.abs(runs[0] - runs[1]).max() < CLOSE, "SymPy's gradient and autograd agree"
    off = simulate_full(_net(None), None, {"A": [[1, 0, 0], [0, 1, 0]], "B": np.eye(2)}, 0.2)
    assert line.distance(off.entries).max() > 0.1, "the twin: a start without the symmetry is off the subspace"


def test_bad_lines_and_starts() -> None:
    model = _net(None)
    with pytest.raises(ValueError, match="line: no direction for v"):
        Line.of_directions(model, (u, v), {u: {"A": np.ones((2, 3))}})
    with pytest.raises(ValueError, match=r"line, u: A has shape \(3, 2\); expected \(2, 3\)"):
        Line.of_directions(model, (u,), {u: {"A": np.ones((3, 2))}})
    with pytest.raises(ValueError, match="start: no array for B"):
        simulate_full(model, None, {"A": np.ones((2, 3))}, 1.0)
    with pytest.raises(ValueError, match=r"start of shape \(2,\): expected 10 entries"):
        simulate_full(model, None, np.ones(2), 1.0)
    with pytest.raises(ValueError, match="exactly one of until_time and times"):
        simulate_full(model, None, np.ones(10))
