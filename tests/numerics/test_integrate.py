"""Simulation: published values, independent integrations, events, time variables, batches, input errors.

Tolerances: ``rtol`` is 1e-10 and a trajectory promises an error of ``AGREEMENT * rtol`` = 1e-8 relative to ``1 +
|mu|``; the run returned is made with steps at 3e-13, so that comparisons with independent solutions use 1e-9 unless
they say otherwise.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy
from sympy import oo

from numerics import scipy_runs, solver
from numerics.charts import Chart
from numerics.integrate import AGREEMENT, IntegrationError, TimeLimitError, simulate
from numerics.kernels import compile_kernel
from numerics.scalar import scalar_function
from numerics.trajectory import Trajectory, TrajectoryBatch
from theory import AttentionModel, TokenTask, derive, first_integral
from theory.symbols import eta_OV, mu_OV

PUBLISHED = json.loads((Path(__file__).parents[1] / "data" / "published.json").read_text())["fig4"]
SMALL = TokenTask(classes=3, block=2, queries=2, noise=oo, informative_slots=2, noise_slots=1)
RATES = {"eta_OV": 1, "eta_QK": 2}
BOUND = 1e-9  # see above


@lru_cache
def flow_of(qk: str = "collapsed", ov: str = "collapsed", **imbalance: Any) -> Any:
    return derive(AttentionModel(SMALL, qk=qk, ov=ov, **imbalance))  # type: ignore[arg-type]


def sized(flow: Any = None) -> Any:
    """The collapsed flow with every size a parameter."""
    return derive(AttentionModel(TokenTask(noise=oo)))


SIZES = {"M": 20, "b": 50, "K": 50, "m": 5, "n": 50}


@lru_cache
def published(ratio: float) -> Trajectory:
    run = simulate(sized(), {**SIZES, "eta_OV": 1, "eta_QK": ratio}, until_loss=1e-4)
    assert isinstance(run, Trajectory)
    return run


def close(a: Any, b: Any, bound: float = BOUND) -> bool:
    return bool(np.all(np.abs(np.subtract(a, b)) <= bound * (1 + np.abs(b))))


def printed(value: float, text: str) -> str:
    """A value in the format of a printed one: the same number of digits behind the point."""
    digits = len(text.split("e", 1)[0].partition(".")[2])
    return f"{value:.{digits}{'e' if 'e' in text else 'f'}}"


# published values


@pytest.mark.parametrize("row", PUBLISHED["rows"], ids=lambda row: f"ratio-{row['ratio']}")
def test_every_printed_digit(row: dict[str, Any]) -> None:
    run = published(row["ratio"])
    for point, shown in ((run.end, row["end"]), (run.at(run.end.t / 2), row["halfway"])):
        for name, text in shown.items():
            assert printed(getattr(point, name), text) == text, name


def test_a_wrong_rate_changes_printed_digits() -> None:
    row = PUBLISHED["rows"][0]
    run = simulate(sized(), {**SIZES, "eta_OV": 1, "eta_QK": 0.01 * 20 / 19}, until_loss=1e-4)
    wrong = [n for n, text in row["end"].items() if printed(getattr(run.end, n), text) != text]
    assert wrong == ["tau", "mu_OV", "mu_QK", "attention"]


@pytest.mark.parametrize("ratio", [0.01, 0.1, 1.0, 10.0, 100.0])
def test_all_ratios_keep_the_first_integral(ratio: float) -> None:
    run = published(ratio)
    assert drift(run, {**SIZES, "eta_OV": 1, "eta_QK": ratio}) < 1e-10  # mu to 3e-13, weighted by d/dmu of both sides


def quadrature(ratio: float) -> tuple[float, float, float]:
    """End of the published run without integration in time, at 20 digits: (mu_OV, mu_QK, t).

    The first integral ``m/n e^q + q = kappa mu^2/2 + m/n`` closes the stopping state; the time is the integral of
    ``dq/(dq/dt)``, smooth in ``sqrt(q)``. Formulas as in the paper, nothing derived here.
    """
    M, b, m, n = 20, 50, 5, 50
    with mpmath.workdps(20):
        r, target = mpmath.mpf(str(ratio)), mpmath.mpf("1e-4")
        kappa = r * (M - 1) / (M * b)

        def attention(q: Any) -> Any:
            return m * mpmath.exp(q) / (m * mpmath.exp(q) + n)

        def output(q: Any) -> Any:
            return mpmath.sqrt(2 * (mpmath.mpf(m) / n * mpmath.expm1(q) + q) / kappa)

        def per_root(s: Any) -> Any:
            q = s * s
            a = attention(q)
            pace = r * (M - 1) * a * (1 - a) / (M * b * b * (mpmath.exp(a * output(q)) + M - 1))
            return 2 * s / (pace * output(q))

        goal = mpmath.log((M - 1) / mpmath.expm1(target))
        q = mpmath.findroot(lambda x: attention(x) * output(x) - goal, (0.05, 12), solver="anderson")
        time = mpmath.quad(per_root, mpmath.linspace(mpmath.mpf("1e-9"), mpmath.sqrt(q), 12))
        first = per_root(mpmath.mpf("1e-9")) * mpmath.mpf("1e-9")  # the integrand is flat near 0
        return float(output(q)), float(q), float(time + first)


@pytest.mark.parametrize("ratio", [0.01, 0.1, 1.0, 10.0, 100.0])
def test_all_ratios_agree_with_quadrature(ratio: float) -> None:
    run, (output, query_key, time) = published(ratio), quadrature(ratio)
    assert close([run.end.mu_OV, run.end.mu_QK], [output, query_key], 1e-12)  # the curve: step errors of 3e-13
    assert math.isclose(run.end.t, time, rel_tol=AGREEMENT * 1e-10)  # the promise; measured 5e-10
    assert not math.isclose(run.end.t, time * (1 + 2e-8), rel_tol=AGREEMENT * 1e-10)


@pytest.mark.parametrize("ratio", [1.0, 10.0, 100.0])
def test_other_ratios_agree_with_another_method(ratio: float) -> None:
    run = published(ratio)
    other = simulate(sized(), {**SIZES, "eta_OV": 1, "eta_QK": ratio}, until_loss=1e-4, method="LSODA", rtol=1e-11)
    assert close(run.end.mu_OV, other.end.mu_OV)
    assert close(run.end.mu_QK, other.end.mu_QK)
    assert math.isclose(run.end.t, other.end.t, rel_tol=AGREEMENT * 1e-10)  # a time has the error of 12 mu


def test_the_origin_of_the_published_flow_by_taylor_series() -> None:
    """An independent solution: mpmath's Taylor method on the velocities, at 20 digits."""
    flow, rates = flow_of(), {"eta_OV": 1, "eta_QK": 2}
    numbers = {s: sympy.Integer(rates[s.name]) for s in flow.parameters}
    velocity = sympy.lambdify(flow.states, [flow.velocity[s].xreplace(numbers) for s in flow.states], "mpmath")
    with mpmath.workdps(20):
        curve = mpmath.odefun(lambda t, y: velocity(*y), 0, [mpmath.mpf(0), mpmath.mpf(0)])
        expected = [float(x) for x in curve(0.5)]
    run = simulate(flow, rates, until_time=20)
    assert close(run(0.5), expected)
    assert not close(run(0.5 + 1e-7), expected)


