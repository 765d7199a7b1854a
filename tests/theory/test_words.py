"""Matrix words against random explicit matrices of several shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sympy import Integer, Rational, Symbol

from theory.errors import GradlineError
from theory.words import Rule, Words, gradient, matrix, rewrite

A, B, C = matrix("A"), matrix("B"), matrix("C")
# (rows of A, columns of A = columns of B, rows of B)
SHAPES = [(1, 1, 1), (2, 3, 4), (4, 1, 2), (3, 5, 3)]
# Entries of order 1, products of at most six small matrices: rounding stays below 1e-10.
ROUNDING = 1e-9
# A central difference with step 1e-5 of a smooth function of order 1 to 100 errs by h^2 and by 1e-16/h: below 1e-6.
STEP, DIFFERENCE = 1e-5, 1e-5


def value(expression: Words, matrices: dict[str, Any], shape: tuple[int, int]) -> Any:
    """Evaluate with NumPy; the empty word is the identity."""
    total = np.zeros(shape)
    for word, coefficient in expression.terms.items():
        product = np.eye(shape[0])
        for name, transposed in word:
            product = product @ (matrices[name].T if transposed else matrices[name])
        total = total + float(coefficient) * product
    return total


def random_matrices(shape: tuple[int, int, int], seed: int = 0) -> dict[str, Any]:
    rows, inner, columns = shape
    draw = np.random.default_rng(seed)
    return {
        "A": draw.normal(size=(rows, inner)),
        "B": draw.normal(size=(columns, inner)),
        "C": draw.normal(size=(inner, inner)),
        "G": draw.normal(size=(rows, columns)),
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_algebra_of_words(shape: tuple[int, int, int]) -> None:
    x = random_matrices(shape)
    size = (shape[0], shape[2])
    one, other = A @ B.T, A @ C @ B.T
    a, c, bt = x["A"], x["C"], x["B"].T
    assert np.allclose(value(one + 2 * other, x, size), a @ bt + 2 * a @ c @ bt, rtol=0, atol=ROUNDING)
    assert np.allclose(value(one - other, x, size), a @ bt - a @ c @ bt, rtol=0, atol=ROUNDING)
    assert np.allclose(value(other.T, x, size[::-1]), (a @ c @ bt).T, rtol=0, atol=ROUNDING)
    assert np.allclose(value(one @ other.T @ one, x, size), a @ bt @ (a @ c @ bt).T @ a @ bt, rtol=0, atol=ROUNDING)
    assert (one - one).is_zero()
    assert not (A @ C - C @ A).is_zero(), "matrices don't commute"
    assert (other.T.T - other).is_zero()


@pytest.mark.parametrize("shape", SHAPES)
def test_replace_and_derivative(shape: tuple[int, int, int]) -> None:
    x = random_matrices(shape)
    velocity = {"A": A @ C, "B": 3 * (B @ C.T)}
    product = A @ C @ B.T @ B @ C.T @ A.T
    moved = product.derivative(velocity)
    size = (shape[0], shape[0])

    def at(h: float) -> Any:
        y = x | {"A": x["A"] + h * x["A"] @ x["C"], "B": x["B"] + 3 * h * x["B"] @ x["C"].T}
        return value(product, y, size)

    numeric = (at(STEP) - at(-STEP)) / (2 * STEP)
    scale = 1 + abs(numeric).max()
    assert np.allclose(value(moved, x, size), numeric, rtol=0, atol=DIFFERENCE * scale)
    assert not np.allclose(2 * value(moved, x, size), numeric, rtol=0, atol=DIFFERENCE * scale)
    replaced = product.replace({"A": A @ C - 2 * A, "B": B @ C})
    y = x | {"A": x["A"] @ x["C"] - 2 * x["A"], "B": x["B"] @ x["C"]}
    assert np.allclose(value(replaced, x, size), value(product, y, size), rtol=ROUNDING, atol=ROUNDING * scale)


# products that contain A once, twice, and transposed
PRODUCTS = {
    "A B^T": A @ B.T,
    "A C B^T": A @ C @ B.T,
    "A A^T A B^T": A @ A.T @ A @ B.T,
    "A C^T A^T A C B^T": A @ C.T @ A.T @ A @ C @ B.T,
    "sum": 2 * (A @ B.T) - A @ A.T @ A @ C @ B.T,
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("variable", ["A", "B", "C"])
def test_gradient_against_differences(name: str, shape: tuple[int, int, int], variable: str) -> None:
    """``L(W) = tr(G^T W)``: the gradient in each factor, entry by entry."""
    x = random_matrices(shape, seed=7)
    product = PRODUCTS[name]
    found = value(gradient(product, "G", variable), x, x[variable].shape)
    numeric = np.zeros_like(x[variable])
    for index in np.ndindex(*numeric.shape):
        bump = np.zeros_like(numeric)
        bump[index] = STEP
        losses = [
            (x["G"] * value(product, x | {variable: x[variable] + s * bump}, x["G"].shape)).sum() for s in (1, -1)
        ]
        numeric[index] = (losses[0] - losses[1]) / (2 * STEP)
    scale = 1 + abs(numeric).max()
    assert np.allclose(found, numeric, rtol=0, atol=DIFFERENCE * scale)
    if abs(numeric).max() > 0.1:
        assert not np.allclose(-found, numeric, rtol=0, atol=DIFFERENCE * scale)
        assert not np.allclose(2 * found, numeric, rtol=0, atol=DIFFERENCE * scale)


def test_letters_that_are_absent_have_no_gradient() -> None:
    assert gradient(A @ B.T, "G", "Z").is_zero()
    assert A.derivative({"B": B}).is_zero()
    assert str(Words.of({})) == "0"


def test_coefficients_are_reduced() -> None:
    s = Symbol("s")
    square = (s + 1) ** 2
    expression = Words.of({(("A", False),): square - s**2 - 2 * s - 1})
    assert expression.is_zero()
    assert not Words.of({(("A", False),): square - s**2 - 2 * s}).is_zero()
    assert (Rational(1, 3) * A + Rational(2, 3) * A - A).is_zero()


def test_rewriting_with_a_projection() -> None:
    """P P -> P shortens any power; the result is that of explicit projections."""
    P = matrix("P")
    rule = (Rule((("P", False), ("P", False)), P),)
    power = P @ P @ P @ P
    assert (rewrite(power, rule) - P).is_zero()
    assert (rewrite(A @ P @ P @ B.T - A @ P @ B.T, rule)).is_zero()
    assert not rewrite(A @ P @ B.T - A @ B.T, rule).is_zero()
    basis, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(5, 2)))
    x = {"P": basis @ basis.T}
    assert np.allclose(value(power, x, (5, 5)), value(rewrite(power, rule), x, (5, 5)), rtol=0, atol=ROUNDING)


def test_rules_that_cancel_terms() -> None:
    rule = (Rule((("A", True), ("A", False)), B.T @ B),)
    assert rewrite(A @ A.T @ A - A @ B.T @ B, rule).is_zero()
    assert rewrite(C, rule) == C
    assert rewrite(Words.of({}), rule).is_zero()


def test_rules_that_do_not_end_are_an_error() -> None:
    grow = (Rule((("A", False),), A @ A),)
    with pytest.raises(GradlineError, match="rules do not end"):
        rewrite(A, grow)


def test_transpose_reverses_and_prints() -> None:
    assert str((A @ B.T @ C).T) == "C^T B A^T"
    assert (Integer(2) * A).terms == {(("A", False),): 2}
