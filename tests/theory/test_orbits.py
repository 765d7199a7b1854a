"""Orbits, sizes, orbit velocities and linear laws against explicit index pairs and enumerated sequences."""

from __future__ import annotations

import random
from fractions import Fraction
from types import ModuleType
from typing import Any

import mpmath
import pytest
from sympy import Dummy, Integer, Rational, Symbol, exp, oo

from theory.attention import OrbitFlow, orbit_flow
from theory.orbits import IndexSet, LinearLaw, linear_laws, orbit_velocity, orbits, set_orbits
from theory.symbols import K, M, N, alpha, b, eta_OV, eta_QK
from theory.task import TokenTask

KINDS = ("shared", "per_class")
CIRCUITS = ("OV", "QK")
# (classes, block, queries, noise): borderline ones included; two equal sizes never hide a mix-up in all of them
EXPLICIT = [(2, 1, 1, 1), (2, 3, 2, 1), (3, 2, 2, 4), (4, 1, 3, 2), (3, 2, 1, None)]
# (classes, block, queries, noise, informative slots, noise slots, score scale): small enough to enumerate
ENUMERATED = [
    (2, 2, 1, 2, 1, 1, Fraction(1)),
    (3, 1, 2, 2, 1, 2, Fraction(3, 2)),
    (2, 1, 1, 1, 1, 1, Fraction(1)),
    (2, 2, 2, None, 2, 1, Fraction(1, 3)),
]


def task_of(sizes: Any) -> TokenTask:
    return TokenTask(
        classes=sizes.classes,
        block=sizes.block,
        queries=sizes.queries,
        noise=oo if sizes.noise is None else sizes.noise,
        informative_slots=sizes.informative_slots,
        noise_slots=sizes.noise_slots,
        query_kind=sizes.query_kind,
        score_scale=sizes.score_scale,
    )


def at_sizes(expression: Any, sizes: Any) -> Any:
    values = {M: sizes.classes, b: sizes.block, K: sizes.queries, N: oo if sizes.noise is None else sizes.noise}
    return expression.xreplace({s: Integer(v) if v is not oo else oo for s, v in values.items()})


@pytest.mark.parametrize("explicit", EXPLICIT)
@pytest.mark.parametrize("circuit", CIRCUITS)
@pytest.mark.parametrize("kind", KINDS)
def test_orbits_and_sizes_by_union_find(
    reference: ModuleType, kind: str, circuit: Any, explicit: tuple[Any, ...]
) -> None:
    sizes = reference.Sizes(*explicit, query_kind=kind)
    brute = reference.brute_orbits(sizes, circuit)
    names = {frozenset(reference.orbit_name(circuit, pair) for pair in orbit) for orbit in brute}
    assert all(len(name) == 1 for name in names), "an orbit of the group mixes orbits of the package"
    assert len(names) == len(brute), "the package joins orbits that the group keeps apart"
    counted = {reference.orbit_name(circuit, next(iter(orbit))): len(orbit) for orbit in brute}
    noise = oo if sizes.noise is None else N
    symbolic = orbits(TokenTask(noise=noise, query_kind=kind), circuit)  # type: ignore[arg-type]
    moving = {o.symbol.name: at_sizes(o.size, sizes) for o in symbolic if not o.frozen}
    assert moving == counted
    concrete = {o.symbol.name: o.size for o in orbits(task_of(sizes), circuit) if not o.frozen}
    assert concrete == counted
    assert {o.symbol.name for o in symbolic if o.frozen} == ({f"W_{circuit}_noise"} if sizes.noise is None else set())


def test_union_find_tells_wrong_sizes(reference: ModuleType) -> None:
    """Twin: with M for M-1, or with blocks that are not permuted, the counts differ."""
    sizes = reference.Sizes(3, 2, 2, 4)
    counted = sorted(len(orbit) for orbit in reference.brute_orbits(sizes, "OV"))
    assert counted == [6, 12, 12]
    assert sorted([3 * 2, 3 * 3 * 2, 3 * 4]) != counted
    unblocked = reference.Sizes(3, 1, 2, 4)
    assert len(reference.brute_orbits(unblocked, "OV")) == 3
    assert sorted(len(o) for o in reference.brute_orbits(unblocked, "OV")) != counted