# first integrals


def drift(run: Trajectory, parameters: dict[str, float], factor: float = 1.0) -> float:
    """Largest change of the first integral along a run, relative to the larger of its two sides."""
    signs = {name: -1 if value < 0 else 1 for name, value in run.start.items()}
    law = first_integral(run.flow, signs)
    values = {s: sympy.Float(parameters[s.name], 20) for s in run.flow.parameters}
    sides = [
        sympy.lambdify(run.flow.states, e.xreplace(values), ["scipy", "numpy"]) for e in (law.y, law.slope * law.x)
    ]
    y, x = (np.broadcast_to(side(run.mu_OV, run.mu_QK), run.t.shape) for side in sides)
    value = y - factor * x
    return float(np.max(np.abs(value - value[0])) / max(1.0, np.abs(y).max(), np.abs(x).max()))


CASES = [
    ("collapsed", "collapsed", {}, (0, 0)),
    ("collapsed", "collapsed", {}, (-1.5, 0.5)),
    ("collapsed", "factorized", {}, (0.1, -0.2)),
    ("collapsed", "factorized", {}, (1e-8, 0)),
    ("factorized", "collapsed", {}, (-0.3, 0.2)),
    ("factorized", "collapsed", {}, (0, -0.4)),
    ("factorized", "factorized", {}, (0.2, 0.1)),
    ("factorized", "factorized", {}, (0.2, -0.1)),
    ("collapsed", "factorized", {"imbalance_ov": 2}, (0, 0)),
    ("collapsed", "factorized", {"imbalance_ov": sympy.Rational(-1, 10**8)}, (-1, 0.2)),
    ("factorized", "factorized", {"imbalance_ov": sympy.Rational(1, 2)}, (-0.5, 0.3)),
]


