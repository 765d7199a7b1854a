"""First integrals against the table of section 6: exact, along the flow, and with wrong twins."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import mpmath
import pytest
from sympy import Abs, Ei, Float, Gt, Integer, Integral, Lt, Rational, Symbol, asinh, diff, exp, lambdify, log, oo, sqrt

from theory.errors import GradlineError
from theory.flow import ReducedFlow, Velocity, derive
from theory.identities import prove_zero
from theory.integrals import first_integral
from theory.model import PARAMETERIZATIONS, AttentionModel
from theory.primitives import quadratic_root as _quadratic_root
from theory.separation import normalize as _normalize
from theory.symbols import K, M, N, b, c_OV, c_QK, eta_OV, eta_QK, gamma, m, mu_OV, mu_QK, n
from theory.task import TokenTask

KAPPA = (eta_QK / (K * M * b * N / (M * b + N))) / (eta_OV / ((M - 1) * b))
SIGMA_OV, SIGMA_QK = sqrt(b), sqrt(K * M * b * N / (M * b + N))
PHI = m * exp(gamma * mu_QK) / (n * gamma) + mu_QK
# Central differences at 40 digits with step 1e-13: truncation 1e-26, rounding 1e-27, of numbers from 1 to 1e3.
DIGITS, STEP, DRIFT = 40, mpmath.mpf(10) ** -13, mpmath.mpf(10) ** -20


def flow_of(name: str, task: TokenTask | None = None, **options: Any) -> ReducedFlow:
    qk, ov = PARAMETERIZATIONS[name]
    return derive(AttentionModel(task or TokenTask(score_scale=gamma), qk=qk, ov=ov, **options))


def psi(sign: int) -> Any:
    return m * Ei(gamma * mu_QK) / n + log(sign * mu_QK)


def imbalanced_y() -> Any:
    s = Symbol("s", real=True)
    rest = Integral(exp(gamma * s) / sqrt(c_QK**2 + 4 * SIGMA_QK**2 * s**2), (s, 0, mu_QK))
    return asinh(2 * SIGMA_QK * mu_QK / Abs(c_QK)) / (2 * SIGMA_QK) + m / n * rest


IMBALANCED_X = sqrt(c_OV**2 + 4 * SIGMA_OV**2 * mu_OV**2) / (4 * SIGMA_OV**2)
# (model, imbalanced circuits) -> (y, x, slope) of section 6, for positive coordinates in balanced circuits
TABLE: dict[tuple[str, str], tuple[Any, Any, Any]] = {
    ("CACO", ""): (PHI, mu_OV**2 / 2, KAPPA * gamma),
    ("CAFO", ""): (PHI, mu_OV, KAPPA * gamma / (2 * SIGMA_OV)),
    ("FACO", ""): (psi(1), mu_OV**2 / 2, KAPPA * gamma * 2 * SIGMA_QK),
    ("FAFO", ""): (psi(1), mu_OV, KAPPA * gamma * SIGMA_QK / SIGMA_OV),
    ("CAFO", "OV"): (PHI, IMBALANCED_X, KAPPA * gamma),
    ("FAFO", "OV"): (psi(1), IMBALANCED_X, KAPPA * gamma * 2 * SIGMA_QK),
    ("FACO", "QK"): (imbalanced_y(), mu_OV**2 / 2, KAPPA * gamma),
    ("FAFO", "QK"): (imbalanced_y(), mu_OV, KAPPA * gamma / (2 * SIGMA_OV)),
    ("FAFO", "OV QK"): (imbalanced_y(), IMBALANCED_X, KAPPA * gamma),
}


def imbalances(circuits: str) -> dict[str, Any]:
    return {f"imbalance_{c.lower()}": {"OV": c_OV, "QK": c_QK}[c] for c in circuits.split()}


def conditions(signs: dict[str, int]) -> list[Any]:
    return [Gt(s, 0) if signs.get(s.name, 1) > 0 else Lt(s, 0) for s in (mu_OV, mu_QK)]


def same(one: Any, other: Any, signs: dict[str, int] | None = None) -> str:
    return prove_zero(one - other, conditions(signs or {})).answer


@pytest.mark.parametrize(("name", "circuits"), TABLE)
def test_coordinates_and_slope_of_the_table(name: str, circuits: str) -> None:
    law = first_integral(flow_of(name, **imbalances(circuits)))
    y, x, slope = TABLE[name, circuits]
    assert same(law.slope, slope) == "equal"
    assert same(law.x, x) == "equal"
    assert same(diff(law.y, mu_QK), diff(y, mu_QK)) == "equal"
    assert law.value == law.y - law.slope * law.x
    at = {mu_QK: Rational(3, 7), m: 2, n: 3, gamma: Rational(1, 2), c_QK: -2, K: 2, M: 3, b: 2, N: 5}
    # 30 digits of two expressions that differ by a constant at most
    assert abs((law.y - y).xreplace({k: Rational(v) for k, v in at.items()}).evalf(30)) < Rational(1, 10**25)


@pytest.mark.parametrize(("name", "circuits"), TABLE)
def test_wrong_slopes_are_different(name: str, circuits: str) -> None:
    """Twins: factor 2, b for b^2, rates swapped, M for M-1, noise correction dropped."""
    slope = first_integral(flow_of(name, **imbalances(circuits))).slope
    right = TABLE[name, circuits][2]
    wrong = [
        2 * right,
        right / b,
        right * (eta_OV / eta_QK) ** 2,
        right * M / (M - 1),
        right * N / (M * b + N),
        right / gamma,
        -right,
    ]
    assert [same(slope, w) for w in wrong] == ["different"] * len(wrong)
    assert same(slope, right) == "equal"


SIGNS = [{}, {"mu_OV": -1}, {"mu_QK": -1}, {"mu_OV": -1, "mu_QK": -1}]


def drift(value: Any, flow: ReducedFlow, signs: dict[str, int]) -> Any:
    chosen = {Abs(s): signs.get(s.name, 1) * s for s in (mu_OV, mu_QK)}
    return sum((diff(value, s) * flow.velocity[s].xreplace(chosen) for s in flow.states), Integer(0))


@pytest.mark.parametrize("signs", SIGNS, ids=str)
@pytest.mark.parametrize("name", PARAMETERIZATIONS)
def test_value_is_constant_for_every_sign(name: str, signs: dict[str, int]) -> None:
    flow = flow_of(name)
    law = first_integral(flow, signs)
    assert prove_zero(drift(law.value, flow, signs), conditions(signs)).answer == "equal"
    assert dict(law.signs) == {"mu_OV": 1, "mu_QK": 1} | signs
    qk, ov = PARAMETERIZATIONS[name]
    q, v = signs.get("mu_QK", 1), signs.get("mu_OV", 1)
    right = TABLE[name, ""]
    y = q * psi(q) if qk == "factorized" else PHI
    x = v * mu_OV if ov == "factorized" else mu_OV**2 / 2
    assert same(q * law.y if qk == "factorized" else law.y, y, signs) == "equal"
    sign = q if qk == "factorized" else 1
    assert same(sign * law.slope * law.x, right[2] * x, signs) == "equal"
    twice = law.y - 2 * law.slope * law.x
    assert prove_zero(drift(twice, flow, signs), conditions(signs)).answer == "different"


@pytest.mark.parametrize("circuits", ["OV", "QK", "OV QK"])
@pytest.mark.parametrize("sign", [1, -1])
def test_imbalanced_circuits_cross_zero(circuits: str, sign: int) -> None:
    """One formula for both signs of the coordinate and of the imbalance."""
    options = {k: sign * v for k, v in imbalances(circuits).items()}
    flow = flow_of("FAFO", **options)
    balanced = [s for s, c in (("mu_OV", "OV"), ("mu_QK", "QK")) if c not in circuits]
    law = first_integral(flow)
    assert (
        prove_zero(drift(law.value, flow, {}), [Gt(s, 0) for s in (mu_OV, mu_QK) if s.name in balanced]).answer
        == "equal"
    )
    other = first_integral(flow, {s: -1 for s in ("mu_OV", "mu_QK") if s not in balanced})
    assert other.value == law.value, "the sign of a circuit that crosses zero does not matter"


POINT_SIGNS = [(1, 1), (-1, 1), (1, -1), (-1, -1)]


@pytest.mark.parametrize(("name", "circuits"), TABLE)
def test_derivative_along_the_flow_in_multiprecision(name: str, circuits: str) -> None:
    """Independent of the prover: central differences along the velocity at random points, in 40 digits."""
    draw = random.Random(len(name + circuits) + ord(name[0]) + ord(name[2]))
    flow = flow_of(name, **imbalances(circuits))
    for v, q in POINT_SIGNS:
        law = first_integral(flow, {"mu_OV": v, "mu_QK": q})
        sizes = {M: draw.randint(2, 6), b: draw.randint(1, 4), K: draw.randint(1, 4), N: draw.randint(1, 6), m: 2, n: 3}
        rates = {
            eta_OV: Rational(draw.randint(1, 9), 5),
            eta_QK: Rational(draw.randint(1, 9), 4),
            gamma: Rational(3, 4),
        }
        other = {c_OV: Rational(-draw.randint(1, 9), 7), c_QK: Rational(draw.randint(1, 9), 7)}
        values = {s: Rational(x) for s, x in (sizes | rates | other).items()}
        start = {mu_OV: v * Rational(draw.randint(2, 9), 6), mu_QK: q * Rational(draw.randint(2, 9), 6)}
        with mpmath.workdps(DIGITS):
            speed = {s: number(flow.velocity[s].xreplace(values | start)) for s in flow.states}
            ends = [
                number(law.value.xreplace(values).xreplace({s: x + rational(h * speed[s]) for s, x in start.items()}))
                for h in (STEP, -STEP)
            ]
            change = (ends[0] - ends[1]) / (2 * STEP)
            part = number(diff(law.y, mu_QK).xreplace(values | start)) * speed[mu_QK]
            assert abs(change) < DRIFT
            assert abs(part) > 1e-4, "each half moves: only the difference stands still"


def number(expression: Any) -> Any:
    """Evaluate in 40 digits; an unevaluated integral by mpmath's own quadrature."""
    done = {}
    for integral in expression.atoms(Integral):
        (variable, low, high) = integral.limits[0]
        integrand = lambdify(variable, integral.function, "mpmath")
        total = mpmath.quad(integrand, [number(low), number(high)])
        done[integral] = Float(mpmath.nstr(total, DIGITS), DIGITS)
    return mpmath.mpf(str(expression.xreplace(done).evalf(DIGITS)))


