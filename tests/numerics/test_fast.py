"""The generated integrator: agreement with SciPy, its own error estimate, events, batches, what it leaves to SciPy.

Two integrators are compiled (10 s each, then kept in the cache folder), which hold all charts between them. Both
paths promise an error of ``AGREEMENT * rtol`` = 1e-8; comparisons use that bound.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import oo

from numerics.conditions import AGREEMENT
from numerics.fast import plan as plans
from numerics.fast import runs as fast_runs
from numerics.fast.arrays import evaluate
from numerics.fast.engine import integrate, load
from numerics.fast.source import generate
from numerics.integrate import TimeLimitError, simulate
from numerics.ir import lower
from numerics.solver import Solution
from numerics.trajectory import Trajectory, TrajectoryBatch
from theory import AttentionModel, TokenTask, derive
from theory.errors import GradlineError
from theory.symbols import c_OV, gamma

pytest.importorskip("numba", reason="the generated integrator needs Numba")

SMALL = TokenTask(classes=3, block=2, queries=2, noise=oo, informative_slots=2, noise_slots=1)
RATES = {"eta_OV": 1, "eta_QK": 2}
MIXED: dict[str, Any] = {"qk": "factorized", "ov": "factorized"}
BOUND = AGREEMENT * 1e-10


def run_of(model: Any, *args: Any, **options: Any) -> Trajectory:
    run = simulate(model, *args, **options)
    assert isinstance(run, Trajectory)
    return run


def both(model: AttentionModel, rates: Any, start: Any = None, **options: Any) -> tuple[Trajectory, Trajectory]:
    fast, slow = (run_of(model, rates, start, fast=way, **options) for way in (True, False))
    assert not isinstance(fast.solution, Solution)
    assert isinstance(slow.solution, Solution)
    return fast, slow


def differs(fast: Trajectory, slow: Trajectory) -> float:
    """Largest deviation of states at common times and of the ends."""
    times = np.concatenate([np.linspace(0, 1, 20) ** 8, np.linspace(0, 1, 20)]) * min(fast.end.t, slow.end.t)
    one, other = fast(times), slow(times)
    ends = [abs(getattr(fast.end, n) - getattr(slow.end, n)) for n in ("mu_OV", "mu_QK", "attention")]
    late = abs(fast.end.t - slow.end.t) / (slow.end.t + slow.solution.unit)
    return float(max(np.max(np.abs(one - other) / (1 + np.abs(other))), *ends, late))


CASES = [
    (AttentionModel(SMALL), (0, 0), {"until_loss": 1e-4}),
    (AttentionModel(SMALL), (-1.5, 0.5), {"until_loss": 1e-3}),
    (AttentionModel(SMALL), (3, -4), {"until_time": 1e3}),
    (AttentionModel(SMALL), (0, 0), {"until_loss": 1e-3, "until_time": 1e6}),
    (AttentionModel(SMALL), (0, 0), {"until_time": 1e12, "time": "log"}),
    (AttentionModel(TokenTask(3, 2, 2, 4, 2, 1, "per_class", 3)), (0.2, -0.1), {"until_loss": 1e-3}),
    (AttentionModel(SMALL, imbalance_ov=2, **MIXED), (-0.5, 0.3), {"until_loss": 1e-3}),
    (AttentionModel(SMALL, imbalance_ov=sympy.Rational(-1, 10**8), **MIXED), (-1, -0.2), {"until_loss": 1e-2}),
    (AttentionModel(SMALL, imbalance_ov=2, **MIXED), (0, 1e-6), {"until_time": 50, "time": "tau"}),
]


@pytest.mark.parametrize(("model", "start", "end"), CASES)
def test_both_integrators_agree(model: AttentionModel, start: tuple[float, float], end: dict[str, Any]) -> None:
    fast, slow = both(model, RATES, dict(zip(("mu_OV", "mu_QK"), start, strict=True)), **end)
    assert differs(fast, slow) < 2 * BOUND  # either may be off by BOUND
    assert fast.error_estimate < BOUND
    assert fast.steps < slow.steps
    wrong = run_of(model, {**RATES, "eta_QK": 2.02}, slow.start, fast=False, **end)
    assert differs(fast, wrong) > 2 * BOUND


def test_the_printed_digits() -> None:
    rows = json.loads((Path(__file__).parents[1] / "data" / "published.json").read_text())["fig4"]["rows"]
    task = TokenTask(classes=20, block=50, queries=50, noise=oo, informative_slots=5, noise_slots=50)
    rates = {"eta_OV": 1, "eta_QK": [row["ratio"] for row in rows]}
    batch = simulate(AttentionModel(task), rates, until_loss=1e-4, fast=True)
    assert isinstance(batch, TrajectoryBatch)
    for row, run in zip(rows, batch, strict=True):
        for point, shown in ((run.end, row["end"]), (run.at(run.end.t / 2), row["halfway"])):
            for name, text in shown.items():
                digits = len(text.split("e", 1)[0].partition(".")[2])
                assert f"{getattr(point, name):.{digits}{'e' if 'e' in text else 'f'}}" == text, name


@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-9])
def test_the_error_estimate_bounds_the_error(rtol: float) -> None:
    best = run_of(AttentionModel(SMALL), RATES, until_loss=1e-4, fast=True, rtol=1e-11)
    run = run_of(AttentionModel(SMALL), RATES, until_loss=1e-4, fast=True, rtol=rtol)
    assert differs(run, best) < run.error_estimate < AGREEMENT * rtol
    assert run.steps < best.steps


def test_integrations_that_disagree_go_to_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin of the error estimate: with steps as rough as can be both attempts are refused."""
    model, rates = AttentionModel(SMALL), {"eta_OV": 1, "eta_QK": 1000}
    good = run_of(model, rates, until_loss=1e-4, fast=True)
    monkeypatch.setattr(fast_runs, "_TOLERANCES", (1e12, 1e10))
    run = run_of(model, rates, until_loss=1e-4, fast=True)
    assert isinstance(run.solution, Solution)
    assert differs(run, good) < 2 * BOUND
    monkeypatch.setattr(fast_runs, "_TOLERANCES", (1e12, 0.003))
    assert run_of(model, rates, until_loss=1e-4, fast=True).steps == good.steps


