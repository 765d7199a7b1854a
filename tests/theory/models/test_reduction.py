"""Reduction of user models: orbits, metric, refusals, and the attention model written out as one."""

from __future__ import annotations

from itertools import product

import pytest
from sympy import Add, Matrix, Rational, Symbol, exp, log, symbols

from theory import TokenTask
from theory.errors import GradlineError
from theory.identities import compare
from theory.models import Block, GradientFlow, Model, SymmetryError, reduce_model
from theory.models.blocks import as_permutation
from theory.models.reduction import MOST_OPERATIONS, entry_orbits
from theory.orbits import orbits
from theory.symbols import eta_OV, eta_QK


def _attention_loss(w_ov: Matrix, w_qk: Matrix) -> object:
    """Population cross-entropy for M = 2, b = 1, K = 1, N = 2, m = 1, n = 1, one sequence after the other."""
    terms = []
    for label, noise in product(range(2), (2, 3)):
        scores = [exp(w_qk[0, label]), exp(w_qk[0, noise])]
        shares = [s / (scores[0] + scores[1]) for s in scores]
        logits = [shares[0] * w_ov[c, label] + shares[1] * w_ov[c, noise] for c in range(2)]
        terms.append(log(exp(logits[0]) + exp(logits[1])) - logits[label])
    return Add(*terms) * Rational(1, 4)


def _attention() -> Model:
    ov, qk = Block("W_OV", (2, 4), eta_OV), Block("W_QK", (1, 4), eta_QK)
    classes = {"W_OV": ([1, 0], [1, 0, 2, 3]), "W_QK": (None, [1, 0, 2, 3])}
    noise = {"W_OV": (None, [0, 1, 3, 2]), "W_QK": (None, [0, 1, 3, 2])}
    return Model([ov, qk], _attention_loss(ov.array, qk.array), symmetry=[classes, noise], name="attention")


def test_the_orbits_of_attention_are_the_built_in_ones() -> None:
    flow = reduce_model(_attention())
    task = TokenTask(2, 1, 1, 2, 1, 1)
    built_in = sorted(int(o.size) for c in ("OV", "QK") for o in orbits(task, c))
    assert sorted(len(members) for members in flow.orbits.values()) == built_in
    assert [s.name for s in flow.states] == ["W_OV_1_1", "W_OV_1_2", "W_OV_1_3", "W_QK_1_1", "W_QK_1_3"]
    own, other, *_ = flow.states
    law = flow.velocity[own] + flow.velocity[other]
    assert compare(law, 0).answer == "equal", "a column of W_OV keeps its sum"
    assert flow.metric["W_QK_1_3"] == 2 / eta_QK


def test_a_symmetry_that_does_not_hold_is_refused_with_a_point() -> None:
    model = _attention()
    wrong = {"W_OV": ([1, 0], None)}
    with pytest.raises(SymmetryError, match=r"symmetry 0: the loss is not invariant; it differs at W_OV_1_1="):
        reduce_model(Model(model.blocks, model.loss, symmetry=[wrong]))


def test_signs_and_entries_that_vanish() -> None:
    w = Block("w", (2,))
    a, b = w.symbols
    loss = (a**2 - 1) ** 2 + (b**2 - 1) ** 2

    def exchange(arrays: dict) -> dict:
        (x, y) = arrays["w"]
        return {"w": Matrix([-y, -x])}

    flow = reduce_model(Model([w], loss, symmetry=[exchange]))
    assert flow.orbits[a] == ((a, 1), (b, -1))
    assert (flow.velocity[a] + 4 * a * (a**2 - 1)).expand() == 0
    frozen = reduce_model(Model([w], loss, symmetry=[lambda arrays: {"w": Matrix([-arrays["w"][0], arrays["w"][1]])}]))
    assert frozen.states == (b,)


def test_without_symmetry_every_entry_moves() -> None:
    w = Block("w", (2,), Symbol("eta"))
    a, b = w.symbols
    flow = reduce_model(Model([w], a * b))
    assert dict(flow.velocity) == {a: -Symbol("eta") * b, b: -Symbol("eta") * a}


def test_one_rate_on_each_orbit() -> None:
    u, v = Block("u", 1, 2), Block("v", 1, 3)
    (a,), (b,) = u.symbols, v.symbols
    swap = lambda arrays: {"u": arrays["v"], "v": arrays["u"]}  # noqa: E731
    with pytest.raises(ValueError, match="the orbit of u_1 has learning rates 2, 3"):
        reduce_model(Model([u, v], a * b, symmetry=[swap]))
    assert reduce_model(Model([Block("u", 1, 2), Block("v", 1, 2)], a * b, symmetry=[swap])).states == (a,)