def rational(value: Any) -> Rational:
    return Rational(str(mpmath.nstr(value, DIGITS)))


def test_published_slope() -> None:
    """K = b, N = oo, gamma = 1: kappa = r (M-1)/(M b)."""
    law = first_integral(flow_of("CACO", TokenTask(queries=b, noise=oo)))
    assert same(law.slope, eta_QK / eta_OV * (M - 1) / (M * b)) == "equal"
    assert same(law.slope, eta_QK / eta_OV / b) == "different"


@pytest.mark.parametrize("name", PARAMETERIZATIONS)
def test_per_class_without_noise_embeddings(name: str) -> None:
    law = first_integral(flow_of(name, TokenTask(query_kind="per_class", noise=oo, score_scale=gamma)))
    kappa = (eta_QK / (M * K * b)) / (eta_OV / ((M - 1) * b))
    factor = {"CACO": 1, "CAFO": 1 / (2 * sqrt(b)), "FACO": 2 * sqrt(K * b), "FAFO": sqrt(K)}[name]
    assert same(law.slope, kappa * gamma * factor) == "equal"
    assert same(law.slope, kappa * gamma * factor * 2) == "different"


@pytest.mark.parametrize("name", PARAMETERIZATIONS)
def test_concrete_sizes(name: str) -> None:
    values = {M: 4, b: 3, K: 2, N: 5, m: 2, n: 7}
    concrete = first_integral(flow_of(name, TokenTask(*values.values(), score_scale=Rational(1, 3))))
    put = {s: Integer(v) for s, v in values.items()} | {gamma: Rational(1, 3)}
    y, x, slope = (e.xreplace(put) for e in TABLE[name, ""])
    assert same(concrete.slope, slope) == "equal"
    assert same(concrete.x, x) == "equal"
    assert same(concrete.y, y) == "equal"
    assert same(concrete.slope, slope.xreplace({eta_QK: 2 * eta_QK})) == "different"