def test_events_meet_their_target() -> None:
    model = AttentionModel(SMALL)
    for target in (1.09, 0.5, 1e-3, 1e-100, math.log(3) * (1 - 1e-12)):
        run = run_of(model, RATES, until_loss=target, fast=True)
        assert not isinstance(run.solution, Solution)
        assert math.isclose(run.end.loss, target, rel_tol=1e-13)
        again = run.solution.fields(run.end.mu_OV, run.end.mu_QK)[2]
        assert math.isclose(again, target, rel_tol=1e-12)
        assert math.isclose(run.loss[-1], target, rel_tol=1e-12)
        assert np.all(np.diff(run.loss) <= 0)
    assert run_of(model, RATES, until_time=123.0, fast=True).end.t == 123.0
    with pytest.raises(TimeLimitError, match=r"the time limit t=10 comes before the loss 0.001"):
        simulate(model, RATES, until_loss=1e-3, until_time=10, fast=True)
    with pytest.raises(ValueError, match=r"until_loss=2.0: expected a loss below the initial one"):
        simulate(model, RATES, until_loss=2.0, fast=True)


def test_dense_output_lies_on_the_curve() -> None:
    """States at a time are those of a run that ends there."""
    model = AttentionModel(SMALL)
    run = run_of(model, RATES, until_time=1e4, fast=True)
    for t in (1e-3, 1.0, 123.0, 5e3):
        end = run_of(model, RATES, until_time=t, fast=True).end
        assert np.allclose(run(t), [end.mu_OV, end.mu_QK], rtol=0, atol=1e-11)  # steps at 3e-13, a few of them
    point = run.at_loss(1e-2)
    assert math.isclose(point.loss, 1e-2, rel_tol=1e-11)
    grid = run_of(model, RATES, until_time=1e4, fast=True, times=[0, 1, 123.0])
    assert np.array_equal(grid.mu_OV, run(np.array([0, 1, 123.0]))[0])
    with pytest.raises(ValueError, match=r"times: 2 \(in t\) lies beyond the end of the run, t=1"):
        simulate(model, RATES, until_time=1, times=[0, 2], fast=True)


