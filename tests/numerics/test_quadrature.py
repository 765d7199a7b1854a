"""Many integrals and many roots at once: against closed forms, against scalar methods, at their limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expi

from numerics.circuits import Circuit, exponential_growth
from numerics.quadrature import integrate, kronrod
from numerics.roots import increasing_root
from theory.errors import GradlineError


def test_degrees_of_the_rules() -> None:
    """The Kronrod rule is exact to degree 22, its Gauss rule to degree 13, and neither one further even degree."""
    nodes, weights, small = kronrod()
    for power in range(0, 24, 2):
        exact = 2 / (power + 1)
        assert abs(float(weights @ nodes**power) - exact) < 1e-15
        assert (abs(float(small @ nodes**power) - exact) < 1e-15) is (power <= 13)
    assert abs(float(weights @ nodes**24) - 2 / 25) > 1e-10
    # QUADPACK's outermost node, as printed there
    assert nodes[-1] == pytest.approx(0.991455371120812639, abs=1e-14)


def test_integrals_of_their_own() -> None:
    """Each integral has its own limits and its own function; sharp ones are bisected, others not."""
    width = np.array([1.0, 1e-3, 1e-6])
    value, error = integrate(lambda x, i: width[i, None] / (width[i, None] ** 2 + x * x), -np.ones(3), np.ones(3))
    exact = 2 * np.arctan(1 / width)
    assert np.all(np.abs(value - exact) <= error + 4e-16 * exact)
    assert np.all(error <= 1e-11)


def test_integrals_that_fail() -> None:
    with pytest.raises(GradlineError, match="overflows"):
        integrate(lambda x, i: np.full(x.shape, np.inf), np.zeros(1), np.ones(1))
    with pytest.raises(GradlineError, match="does not settle"):
        integrate(lambda x, i: np.sign(np.sin(1 / (x + 1e-9))), np.zeros(1), np.ones(1), 1e-14)


def test_roots_from_bad_guesses() -> None:
    """Steep, flat and infinite functions, from guesses at either bound."""
    targets = np.array([1e-200, 1e-3, 1.0, 1e3, 1e300])

    def function(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = np.expm1(x) - targets
        return value, value / np.exp(x)

    for guess in (np.zeros(5), np.full(5, 1e4)):
        found = increasing_root(function, np.zeros(5), np.full(5, 1e4), guess)
        np.testing.assert_allclose(found, np.log1p(targets), rtol=1e-14)


def test_bounds_without_a_root_are_refused() -> None:
    """Twin: nothing that looks like a root comes out where there is none."""
    for function in (lambda x: (x + 5.0, x + 5.0), lambda x: (x + np.nan, x + np.nan)):
        with pytest.raises(GradlineError, match="bounds don't close"):
            increasing_root(function, np.zeros(1), np.ones(1), np.ones(1))


def test_exponential_growth() -> None:
    p = np.array([-700.0, -30.0, -1.5, 1.5, 30.0, 700.0])
    np.testing.assert_allclose(exponential_growth(p), expi(p) - np.log(np.abs(p)) - np.euler_gamma, rtol=1e-14)
    tiny = np.array([-1e-12, 1e-300, 0.0])
    np.testing.assert_allclose(exponential_growth(tiny), tiny, rtol=1e-11)
    assert exponential_growth(np.inf) == np.inf


@pytest.mark.parametrize(
    ("circuit", "mu"),
    [
        (Circuit("collapsed"), -0.3),
        (Circuit("balanced", 1.5, sign=1.0), 0.3),
        (Circuit("balanced", 1.5, sign=-1.0), -0.3),
        (Circuit("imbalanced", 1.5, width=0.2), -0.3),
    ],
    ids=lambda x: getattr(x, "kind", x),
)
def test_coordinates_of_circuits(circuit: Circuit, mu: float) -> None:
    """``moved`` is a step in ``z``, ``speed`` is ``dmu/dz``, and ``f = rate speed`` gives ``X``."""
    d = 0.25
    there = circuit.moved(mu, d)
    assert circuit.z(there) - circuit.z(mu) == pytest.approx(d, abs=1e-15)
    assert circuit.mu(circuit.z(mu)) == pytest.approx(mu, rel=1e-15)
    h = 1e-6
    # central differences: the error is h^2 and rounding over h
    assert (circuit.moved(mu, h) - circuit.moved(mu, -h)) / (2 * h) == pytest.approx(circuit.speed(mu), rel=1e-9)
    slope = (circuit.output_rise(mu + h, mu) - circuit.output_rise(mu - h, mu)) / (2 * h)
    assert slope == pytest.approx(mu / (circuit.rate * circuit.speed(mu)), rel=1e-8)