def test_symbolic_sizes() -> None:
    found = {
        (kind, circuit): {o.symbol.name: o.size for o in orbits(TokenTask(query_kind=kind), circuit)}  # type: ignore[arg-type]
        for kind in KINDS
        for circuit in CIRCUITS
    }
    output = {"W_OV_same": M * b, "W_OV_other": M * (M - 1) * b, "W_OV_noise": M * N}
    assert found["shared", "OV"] == found["per_class", "OV"] == output
    assert found["shared", "QK"] == {"W_QK_informative": K * M * b, "W_QK_noise": K * N}
    assert found["per_class", "QK"] == {
        "W_QK_same": M * K * b,
        "W_QK_other": M * (M - 1) * K * b,
        "W_QK_noise": M * K * N,
    }


def random_values(flow: OrbitFlow, seed: int) -> dict[Symbol, Rational]:
    """A rational value of either sign for each orbit, 0 for zero embeddings."""
    draw = random.Random(seed)
    values = {}
    for found in flow.orbits.values():
        for orbit in found:
            values[orbit.symbol] = Integer(0) if orbit.frozen else Rational(draw.randint(-20, 20), draw.randint(7, 13))
    return values


def multiprecision(expression: Any, values: dict[Symbol, Any]) -> Any:
    """Evaluate in 60 digits; nothing is left over."""
    assert not expression.xreplace(values).free_symbols
    return mpmath.mpf(str(expression.xreplace(values).evalf(60)))


@pytest.mark.parametrize("explicit", ENUMERATED)
@pytest.mark.parametrize("kind", KINDS)
def test_orbit_velocity_is_the_gradient_of_each_entry(
    reference: ModuleType, kind: str, explicit: tuple[Any, ...]
) -> None:
    """At a point constant on orbits, every entry of the enumerated model moves with its orbit's velocity."""
    *sizes_only, scale = explicit
    sizes = reference.Sizes(*sizes_only, kind, scale)
    flow = orbit_flow(task_of(sizes))
    values: dict[Symbol, Any] = random_values(flow, seed=hash_of(explicit, kind))
    rates = {eta_OV: Rational(2, 3), eta_QK: Rational(7, 5)}
    with mpmath.workdps(reference.DIGITS):
        entries = {
            circuit: {
                pair: mpmath.mpf(v.p) / v.q
                for pair in sizes.pairs(circuit)
                for v in [next(x for s, x in values.items() if s.name == reference.orbit_name(circuit, pair))]
            }
            for circuit in CIRCUITS
        }
        mass = flow.attention.xreplace(values)
        point = values | {alpha: mass} | rates
        loss = reference.population_loss(sizes, entries["OV"], entries["QK"])
        assert abs(multiprecision(flow.loss, point) - loss) < reference.GRADIENT_TOLERANCE
        worst = mpmath.mpf(0)
        for circuit, rate in (("OV", eta_OV), ("QK", eta_QK)):
            speed = {s.name: multiprecision(v, point) for s, v in flow.velocity.items()}
            for pair in sizes.pairs(circuit):
                slope = reference.gradient(sizes, entries["OV"], entries["QK"], circuit, pair)
                wanted = -mpmath.mpf(rates[rate].p) / rates[rate].q * slope
                difference = speed[reference.orbit_name(circuit, pair)] - wanted
                assert abs(difference) < reference.GRADIENT_TOLERANCE, (circuit, pair)
                worst = max(worst, abs(wanted))
        assert worst > 1e-4, "the point has gradients worth comparing, and every wrong orbit size would show"