def test_a_batch_on_all_cores_is_each_run_alone() -> None:
    random = np.random.default_rng(1)
    rates, starts = 10 ** random.uniform(-2, 2, 300), np.abs(random.normal(size=300))
    seen: list[float] = []
    batch = simulate(
        AttentionModel(SMALL), {"eta_OV": 1, "eta_QK": rates}, {"mu_OV": starts}, until_loss=1e-3, fast=True,
        progress=lambda done, total: seen.append(done / total),
    )  # fmt: skip
    assert isinstance(batch, TrajectoryBatch)
    assert batch.shape == (300,) == batch.end.t.shape
    assert np.allclose(batch.end.loss, 1e-3, rtol=1e-12, atol=0)
    assert seen == sorted(seen)
    assert seen[-1] == 1
    for i in (0, 7, 131, 299):
        alone = run_of(
            AttentionModel(SMALL), {"eta_OV": 1, "eta_QK": rates[i]}, {"mu_OV": starts[i]}, until_loss=1e-3, fast=True
        )
        assert batch[i].end == alone.end
        assert batch.end.mu_QK[i] == alone.end.mu_QK
        assert np.array_equal(batch[i].mu_QK, alone.mu_QK)
    assert len(batch[3:5]) == 2


def test_a_flow_that_was_changed_goes_to_scipy() -> None:
    flow = derive(AttentionModel(SMALL))
    assert not isinstance(run_of(flow, RATES, until_loss=0.1, fast=True).solution, Solution)
    velocity = type(flow.velocity)({s: 2 * v for s, v in flow.velocity.items()})
    run = run_of(replace(flow, velocity=velocity), RATES, until_loss=0.1, fast=True)
    assert isinstance(run.solution, Solution)
    assert math.isclose(2 * run.end.t, run_of(flow, RATES, until_loss=0.1, fast=True).end.t, rel_tol=BOUND)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eta_QK": [1, -1]}, r"eta_QK=-1: expected a finite number above 0"),
        ({"eta_QK": [1, math.nan]}, r"eta_QK=nan"),
        ({"M": [3, 2.5]}, r"M=2.5: expected an integer of at least 2"),
        ({"b": 0}, r"b=0: expected an integer of at least 1"),
        ({"eta_VO": 1}, r"unknown name 'eta_VO' in parameters"),
        ({"K": [1, 2], "m": [1, 2, 3]}, r"shapes that do not broadcast together: "),
    ],
)
def test_wrong_input_gets_the_same_words(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"M": 20, "b": 50, "K": 50, "m": 5, "n": 50, "eta_OV": 1, "eta_QK": 2}
    for way in (True, False):
        with pytest.raises(ValueError, match=message):
            simulate(AttentionModel(TokenTask(noise=oo)), {**good, **change}, until_loss=0.1, fast=way)


def test_where_the_fast_path_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    model = AttentionModel(SMALL)
    monkeypatch.setenv("GRADLINE_FAST", "0")
    assert isinstance(run_of(model, RATES, until_loss=0.1).solution, Solution)
    monkeypatch.delenv("GRADLINE_FAST")
    assert not isinstance(run_of(model, RATES, until_loss=0.1).solution, Solution)
    assert isinstance(run_of(model, RATES, until_loss=0.1, method="LSODA").solution, Solution)
    with pytest.raises(ValueError, match=r"fast=True with method='LSODA'"):
        simulate(model, RATES, until_loss=0.1, method="LSODA", fast=True)
    with pytest.raises(TypeError, match=r"fast=1: expected True, False or None"):
        simulate(model, RATES, until_loss=0.1, fast=1)  # type: ignore[arg-type]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert isinstance(run_of(model, RATES, until_loss=0.1).solution, Solution)
    with pytest.raises(GradlineError, match=r"fast=True needs Numba.*gradline\[fast\]"):
        simulate(model, RATES, until_loss=0.1, fast=True)


