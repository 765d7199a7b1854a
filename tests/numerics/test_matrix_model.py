"""The full matrix model: loss, gradients, directions, starts, input checks."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sympy import Rational, oo

from numerics.explicit_line import direction_rank, factors
from numerics.matrix_model import MatrixModel
from numerics.population import Batch
from theory import symbols
from theory.errors import GradlineError
from theory.task import TokenTask

KINDS = ("collapsed", "factorized")
TASKS = {
    "shared": TokenTask(3, 2, 2, 2, 2, 1, "shared"),
    "per_class": TokenTask(3, 2, 2, 2, 2, 1, "per_class"),
    "shared_oo": TokenTask(2, 2, 3, oo, 1, 2, "shared", Rational(1, 2)),
    "per_class_oo": TokenTask(2, 2, 3, oo, 2, 2, "per_class", Rational(3, 2)),
}
task_names = pytest.mark.parametrize("name", list(TASKS))
# Sums of at most a few hundred rounded terms of size 1.
ROUNDING = 1e-14


def off_line(net: MatrixModel, seed: int = 0, scale: float = 1.0) -> MatrixModel:
    """Give every trained entry a random value."""
    rng = np.random.default_rng(seed)
    new = {}
    for name, value in net.named_parameters():
        entries = scale * rng.standard_normal(tuple(value.shape))
        if net.sizes.zero_noise and not name.startswith("U"):
            entries[(-1,) if name.startswith("V") else (slice(None), -1)] = 0
        new[name] = entries
    net.set_matrices(**new)
    return net


def build(name: str, qk: str = "collapsed", ov: str = "collapsed", **options: Any) -> MatrixModel:
    return MatrixModel(TASKS[name], qk, ov, {"mu_OV": 0.3, "mu_QK": -0.2}, **options)


def every_sequence(net: MatrixModel) -> Batch:
    """All ordered sequences of a tiny task: equally likely."""
    s, rows = net.sizes, []
    noise = range(s.informative_tokens, s.tokens)
    for y in range(s.classes):
        own = range(y * s.block, (y + 1) * s.block)
        for q in s.queries_of(y):
            for head in itertools.product(own, repeat=s.informative_slots):
                for tail in itertools.product(noise, repeat=s.noise_slots):
                    rows.append((q, head + tail, y))
    queries, tokens, labels = zip(*rows, strict=True)
    return Batch(torch.tensor(queries), torch.tensor(tokens), torch.tensor(labels))


@task_names
def test_population_loss_is_the_mean_over_all_sequences(name: str) -> None:
    net = off_line(build(name))
    batch = every_sequence(net)
    assert abs(net.loss().item() - net.loss(batch).item()) < ROUNDING
    assert abs(net.attention().item() - net.attention(batch).item()) < ROUNDING


def test_twin_part_of_the_sequences_has_another_loss() -> None:
    net = off_line(build("shared"))
    batch = every_sequence(net)
    part = Batch(batch.queries[1:], batch.tokens[1:], batch.labels[1:])
    assert abs(net.loss().item() - net.loss(part).item()) > 1e-4


@task_names
@pytest.mark.parametrize(("v", "q"), [(0.0, 0.0), (0.7, 1.3), (-0.4, -2.0)])
def test_loss_and_attention_on_the_line(name: str, v: float, q: float) -> None:
    net = MatrixModel(TASKS[name], start={"mu_OV": v, "mu_QK": q})
    s = net.sizes
    weight = s.informative_slots * math.exp(s.score_scale * q)
    alpha = weight / (weight + s.noise_slots)
    assert abs(net.attention().item() - alpha) < ROUNDING
    loss = math.log1p((s.classes - 1) * math.exp(-alpha * v))
    assert abs(net.loss().item() - loss) < ROUNDING
    if v and q:
        wrong = math.log1p((s.classes - 1) * math.exp(-v))
        assert abs(net.loss().item() - wrong) > 1e-3


@task_names
def test_sampled_loss_agrees_with_the_population(name: str) -> None:
    net = off_line(build(name))
    batch = net.sample(20_000, torch.Generator().manual_seed(3))
    with torch.no_grad():
        each = torch.nn.functional.cross_entropy(net(batch)[0], batch.labels, reduction="none")
    error = each.std().item() / math.sqrt(len(each))
    # 5 standard errors of the mean; the seed is fixed.
    assert abs(each.mean().item() - net.loss().item()) < 5 * error
    other = off_line(build(name), seed=1)
    assert abs(each.mean().item() - other.loss().item()) > 5 * error


def difference_quotients(net: MatrixModel, name: str, step: float) -> np.ndarray:
    value = dict(net.named_parameters())[name].detach().clone().numpy()
    found = np.zeros_like(value)
    for index in np.ndindex(value.shape):
        losses = []
        for sign in (1, -1):
            moved = value.copy()
            moved[index] += sign * step
            # a frozen entry cannot be moved, and counts as 0
            try:
                net.set_matrices(**{name: moved})
            except ValueError:
                break
            losses.append(net.loss().item())
        else:
            found[index] = (losses[0] - losses[1]) / (2 * step)
    net.set_matrices(**{name: value})
    return found


@task_names
@pytest.mark.parametrize("qk", KINDS)
@pytest.mark.parametrize("ov", KINDS)
def test_autograd_agrees_with_finite_differences(name: str, qk: str, ov: str) -> None:
    net = off_line(build(name, qk, ov))
    net.loss().backward()
    for parameter, value in list(net.named_parameters()):
        found = difference_quotients(net, parameter, 1e-5)
        # Central differences: h^2/6 times a third derivative of order 10, plus rounding 1e-16/h: below 1e-9.
        assert value.grad is not None
        assert np.abs(found - value.grad.numpy()).max() < 1e-9
        assert np.abs(found - 2 * value.grad.numpy()).max() > 1e-4


@task_names
def test_gradients_are_those_of_the_effective_matrices(name: str) -> None:
    net = off_line(build(name, "factorized", "factorized"))
    net.loss().backward()
    G, parameters = net.gradients(), dict(net.named_parameters())
    for circuit in ("OV", "QK"):
        U, V = (parameters[f"{letter}_{circuit}"] for letter in "UV")
        dU, dV = U.grad, V.grad
        assert dU is not None
        assert dV is not None
        assert np.abs(G[f"W_{circuit}"] @ V.detach().numpy() - dU.numpy()).max() < ROUNDING
        assert np.abs(G[f"W_{circuit}"].T @ U.detach().numpy() - dV.numpy()).max() < ROUNDING
    assert net.W_OV.shape == G["W_OV"].shape
    assert net.W_QK.shape == G["W_QK"].shape


@pytest.mark.parametrize("scale", [1e3, -1e3, 1e5])
def test_extreme_scores_stay_finite(scale: float) -> None:
    net = MatrixModel(TASKS["shared"], start={"mu_OV": 1e4, "mu_QK": scale})
    assert math.isfinite(net.loss().item())
    assert all(np.isfinite(G).all() for G in net.gradients().values())
    # Attention e^(+-1000): the loss is that of full or no attention up to rounding.
    assert net.loss().item() == pytest.approx(0.0 if scale > 0 else math.log(3), abs=ROUNDING)


def test_zero_noise_is_one_frozen_zero_column() -> None:
    net = off_line(build("shared_oo"))
    assert net.W_OV.shape == (2, 5)
    assert all((G[:, -1] == 0).all() for G in net.gradients().values())
    net.loss().backward()
    for value in net.parameters():
        assert value.grad is not None
        assert (value.grad[:, -1] == 0).all()
    finite = off_line(build("shared"))
    assert all((G[:, -1] != 0).any() for G in finite.gradients().values())


@task_names
def test_directions_match_the_closed_forms(name: str) -> None:
    net = build(name)
    s, E = net.sizes, net.directions()
    M, b, K, N = s.classes, s.block, s.queries, s.noise_tokens
    seen = b if s.per_class else M * b
    norm2 = K * M * b * (1 if s.zero_noise else N / (seen + N))
    assert np.vdot(E.E_OV, E.E_OV) == pytest.approx((M - 1) * b, abs=ROUNDING)
    assert np.vdot(E.E_QK, E.E_QK) == pytest.approx(norm2, abs=ROUNDING)
    assert direction_rank(E.E_OV) == M - 1
    assert direction_rank(E.E_QK) == (M if s.per_class else 1)
    values = np.linalg.svd(E.E_QK, compute_uv=False)[: M if s.per_class else 1]
    if s.per_class and not s.zero_noise:
        wanted = [math.sqrt(K * b * N * (N + M * b)) / (b + N)] + (M - 1) * [math.sqrt(K * b) * N / (b + N)]
    else:
        wanted = [math.sqrt(K * b)] * M if s.per_class else [math.sqrt(norm2)]
    assert np.abs(values - wanted).max() < ROUNDING


@task_names
@pytest.mark.parametrize(("c_qk", "c_ov"), [(0.0, 0.0), (0.8, -1.1), (-0.3, 2.0)])
def test_factorized_start_is_on_the_line_with_the_imbalance(name: str, c_qk: float, c_ov: float) -> None:
    plain = build(name, "factorized", "factorized")
    widths = {f"width_{c.lower()}": dict(plain.named_parameters())[f"U_{c}"].shape[1] + 2 for c in ("OV", "QK")}
    net = build(name, "factorized", "factorized", imbalance_qk=c_qk, imbalance_ov=c_ov, **widths)
    assert net.coordinates()["mu_OV"] == pytest.approx(0.3, abs=ROUNDING)
    assert net.coordinates()["mu_QK"] == pytest.approx(-0.2, abs=ROUNDING)
    distance = net.distance_to_line()
    assert max(distance.OV, distance.QK, distance.relative_OV, distance.relative_QK) < ROUNDING
    parameters = {key: value.detach().numpy() for key, value in net.named_parameters()}
    for circuit, c in (("OV", c_ov), ("QK", c_qk)):
        U, V = parameters[f"U_{circuit}"], parameters[f"V_{circuit}"]
        rank = U.shape[1] - 2
        spectrum = np.linalg.eigvalsh(U.T @ U - V.T @ V)
        assert np.abs(spectrum - sorted([c] * rank + [0.0, 0.0])).max() < ROUNDING
        # the gauge leaves no column empty
        assert (np.abs(U).max(axis=0) > 1e-3).all()


def test_the_seed_changes_the_gauge_and_nothing_else() -> None:
    one, same, other = (build("shared", "factorized", "factorized", width_qk=3, seed=s) for s in (0, 0, 1))
    assert torch.equal(one.U_QK, same.U_QK)
    assert (one.U_QK - other.U_QK).abs().max() > 0.01
    assert (one.W_QK - other.W_QK).abs().max() < ROUNDING
    assert abs((one.loss() - other.loss()).item()) < ROUNDING


def test_factors_of_zero_are_zero_when_balanced() -> None:
    U, V = factors(np.eye(3), 0.0, 0.0, 3, seed=0)
    assert not U.any()
    assert not V.any()


def test_distance_to_line_measures_what_is_off() -> None:
    net = build("shared")
    W = net.W_QK.detach().clone()
    # orthogonal to the direction: a change of one query compensated by another
    W[0, 0] += 0.25
    W[1, 0] -= 0.25
    net.set_matrices(W_QK=W)
    distance = net.distance_to_line()
    assert net.coordinates()["mu_QK"] == pytest.approx(-0.2, abs=ROUNDING)
    assert pytest.approx(0.25, abs=ROUNDING) == distance.QK
    assert distance.relative_QK == pytest.approx(math.sqrt(0.125) / W.norm().item(), abs=ROUNDING)
    assert distance.OV < ROUNDING
    assert MatrixModel(TASKS["shared"]).distance_to_line().relative_OV == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"qk": "colapsed"}, "qk='colapsed': expected one of .*did you mean 'collapsed'"),
        ({"ov": None}, "ov=None: expected one of"),
        ({"start": {"mu_VO": 1}}, "unknown name 'mu_VO' in start: .*did you mean 'mu_OV'"),
        ({"start": {"mu_OV": math.nan}}, "mu_OV=nan: expected a finite number"),
        ({"ov": "factorized"}, "start has no mu_OV"),
        ({"qk": "factorized", "start": {"mu_QK": 0}}, "mu_QK=0 is stationary"),
        ({"imbalance_ov": 1}, "imbalance_ov=1: the OV circuit is collapsed"),
        ({"width_qk": 3}, "width_qk=3: the QK circuit is collapsed"),
        ({"ov": "factorized", "imbalance_ov": math.inf}, "imbalance_ov=inf"),
        ({"ov": "factorized", "imbalance_ov": symbols.c_OV}, "imbalance_ov=c_OV.*not a symbol"),
        ({"ov": "factorized", "start": {"mu_OV": 1}, "width_ov": 1}, "width_ov=1: .*at least 2, the rank"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        MatrixModel(TASKS["per_class"], **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "rank"), [("shared", 1), ("per_class_oo", 2), ("per_class", 3)])
def test_width_below_the_rank_of_query_key(name: str, rank: int) -> None:
    with pytest.raises(ValueError, match=f"width_qk={rank - 1}: .*at least {rank}, the rank of E_QK"):
        build(name, "factorized", width_qk=rank - 1)
    assert build(name, "factorized", width_qk=rank).U_QK.shape[1] == rank


def test_imbalanced_circuits_start_at_zero() -> None:
    net = MatrixModel(TASKS["shared"], "factorized", "factorized", imbalance_qk=1, imbalance_ov=-1)
    assert net.coordinates() == {"mu_OV": 0, "mu_QK": 0}


@pytest.mark.parametrize("start", [3, {"mu_OV": "1"}, {"mu_OV": True}, {"mu_OV": [1]}])
def test_start_of_a_wrong_type(start: Any) -> None:
    with pytest.raises(TypeError, match="expected a"):
        MatrixModel(TASKS["shared"], start=start)


@pytest.mark.parametrize(("field", "letter"), [("classes", "M"), ("noise", "N"), ("noise_slots", "n")])
def test_symbolic_sizes_are_named(field: str, letter: str) -> None:
    sizes = {name: size for name, size in SIZES.items() if name != field}
    with pytest.raises(ValueError, match=f"{field}={letter}: the matrix model needs a concrete size"):
        MatrixModel(TokenTask(**sizes))
    with pytest.raises(ValueError, match="score_scale=gamma"):
        MatrixModel(TokenTask(2, 1, 1, 1, 1, 1, score_scale=symbols.gamma))


SIZES = {"classes": 2, "block": 1, "queries": 1, "noise": 1, "informative_slots": 1, "noise_slots": 1}


def test_any_object_with_sizes_is_a_task() -> None:
    plain = SimpleNamespace(**SIZES, query_kind="shared", score_scale=0.5)
    assert MatrixModel(plain).loss().item() == MatrixModel(TokenTask(**SIZES)).loss().item()
    for field, value, message in (
        ("block", 1.5, "block=1.5: expected an integer of at least 1"),
        ("classes", 1, "classes=1: expected an integer of at least 2"),
        ("query_kind", "per-class", "did you mean 'per_class'"),
        ("score_scale", -1, "score_scale=-1: expected a finite number above 0"),
    ):
        wrong = SimpleNamespace(**{**vars(plain), field: value})
        with pytest.raises(ValueError, match=message):
            MatrixModel(wrong)


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        (
            {"U_OV": np.zeros((2, 5))},
            "unknown name 'U_OV' in set_matrices: expected W_OV, W_QK; did you mean",
        ),
        ({"W_OV": np.zeros((2, 4))}, r"W_OV has shape \(2, 4\): expected \(2, 5\)"),
        ({"W_OV": np.full((2, 5), math.nan)}, "W_OV has an entry that is not finite"),
        ({"W_QK": np.zeros((3, 5)), "W_OV": np.ones((2, 5))}, "W_OV is not 0 on the noise token"),
    ],
)
def test_bad_matrices_change_nothing(matrices: dict[str, Any], message: str) -> None:
    net = build("shared_oo")
    before = net.W_QK.detach().clone()
    with pytest.raises(ValueError, match=message):
        net.set_matrices(**matrices)
    assert torch.equal(net.W_QK, before)


def test_a_large_task_trains_on_samples_only() -> None:
    net = MatrixModel(TokenTask(20, 50, 50, oo, 5, 50), start={"mu_OV": 0.5})
    with pytest.raises(GradlineError, match="above the limit"):
        net.loss()
    batch = net.sample(64, torch.Generator().manual_seed(0))
    # Zero scores: attention m/(m + n) in every sequence, so the sampled loss is the exact one.
    exact = math.log1p(19 * math.exp(-0.5 * 5 / 55))
    assert net.loss(batch).item() == pytest.approx(exact, abs=ROUNDING)
    assert net.attention(batch).item() == pytest.approx(5 / 55, abs=ROUNDING)