@pytest.mark.parametrize(("qk", "ov", "imbalance", "start"), CASES)
def test_first_integrals_hold(qk: str, ov: str, imbalance: dict[str, Any], start: tuple[float, float]) -> None:
    begin = dict(zip(("mu_OV", "mu_QK"), start, strict=True))
    run = simulate(flow_of(qk, ov, **imbalance), RATES, begin, until_loss=1e-3)
    assert isinstance(run, Trajectory)
    assert math.isclose(run.end.loss, 1e-3, rel_tol=1e-12)
    assert run.error_estimate <= AGREEMENT * 1e-10
    assert drift(run, RATES) < BOUND
    assert drift(run, RATES, factor=1.01) > 1e-4


def test_an_imbalanced_query_key_circuit_crosses_zero() -> None:
    run = simulate(flow_of(qk="factorized", imbalance_qk=1), RATES, {"mu_OV": 0.5, "mu_QK": -0.3}, until_loss=1e-2)
    assert run.mu_QK[0] == -0.3
    assert run.mu_QK[-1] > 0
    tiny = simulate(flow_of(qk="factorized", imbalance_qk=-1), RATES, {"mu_OV": 0.5, "mu_QK": -0.3}, until_loss=1e-2)
    assert close(run.end.mu_QK, tiny.end.mu_QK)  # the sign of the imbalance does not matter


def test_a_negative_balanced_output_decays_to_zero_without_many_steps() -> None:
    """mu_OV e^(-lambda t): stiff in mu, linear in log|mu|."""
    run = simulate(flow_of(ov="factorized"), RATES, {"mu_OV": -0.5, "mu_QK": 0.3}, until_time=1e12)
    assert run.end.mu_OV == 0
    assert np.all(run.mu_OV[:-1] <= 0)
    assert close(run.end.loss, math.log(3), 1e-15)
    assert run.steps < 1000


# long runs


def test_collapsed_loss_rate_in_log_time() -> None:
    """L ~ (M-1) b/(eta_OV t), with corrections of order 1/log t from above and below: within 10% at 1e30."""
    values = {**SIZES, "eta_OV": 0.5, "eta_QK": 2}
    run = simulate(sized(), values, until_time=1e30, time="log")
    assert run.end.t == 1e30
    assert run.steps < 1000
    assert 0.9 < run.end.loss * 0.5 * 1e30 / (19 * 50) < 1.1
    earlier = run.at(1e15)
    assert 0.9 < earlier.loss * 0.5 * 1e15 / (19 * 50) < 1.1
    assert not 0.9 < earlier.loss * 1e15 / (19 * 50) < 1.1
    decades = np.diff(np.log10(run.t[run.t > 1e6]))
    assert decades.max() < 0.2  # 257 points over 28 decades


@pytest.mark.parametrize("target", [1e-20, 1e-100])
def test_tiny_losses(target: float) -> None:
    run = simulate(flow_of(), RATES, until_loss=target)
    assert math.isclose(run.end.loss, target, rel_tol=1e-12)
    assert run.steps < 1000


def test_time_in_t_and_tau_and_log() -> None:
    values = {**SIZES, "eta_OV": 1, "eta_QK": 0.01}
    plain = simulate(sized(), values, until_time=1e6)
    scaled = simulate(sized(), values, until_time=1e4, time="tau")
    logged = simulate(sized(), values, until_time=1e6, time="log")
    assert plain.end.t == logged.end.t == 1e6
    assert math.isclose(scaled.end.t, 1e6, rel_tol=1e-15)
    assert math.isclose(plain.end.tau, 1e4, rel_tol=1e-15)
    assert np.array_equal(plain.tau, plain.t * 0.01)
    assert close(plain.end.mu_OV, scaled.end.mu_OV)
    assert close(plain.end.mu_OV, logged.end.mu_OV)
    grid = simulate(sized(), values, until_time=1e4, time="tau", times=[0, 50, 5000])
    assert np.allclose(grid.t, [0, 5e3, 5e5], rtol=1e-15, atol=0)
    assert close(grid.mu_QK, plain(grid.t)[1])
    assert len(plain.t) > 400 > len(logged.t) > 200