def test_plans_survive_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kind = plans.kind_of(AttentionModel(SMALL))
    first = plans.plan_of.__wrapped__(kind)
    monkeypatch.setattr(plans, "_make", lambda kind: pytest.fail("made twice"))
    assert plans.plan_of.__wrapped__(kind) == first
    model = AttentionModel(TokenTask(noise=oo, score_scale=gamma), ov="factorized", imbalance_ov=c_OV)
    assert plans.known_parameters(model) == derive(model).parameters == plans.known_parameters(model)
    own = sympy.Symbol("B", integer=True, positive=True)
    other = AttentionModel(TokenTask(noise=oo, block=own))
    assert plans.known_parameters(other) == derive(other).parameters
    assert len(list(tmp_path.rglob("*.json"))) == 2


def test_the_source_is_the_same_twice() -> None:
    flow = derive(plans.general_model(plans.kind_of(AttentionModel(SMALL))))
    assert generate(flow, ("collapsed", "collapsed")) == generate(flow, ("collapsed", "collapsed"))


def plain(source: str) -> dict[str, Any]:
    """The functions of an integrator as plain Python."""
    start = "@fused\ndef _shifted_exp"
    body = start + source.split(start, 1)[1].split("@compiled", 1)[0]
    space: dict[str, Any] = {
        "np": np,
        "math": math,
        "fused": lambda f: f,
        "inlined": lambda f: f,
        "LANES": 8,
        "COUNT": 2,
    }
    exec(body, space)
    return space


def test_exponential_and_logarithm() -> None:
    flow = derive(plans.general_model(plans.kind_of(AttentionModel(SMALL))))
    space = plain(generate(flow, ("collapsed", "collapsed")).source)
    for x in [*np.linspace(-707, 708.9, 2001), *np.linspace(-1, 1, 501), 0.0]:
        # two units in the last place: the function has one, as plain Python too, and that of math one half
        assert abs(space["_exp"](float(x)) / math.exp(x) - 1) < 5e-16, x
    with np.errstate(all="ignore"):
        far = [space["_exp"](x) for x in (-800.0, -math.inf, 800.0, math.inf)]
    assert far == [0, 0, math.inf, math.inf]
    assert math.isnan(space["_exp"](math.nan))
    for x in [*np.linspace(0, 1, 501), 1e-300, 1e-9]:
        assert math.isclose(space["_unit_log1p"](float(x)), math.log1p(x), rel_tol=5e-16), x


def test_programs_on_arrays() -> None:
    x = sympy.Symbol("x", positive=True)
    expressions = [sympy.sqrt(x), 1 / (1 + x), sympy.log(x) - 3, abs(x), sympy.exp(-x), x ** sympy.Rational(1, 3)]
    got = evaluate(lower(expressions, [x]), {"x": np.array([0.5, 2.0])})
    for value, expr in zip(got, expressions, strict=True):
        assert np.allclose(value, [float(expr.xreplace({x: sympy.Float(v, 20)})) for v in (0.5, 2)], rtol=1e-15)


def test_runs_that_need_too_many_steps_are_not_done() -> None:
    plan = plans.plan_of(plans.kind_of(AttentionModel(SMALL)))
    values = {"M": 3.0, "b": 2.0, "K": 2.0, "m": 2.0, "n": 1.0, "gamma": 1.0, "eta_OV": 1.0, "eta_QK": 2.0}
    given, _ = plan.given(values, (1.0, 1.0), 1)
    settings, module = np.array([[0, 0, 1e-4, np.inf, 3e-13, 3e-13]]), load(plan.source)
    assert integrate(module, settings, given, 500).status[0] == module.DONE
    assert integrate(module, settings, given, 5).status[0] == module.FAILED
    settings[0, 2] = 2.0
    assert integrate(module, settings, given, 500).status[0] == module.FAILED  # the target lies behind
