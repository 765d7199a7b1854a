"""Directions, norms, singular values and the isometry criterion, against the table of section 4 and explicit SVDs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest
from sympy import Integer, Rational, cancel, exp, factor, oo, sqrt

from theory.errors import NoLineError
from theory.identities import prove_zero
from theory.line import collapsed_line
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