# events and dense output


def test_the_target_is_met_to_rounding_and_not_before() -> None:
    for target in (1.09, 0.5, 1e-3, 1e-9):
        run = simulate(flow_of(), RATES, until_loss=target)
        assert math.isclose(run.end.loss, target, rel_tol=1e-12)
        assert run.loss[-1] == run.end.loss
        assert run.t[-1] == run.end.t
        assert np.all(np.diff(run.loss) < 0)
        assert np.all(np.diff(run.t) > 0)


def test_a_target_beside_the_initial_loss() -> None:
    run = simulate(flow_of(), RATES, until_loss=math.log(3) * (1 - 1e-12))
    assert math.isclose(run.end.loss, math.log(3) * (1 - 1e-12), rel_tol=1e-15)
    assert run.end.t < 1e-9


def test_stopping_earlier_lies_on_the_same_curve() -> None:
    run = simulate(flow_of(), RATES, until_loss=1e-4)
    for target in (0.7, 1e-2, 1e-4):
        end = simulate(flow_of(), RATES, until_loss=target).end
        point = run.at_loss(target)
        for name in ("t", "tau", "mu_OV", "mu_QK", "attention"):
            assert close(getattr(point, name), getattr(end, name), 1e-8), name  # times: error of mu times 10
        assert math.isclose(point.loss, target, rel_tol=1e-12)
    with pytest.raises(ValueError, match=r"loss=1e-05: expected a loss of this run"):
        run.at_loss(1e-5)
    assert run.at_loss(run.loss[0]).t == 0
    assert run.at_loss(run.end.loss) == run.end


def test_dense_output() -> None:
    run = simulate(flow_of(), RATES, until_time=1e4)
    times = np.array([[0.0, 1.0], [123.0, 1e4]])
    state = run(times)
    assert state.shape == (2, 2, 2)
    assert np.array_equal(state[:, 0, 0], [0, 0])
    assert np.array_equal(state[:, 1, 1], [run.end.mu_OV, run.end.mu_QK])
    exact = simulate(flow_of(), RATES, until_time=123.0).end
    assert close(state[:, 1, 0], [exact.mu_OV, exact.mu_QK])
    assert np.array_equal(run(run.t), [run.mu_OV, run.mu_QK])
    assert close(run.at(123.0).loss, exact.loss)
    for bad in (-1.0, 1.1e4, math.nan):
        with pytest.raises(ValueError, match="expected times from 0 to the end of the run"):
            run(bad)


def test_a_limit_before_the_target() -> None:
    with pytest.raises(
        TimeLimitError, match=r"the time limit t=10 comes before the loss 0.001: the loss reached is"
    ) as e:
        simulate(flow_of(), RATES, until_loss=1e-3, until_time=10)
    assert e.value.t == 10
    assert math.isclose(e.value.loss, simulate(flow_of(), RATES, until_time=10).end.loss, rel_tol=1e-9)
    assert isinstance(e.value, ValueError)
    run = simulate(flow_of(), RATES, until_loss=1e-3, until_time=1e6)
    assert math.isclose(run.end.loss, 1e-3, rel_tol=1e-12)
    assert run.end.t < 1e6


# two integrations


