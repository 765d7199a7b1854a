"""Steps of stacked runs against `torch.optim`, one optimizer for each run; schedules; refused values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from numerics.training import Optimizer, Schedule
from numerics.training.optimizers import stepper

RATES = {"OV": [0.1, 0.02], "QK": [0.3, 0.0]}
NAMES = ("W_OV", "bias_OV", "U_QK")
#: Fifteen steps of numbers of size 1.
ROUNDING = 1e-13

CASES = {
    "sgd": (Optimizer(), torch.optim.SGD, {}),
    "decay": (Optimizer(weight_decay=0.1), torch.optim.SGD, {"weight_decay": 0.1}),
    "heavy ball": (Optimizer(momentum=0.9), torch.optim.SGD, {"momentum": 0.9}),
    "nesterov": (
        Optimizer(momentum=0.8, nesterov=True, weight_decay=0.05),
        torch.optim.SGD,
        {"momentum": 0.8, "nesterov": True, "weight_decay": 0.05},
    ),
    "adam": (Optimizer("adam"), torch.optim.Adam, {}),
    "adam decay": (
        Optimizer("adam", weight_decay=0.1, betas=(0.8, 0.9), epsilon=1e-3),
        torch.optim.Adam,
        {"weight_decay": 0.1, "betas": (0.8, 0.9), "eps": 1e-3},
    ),
}


def problem() -> tuple[dict[str, Any], Any]:
    generator = np.random.default_rng(0)
    shapes = {"W_OV": (2, 3, 3), "bias_OV": (2, 3), "U_QK": (2, 3, 3)}
    return {n: generator.standard_normal(s) for n, s in shapes.items()}, generator.random(15)


def slope(value: Any, kick: Any) -> Any:
    """A gradient that depends on the parameter, and changes from step to step."""
    return np.sin(3 * value) + kick


def stacked(optimizer: Optimizer, rates: dict[str, Schedule], active: Any = None) -> dict[str, Any]:
    parameters, kicks = problem()
    update = stepper(optimizer, rates)
    for at, kick in enumerate(kicks):
        update(at, parameters, {n: slope(v, kick) for n, v in parameters.items()}, active)
    return parameters


def reference(kind: Any, options: dict[str, Any], run: int) -> dict[str, Any]:
    start, kicks = problem()
    own = {n: torch.tensor(v[run]).requires_grad_() for n, v in start.items()}
    groups = [{"params": [own[n]], "lr": RATES[n[-2:]][run]} for n in NAMES]
    optimizer = kind(groups, lr=1.0, **options)
    for kick in kicks:
        for value in own.values():
            value.grad = torch.tensor(slope(value.detach().numpy(), kick))
        optimizer.step()
    return {n: v.detach().numpy() for n, v in own.items()}


def worst(found: dict[str, Any], wanted: dict[str, Any], run: int) -> float:
    return max(float(np.abs(found[n][run] - wanted[n]).max()) for n in NAMES)


@pytest.mark.parametrize("name", CASES)
def test_every_run_steps_as_torch_does(name: str) -> None:
    optimizer, kind, options = CASES[name]
    found = stacked(optimizer, {c: Schedule(r) for c, r in RATES.items()})
    for run in (0, 1):
        assert worst(found, reference(kind, options, run), run) < ROUNDING


@pytest.mark.parametrize("other", ["sgd", "decay", "adam", "nesterov"])
def test_another_rule_is_noticed(other: str) -> None:
    _, kind, options = CASES["heavy ball"]
    found = stacked(CASES[other][0], {c: Schedule(r) for c, r in RATES.items()})
    assert worst(found, reference(kind, options, 0), 0) > 1e-3


def test_a_stopped_run_does_not_move() -> None:
    start, _ = problem()
    found = stacked(Optimizer(momentum=0.9), {c: Schedule(r) for c, r in RATES.items()}, np.array([1.0, 0.0]))
    for name in NAMES:
        assert (found[name][1] == start[name][1]).all()
        assert (found[name][0] != start[name][0]).all()


def test_a_ramp() -> None:
    ramp = Schedule([0.0, 0.1], end=[0.4, 0.1], steps=4)
    assert [float(ramp(k)[0]) for k in (0, 1, 4, 9)] == pytest.approx([0.0, 0.1, 0.4, 0.4], abs=1e-15)
    assert float(ramp(3)[1]) == pytest.approx(0.1, abs=1e-15)
    start, kicks = problem()
    wanted = start["W_OV"].copy()
    for at, kick in enumerate(kicks):
        wanted -= (0.2 * min(at / 10, 1.0)) * slope(wanted, kick)
    rates = {"OV": Schedule(0.0, end=0.2, steps=10), "QK": Schedule(0.1)}
    assert np.abs(stacked(Optimizer(), rates)["W_OV"] - wanted).max() < ROUNDING


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Optimizer("rmsprop"), "expected 'sgd' or 'adam'"),  # type: ignore[arg-type]
        (lambda: Optimizer(momentum=1.0), "momentum"),
        (lambda: Optimizer(nesterov=True), "needs a momentum"),
        (lambda: Optimizer("adam", momentum=0.5), "Adam has betas"),
        (lambda: Optimizer(weight_decay=-1.0), "weight_decay"),
        (lambda: Optimizer("adam", betas=(0.9, 1.0)), "betas"),
        (lambda: Optimizer("adam", epsilon=0.0), "epsilon"),
        (lambda: Schedule(-0.1), "learning rate of at least 0"),
        (lambda: Schedule([0.1, float("nan")]), "learning rate"),
        (lambda: Schedule(0.1, end=0.2), "a ramp needs both"),
        (lambda: Schedule(0.1, steps=3), "a ramp needs both"),
    ],
)
def test_wrong_values_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
