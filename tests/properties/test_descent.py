"""Gradient descent of the full model stays on the line at any step, and takes the steps that the line predicts.

collapsed: mu <- mu - h eta (v <- beta v + g + lambda mu)      factorized: the same for u and v, mu = u v/sigma
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from numerics import compile_kernel
from numerics.gradient_flow import MatrixRun, Objective
from numerics.predictions import extreme_curvatures, general_flow, witness
from numerics.strategies import Experiment, decimals, experiments
from theory.flow import ReducedFlow
from theory.model import PARAMETERIZATIONS, AttentionModel

Array = NDArray[np.float64]
ENTRIES, STEPS = 1_500, 5
#: Where rounding may have been amplified to this part of the matrices, nothing is compared any more.
VACUOUS = 1e-4


@dataclass(frozen=True)
class Descent:
    """Step size ``h``, momentum ``beta``, whether Nesterov's, and weight decay ``lambda``."""

    step: float
    momentum: float
    nesterov: bool
    decay: float

    def options(self) -> dict[str, Any]:
        return {"momentum": self.momentum, "nesterov": self.nesterov, "weight_decay": self.decay}


@st.composite
def descents(draw: st.DrawFn) -> Descent:
    """Steps over four decades, so that some descend smoothly and some jump far beyond the minimum."""
    step = 10.0 ** draw(st.integers(-2, 2))
    momentum = draw(st.sampled_from([0.0, 0.5, 0.9]))
    return Descent(step, momentum, momentum > 0 and draw(st.booleans()), draw(st.sampled_from([0.0, 0.01, 0.1])))


def circuits(experiment: Experiment) -> dict[str, list[float]]:
    """``[mu]``, or ``[u, v]`` with ``u v = sigma mu`` and ``u^2 - v^2 = c``."""
    flow, values = general_flow(experiment.model)
    found = {}
    for name in ("OV", "QK"):
        mu = experiment.start[f"mu_{name}"]
        if experiment.model.form(name) == "collapsed":  # type: ignore[arg-type]
            found[name] = [mu]
            continue
        c, target = float(experiment.model.imbalance(name)), sigma(flow, values, name) * mu  # type: ignore[arg-type]
        large = np.sqrt((np.hypot(c, 2 * target) + abs(c)) / 2)
        found[name] = [large, target / large] if c >= 0 else [target / large, large]
    return found


def sigma(flow: ReducedFlow, values: Mapping[str, float], name: str) -> float:
    formula = flow.definitions[f"sigma_{name}"]
    return float(formula.xreplace({s: values[s.name] for s in formula.free_symbols}))


def predict(collapsed: ReducedFlow, experiment: Experiment, descent: Descent) -> Array:
    """The coordinates (steps + 1, 2) that descent on the line has, from the velocities of the collapsed model."""
    flow, values = general_flow(experiment.model)
    _, known = general_flow(AttentionModel(experiment.model.task))
    kernel = compile_kernel(collapsed, outputs=["d_mu_OV", "d_mu_QK"])
    state = circuits(experiment)
    average = {name: [0.0] * len(parts) for name, parts in state.items()}

    def coordinate(name: str) -> float:
        parts = state[name]
        return parts[0] if len(parts) == 1 else parts[0] * parts[1] / sigma(flow, values, name)

    states = [[coordinate("OV"), coordinate("QK")]]
    for _ in range(STEPS):
        speeds = kernel(**{"mu_OV": states[-1][0], "mu_QK": states[-1][1], **known, **experiment.rates})
        for name, speed in zip(("OV", "QK"), speeds, strict=True):
            eta, parts = experiment.rates[f"eta_{name}"], state[name]
            slope = -float(speed) / eta
            pull = [slope] if len(parts) == 1 else [slope * sigma(flow, values, name) * p for p in reversed(parts)]
            gradient = [g + descent.decay * p for g, p in zip(pull, parts, strict=True)]
            average[name] = [descent.momentum * v + g for v, g in zip(average[name], gradient, strict=True)]
            ahead = [g + descent.momentum * v for g, v in zip(gradient, average[name], strict=True)]
            moved = ahead if descent.nesterov else average[name]
            state[name] = [p - descent.step * eta * d for p, d in zip(parts, moved, strict=True)]
        states.append([coordinate("OV"), coordinate("QK")])
    return np.array(states)


def leverage(run: MatrixRun, name: str) -> Array:
    """Change of ``W`` for a change of its parameters, at each step: 1, or ``|U| + |V|``."""
    if f"W_{name}" in run.parameters:
        return np.ones(run.t.size)
    total: Array = sum(np.linalg.norm(run.parameters[f"{side}_{name}"], 2, axis=(1, 2)) for side in "UV")
    return total