def test_a_second_integration_that_differs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin of the error estimate: one of the two integrations runs on rates wrong by 1e-6."""

    def broken(problem: solver.Problem, **options: Any) -> solver.Solution:
        if options["rtol"] > 1e-12:
            fields = problem.fields
            problem = replace(problem, fields=lambda v, q: (fields(v, q)[0] * (1 + size), *fields(v, q)[1:]))
        return solver.solve(problem, **options)

    size = 0.0
    monkeypatch.setattr(scipy_runs, "solve", broken)
    good = simulate(flow_of(), RATES, until_loss=1e-3)
    size = 1e-6
    with pytest.raises(IntegrationError, match="two runs with different tolerances differ"):
        simulate(flow_of(), RATES, until_loss=1e-3)
    with pytest.raises(IntegrationError, match="differ"):
        simulate(flow_of(), RATES, until_time=100)
    size = 1e-9
    noted = simulate(flow_of(), RATES, until_loss=1e-3)
    assert 1e-10 < noted.error_estimate < AGREEMENT * 1e-10
    assert good.error_estimate <= noted.error_estimate + BOUND


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8, 1e-11])
def test_the_error_stays_within_the_promise(rtol: float) -> None:
    best = simulate(flow_of(), RATES, until_loss=1e-4, rtol=1e-11)
    run = simulate(flow_of(), RATES, until_loss=1e-4, rtol=rtol)
    assert run.error_estimate <= AGREEMENT * rtol
    assert close(run.end.mu_OV, best.end.mu_OV, AGREEMENT * rtol)
    assert close(run.end.mu_QK, best.end.mu_QK, AGREEMENT * rtol)


def test_too_many_steps_is_an_error() -> None:
    with pytest.raises(IntegrationError, match=r"5 steps end at log time .*raise max_steps"):
        simulate(flow_of(), RATES, until_loss=1e-3, max_steps=5)


def test_an_escape_that_time_does_not_resolve_is_an_error() -> None:
    with pytest.raises(IntegrationError, match=r"integration with DOP853 failed"):
        simulate(flow_of(), RATES, {"mu_OV": -20, "mu_QK": 3}, until_loss=1e-3)


def test_same_input_same_output() -> None:
    a, b = (simulate(flow_of(), RATES, until_loss=1e-2) for _ in range(2))
    assert np.array_equal(a.mu_OV, b.mu_OV)
    assert a.end == b.end
    assert a.error_estimate == b.error_estimate


# batches


def test_batches_broadcast() -> None:
    batch = simulate(
        flow_of(), {"eta_OV": 1, "eta_QK": np.array([[0.1], [1.0]])}, {"mu_OV": [-0.5, 0, 0.5]}, until_loss=0.01
    )
    assert isinstance(batch, TrajectoryBatch)
    assert batch.shape == (2, 3) == batch.end.mu_OV.shape
    assert len(batch) == 6 == len(list(batch))
    alone = simulate(flow_of(), {"eta_OV": 1, "eta_QK": 1.0}, {"mu_OV": -0.5}, until_loss=0.01)
    assert batch[1, 0].end == batch[3].end == alone.end
    assert batch.end.mu_QK[1, 0] == alone.end.mu_QK
    assert batch.end.mu_QK[0, 0] != alone.end.mu_QK
    assert batch.error_estimate.max() < AGREEMENT * 1e-10
    assert len(batch[1:3]) == 2
    one = simulate(flow_of(), {"eta_OV": 1, "eta_QK": [2.0]}, until_loss=0.01)
    assert one.shape == (1,)
    with pytest.raises(ValueError, match=r"do not broadcast together: eta_QK \(2,\), mu_OV \(3,\)"):
        simulate(flow_of(), {"eta_OV": 1, "eta_QK": [1, 2]}, {"mu_OV": [1, 2, 3]}, until_loss=0.01)


def test_a_bad_entry_of_a_batch_stops_it_before_any_integration() -> None:
    calls: list[float] = []
    with pytest.raises(ValueError, match="eta_QK=-1"):
        simulate(
            flow_of(), {"eta_OV": 1, "eta_QK": [1, -1]}, until_loss=0.1, progress=lambda done, total: calls.append(done)
        )
    assert calls == []


def test_progress() -> None:
    seen: list[tuple[float, float]] = []
    simulate(
        flow_of(),
        {"eta_OV": 1, "eta_QK": [1, 2, 3]},
        until_loss=0.1,
        progress=lambda done, total: seen.append((done, total)),
    )
    done = [d for d, _ in seen]
    assert done == sorted(done)
    assert done[-1] == 3
    assert {1, 2, 3} <= set(done)
    assert {t for _, t in seen} == {3}
    assert 0 < done[0] < 1


# input


def test_names_may_be_symbols_and_a_model_is_derived() -> None:
    run = simulate(AttentionModel(SMALL), {eta_OV: 1, "eta_QK": 2}, {mu_OV: 0.5}, until_loss=0.1)
    assert run.end == simulate(flow_of(), RATES, {"mu_OV": 0.5}, until_loss=0.1).end
    assert run.start == {"mu_OV": 0.5, "mu_QK": 0}
    assert run.parameters == {"eta_OV": 1, "eta_QK": 2}


GOOD: dict[str, Any] = {**SIZES, "eta_OV": 1, "eta_QK": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"M": None}, r"no value for M \(number of classes\); this flow needs M, b, K, m, n, eta_OV, eta_QK"),
        ({"eta_VO": 1}, r"unknown name 'eta_VO' in parameters: .*did you mean 'eta_OV'\?"),
        ({"N": 3}, r"a value too many, 'N' in parameters: this flow has M, b.*nearest"),
        ({"M": 1}, r"M=1: expected an integer of at least 2"),
        ({"b": 0}, r"b=0: expected an integer of at least 1"),
        ({"m": 2.5}, r"m=2.5: expected an integer of at least 1"),
        ({"n": math.nan}, r"n=nan: expected an integer of at least 1"),
        ({"eta_OV": -1}, r"eta_OV=-1: expected a finite number above 0"),
        ({"eta_QK": 0}, r"eta_QK=0: expected a finite number above 0"),
        ({"eta_QK": math.inf}, r"eta_QK=inf: expected a finite number above 0"),
        ({"eta_QK": eta_OV}, r"eta_QK=eta_OV: expected a finite number above 0, not a symbol"),
        ({eta_OV: 1}, r"parameters: eta_OV is given twice"),
    ],
)
def test_wrong_parameters(change: dict[Any, Any], message: str) -> None:
    given = {k: v for k, v in {**GOOD, **change}.items() if v is not None}
    with pytest.raises(ValueError, match=message) as e:
        simulate(sized(), given, until_loss=0.1)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"no end of the run: expected until_loss, until_time or both"),
        ({"until_loss": 0}, r"until_loss=0: expected a finite number above 0"),
        ({"until_loss": math.nan}, r"until_loss=nan"),
        ({"until_loss": 2.0}, r"until_loss=2.0: expected a loss below the initial one, 1.09861"),
        ({"until_loss": math.log(3)}, r"expected a loss below the initial one"),
        ({"until_time": -1}, r"until_time=-1: expected a finite number above 0"),
        ({"until_time": 1e300, "time": "tau", "rates": {"eta_OV": 1e-30, "eta_QK": 1}}, r"finite in t as well"),
        ({"until_time": 1, "time": "logs"}, r"time='logs': expected one of t, tau, log; did you mean 'log'\?"),
        ({"until_time": 1, "method": "DOP85"}, r"method='DOP85': .*did you mean 'DOP853'\?"),
        ({"until_time": 1, "rtol": 1e-14}, r"rtol=1e-14: expected a tolerance from 1e-11 to 1e-3"),
        ({"until_time": 1, "atol": 0}, r"atol=0"),
        ({"until_time": 1, "times": [1, 0.5]}, r"times: expected numbers of at least 0 in increasing order"),
        ({"until_time": 1, "times": [-1, 0.5]}, r"times: expected numbers of at least 0"),
        ({"until_time": 1, "times": []}, r"times of shape \(0,\): expected a sequence"),
        ({"until_time": 1, "times": [0, 2]}, r"times: 2 \(in t\) lies beyond the end of the run, t=1"),
        ({"until_time": 1, "start": {"mu_OV": math.nan}}, r"start mu_OV=nan: expected a finite number"),
        ({"until_time": 1, "start": {"mu_KQ": 1}}, r"unknown name 'mu_KQ' in start: .*did you mean 'mu_QK'\?"),
        ({"until_time": 1, "start": {"mu_OV": 1e4}}, r"start mu_OV=10000.0, mu_QK=0.0: stationary in double precision"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    given = {k: v for k, v in options.items() if k != "rates"}
    with pytest.raises(ValueError, match=message) as e:
        simulate(flow_of(), options.get("rates", RATES), **given)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("circuit", ["OV", "QK"])
def test_balanced_circuits_need_a_nonzero_start(circuit: str) -> None:
    flow = flow_of(ov="factorized") if circuit == "OV" else flow_of(qk="factorized")
    name = f"mu_{circuit}"
    with pytest.raises(ValueError, match=f"no start for {name}: the {circuit} circuit is factorized and balanced"):
        simulate(flow, RATES, until_loss=0.1)
    with pytest.raises(
        ValueError, match=f"start {name}=0: .* {name} = 0 is stationary; expected a number other than 0"
    ):
        simulate(flow, RATES, {name: 0}, until_loss=0.1)
    assert simulate(flow, RATES, {name: 0.1}, until_loss=0.1).start[name] == 0.1


def test_a_target_that_a_negative_balanced_output_never_reaches() -> None:
    flow, start = flow_of(ov="factorized"), {"mu_OV": -0.5}
    with pytest.raises(ValueError, match=r"until_loss=1.09: never reached, mu_OV < 0 keeps its sign"):
        simulate(flow, RATES, start, until_loss=1.09)
    assert math.isclose(simulate(flow, RATES, start, until_loss=1.1).end.loss, 1.1, rel_tol=1e-12)


def test_infinite_noise_and_zero_imbalance_as_parameters() -> None:
    finite = derive(AttentionModel(replace(SMALL, noise=sympy.Symbol("N", integer=True, positive=True))))
    with pytest.raises(ValueError, match=r"N=inf: expected an integer of at least 1; .*TokenTask\(noise=oo\)"):
        simulate(finite, {**RATES, "N": math.inf}, until_loss=0.1)
    from theory.symbols import c_OV

    with pytest.raises(ValueError, match=r"c_OV=0: expected a number other than 0"):
        simulate(flow_of(ov="factorized", imbalance_ov=c_OV), {**RATES, "c_OV": 0}, until_loss=0.1)


def test_wrong_types() -> None:
    for call in (
        lambda: simulate("CACO", RATES, until_loss=0.1),  # type: ignore[arg-type]
        lambda: simulate(flow_of(), [1, 2], until_loss=0.1),  # type: ignore[arg-type]
        lambda: simulate(flow_of(), {**RATES, "eta_OV": "fast"}, until_loss=0.1),
        lambda: simulate(flow_of(), RATES, [0, 0], until_loss=0.1),  # type: ignore[arg-type]
        lambda: simulate(flow_of(), RATES, until_loss=True),
        lambda: simulate(flow_of(), RATES, until_time=1, times="soon"),
    ):
        with pytest.raises(TypeError, match="expected"):
            call()


@pytest.mark.parametrize("chart", [Chart("collapsed"), Chart("balanced", sign=-1.0), Chart("imbalanced", width=1e-3)])
def test_charts_go_back_and_forth(chart: Chart) -> None:
    for mu in (-1e-9, -0.3, -20.0):
        y = chart.y(mu)
        assert math.isclose(float(chart.mu(y)), mu, rel_tol=1e-13)  # y of order 10: ten roundings
        value, slope = chart.point(y)
        step = 1e-6
        assert math.isclose(value, mu, rel_tol=1e-13)
        difference = (float(chart.mu(y + step)) - float(chart.mu(y - step))) / (2 * step)
        assert math.isclose(slope, difference, rel_tol=1e-8)  # central difference: step^2 and rounding over step


@pytest.mark.parametrize(("qk", "ov", "imbalance", "start"), CASES)
def test_scalar_functions_are_the_kernel(
    qk: str, ov: str, imbalance: dict[str, Any], start: tuple[float, float]
) -> None:
    kernel = compile_kernel(flow_of(qk, ov, **imbalance), backend="numpy")
    for point in (start, (3.0, 2.0), (-1e3, 1e3), (1e3, -1e3)):
        expected = [float(x) for x in kernel(*point, 1.0, 2.0)]
        got = scalar_function(kernel)(*point, 1.0, 2.0)
        assert np.allclose(got, expected, rtol=1e-14, atol=0)  # a handful of operations, each rounded once
    assert not np.allclose(scalar_function(kernel)(3.0, 2.0, 1.0, 2.1), kernel(3.0, 2.0, 1.0, 2.0), rtol=1e-14, atol=0)


def test_scalar_functions_fall_back_where_python_raises() -> None:
    x = sympy.Symbol("x", real=True)
    kernel = compile_kernel(sympy.exp(x), args=[x])
    with np.errstate(over="ignore"):
        assert scalar_function(kernel)(1e3) == math.inf
    with pytest.raises(ValueError, match="expected a kernel of the backend 'numpy'"):
        scalar_function(replace(kernel, backend="torch"))


def test_a_batch_names_the_run_that_failed() -> None:
    model = AttentionModel(TokenTask(2, 1, 1, 1, 1, 1))
    rates = {"eta_OV": 1, "eta_QK": np.array([1e6, 0.1])}
    with pytest.raises(TimeLimitError, match=r"^run 2 of 2, eta_QK/eta_OV = 0.1: the time limit t=30 comes") as caught:
        simulate(model, rates, until_loss=0.05, until_time=30)
    assert caught.value.loss > 0.05
    # twin: a run by itself says nothing of runs
    with pytest.raises(TimeLimitError, match=r"^the time limit"):
        simulate(model, {"eta_OV": 1, "eta_QK": 0.1}, until_loss=0.05, until_time=30)