def test_equal_slots() -> None:
    """m = n leaves a coefficient 1 in front of the exponential."""
    law = first_integral(flow_of("CACO", TokenTask(informative_slots=n)))
    assert same(law.y, exp(mu_QK) + mu_QK) == "equal"


@pytest.mark.parametrize(
    "factor",
    [1 + mu_OV * mu_QK, 1 + mu_OV**2 * mu_QK**2, exp(mu_OV * mu_QK), exp(mu_OV + mu_QK), sqrt(1 + mu_OV**2 + mu_QK**2)],
    ids=str,
)
def test_flow_that_does_not_separate_is_refused(factor: Any) -> None:
    flow = flow_of("CACO")
    mixed = replace(flow, velocity=Velocity({mu_OV: flow.velocity[mu_OV], mu_QK: flow.velocity[mu_QK] * factor}))
    with pytest.raises(GradlineError, match=r"first integral, separation: .* mixes mu_OV and mu_QK") as caught:
        first_integral(mixed)
    assert "\n" not in str(caught.value)
    scaled = replace(flow, velocity=Velocity({mu_OV: flow.velocity[mu_OV], mu_QK: 3 * flow.velocity[mu_QK]}))
    assert same(first_integral(scaled).slope, 3 * first_integral(flow).slope) == "equal"


