"""Directions, norms, singular values and the isometry criterion, against the table of section 4 and explicit SVDs."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest
from sympy import Integer, Mul, Rational, Symbol, cancel, exp, factor, log, oo, sqrt

from theory.attention import RATES
from theory.blocks import Block, BlockMatrix
from theory.errors import NoLineError
from theory.identities import prove_zero
from theory.line import COORDINATES, Isometry, _derive_line, _direction_values, _isometry, _present, collapsed_line
from theory.orbits import IndexSet, LinearLaw, orbits
from theory.positivity import sign
from theory.symbols import K, M, N, alpha, b, eta_OV, eta_QK, gamma, m, mu_OV, mu_QK, n
from theory.task import TokenTask

SETTINGS = [(kind, noise) for kind in ("shared", "per_class") for noise in (N, oo)]
# (classes, block, queries, noise): the borderline of all ones included
EXPLICIT = [(2, 1, 1, 1), (3, 2, 2, 4), (4, 3, 1, 2), (2, 2, 3, None), (5, 1, 2, None)]
# Entries below 1 in matrices of at most 40 entries: rounding of squared singular values stays below 1e-13.
SVD_TOLERANCE = 1e-12


def expected_values(kind: str, noise: Any) -> dict[str, Any]:
    """Section 4: E_OV, and E_QK with a + c = 1 and a S = c N."""
    size = b if kind == "per_class" else M * b
    inside, outside = (Integer(1), Integer(0)) if noise is oo else (N / (size + N), -size / (size + N))
    same = "W_QK_same" if kind == "per_class" else "W_QK_informative"
    other = {"W_QK_other": Integer(0)} if kind == "per_class" else {}
    return {
        "W_OV_same": 1 - 1 / M,
        "W_OV_other": -1 / M,
        "W_OV_noise": Integer(0),
        same: inside,
        "W_QK_noise": outside,
        **other,
    }


def expected_norm2(kind: str, noise: Any) -> Any:
    if kind == "shared":
        return K * M * b if noise is oo else K * M * b * N / (M * b + N)
    return M * K * b if noise is oo else M * K * b * N / (b + N)


def same(one: Any, other: Any) -> bool:
    return bool(cancel(one - other) == 0)


@pytest.mark.parametrize(("kind", "noise"), SETTINGS)
def test_directions_and_norms_of_the_table(kind: Any, noise: Any) -> None:
    line = collapsed_line(TokenTask(noise=noise, query_kind=kind))
    found = {s.name: v for d in line.directions.values() for s, v in d.values.items()}
    expected = expected_values(kind, noise)
    assert found.keys() == expected.keys()
    assert all(same(found[name], expected[name]) for name in found)
    assert same(line.directions["OV"].norm2, (M - 1) * b)
    assert same(line.directions["QK"].norm2, expected_norm2(kind, noise))
    assert not same(line.directions["OV"].norm2, M * b)
    assert not same(line.directions["QK"].norm2, 2 * expected_norm2(kind, noise))


@pytest.mark.parametrize(("kind", "noise"), SETTINGS)
def test_singular_values_of_the_table(kind: Any, noise: Any) -> None:
    directions = collapsed_line(TokenTask(noise=noise, query_kind=kind)).directions
    output, attention = directions["OV"], directions["QK"]
    assert output.singular_values2 == ((b, M - 1),)
    assert output.sigma == sqrt(b)
    assert output.rank == M - 1
    assert output.isometry.holds
    if kind == "shared":
        assert attention.rank == 1
        assert same(attention.sigma**2, expected_norm2(kind, noise))
    elif noise is oo:
        assert attention.rank == M
        assert attention.sigma == sqrt(K) * sqrt(b)
    else:
        assert attention.rank == M
        squares = {factor(v): times for v, times in attention.singular_values2}
        wanted = {factor(K * b * N * (N + M * b) / (b + N) ** 2): 1, factor(K * b * N**2 / (b + N) ** 2): M - 1}
        assert squares == wanted
    assert attention.isometry.holds is not (kind == "per_class" and noise is N)


def test_failed_criterion_has_a_gap_of_proved_sign() -> None:
    direction = collapsed_line(TokenTask(query_kind="per_class")).directions["QK"]
    isometry = direction.isometry
    assert not isometry.holds
    assert not isometry.residual.is_zero()
    assert sign(isometry.gap) == 1
    assert same(isometry.gap, M * K * N * b**2 / (b + N) ** 2)
    with pytest.raises(NoLineError, match=r"E E\^T E = sigma\^2 E"):
        _ = direction.sigma


@pytest.mark.parametrize(("kind", "noise"), SETTINGS)
def test_held_criterion_leaves_no_residual(kind: Any, noise: Any) -> None:
    for direction in collapsed_line(TokenTask(noise=noise, query_kind=kind)).directions.values():
        assert direction.isometry.residual.is_zero() is direction.isometry.holds
        assert (direction.isometry.gap is None) is direction.isometry.holds


@pytest.mark.parametrize("explicit", EXPLICIT, ids=str)
@pytest.mark.parametrize("kind", ["shared", "per_class"])
def test_directions_against_explicit_matrices(reference: ModuleType, kind: Any, explicit: tuple[Any, ...]) -> None:
    sizes = reference.Sizes(*explicit, query_kind=kind)
    line = collapsed_line(TokenTask(*explicit[:3], oo if sizes.noise is None else sizes.noise, query_kind=kind))
    for circuit, direction in line.directions.items():
        exact = reference.direction(sizes, circuit)
        entries = {s.name: v for s, v in direction.values.items()}
        assert all(entries[reference.orbit_name(circuit, pair)] == Rational(v) for pair, v in exact.items())
        assert direction.norm2 == sum(Rational(v) ** 2 for v in exact.values())
        dense = reference.array(sizes, circuit, exact)
        written = np.array(direction.matrix.explicit().tolist(), dtype=float)
        assert np.allclose(np.sort(written.ravel()), np.sort(dense.ravel()), rtol=0, atol=SVD_TOLERANCE)
        squares = np.linalg.svd(dense, compute_uv=False) ** 2
        squares = np.sort(squares[squares > SVD_TOLERANCE])
        closed = sorted(float(v) for v, times in direction.singular_values2 for _ in range(int(times)))
        assert len(closed) == len(squares) == int(direction.rank) == np.linalg.matrix_rank(dense)
        assert np.allclose(closed, squares, rtol=0, atol=SVD_TOLERANCE * max(closed))
        cube = dense @ dense.T @ dense
        ratio = (cube * dense).sum() / (dense * dense).sum()
        assert direction.isometry.holds is bool(np.allclose(cube, ratio * dense, rtol=0, atol=1e-9))


@pytest.mark.parametrize(("kind", "noise"), SETTINGS)
def test_gradient_on_the_line(kind: Any, noise: Any) -> None:
    """``dL/dW = g E``: the coordinates move by section 4, and a factor 2, M for M-1 or b for b^2 is told apart."""
    line = collapsed_line(TokenTask(noise=noise, query_kind=kind, score_scale=gamma))
    denominator = exp(alpha * mu_OV) + M - 1
    output = -alpha / (b * denominator)
    attention = -gamma * (M - 1) * alpha * (1 - alpha) * mu_OV / (expected_norm2(kind, noise) * denominator)
    for circuit, wanted in (("OV", output), ("QK", attention)):
        gradient = line.gradient[circuit]  # type: ignore[index]
        assert prove_zero(gradient - wanted).answer == "equal"
        for wrong in (2 * wanted, wanted / b, wanted * M / (M - 1)):
            assert prove_zero(gradient - wrong).answer == "different"
    mass = m * exp(gamma * mu_QK) / (m * exp(gamma * mu_QK) + n)
    assert prove_zero(line.attention - mass).answer == "equal"
    assert prove_zero(line.loss - log(1 + (M - 1) * exp(-alpha * mu_OV))).answer == "equal"
    assert prove_zero(line.loss - log(1 + M * exp(-alpha * mu_OV))).answer == "different"
    assert line.gradient["OV"].free_symbols.isdisjoint({eta_OV, eta_QK})


@pytest.mark.parametrize("kind", ["shared", "per_class"])
@pytest.mark.parametrize("noise", [2, None])
def test_gradient_is_parallel_in_the_enumerated_model(reference: ModuleType, kind: Any, noise: int | None) -> None:
    """Every entry of ``dL/dW`` at a point of the line is ``g`` times the entry of ``E``."""
    sizes = reference.Sizes(2, 2, 2, noise, 1, 2, kind)
    line = collapsed_line(TokenTask(2, 2, 2, oo if noise is None else noise, 1, 2, kind))
    start = {mu_OV: Rational(-7, 5), mu_QK: Rational(4, 3)}
    mass = line.attention.xreplace(start)
    with mpmath.workdps(reference.DIGITS):
        entries = {}
        for circuit, coordinate in (("OV", mu_OV), ("QK", mu_QK)):
            value = mpmath.mpf(start[coordinate].p) / start[coordinate].q
            exact = reference.direction(sizes, circuit)
            entries[circuit] = {p: value * v.numerator / v.denominator for p, v in exact.items()}
        for circuit in ("OV", "QK"):
            speed = mpmath.mpf(str(line.gradient[circuit].xreplace({**start, alpha: mass}).evalf(60)))
            assert abs(speed) > 1e-3, "a gradient worth comparing"
            for pair, v in reference.direction(sizes, circuit).items():
                slope = reference.gradient(sizes, entries["OV"], entries["QK"], circuit, pair)
                assert abs(slope - speed * v.numerator / v.denominator) < reference.GRADIENT_TOLERANCE


@pytest.mark.parametrize("sizes", [(2, 1, 1, 1), (2, 1, 1, 10**12), (10**6, 1, 1, 1)], ids=str)
def test_criterion_fails_at_borderline_sizes(sizes: tuple[int, ...]) -> None:
    assert not collapsed_line(TokenTask(*sizes, query_kind="per_class")).directions["QK"].isometry.holds
    assert collapsed_line(TokenTask(*sizes, query_kind="shared")).directions["QK"].isometry.holds


def test_laws_annihilate_the_direction() -> None:
    for kind, noise in SETTINGS:
        line = collapsed_line(TokenTask(noise=noise, query_kind=kind))
        for circuit, laws in line.laws.items():
            values = line.directions[circuit].values
            assert laws
            for law in laws:
                assert cancel(sum((c * values[s] for s, c in law.coefficients.items()), Integer(0))) == 0
                assert cancel(sum((c * (values[s] + 1) for s, c in law.coefficients.items()), Integer(0))) != 0


def square(diagonal: Any, ones: Any) -> BlockMatrix:
    """``diagonal I + ones 1 1^T`` over the classes: singular values ``diagonal + M ones`` once, ``diagonal`` M-1 times.

    The second exists for all ``M >= 2``.
    """
    classes = IndexSet("outputs", Integer(1), True)
    return BlockMatrix(M, (classes,), (classes,), ((Block(diagonal, ones),),))


def test_criterion_is_decided_by_a_proved_difference_only() -> None:
    x, y, p = Symbol("x", real=True), Symbol("y", real=True), Symbol("p", positive=True)
    large, one = (1 + M * p) ** 2, Integer(1)
    mixed = square(one, p)
    assert set(mixed.singular_values2()) == {(factor(large), one), (one, M - 1)}
    failed = _isometry(mixed, ((large, one), (one, M - 1)))
    assert failed.holds is False
    assert same(failed.gap, large - 1)
    swapped = _isometry(mixed, ((one, M - 1), (large, one)))
    assert swapped.holds is False
    assert same(swapped.gap, 1 - large), "a difference of either sign is a proof"
    assert _isometry(square(x, Integer(0)), ((x**2, M),)).holds is True
    undecided = _isometry(square(x, y / M), (((x + y) ** 2, one), (x**2, M - 1)))
    assert (undecided.holds, undecided.gap) == (None, None), "(x + y)^2 = x^2 for y = -2 x"
    assert _isometry(mixed, ((large, one), (one, M - 2))).holds is None, "no second value for M = 2"
    assert _isometry(mixed, ((large, one), (large, M - 1))).holds is None, "equal values decide nothing"


def test_criterion_for_some_sizes_only_is_no_singular_value() -> None:
    direction = collapsed_line(TokenTask()).directions["OV"]
    assert direction.sigma == sqrt(b)
    partly = replace(direction, isometry=Isometry(None, direction.isometry.residual))
    with pytest.raises(NoLineError, match="for some sizes only"):
        _ = partly.sigma


def test_laws_must_leave_one_direction() -> None:
    found = orbits(TokenTask(), "OV")
    laws = collapsed_line(TokenTask()).laws["OV"]
    more = LinearLaw("OV", {found[0].symbol: Integer(1)})
    assert _direction_values(found, laws) == dict(collapsed_line(TokenTask()).directions["OV"].values)
    for given, left in (((), 3), (laws[:1], 2), ((*laws, more), 0)):
        with pytest.raises(NoLineError, match=f"OV orbit values move in {left} dimensions: {len(given)} linear"):
            _direction_values(found, given)


def test_velocity_that_is_not_parallel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin of the proof: where it fails, there is no line."""
    monkeypatch.setattr("theory.line.is_zero", lambda expression: False)
    with pytest.raises(NoLineError, match="velocity of W_OV_same is not parallel to E_OV"):
        _derive_line.__wrapped__(TokenTask().generic)


