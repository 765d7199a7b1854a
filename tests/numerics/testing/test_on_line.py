"""Property tests of users' theories: right ones pass, wrong ones fail at the smallest sizes, with code to repeat it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis.strategies import integers
from sympy import Eq, Integer, Symbol

import numerics
from numerics import strategies
from numerics.testing import Checked
from theory import AttentionModel, Claim, TokenTask, derive
from theory.flow import Velocity
from theory.models import Block, GradientFlow, Model, reduce_model
from theory.symbols import mu_QK

n, eta = Symbol("n", integer=True, positive=True), Symbol("eta", positive=True)
u, v = Symbol("u", real=True), Symbol("v", real=True)


def mean_model(n: int) -> Model:
    """A product of two vectors that should be 1: ``L = (a.b - 1)^2/2``."""
    return Model([Block("a", n, eta), Block("b", n)], lambda a, b: ((a * b).sum() - 1) ** 2 / 2, name="mean")


def line(n: int) -> dict[Any, Any]:
    return {u: {"a": np.ones(n)}, v: {"b": np.ones(n)}}


RIGHT = GradientFlow({u: eta * v * (1 - n * u * v), v: u * (1 - n * u * v)}, (1 - n * u * v) ** 2 / 2)
SIZES = {"n": (1, 4)}


def test_a_right_flow_passes() -> None:
    assert numerics.check_on_line(mean_model, RIGHT, line=line, sizes=SIZES, examples=12) == Checked(12)


@pytest.mark.parametrize(
    ("wrong", "least"),
    [
        # the rate of the other block: wrong from the smallest size on
        ({u: v * (1 - n * u * v), v: eta * u * (1 - n * u * v)}, 1),
        # a size that is missing: right at n = 1
        ({u: eta * v * (1 - u * v), v: u * (1 - n * u * v)}, 2),
        # wrong from three entries on
        ({u: eta * v * (1 - n * u * v), v: u * (1 - n * u * v) * (1 + (n - 1) * (n - 2))}, 3),
    ],
)
def test_a_wrong_flow_fails_at_the_smallest_size(wrong: dict[Symbol, Any], least: int) -> None:
    with pytest.raises(AssertionError, match=rf"leaves the prediction at n={least}, eta=") as found:
        numerics.check_on_line(mean_model, GradientFlow(wrong), line=line, sizes=SIZES, examples=40)
    text = str(found.value)
    assert "d[ab]" in text or "/dt at the start: the full model has" in text
    # what it prints repeats it, and the right flow holds there
    at = eval(text.split("at = ")[1].splitlines()[0])
    assert "numerics.check_on_line(model, flow, line=line, sizes=sizes, at=at)" in text
    with pytest.raises(AssertionError, match=f"n={least}"):
        numerics.check_on_line(mean_model, GradientFlow(wrong), line=line, sizes=SIZES, at=at)
    assert numerics.check_on_line(mean_model, RIGHT, line=line, sizes=SIZES, at=at) == Checked(1)


def test_a_wrong_loss_and_a_line_that_is_none() -> None:
    with pytest.raises(AssertionError, match=r"loss at the start: "):
        numerics.check_on_line(mean_model, replace(RIGHT, loss=RIGHT.loss * 2), line=line, sizes=SIZES, examples=6)
    tilted = {u: {"a": [1, 2]}, v: {"b": [1, 1]}}
    with pytest.raises(AssertionError, match="the full model leaves the prediction"):
        numerics.check_on_line(mean_model(2), GradientFlow({u: 0 * u, v: u - u}), line=tilted, examples=6)


def test_the_orbits_of_a_symmetry_are_a_line() -> None:
    target = torch.ones(2, 2, dtype=torch.float64)
    swap = [1, 0]
    blocks = (Block("A", (2, 2)), Block("B", (2, 2)))
    symmetry = [{"A": (swap, None), "B": (None, swap)}, {"B": (swap, None)}, {"A": (None, swap)}]
    model = Model(blocks, lambda A, B: ((B @ A - target) ** 2).sum() / 2, symmetry)
    assert numerics.check_on_line(model, examples=4) == Checked(4)


def test_the_built_in_model_with_symbols_for_its_sizes() -> None:
    model = AttentionModel(TokenTask(informative_slots=1, noise_slots=1))
    assert numerics.check_on_line(model, examples=1) == Checked(1)
    flow = derive(model)
    wrong = replace(
        flow, **{f: Velocity({s: w * (2 if s == mu_QK else 1) for s, w in getattr(flow, f).items()}) for f in FORMS}
    )
    # one case: a search that shrinks builds hundreds of populations
    at = {"M": 3, "b": 2, "K": 1, "N": 2, "eta_OV": 1, "eta_QK": 2, "mu_OV": 0.5, "mu_QK": 0.3}
    with pytest.raises(AssertionError, match=r"at M=3, b=2, .*\n  dW_QK\[0, \d\]/dt at the start: the full model has"):
        numerics.check_on_line(model, wrong, at=at)
    assert numerics.check_on_line(model, at=at) == Checked(1)


FORMS = ("velocity", "compact")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": 3}, "expected an AttentionModel, a Model, or a function of sizes to a Model"),
        ({"sizes": {}}, "sizes: none for n"),
        ({"sizes": {"n": (0, 2)}}, "sizes: n from 0 to 2"),
        ({"sizes": {"n": (3, 2)}}, "sizes: n from 3 to 2"),
        ({"sizes": {"n": (1, 2.5)}}, r"sizes: n=\(1, 2.5\): expected \(least, largest\) or one integer"),
        ({"line": None}, "the flow has no orbits; expected the directions"),
        ({"flow": lambda n: 3}, "expected a Model and a GradientFlow"),
        ({"parameters": {"rho": (1, 2)}}, "unknown name 'rho' in parameters"),
    ],
)
def test_wrong_input(arguments: dict[str, Any], message: str) -> None:
    given = {"model": mean_model, "flow": RIGHT, "line": line, "sizes": SIZES} | arguments
    with pytest.raises((ValueError, TypeError), match=message):
        numerics.check_on_line(examples=2, **given)


x = Symbol("x", real=True)
TRUE = Claim("square", Eq((x + 1) ** 2, x**2 + 2 * x + 1, evaluate=False))
FALSE = Claim("square", Eq((x + 1) ** 2, x**2 + Integer(1), evaluate=False))


@numerics.holds(TRUE)
def test_a_claim_that_holds(result: Any, tmp_path: Any) -> None:
    """A fixture and the result arrive beside each other."""
    assert result.verdict == "proved"
    assert tmp_path.exists()


def balance(n: int, factor: int = 1) -> Claim:
    """``|a|^2 - eta |b|^2`` is conserved: of a model that is built and reduced for each size."""
    a, b = Block("a", n, eta), Block("b", n)
    product = sum((p * q for p, q in zip(a.symbols, b.symbols, strict=True)), Integer(0))
    flow = reduce_model(Model([a, b], (product - 1) ** 2 / 2))
    law = sum((p**2 - factor * eta * q**2 for p, q in zip(a.symbols, b.symbols, strict=True)), Integer(0))
    return Claim.equal("balance", flow.along(law), 0)


@numerics.holds(balance, sizes=strategies.sizes(n=(1, 3)))
def test_a_claim_for_all_sizes(result: Any) -> None:
    assert result.verdict == "proved"


@pytest.mark.parametrize("least", [1, 2, 3])
def test_a_claim_that_fails_from_some_size_on(least: int) -> None:
    @numerics.holds(lambda n: balance(n, 2 if n >= least else 1), sizes={"n": (1, 4)})
    def test() -> None: ...

    with pytest.raises(AssertionError, match=rf"^at n={least}: balance is refuted"):
        test()


def test_sizes_that_depend_on_each_other() -> None:
    seen = set()

    def model(n: int, k: int) -> Model:
        seen.add((n, k))
        return mean_model(n)

    drawn = strategies.sizes(n=(1, 3), k=(1, 3)).filter(lambda s: s["k"] <= s["n"])
    ends = lambda n, k: line(n)  # noqa: E731
    wrong = GradientFlow({u: eta * v * (1 - u * v), v: u * (1 - n * u * v)})
    assert numerics.check_on_line(model, RIGHT, line=ends, sizes=drawn, examples=12) == Checked(12)
    assert seen <= {(i, j) for i in (1, 2, 3) for j in range(1, i + 1)}
    with pytest.raises(AssertionError, match=r"at n=2, k=1, eta="):
        numerics.check_on_line(model, wrong, line=ends, sizes=drawn, examples=40)
    for sizes in ({"n": (1, 2)}, strategies.sizes(n=(1, 2))):
        with pytest.raises(TypeError, match="expected a function of sizes to a Claim"):
            numerics.holds(TRUE, sizes=sizes)(lambda: None)()
    with pytest.raises(TypeError, match="the strategy draws 1; expected integers by name"):
        numerics.check_on_line(model, RIGHT, line=ends, sizes=integers(1, 2))


def test_a_claim_that_does_not_hold() -> None:
    @numerics.holds(lambda: FALSE)
    def test() -> None: ...

    with pytest.raises(AssertionError, match="square is refuted") as found:
        test()
    assert "to repeat it:" in str(found.value)
    assert "x=" in str(found.value)