def budgets(experiment: Experiment, descent: Descent, run: MatrixRun) -> dict[str, Array]:
    """Bounds on the rounding error of ``W``: each step amplifies an error by ``1 + h |H|`` and adds its own rounding.

    In coordinates ``P/sqrt(eta)``: ``v <- beta v + (|H| + eta lambda) e``, ``e <- e + h (1 + beta) v + r``. A step
    rounds parameters to 2^-53 of their size, and gradients, sums of up to ``ENTRIES`` products, to 64 times that.
    """
    objective = Objective(witness(experiment.model, experiment.start), experiment.rates)
    low, high = min(experiment.rates.values()), max(experiment.rates.values())
    flat = np.stack([np.concatenate([p[i].ravel() for p in run.parameters.values()]) for i in range(run.t.size)])
    wide = float(experiment.model.task.score_scale) * np.abs(run.W_OV).max(axis=(1, 2))
    leverages = {name: leverage(run, name) for name in ("OV", "QK")}
    error, average, errors = 0.0, 0.0, []
    for i, state in enumerate(flat):
        size = np.abs(state).max()
        slope = (1 + 2 * wide[i]) * max(leverages[name][i] for name in leverages) + descent.decay * size
        rounding = 2.0**-53 * np.sqrt(state.size / low) * (4 * size + 64 * descent.step * high * slope)
        error += rounding
        errors.append(error)
        curvature = max(abs(x) for x in extreme_curvatures(objective, state)) + high * descent.decay
        average = descent.momentum * average + curvature * error
        error += descent.step * (1 + descent.momentum) * average
    # 4: the curvature is known to a percent, and the product of factors is of second order in the error
    return {
        name: 4 * np.sqrt(experiment.rates[f"eta_{name}"]) * leverages[name] * np.array(errors) for name in leverages
    }


@dataclass(frozen=True)
class Watched:
    """Deviations over bounds of the steps whose bounds say something."""

    line: float
    path: float
    compared: int


def watch(experiment: Experiment, descent: Descent, collapsed: ReducedFlow) -> Watched:
    run = witness(experiment.model, experiment.start).gradient_descent(
        experiment.rates, STEPS, descent.step, **descent.options()
    )
    bound = budgets(experiment, descent, run)
    path = predict(collapsed, experiment, descent)
    line, follow, compared = 0.0, 0.0, STEPS
    for at, name in enumerate(("OV", "QK")):
        mu, distance = getattr(run, f"mu_{name}"), getattr(run, f"distance_{name}")
        size = 1 + np.maximum(np.abs(run.W_OV).max(axis=(1, 2)), np.abs(run.W_QK).max(axis=(1, 2)))
        strong = np.maximum(bound["OV"], bound["QK"]) < VACUOUS * size
        steps = int(np.argmin(strong)) if not strong.all() else strong.size
        compared = min(compared, steps - 1)
        line = max(line, float((distance / bound[name])[:steps].max()))
        # mu is a mean of entries of W over those of E, of norm at least sqrt(1/2); the prediction rounds as well
        follow = max(follow, float((np.abs(mu - path[:, at]) / (2 * bound[name]))[:steps].max()))
    return Watched(line, follow, compared)


def collapsed_flow(experiment: Experiment) -> ReducedFlow:
    return general_flow(AttentionModel(experiment.model.task))[0]


@pytest.mark.parametrize("code", PARAMETERIZATIONS)
@settings(max_examples=max(1, settings.default.max_examples // 3))
@given(data=st.data())
def test_descent_stays_on_the_line_at_any_step(code: str, data: st.DataObject) -> None:
    drawn = data.draw(st.tuples(experiments(code=code, max_entries=ENTRIES), descents()))
    found = watch(*drawn, collapsed_flow(drawn[0]))
    event(f"{found.compared} steps")
    assume(found.compared >= 1)
    assert found.line <= 1
    assert found.path <= 1


def test_a_wrong_step_is_noticed(wrong: Any, counterexample: Callable[..., Any]) -> None:
    """With a wrong velocity the predicted steps are not those of the full model; the line itself is the same."""
    strategy = st.tuples(experiments(noise=wrong.noise, max_entries=ENTRIES), descents())

    def fails(drawn: tuple[Experiment, Descent]) -> bool:
        return watch(*drawn, wrong.flow(collapsed_flow(drawn[0]))).path > 1

    drawn = counterexample(strategy.filter(lambda found: wrong.applies(found[0])), fails)
    right = watch(*drawn, collapsed_flow(drawn[0]))
    assert right.path <= 1
    assert right.line <= 1


def test_a_push_beside_the_line_is_noticed(counterexample: Callable[..., Any]) -> None:
    """An entry moved by 1e-6, far below what a plot shows, is far above the rounding that descent amplifies."""

    def fails(drawn: tuple[Experiment, Descent]) -> bool:
        experiment, descent = drawn
        net = witness(experiment.model, experiment.start)
        pushed = net.W_OV.detach().clone()
        pushed[0, 0] += 1e-6
        net.set_matrices(W_OV=pushed)
        run = net.gradient_descent(experiment.rates, 1, descent.step, **descent.options())
        return bool((run.distance_OV > budgets(experiment, descent, run)["OV"]).any())

    counterexample(st.tuples(experiments(code="CACO", max_entries=ENTRIES), descents()), fails)


@given(st.tuples(experiments(code="CACO", noise="finite", max_entries=ENTRIES), decimals(0.1, 1)))
def test_steps_of_one_size_leave_the_line(drawn: tuple[Experiment, float]) -> None:
    """Steps of one size for every entry leave the line of output-value unless M = 2: something a check can find."""
    experiment, step = drawn
    net = witness(experiment.model, experiment.start)
    E = net.directions().E_OV
    net.set_matrices(W_OV=net.W_OV.detach().numpy() + step * np.sign(E))
    distance = net.distance_to_line().OV
    if experiment.model.task.classes == 2:
        assert distance <= 1e-15 * (1 + step + abs(experiment.start["mu_OV"]))
    else:
        assert distance > 1e-2 * step