@pytest.mark.parametrize("power", [-2, -1, 1, 2, 3])
def test_velocities_are_written_in_one_minus_alpha(power: int) -> None:
    e = exp(alpha * mu_OV)
    shown = _present((alpha - 1) ** power * (alpha * M + alpha * e))
    assert shown == Mul(Integer(-1) ** power, (1 - alpha) ** power, alpha, M + e)
    assert _present(mu_OV * (M + e)) == mu_OV * (M + e)
    assert _present((e * M - e) / (M - 1)) == e


@pytest.mark.parametrize(("kind", "noise"), SETTINGS)
def test_trace_tells_the_derivation(kind: Any, noise: Any) -> None:
    """Laws, the direction they leave, and velocities that are ``-eta g`` times it."""
    line = collapsed_line(TokenTask(noise=noise, query_kind=kind))
    steps = {step.name: step for step in line.trace}
    assert len(steps) == len(line.trace)
    for circuit, direction in line.directions.items():
        laws, reduction, parallel = (steps[name + circuit] for name in ("laws of ", "E_", "g_"))
        assert [step.rule for step in (laws, reduction, parallel)] == ["null space", "reduction", "parallel"]
        assert laws.inputs == tuple(direction.values)
        assert laws.output == reduction.inputs == tuple(law.expression for law in line.laws[circuit])
        for law in laws.output:
            on_line = law.xreplace({s: COORDINATES[circuit] * v for s, v in direction.values.items()})
            assert same(on_line, 0), "each law vanishes on the line"
        assert dict(reduction.output) == dict(direction.values)
        assert parallel.output == line.gradient[circuit]
        assert [s for s, _ in parallel.inputs] == list(direction.values)
        for symbol, velocity in parallel.inputs:
            e = exp(alpha * mu_OV)
            along = -RATES[circuit] * line.gradient[circuit] * direction.values[symbol]
            assert same((velocity - along).xreplace({e: Symbol("e")}), 0)
