"""Gradient flow and gradient descent of the full matrix model against what is known about them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from sympy import Rational, oo

from numerics.gradient_flow import MatrixRun
from numerics.matrix_model import MatrixModel
from numerics.sideways import sideways_growth
from theory.errors import GradlineError
from theory.task import TokenTask

RATES = {"eta_OV": 1, "eta_QK": 10}
EXAMPLE = TokenTask(3, 2, 2, 2, 2, 1, "per_class")
TASKS = {
    "shared": TokenTask(3, 2, 2, 2, 2, 1, "shared", Rational(1, 2)),
    "per_class": EXAMPLE,
    "shared_oo": TokenTask(3, 2, 2, oo, 2, 1, "shared"),
    "per_class_oo": TokenTask(2, 3, 2, oo, 1, 2, "per_class", Rational(3, 2)),
}
LINES = [
    (name, qk, ov)
    for name in TASKS
    for qk in ("collapsed", "factorized")
    for ov in ("collapsed", "factorized")
    if name != "per_class" or qk == "collapsed"
]
# The solver's tolerance is 1e-11 per step on parameters of size 1 to 10; a trajectory takes about 50 steps.
AGREEMENT = 1e-9
# Conserved sums change by rounding only (their velocity is 0 and each step is linear in velocities): about
# 1e-16 times the parameters' size 10 times 1000 evaluations.
CONSERVED = 1e-12


def published(
    net: MatrixModel,
    run: MatrixRun,
    rates: dict[str, float],
    c: tuple[float, float] = (0, 0),
    factor: float = 1,
) -> NDArray[np.float64]:
    """The reduced equations typed by hand, integrated from the start of a run to its end: mu_OV, mu_QK."""
    s = net.sizes
    M, b, K, m, n, gamma = s.classes, s.block, s.queries, s.informative_slots, s.noise_slots, s.score_scale
    seen = b if s.per_class else M * b
    norm2 = K * M * b * (1 if s.zero_noise else s.noise_tokens / (seen + s.noise_tokens))
    sigma_OV = math.sqrt(b)
    sigma_QK = math.sqrt(K * b) if s.per_class else math.sqrt(norm2)

    def velocity(_t: float, state: NDArray[np.float64]) -> list[float]:
        v, q = state
        alpha = m * math.exp(gamma * q) / (m * math.exp(gamma * q) + n)
        D = math.exp(alpha * v) + M - 1
        speed_OV = math.hypot(c[0], 2 * sigma_OV * v) if net.kinds["OV"] == "factorized" else 1
        speed_QK = math.hypot(c[1], 2 * sigma_QK * q) if net.kinds["QK"] == "factorized" else 1
        return [
            rates["eta_OV"] * speed_OV * alpha / (b * D),
            factor * rates["eta_QK"] * speed_QK * gamma * (M - 1) * alpha * (1 - alpha) * v / (norm2 * D),
        ]

    start = [run.mu_OV[0], run.mu_QK[0]]
    found = solve_ivp(velocity, (0, run.t[-1]), start, "DOP853", t_eval=[run.t[-1]], rtol=1e-12, atol=1e-13)
    return found.y[:, -1]


def _frozen(name: str, value: torch.Tensor) -> torch.Tensor:
    """1 on the entries of the last token, the noise of zero embedding."""
    mask = torch.zeros_like(value)
    mask[(-1,) if name.startswith("V") else (slice(None), -1)] = 0 if name.startswith("U") else 1
    return mask


def end(run: MatrixRun) -> NDArray[np.float64]:
    return np.array([run.mu_OV[-1], run.mu_QK[-1]])


@pytest.mark.parametrize(("ov", "largest", "relative"), [("factorized", 0.1006, 0.427), ("collapsed", 0.2432, 0.477)])
def test_per_class_with_finite_noise_leaves_the_line(ov: str, largest: float, relative: float) -> None:
    net = MatrixModel(EXAMPLE, "factorized", ov, {"mu_OV": 0.05, "mu_QK": 0.05})
    run = net.gradient_flow({"eta_OV": 1, "eta_QK": 2}, times=30)
    # half a unit of the last printed digit
    assert run.distance_QK[-1] == pytest.approx(largest, abs=5e-5)
    assert run.relative_QK[-1] == pytest.approx(relative, abs=5e-4)
    # W_OV stays on its line: rounding of the run only
    assert run.distance_OV.max() < CONSERVED
    twin = MatrixModel(EXAMPLE, "collapsed", ov, {"mu_OV": 0.05, "mu_QK": 0.05})
    assert twin.gradient_flow({"eta_OV": 1, "eta_QK": 2}, times=30).distance_QK.max() < CONSERVED


def test_leaving_the_line_does_not_depend_on_gauge_or_width() -> None:
    start = {"mu_OV": 0.05, "mu_QK": 0.05}
    one, other = (
        MatrixModel(EXAMPLE, "factorized", "factorized", start, **options).gradient_flow(RATES, times=3)
        for options in ({}, {"seed": 5, "width_qk": 4, "width_ov": 4})
    )
    assert np.abs(one.W_QK - other.W_QK).max() < AGREEMENT
    assert one.distance_QK[-1] > 1e-3


@pytest.mark.parametrize(("name", "qk", "ov"), LINES)
def test_reduced_equations_hold_to_loss_1e_3(name: str, qk: str, ov: str) -> None:
    net = MatrixModel(TASKS[name], qk, ov, {"mu_OV": 0.1, "mu_QK": 0.2})
    run = net.gradient_flow(RATES, until_loss=1e-3)
    assert run.loss[-1] == pytest.approx(1e-3, rel=AGREEMENT)
    # By symmetry what is off the line enters the coordinates at second order.
    allowed = AGREEMENT + max(run.distance_OV[-1], run.distance_QK[-1]) ** 2
    assert np.abs(end(run) - published(net, run, RATES)).max() < allowed < 1e-6
    assert np.abs(end(run) - published(net, run, RATES, factor=2)).max() > 1e-3
    if qk == "collapsed":
        assert max(run.distance_OV.max(), run.distance_QK.max()) < CONSERVED
    assert (np.diff(run.loss) < 0).all()
    assert (np.diff(run.attention) > 0).all()


@pytest.mark.parametrize("name", ["shared", "shared_oo", "per_class_oo"])
@pytest.mark.parametrize("start", [{"mu_OV": -0.4, "mu_QK": -0.3}, {}])
def test_imbalanced_circuits_with_wide_factors(name: str, start: dict[str, float]) -> None:
    options: dict[str, Any] = {"imbalance_ov": 0.7, "imbalance_qk": -0.5, "width_ov": 4, "width_qk": 4}
    net = MatrixModel(TASKS[name], "factorized", "factorized", start, **options)
    run = net.gradient_flow(RATES, times=20)
    assert np.abs(end(run) - published(net, run, RATES, c=(0.7, -0.5))).max() < AGREEMENT
    assert np.abs(end(run) - published(net, run, RATES, c=(0.5, -0.7))).max() > 1e-3
    # on the line by symmetry; rounding grows by less than 1e3 in this time
    assert max(run.distance_OV.max(), run.distance_QK.max()) < CONSERVED


@pytest.mark.parametrize("name", list(TASKS))
@pytest.mark.parametrize("ov", ["collapsed", "factorized"])
def test_collapsed_query_key_stays_on_the_line_from_below(name: str, ov: str) -> None:
    net = MatrixModel(TASKS[name], "collapsed", ov, {"mu_OV": 0.3, "mu_QK": -0.7})
    run = net.gradient_flow(RATES, until_loss=1e-2)
    assert max(run.distance_OV.max(), run.distance_QK.max()) < CONSERVED


def test_twin_a_start_beside_the_line_is_seen() -> None:
    net = MatrixModel(TASKS["shared"], start={"mu_OV": 0.1, "mu_QK": 0.2})
    moved = net.W_QK.detach().clone()
    moved[0, 0] += 1e-6
    net.set_matrices(W_QK=moved)
    run = net.gradient_flow(RATES, until_loss=1e-2)
    assert run.distance_QK.min() > 1e-8
    assert run.distance_OV[-1] > 1e-10


@pytest.mark.parametrize(("name", "qk", "ov"), [line for line in LINES if line[1] == "factorized"])
def test_distance_from_the_line_is_amplified_rounding(name: str, qk: str, ov: str) -> None:
    net = MatrixModel(TASKS[name], qk, ov, {"mu_OV": 0.1, "mu_QK": 0.2})
    run = net.gradient_flow(RATES, until_loss=5e-2)
    growth = sideways_growth(net, RATES, run.t[-1])
    # The velocity on the line is along the line, so what is off it is rounding: 1e-16 of entries up to 10, in
    # about 50 steps; that of the start grows by the linearized flow.
    assert run.distance_OV[-1] < 5e-14 * (1 + growth.OV)
    assert run.distance_QK[-1] < 5e-14 * (1 + growth.QK)


@pytest.mark.parametrize("name", ["shared", "shared_oo"])
def test_growth_is_that_of_a_small_disturbance(name: str) -> None:
    net = MatrixModel(TASKS[name], "factorized", "collapsed", {"mu_OV": 0.1, "mu_QK": 0.2})
    growth = sideways_growth(net, RATES, 15, seed=4)
    drawn = np.random.default_rng(4).uniform(-1, 1, sum(value.numel() for value in net.parameters()))
    flat = torch.from_numpy(drawn / np.abs(drawn).max() * 1e-8)
    parts = flat.split([value.numel() for value in net.parameters()])
    moved = {
        key: value.detach() + part.view(value.shape) * (1 - (net.embedding[-1] == 0) * _frozen(key, value))
        for (key, value), part in zip(net.named_parameters(), parts, strict=True)
    }
    net.set_matrices(**moved)
    run = net.gradient_flow(RATES, times=15)
    # quadratic terms: below growth times 1e-8, which is below 1e-4
    assert run.distance_QK[-1] == pytest.approx(growth.QK * 1e-8, rel=1e-3)
    assert run.distance_OV[-1] == pytest.approx(growth.OV * 1e-8, rel=1e-3)


def random_start(net: MatrixModel, seed: int = 0) -> MatrixModel:
    rng = np.random.default_rng(seed)
    new = {name: 0.5 * rng.standard_normal(tuple(value.shape)) for name, value in net.named_parameters()}
    if net.sizes.zero_noise:
        for name, value in new.items():
            if name.startswith("V"):
                value[-1] = 0
            elif name.startswith("W"):
                value[:, -1] = 0
    net.set_matrices(**new)
    return net


def shift_sums(run: MatrixRun, zero_noise: bool) -> list[NDArray[np.float64]]:
    """The sums that softmax invariance conserves, one row per recorded time."""
    p = run.parameters
    found = [p["W_OV"].sum(axis=1) if "W_OV" in p else p["U_OV"].sum(axis=1)]
    if not zero_noise:
        found.append(p["W_QK"].sum(axis=2) if "W_QK" in p else p["V_QK"].sum(axis=1))
    return found


def drift(values: NDArray[np.float64]) -> float:
    return float(np.abs(values - values[0]).max())


@pytest.mark.parametrize("name", list(TASKS))
@pytest.mark.parametrize("kind", ["collapsed", "factorized"])
def test_shift_sums_are_conserved_off_the_line(name: str, kind: str) -> None:
    start = {"mu_OV": 1, "mu_QK": 1} if kind == "factorized" else {}
    net = random_start(MatrixModel(TASKS[name], kind, kind, start))
    flow = net.gradient_flow(RATES, times=[0, 1, 5])
    steps = net.gradient_descent(RATES, 30, 0.3, momentum=0.9)
    for run in (flow, steps):
        assert max(drift(values) for values in shift_sums(run, net.sizes.zero_noise)) < CONSERVED
        # twins: sums over the other index, and of W itself when it is factorized, are not conserved
        assert drift(run.W_OV.sum(axis=2)) > 1e-6
        assert drift(run.W_QK.sum(axis=1)) > 1e-6
        if kind == "factorized":
            assert drift(run.W_OV.sum(axis=1)) > 1e-6
        if net.sizes.zero_noise:
            assert drift(run.W_QK.sum(axis=2)) > 1e-6
    assert flow.distance_QK.min() > 1e-6


def test_adam_breaks_the_shift_sums() -> None:
    net = random_start(MatrixModel(TASKS["shared"]))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    columns, rows = (net.W_OV.detach().sum(dim=0), net.W_QK.detach().sum(dim=1))
    for _ in range(20):
        optimizer.zero_grad()
        net.loss().backward()
        optimizer.step()
    assert (net.W_OV.detach().sum(dim=0) - columns).abs().max() > 1e-2
    assert (net.W_QK.detach().sum(dim=1) - rows).abs().max() > 1e-2


def test_weight_decay_scales_the_shift_sums() -> None:
    net = random_start(MatrixModel(TASKS["shared"]))
    run = net.gradient_descent(RATES, 20, 0.1, weight_decay=0.2)
    columns, rows = shift_sums(run, zero_noise=False)
    # each step multiplies a sum by 1 - h eta lambda exactly
    for values, factor in ((columns, 1 - 0.1 * 1 * 0.2), (rows, 1 - 0.1 * 10 * 0.2)):
        powers = factor ** np.arange(21)
        assert np.abs(values - powers[:, None] * values[0]).max() < CONSERVED
    assert drift(columns) > 1e-2


def test_imbalance_matrix_is_conserved_by_the_flow_only() -> None:
    net = random_start(MatrixModel(TASKS["shared"], "factorized", "factorized", {"mu_OV": 1, "mu_QK": 1}))

    def imbalance(run: MatrixRun, circuit: str) -> float:
        U, V = (run.parameters[f"{letter}_{circuit}"] for letter in "UV")
        return drift(U.transpose(0, 2, 1) @ U - V.transpose(0, 2, 1) @ V)

    flow = net.gradient_flow(RATES, times=5)
    # a quadratic law: conserved to the solver's tolerance, not to rounding
    assert max(imbalance(flow, "OV"), imbalance(flow, "QK")) < AGREEMENT
    assert imbalance(net.gradient_descent(RATES, 20, 0.25), "QK") > 1e-3


@pytest.mark.parametrize(("name", "qk", "ov"), LINES)
def test_descent_stays_on_the_line_at_any_step(name: str, qk: str, ov: str) -> None:
    net = MatrixModel(TASKS[name], qk, ov, {"mu_OV": 0.4, "mu_QK": 0.3})
    for options in ({}, {"momentum": 0.8}, {"momentum": 0.8, "nesterov": True}, {"weight_decay": 0.01}):
        run = net.gradient_descent({"eta_OV": 1, "eta_QK": 3}, 30, 0.7, **options)
        # 30 steps of rounding, each amplified by less than 1e3
        assert max(run.distance_OV.max(), run.distance_QK.max()) < CONSERVED
        assert abs(run.mu_QK[-1] - run.mu_QK[0]) > 1e-2


@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.5, "weight_decay": 0.1}],
)
def test_descent_agrees_with_torch_sgd(options: dict[str, Any]) -> None:
    net = random_start(MatrixModel(TASKS["per_class"], "factorized", "collapsed", {"mu_QK": 1}))
    run = net.gradient_descent({"eta_OV": 0.5, "eta_QK": 2}, 15, 0.2, **options)
    other = net.gradient_descent({"eta_OV": 2, "eta_QK": 0.5}, 15, 0.2, **options)
    groups = [
        {"params": [value for name, value in net.named_parameters() if name.endswith(circuit)], "lr": lr}
        for circuit, lr in (("OV", 0.1), ("QK", 0.4))
    ]
    optimizer = torch.optim.SGD(groups, lr=0.1, **options)
    for _ in range(15):
        optimizer.zero_grad()
        net.loss().backward()
        optimizer.step()
    # the same arithmetic in another order: rounding of 15 steps
    assert np.abs(run.W_QK[-1] - net.W_QK.detach().numpy()).max() < CONSERVED
    assert np.abs(run.W_OV[-1] - net.W_OV.detach().numpy()).max() < CONSERVED
    assert np.abs(other.W_OV[-1] - net.W_OV.detach().numpy()).max() > 1e-2


def test_descent_converges_to_the_flow_at_first_order() -> None:
    net = random_start(MatrixModel(TASKS["shared"]))
    exact = net.gradient_flow(RATES, times=2).W_QK[-1]
    errors = [np.abs(net.gradient_descent(RATES, 2 * k, 1 / k).W_QK[-1] - exact).max() for k in (100, 200, 400)]
    # O(h) with an O(h^2) rest: halving the step halves the error up to a few percent
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)
    assert errors[1] / errors[2] == pytest.approx(2, abs=0.05)


def test_recorded_times_are_accurate_inside_a_step() -> None:
    net = random_start(MatrixModel(TASKS["shared"]))
    run = net.gradient_flow(RATES, times=[0.001, 0.1, 3.7, 4.0])
    assert run.t.tolist() == [0.001, 0.1, 3.7, 4.0]
    for k, time in enumerate(run.t):
        alone = net.gradient_flow(RATES, times=float(time), rtol=1e-13, atol=1e-14)
        assert np.abs(run.W_QK[k] - alone.W_QK[-1]).max() < AGREEMENT
        assert np.abs(run.W_OV[k] - alone.W_OV[-1]).max() < AGREEMENT
    assert np.abs(run.W_OV[2] - run.W_OV[3]).max() > 1e-3


@pytest.mark.parametrize("update", [False, True])
def test_the_model_changes_only_when_asked(update: bool) -> None:
    net = MatrixModel(TASKS["shared_oo"], "collapsed", "factorized", {"mu_OV": 0.2})
    before = {name: value.detach().clone() for name, value in net.named_parameters()}
    run = net.gradient_flow(RATES, times=1, update=update)
    last = 1 if update else 0
    for name, value in net.named_parameters():
        assert torch.equal(value.detach(), torch.from_numpy(run.parameters[name][last]))
        assert torch.equal(value.detach(), before[name]) is not update
    steps = net.gradient_descent(RATES, 3, update=update)
    assert net.loss().item() == pytest.approx(steps.loss[3 if update else 0], abs=1e-15)
    assert steps.gradients == 3


def test_runs_restore_the_number_of_threads() -> None:
    before = torch.get_num_threads()
    net = MatrixModel(TASKS["shared"])
    net.gradient_flow(RATES, times=1)
    with pytest.raises(GradlineError):
        net.gradient_flow(RATES, until_loss=1e-3, max_steps=1)
    assert torch.get_num_threads() == before


def test_same_input_same_output() -> None:
    one, other = (random_start(MatrixModel(TASKS["shared"])).gradient_flow(RATES, until_loss=0.1) for _ in range(2))
    assert one.t.tobytes() == other.t.tobytes()
    assert one.W_QK.tobytes() == other.W_QK.tobytes()


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ({"eta_OV": 1}, "rates has no eta_QK"),
        ({"eta_OV": 1, "eta_QK": 1, "eta_KQ": 1}, "unknown name 'eta_KQ' in rates: .*did you mean 'eta_QK'"),
        ({"eta_OV": -1, "eta_QK": 1}, "eta_OV=-1: expected a finite number above 0"),
        ({"eta_OV": 1, "eta_QK": 0}, "eta_QK=0: expected a finite number above 0"),
        ({"eta_OV": math.nan, "eta_QK": 1}, "eta_OV=nan"),
        ({"eta_OV": 1, "eta_QK": math.inf}, "eta_QK=inf"),
    ],
)
def test_bad_rates(rates: dict[str, float], message: str) -> None:
    net = MatrixModel(TASKS["shared"])
    with pytest.raises(ValueError, match=message):
        net.gradient_flow(rates, times=1)
    with pytest.raises(ValueError, match=message):
        net.gradient_descent(rates, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of times and until_loss"),
        ({"times": 1, "until_loss": 0.1}, "exactly one of times and until_loss"),
        ({"times": -1}, "times=-1: expected an end time above 0"),
        ({"times": [0, 2, 1]}, "finite increasing times"),
        ({"times": [0, math.nan]}, "finite increasing times"),
        ({"times": []}, "finite increasing times"),
        ({"until_loss": 2}, "until_loss=2.0: expected a target below the initial loss 1.09861"),
        ({"until_loss": 0}, "until_loss=0: expected a finite number above 0"),
        ({"times": 1, "rtol": 0}, "rtol=0"),
    ],
)
def test_bad_flow_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MatrixModel(TASKS["shared"]).gradient_flow(RATES, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps=0"),
        ({"steps": 1.5}, r"steps=1\.5"),
        ({"step_size": -1}, "step_size=-1"),
        ({"momentum": 1}, r"momentum=1: expected a number in \[0, 1\)"),
        ({"nesterov": True}, "above 0 with nesterov"),
        ({"weight_decay": -0.1}, r"weight_decay=-0\.1"),
    ],
)
def test_bad_descent_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MatrixModel(TASKS["shared"]).gradient_descent(RATES, **{"steps": 2, **options})


def test_limits_are_named() -> None:
    net = MatrixModel(TASKS["shared"])
    with pytest.raises(GradlineError, match=r"3 steps end at t=.* with loss .*raise max_steps"):
        net.gradient_flow(RATES, until_loss=1e-3, max_steps=3)
    with pytest.raises(GradlineError, match=r"step [0-9]+ is not finite"):
        net.gradient_descent(RATES, 1000, 1e200, weight_decay=1e10)