def hash_of(*parts: Any) -> int:
    """A seed that does not depend on the hash seed of the interpreter."""
    return sum(ord(c) * (i + 1) for i, c in enumerate(repr(parts)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [2, None])
def test_linear_laws_hold_off_the_orbits(reference: ModuleType, kind: str, noise: int | None) -> None:
    """Each law, applied to orbit means of arbitrary matrices, is conserved; M for M-1 is not."""
    sizes = reference.Sizes(3, 1, 2, noise, 1, 1, kind)
    flow = orbit_flow(task_of(sizes))
    draw = random.Random(5)
    with mpmath.workdps(reference.DIGITS):
        entries = {c: {pair: mpmath.mpf(draw.randint(-30, 30)) / 17 for pair in sizes.pairs(c)} for c in CIRCUITS}
        for circuit, found in flow.orbits.items():
            states = [o.symbol for o in found if not o.frozen]
            laws = linear_laws(circuit, states, [flow.velocity[s] for s in states], [alpha, *flow.velocity])
            drift: dict[str, list[Any]] = {s.name: [] for s in states}
            for pair in sizes.pairs(circuit):
                slope = reference.gradient(sizes, entries["OV"], entries["QK"], circuit, pair)
                drift[reference.orbit_name(circuit, pair)].append(slope)
            mean = {name: sum(v) / len(v) for name, v in drift.items()}
            assert len(laws) == len(states) - 1
            for law in laws:
                total = sum(mpmath.mpf(str(c)) * mean[s.name] for s, c in law.coefficients.items())
                assert abs(total) < reference.GRADIENT_TOLERANCE
            if circuit == "OV":
                wrong = mean["W_OV_same"] + sizes.classes * mean["W_OV_other"]
                assert abs(wrong) > 1e-4, "the law with M for M-1 is no law"


# number of laws, frozen orbits included: (kind, noise) -> (OV, QK)
LAWS = {("shared", True): (2, 1), ("shared", False): (2, 1), ("per_class", True): (2, 2), ("per_class", False): (2, 2)}


@pytest.mark.parametrize(("kind", "finite"), LAWS)
def test_number_of_laws_and_their_form(kind: Any, finite: bool) -> None:
    flow = orbit_flow(TokenTask(noise=N if finite else oo, query_kind=kind))
    counts = []
    for circuit, found in flow.orbits.items():
        states = [o.symbol for o in found]
        laws = linear_laws(circuit, states, [flow.velocity[s] for s in states], [alpha, *flow.velocity])
        counts.append(len(laws))
        rows = {tuple(law.coefficients.get(s, Integer(0)) for s in states) for law in laws}
        assert len(rows) == len(laws)
        names = {frozenset(s.name for s in law.coefficients) for law in laws}
        if circuit == "OV":
            assert names == {frozenset({"W_OV_same", "W_OV_other"}), frozenset({"W_OV_noise"})}
            (column,) = (law for law in laws if len(law.coefficients) == 2)
            same, other = (column.coefficients[s] for s in states[:2])
            assert (other - (M - 1) * same).expand() == 0
            assert (other - M * same).expand() != 0
        elif finite:
            (row,) = (law for law in laws if len(law.coefficients) == 2)
            inside = b if kind == "per_class" else M * b
            first, last = row.coefficients[states[0]], row.coefficients[states[-1]]
            assert (last * inside - first * N).expand() == 0
    assert tuple(counts) == LAWS[kind, finite]


def test_no_law_where_there_is_none() -> None:
    """Independent velocities leave no law; proportional ones leave one; a zero one is a law of its own."""
    x, y = Symbol("x", real=True), Symbol("y", real=True)
    assert linear_laws("OV", [x, y], [exp(x), y], [x, y]) == ()
    (law,) = linear_laws("OV", [x, y], [M * exp(x) / (1 + exp(x)), -exp(x) / (1 + exp(x))], [x, y])
    assert (law.coefficients[x] * M - law.coefficients[y]).expand() == 0
    (still,) = linear_laws("OV", [x, y], [exp(x), Integer(0)], [x, y])
    assert dict(still.coefficients) == {y: 1}
    assert len(linear_laws("OV", [x, y], [Integer(0), Integer(0)], [x, y])) == 2


def test_orbit_velocity_divides_by_the_size() -> None:
    slope = Dummy("slope")
    moving, *_, still = orbits(TokenTask(noise=oo), "OV")
    assert (orbit_velocity(moving, eta_OV, slope) + eta_OV * slope / (M * b)) == 0
    assert still.frozen
    assert orbit_velocity(still, eta_OV, slope) == 0


def test_denominators_may_be_squared_or_expanded() -> None:
    x, y = Symbol("x", real=True), Symbol("y", real=True)
    share = exp(x - y) / (1 + exp(x - y))
    for size in ((M + 1) ** 2, M**2 + 2 * M + 1):
        (law,) = linear_laws("OV", [x, y], [share / M**2, -2 * share / size], [x, y])
        assert (law.coefficients[x] * (M + 1) ** 2 - 2 * law.coefficients[y] * M**2).expand() == 0
    # twin: one more power of a size leaves one law too, with other coefficients; a share that moves leaves none
    (other,) = linear_laws("OV", [x, y], [share / M**3, -2 * share / (M + 1) ** 2], [x, y])
    assert (other.coefficients[x] * (M + 1) ** 2 - 2 * other.coefficients[y] * M**2).expand() != 0
    assert linear_laws("OV", [x, y], [share / M**2, (share - 1) / M**2], [x, y]) == ()


def test_unknown_circuit_is_refused() -> None:
    for circuit in ("QO", "ov", None):
        with pytest.raises(ValueError, match="expected 'OV' or 'QK'"):
            orbits(TokenTask(), circuit)  # type: ignore[arg-type]


def test_orbits_of_a_task_name_their_sets() -> None:
    for kind in KINDS:
        for circuit in CIRCUITS:
            for orbit in orbits(TokenTask(query_kind=kind), circuit):  # type: ignore[arg-type]
                assert orbit.circuit == circuit
                assert orbit.symbol == Symbol(orbit.symbol.name, real=True)
                assert not orbit.frozen
                assert (orbit.columns.name, orbit.columns.per_class) in {("informative", True), ("noise", False)}
                assert orbit.rows.name == {"OV": "outputs", "QK": "queries"}[circuit]
                assert orbit.rows.per_class is (circuit == "OV" or kind == "per_class")


def test_orbits_between_any_sets() -> None:
    """The sizes add up to the number of entries, and the classes split only pairs that both have one."""
    rows = (IndexSet("label", Integer(2), True), IndexSet("rest", Integer(5), False))
    columns = (IndexSet("own", Integer(3), True), IndexSet("common", Integer(7), False))
    found = set_orbits("QK", rows, columns, Integer(4))
    assert {(o.rows.name, o.columns.name, o.relation): o.size for o in found} == {
        ("label", "own", "same"): 4 * 2 * 3,
        ("label", "own", "other"): 4 * 3 * 2 * 3,
        ("label", "common", "all"): 4 * 2 * 7,
        ("rest", "own", "all"): 5 * 4 * 3,
        ("rest", "common", "all"): 5 * 7,
    }
    assert sum(o.size for o in found) == (4 * 2 + 5) * (4 * 3 + 7)
    assert len({o.symbol for o in found}) == len(found)
    assert all(o.symbol.is_real and o.circuit == "QK" and not o.frozen for o in found)


def test_expression_of_a_law() -> None:
    x, y = Symbol("x", real=True), Symbol("y", real=True)
    assert LinearLaw("OV", {x: Integer(2), y: M}).expression == 2 * x + M * y
    assert LinearLaw("OV", {}).expression == 0


def test_coefficients_of_laws_have_no_denominators() -> None:
    """``c_1 f_1 + c_2 f_2 = 0`` solved by hand."""
    x, y = Symbol("x", real=True), Symbol("y", real=True)
    e = exp(x)
    for first, second, wanted in (
        (3 * e, -2 * e, (2, 3)),
        (e / M, -e / (M - 1), (M, M - 1)),
        (e / (M * (M - 1)), -e / (M * b), (M - 1, b)),
        (Integer(1), Integer(2), (2, -1)),
        (M * y, K * y, (K, -M)),
        (e * y / (1 + e), 2 * e * y / (M + M * e), (2, -M)),
        (e - 1 / (1 + e), -M * e + M / (1 + e), (M, 1)),
    ):
        (law,) = linear_laws("QK", [x, y], [first, second], [x, y])
        assert law.circuit == "QK"
        ratio = law.coefficients[x] / wanted[0]
        assert ratio in (1, -1)
        assert [
            (law.coefficients[x] - ratio * wanted[0]).expand(),
            (law.coefficients[y] - ratio * wanted[1]).expand(),
        ] == [0, 0]


def test_what_moves_decides_what_is_a_law() -> None:
    x, y, z = (Symbol(name, real=True) for name in "xyz")
    assert linear_laws("OV", [x, y], [x, z], [x, y, z]) == ()
    (law,) = linear_laws("OV", [x, y], [x, z], [])
    assert (law.coefficients[x] * x + law.coefficients[y] * z).expand() == 0
    (law,) = linear_laws("OV", [x, y], [exp(y) * z, exp(y) * M], [x, y])
    assert (law.coefficients[x] * z + law.coefficients[y] * M).expand() == 0
    assert linear_laws("OV", [x, y], [exp(y) * z, exp(y) * M], [x, y, z]) == ()