def test_integral_without_a_proof_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin of the residual check: when the prover says no, no first integral is returned."""
    flow = flow_of("CACO", TokenTask(classes=11, score_scale=gamma))
    monkeypatch.setattr("theory.integrals.is_zero", lambda expression: False)
    with pytest.raises(GradlineError, match=r"first integral: .* is not zero"):
        first_integral(flow)


def test_changed_flow_is_not_answered_from_the_cache() -> None:
    flow = flow_of("CACO")
    before = first_integral(flow)
    constant = replace(flow, velocity=Velocity({mu_OV: flow.velocity[mu_OV], mu_QK: 5 * flow.velocity[mu_OV]}))
    assert first_integral(constant).value == mu_QK - 5 * mu_OV
    assert first_integral(flow) == before


@pytest.mark.parametrize(
    ("signs", "message"),
    [
        ({"mu_OV": 2}, "expected one sign, 1 or -1"),
        ({"mu_OV": 0}, "expected one sign, 1 or -1"),
        ({"mu_OV": "1"}, "expected one sign, 1 or -1"),
        ({"mu_QK": None}, "expected one sign, 1 or -1"),
        ({"mu_ov": 1}, "unknown state 'mu_ov'; expected mu_OV or mu_QK"),
        ({3: 1}, "unknown state"),
    ],
)
def test_bad_signs(signs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        first_integral(flow_of("FAFO"), signs)
    assert "\n" not in str(caught.value)


def test_assumptions_record_the_branch() -> None:
    law = first_integral(flow_of("FAFO"), {"mu_OV": -1})
    texts = [str(a) for a in law.assumptions]
    assert "mu_OV < 0" in texts
    assert "mu_QK > 0" in texts
    assert not {"mu_OV < 0", "mu_OV > 0"} & {str(a) for a in first_integral(flow_of("CACO"), {"mu_OV": -1}).assumptions}
    assert [step.rule for step in law.trace] == ["separation", "integration", "integration", "normal form"]


def plane(v: Any, q: Any) -> ReducedFlow:
    """Velocities of the coordinates, ``v`` of output-value and ``q`` of query-key, in place of those of the model."""
    return replace(flow_of("CACO"), velocity=Velocity({mu_OV: v, mu_QK: q}))


R3, R5 = sqrt(3), sqrt(5)
s = Symbol("s", real=True)
# dy/dq = 1/Q, dx/dv = V for velocities (1/V, Q); antiderivatives by hand
PRIMITIVES: list[tuple[Any, Any]] = [
    (Integer(1), mu_OV),
    (mu_OV, mu_OV**2 / 2),
    (1 / mu_OV, log(mu_OV)),
    (exp(-2 * mu_OV), -exp(-2 * mu_OV) / 2),
    (exp(3 * mu_OV) / mu_OV, Ei(3 * mu_OV)),
    (1 / sqrt(3 + 5 * mu_OV**2), asinh(R5 * mu_OV / R3) / R5),
    (mu_OV / sqrt(3 + 5 * mu_OV**2), sqrt(3 + 5 * mu_OV**2) / 5),
    (mu_OV + 1 / mu_OV, mu_OV**2 / 2 + log(mu_OV)),
    (mu_OV * exp(mu_OV), Integral(s * exp(s), (s, 0, mu_OV))),
    (exp(mu_OV**2), Integral(exp(s**2), (s, 0, mu_OV))),
]


@pytest.mark.parametrize(("integrand", "primitive"), PRIMITIVES, ids=str)
def test_primitives_by_hand(integrand: Any, primitive: Any) -> None:
    law = first_integral(plane(Integer(1), 7 * integrand))
    assert (law.x - primitive, law.y, law.slope) == (0, mu_QK, 7)
    q = integrand.xreplace({mu_OV: mu_QK})
    law = first_integral(plane(Integer(7), 1 / q))
    assert (law.y - primitive.xreplace({mu_OV: mu_QK}), law.x) == (0, mu_OV)
    assert same(law.slope, Rational(1, 7)) == "equal"


def test_logarithm_takes_the_sign_of_the_state() -> None:
    flow = plane(mu_OV, Integer(3))
    for v in (1, -1):
        law = first_integral(flow, {"mu_OV": v})
        assert law.value == mu_QK - 3 * log(v * mu_OV)


def test_what_has_no_primitive_is_refused() -> None:
    for integrand in (mu_OV**-2, 1 / mu_OV**3, exp(mu_OV) / mu_OV**2):
        with pytest.raises(GradlineError, match=r"no antiderivative of .* among the primitives"):
            first_integral(plane(Integer(1), integrand))
    with pytest.raises(GradlineError, match="is not rational in exponentials, square roots and the states"):
        first_integral(plane(Integer(1), (1 + mu_OV**2) ** Rational(1, 3)))


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (1 / sqrt(3 + 5 * mu_OV**2), (3 + 5 * mu_OV**2, 0)),
        (mu_OV / sqrt(3 + 5 * mu_OV**2), (3 + 5 * mu_OV**2, 1)),
        (-1 / sqrt(3 + 5 * mu_OV**2), None),
        (1 / sqrt(3 + mu_OV + 5 * mu_OV**2), None),
        (1 / sqrt(3 - 5 * mu_OV**2), None),
        (1 / sqrt(5 * mu_OV**2 - 3), None),
        (1 / sqrt(3 + 5 * mu_OV), None),
        (1 / (3 + 5 * mu_OV**2), None),
        (mu_OV**2 / sqrt(3 + 5 * mu_OV**2), None),
        (1 / Abs(mu_OV), None),
    ],
    ids=str,
)
def test_recognized_roots(rest: Any, expected: Any) -> None:
    assert _quadratic_root(rest, mu_OV) == expected


@pytest.mark.parametrize(
    ("part", "scale", "scaled"),
    [
        (3 * m * exp(mu_OV) / n + 3, 3, m * exp(mu_OV) / n + 1),
        (4 * mu_OV**2 + 2 * mu_OV, 4, mu_OV**2 + mu_OV / 2),
        (2 * (1 + exp(mu_OV)) / (5 * mu_OV), Rational(2, 5), 1 / mu_OV + exp(mu_OV) / mu_OV),
        (6 / sqrt(3 + 5 * mu_OV**2), 6, 1 / sqrt(3 + 5 * mu_OV**2)),
        (6 * mu_OV * sqrt(3 + 5 * mu_OV**2), 6, mu_OV * sqrt(3 + 5 * mu_OV**2)),
        (2 * sqrt(b) * mu_OV, 2 * sqrt(b), mu_OV),
        (5 * exp(mu_OV), 1, 5 * exp(mu_OV)),
        (5 / (exp(mu_OV) + exp(2 * mu_OV)), 1, 5 / (exp(mu_OV) + exp(2 * mu_OV))),
    ],
    ids=str,
)
def test_scale_of_a_factor(part: Any, scale: Any, scaled: Any) -> None:
    """The term without exponentials gets leading coefficient 1; roots of the state do not count."""
    found = _normalize(part, mu_OV)
    assert found[0] == scale
    assert (found[1] - scaled).expand() == 0


def test_ratio_is_split_whatever_way_it_is_written() -> None:
    """dq/dv = 3 e^q/(v (q + 1)), written with one denominator."""
    mixed = 3 * exp(mu_QK) / (mu_OV * mu_QK + mu_OV)
    law = first_integral(plane(Integer(1), mixed))
    assert (law.x, law.slope) == (log(mu_OV), 3)
    # y' = (q + 1) e^-q
    assert (diff(law.y, mu_QK) - (mu_QK + 1) * exp(-mu_QK)).expand() == 0
    split = first_integral(plane(M / mu_OV, 3 * b * mu_QK))
    assert (split.y, split.x) == (log(mu_QK), mu_OV**2 / 2)
    assert same(split.slope, 3 * b / M) == "equal"
    # 1 = 1 + q^2 - q^2 hides in the denominator
    square = 1 + mu_QK**2
    cubed = first_integral(plane(1 / mu_OV, square ** Rational(3, 2) / (square - mu_QK**2) / square))
    assert (cubed.y, cubed.x, cubed.slope) == (asinh(mu_QK), mu_OV**2 / 2, 1)


@pytest.mark.parametrize(("name", "circuits"), TABLE)
def test_trace_multiplies_out_to_the_ratio(name: str, circuits: str) -> None:
    flow = flow_of(name, **imbalances(circuits))
    law = first_integral(flow)
    steps = {step.name: step for step in law.trace}
    constant, of_v, of_q = steps["d mu_QK/d mu_OV"].output
    positive = {Abs(s): s for s in (mu_OV, mu_QK)}
    ratio = (flow.velocity[mu_QK] / flow.velocity[mu_OV]).xreplace(positive)
    assert same(constant * of_v * of_q, ratio) == "equal"
    assert not of_v.has(mu_QK)
    assert not of_q.has(mu_OV)
    assert not constant.has(mu_OV, mu_QK)
    assert (steps["x"].output, steps["y"].output) == (law.x, law.y)
    assert (steps["x"].inputs, steps["y"].inputs) == ((of_v,), (1 / of_q,))
    assert steps["d/dt(y - slope x)"].inputs == (law.value,)
    assert steps["d/dt(y - slope x)"].output == 0


@pytest.mark.parametrize("name", PARAMETERIZATIONS)
def test_scale_that_is_an_expression(name: str) -> None:
    """The table of section 6 with ``1/sqrt(7)`` for gamma, for every sign; recorded with the branch."""
    scale = 1 / sqrt(7)
    flow = flow_of(name, TokenTask(score_scale=scale))
    for v, q in POINT_SIGNS:
        signs = {"mu_OV": v, "mu_QK": q}
        law = first_integral(flow, signs)
        plain = first_integral(flow_of(name), signs)
        for one, other in ((law.x, plain.x), (law.y, plain.y), (law.slope, plain.slope)):
            assert same(one, other.xreplace({gamma: scale}), signs) == "equal"
        assert dict(law.signs) == signs
        assert law.trace
        branch = [str(a) for a in law.assumptions if str(a).startswith("mu_")]
        wanted = [f"mu_{c} {'>' if signs[f'mu_{c}'] > 0 else '<'} 0" for c in ("OV", "QK") if flow.model.is_balanced(c)]
        assert branch == wanted == [str(a) for a in plain.assumptions if str(a).startswith("mu_")]
        assert {a.relation for a in law.assumptions if str(a) in wanted} == {
            (Gt if signs[f"mu_{c}"] > 0 else Lt)(coordinate, 0, evaluate=False)
            for c, coordinate in (("OV", mu_OV), ("QK", mu_QK))
            if flow.model.is_balanced(c)
        }


def test_scale_without_a_proof_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: the symbol in place of the scale is proved, the scale itself is not."""
    flow = flow_of("CACO", TokenTask(classes=13, score_scale=sqrt(3)))
    monkeypatch.setattr("theory.integrals.is_zero", lambda expression: not expression.has(sqrt(3)))
    with pytest.raises(GradlineError, match=r"first integral: .*sqrt\(3\).* is not zero"):
        first_integral(flow)


@pytest.mark.parametrize(
    ("signs", "error", "message"),
    [
        ({"mu_OV": True}, ValueError, "mu_OV=True; expected one sign"),
        ({"mu_OV": 1, mu_OV: -1}, ValueError, "mu_OV=-1; expected one sign"),
        ([], TypeError, "expected a mapping"),
        (0, TypeError, "expected a mapping"),
        ([("mu_OV", 1)], TypeError, "expected a mapping"),
    ],
)
def test_signs_that_are_none(signs: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        first_integral(flow_of("FAFO"), signs)


def test_signs_by_symbol_name_or_not_at_all() -> None:
    flow = flow_of("FAFO")
    assert first_integral(flow, {mu_OV: -1, "mu_OV": -1}) == first_integral(flow, {"mu_OV": Integer(-1)})
    assert dict(first_integral(flow, {mu_OV: -1}).signs) == {"mu_OV": -1, "mu_QK": 1}
    assert first_integral(flow) == first_integral(flow, {}) == first_integral(flow, {"mu_QK": 1})
    with pytest.raises(TypeError, match="expected a ReducedFlow"):
        first_integral("FAFO")  # type: ignore[arg-type]