@pytest.mark.parametrize(
    ("generator", "message"),
    [
        ({"x": ([0, 1],)}, "no block is called 'x'; expected some of W"),
        ({"W": ([1, 0],)}, "1 permutations for W of shape"),
        ({"W": ([1, 0], [0, 1])}, r"expected a permutation of 0..2"),
        (lambda arrays: {"W": arrays["W"].T}, "the image of W has not the shape"),
        (lambda arrays: {"W": 2 * arrays["W"]}, "expected an entry or minus an entry"),
        (lambda arrays: {"W": arrays["W"][0, 0] * Matrix(2, 3, [1] * 6)}, "take the value of the same one"),
        (3, "expected a mapping from block names to permutations, or a function"),
    ],
)
def test_bad_generators(generator: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        as_permutation([Block("W", (2, 3))], generator)  # type: ignore[arg-type]


def test_symbols_of_one_name_are_refused() -> None:
    """Another symbol of the name of an entry would be a constant: the flow would stand still without a word."""
    w = Block("w", 2)
    (a, b), plain = w.symbols, Symbol("w_1")
    for act in (
        lambda: Model([w], plain**2 + b**2),
        lambda: GradientFlow({a: plain}),
        lambda: GradientFlow({a: -a}, plain**2),
        lambda: GradientFlow({a: -a}).along(plain**2),
    ):
        with pytest.raises(ValueError, match="two different symbols are named 'w_1'"):
            act()
    assert reduce_model(Model([w], a**2 + b**2)).velocity["w_1"] == -2 * a


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Block("w", 2, 0), "block w: learning rate 0: expected a positive number"),
        (lambda: Block("w", 2, -1), "block w: learning rate -1: expected a positive number"),
        (lambda: Block("w", 2.0), "shape 2.0: expected one or two positive integers"),
        (lambda: Block("w", None), "shape None: expected one or two positive integers"),
        (lambda: Model([Block("w", 2, Block("w", 2).symbols[0])], 1), "learning rate w_1 is trained itself"),
        (lambda: Model(Block("w", 2), 1), r"blocks: w alone; expected a sequence, such as \[w\]"),
        (lambda: Model([Block("w", 2)], 1, symmetry={"w": ([1, 0],)}), "symmetry: one generator alone"),
        (lambda: as_permutation([Block("w", 2)], {"w": ([1.5, 0.2],)}), "on axis 0 of w: expected 0..1"),
    ],
)
def test_what_a_newcomer_gets_wrong(act: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        act()  # type: ignore[operator]


def test_bad_blocks_and_losses() -> None:
    with pytest.raises(ValueError, match="block name '2'"):
        Block("2", (1,))
    with pytest.raises(ValueError, match="expected one or two positive integers"):
        Block("W", (2, 0))
    with pytest.raises(ValueError, match="two entries are called W_1"):
        Model([Block("W", (2,)), Block("W", (3,))], 1)
    with pytest.raises(TypeError, match=r"a matrix of shape \(2, 1\); expected a scalar"):
        Model([Block("W", (2,))], Block("W", (2,)).array)
    with pytest.raises(TypeError, match=r"use numerics.reduce_model"):
        reduce_model(Model([Block("W", (2,))], lambda W: W.sum()))
    with pytest.raises(ValueError, match="expected at least one state"):
        GradientFlow({})


def test_a_loss_too_large_for_the_exact_engine() -> None:
    w = Block("w", (40,))
    loss = Add(*((a - 2 * b) ** 2 for a in w.symbols for b in w.symbols))
    assert loss.count_ops() > MOST_OPERATIONS
    with pytest.raises(GradlineError, match=rf"the exact engine can do {MOST_OPERATIONS}; .* numerics.reduce_model"):
        reduce_model(Model([w], loss, symmetry=[{"w": ([1, 0, *range(2, 40)],)}]))


def test_orbits_of_generators_together() -> None:
    """Two transpositions that share an entry join three entries."""
    first, second = ((1, 1), (0, 1), (2, 1)), ((0, 1), (2, 1), (1, 1))
    assert [o.positions for o in entry_orbits(3, [first])] == [(0, 1), (2,)]
    assert [o.positions for o in entry_orbits(3, [first, second])] == [(0, 1, 2)]


def test_a_flow_by_its_velocity() -> None:
    u, v, k = symbols("u v k")
    flow = GradientFlow({u: k * v, v: u})
    assert flow.parameters == (k,)
    assert flow.along(u**2 - k * v**2).expand() == 0
    assert flow.along(u**2 + k * v**2).expand() != 0
