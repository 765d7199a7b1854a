"""Torch models reduced by their symmetry: the attention model as a user writes it, and refusals."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from sympy import Rational

import numerics
from numerics.explicit_line import explicit_directions
from numerics.models.symmetry import signed_permutation
from numerics.sizes import concrete_sizes
from theory import AttentionModel, TokenTask, derive
from theory.models import Block, GradientFlow, Model, SymmetryError
from theory.symbols import eta_OV, eta_QK, mu_OV, mu_QK


def attention(task: TokenTask) -> Model:
    """The attention model on the token task, written out sequence by sequence, with generators of its symmetry."""
    size = concrete_sizes(task)
    own, all_ = size.informative_tokens, size.tokens
    rows = []
    for label, query in product(range(size.classes), range(size.queries)):
        block = range(label * size.block, (label + 1) * size.block)
        for seen in product(block, repeat=size.informative_slots):
            for noise in product(range(own, all_), repeat=size.noise_slots):
                rows.append((label, query, *seen, *noise))
    table = torch.tensor(rows)
    labels, queries, tokens = table[:, 0], table[:, 1], table[:, 2:]

    def loss(W_OV: torch.Tensor, W_QK: torch.Tensor) -> torch.Tensor:
        shares = torch.softmax(size.score_scale * W_QK[queries[:, None], tokens], dim=1)
        logits = torch.einsum("rs,crs->rc", shares, W_OV[:, tokens])
        return torch.nn.functional.cross_entropy(logits, labels)

    def both(rows_ov: Any, rows_qk: Any, columns: Any) -> dict[str, Any]:
        return {"W_OV": (rows_ov, columns), "W_QK": (rows_qk, columns)}

    def turned(length: int, at: int, step: int) -> list[list[int]]:
        """A transposition and a cycle of places ``at, at + step, ...``: they generate all permutations of them."""
        count = length // step
        base = list(range(all_))
        found = []
        for order in ([1, 0, *range(2, count)], [*range(1, count), 0]) if count > 1 else ():
            moved = base.copy()
            for i, j in enumerate(order):
                for k in range(step):
                    moved[at + i * step + k] = at + j * step + k
            found.append(moved)
        return found

    generators = []
    for columns in turned(own, 0, size.block):
        generators.append(both([columns[c * size.block] // size.block for c in range(size.classes)], None, columns))
    generators += [both(None, None, columns) for columns in turned(size.block, 0, 1)]
    generators += [both(None, None, columns) for columns in turned(all_ - own, own, 1)]
    if size.queries > 1:
        cycle, swap = [*range(1, size.queries), 0], [1, 0, *range(2, size.queries)]
        # one of them as a function of tensors
        generators.append(lambda arrays: {"W_QK": arrays["W_QK"][cycle]})
        generators.append({"W_QK": (swap, None)})
    shapes = (size.classes, all_), (size.queries, all_)
    return Model(
        (Block("W_OV", shapes[0], eta_OV), Block("W_QK", shapes[1], eta_QK)), loss, generators, name="attention"
    )


def _tasks(count: int) -> list[TokenTask]:
    draw = np.random.default_rng(7)
    scales = (1, 2, Rational(1, 2))
    return [
        TokenTask(*(int(draw.integers(low, high + 1)) for low, high in BOUNDS), score_scale=scales[draw.integers(3)])
        for _ in range(count)
    ]


BOUNDS = ((2, 4), (1, 3), (1, 3), (1, 3), (1, 2), (1, 2))
RATES = {"eta_OV": 1.5, "eta_QK": 0.5}
#: Sums of at most 500 terms in double precision, of numbers of size 1.
ROUNDING = 1e-12


def worst(flow: Any, task: TokenTask, wrong: float = 1.0) -> float:
    """Largest difference between the orbit velocities and those of the derived flow, at three points of the line."""
    derived, size = derive(AttentionModel(task)), concrete_sizes(task)
    E = explicit_directions(size)
    direction = dict(zip(flow.model.symbols, [*E.E_OV.ravel(), *E.E_QK.ravel()], strict=True))
    found = 0.0
    for at in ((0.0, 0.0), (0.7, 0.4), (-1.2, 0.9)):
        point = {mu_OV: Rational(str(at[0])), mu_QK: Rational(str(at[1]))}
        rates = {eta_OV: Rational(3, 2), eta_QK: Rational(1, 2)}
        speed = {s: float(derived.velocity[s].xreplace(rates).xreplace(point)) for s in derived.states}
        coordinate = {s: mu_OV if s.name.startswith("W_OV") else mu_QK for s in flow.states}
        values = [direction[s] * float(point[coordinate[s]]) for s in flow.states]
        actual = flow.velocity(values, RATES)
        found = max(found, *(abs(actual[s.name] - wrong * direction[s] * speed[coordinate[s]]) for s in flow.states))
    return found


@pytest.mark.parametrize("task", _tasks(20), ids=lambda t: "-".join(map(str, (t.classes, t.block, t.queries, t.noise))))
def test_attention_as_a_user_model_has_the_derived_flow(task: TokenTask) -> None:
    flow = numerics.reduce_model(attention(task))
    assert len(flow.states) <= 5, "orbits: own class, other classes, noise; queries with tokens, with noise"
    assert {str(flow.metric[s] * eta_QK) for s in flow.states if s.name == "W_QK_1_1"} == {
        str(task.queries * task.classes * task.block)
    }
    assert worst(flow, task) < ROUNDING
    assert worst(flow, task, 1.001) > 1e3 * ROUNDING, "the twin: a flow that is a thousandth faster is told apart"


def test_a_symmetry_that_does_not_hold_is_refused_with_a_simple_point() -> None:
    model = attention(TokenTask(2, 1, 1, 2, 1, 1))
    wrong = Model(model.blocks, model.loss, symmetry=[*model.symmetry, {"W_OV": ([1, 0], None)}])
    last = len(model.symmetry)
    with pytest.raises(SymmetryError, match=rf"symmetry {last}: the loss is not invariant; it is .* at .*=1") as found:
        numerics.reduce_model(wrong)
    assert "the other entries 0" in str(found.value)


def _model(loss: Any, symmetry: Any = ()) -> Model:
    return Model((Block("W", (2, 3)), Block("v", 3)), loss, symmetry)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda W, v: W @ v, r"a tensor of shape \(2,\); expected a scalar"),
        (lambda W, v: 3.0, "returns float; expected a torch tensor"),
        (lambda W, v: (W @ v).sum().float(), "expected torch.float64"),
        (lambda W, v: (v @ W).sum(), r"can't be evaluated on blocks of shapes W \(2, 3\), v \(3,\): "),
        (lambda W: W.sum(), r"expected a function of the blocks by name, loss\(W, v\)"),
        (lambda W, v: (W**2).sum(), "not differentiable in v, autograd sees no path"),
        (lambda W, v: (W @ v).detach().sum(), "not differentiable, autograd sees no block"),
        (lambda W, v: (W @ v).sqrt().sum(), "not differentiable, the gradient in W is not finite at W="),
        (lambda W, v: (W @ v * v.sum().detach()).sum(), "the gradient by autograd is not the slope"),
        (lambda W, v: (W @ v).sum() + torch.rand((), dtype=torch.float64), "detached, rounded or random"),
    ],
)
def test_losses_that_are_refused(loss: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        numerics.reduce_model(_model(loss))


def _norm(W: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (W**2).sum() + (v**2).sum()


@pytest.mark.parametrize(
    ("generator", "message"),
    [
        ({"W": (None, [1, 0])}, r"expected a permutation of 0..2"),
        (lambda a: {"W": a["W"].T}, r"the image of W has shape \(3, 2\); expected \(2, 3\)"),
        (lambda a: {"W": a["W"][:, :2]}, r"the image of W has shape \(2, 2\); expected \(2, 3\)"),
        (lambda a: {"W": a["W"][:, [0, 0, 1]]}, "expected a permutation of the entries"),
        (lambda a: {"W": a["W"] + 1}, "expected a permutation of the entries"),
        (lambda a: {"v": a["v"].sort().values}, "in a way that depends on their values"),
        (lambda a: {"x": a["v"]}, "no block is called 'x'"),
        (lambda a: a["v"], "expected a mapping from block names to tensors"),
        (lambda a: {"v": a["W"] @ a["W"]}, "it can't be applied to the blocks"),
    ],
)
def test_symmetries_that_are_refused(generator: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        numerics.reduce_model(_model(_norm, [generator]))


def test_signs_vanishing_entries_and_rates() -> None:
    flow = numerics.reduce_model(_model(_norm, [lambda a: {"W": -a["W"]}]))
    assert [s.name for s in flow.states] == ["v_1", "v_2", "v_3"]
    assert signed_permutation([Block("v", 2)], lambda a: {"v": -a["v"].flip(0)}) == ((1, -1), (0, -1))
    blocks = (Block("u", 1, 2), Block("v", 1, 3))
    swap = lambda a: {"u": a["v"], "v": a["u"]}  # noqa: E731
    with pytest.raises(ValueError, match="the orbit of u_1 has learning rates 2, 3"):
        numerics.reduce_model(Model(blocks, lambda u, v: (u * v).sum(), [swap]))
    with pytest.raises(ValueError, match="it forces every entry to be 0"):
        numerics.reduce_model(Model([Block("v", 2)], lambda v: (v**2).sum(), [lambda a: {"v": -a["v"]}]))


def test_values_of_a_numeric_flow() -> None:
    w = Block("w", 2, eta_OV)
    flow = numerics.reduce_model(Model([w], lambda w: ((w.sum() - 1) ** 2) / 2, [{"w": ([1, 0],)}]))
    # L = (2v - 1)^2/2, |O| = 2: dv/dt = -eta (2v - 1)
    assert flow.velocity({"w_1": 0.25}, {"eta_OV": 2}) == {"w_1": pytest.approx(1.0, abs=1e-15)}
    assert flow.loss([0.25]) == pytest.approx(0.125, abs=1e-15)
    assert flow.entries([0.25]).tolist() == [0.25, 0.25]
    with pytest.raises(ValueError, match="no value for eta_OV; this flow needs eta_OV"):
        flow.velocity([0.25])
    with pytest.raises(ValueError, match="did you mean 'w_1'"):
        flow.loss({"w_2": 0.25})
    with pytest.raises(ValueError, match=r"values of shape \(2,\): expected 1"):
        flow.loss([1.0, 2.0])
    assert isinstance(numerics.reduce_model(Model([w], (w.symbols[0] - 1) ** 2)), GradientFlow)
