"""Product flow, balancedness and the rescaled rate, against explicit factors of random shapes and widths."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sympy import Abs, Integer, Rational, Symbol, oo, sqrt

from theory.errors import GradlineError, NoLineError
from theory.factorization import (
    ISOMETRY,
    PROJECTION,
    _balanced_factor,
    _imbalanced_factor,
    _on_direction,
    balance_trace,
    balanced_root_residuals,
    imbalance_velocity,
    product_flow,
    product_trace,
    rescaling,
    root_trace,
    word,
)
from theory.identities import prove_zero
from theory.line import collapsed_line
from theory.symbols import K, M, N, b, c_OV, c_QK, mu_OV, mu_QK
from theory.task import TokenTask
from theory.words import Words, matrix, rewrite

U, V, G = matrix("U"), matrix("V"), matrix("G")
SHAPES = [(1, 1, 1), (3, 2, 4), (2, 5, 3)]
# Double precision on products of small matrices with entries of order 1.
ROUNDING = 1e-11
SETTINGS = [("shared", 3), ("shared", None), ("per_class", None)]


@pytest.mark.parametrize("shape", SHAPES)
def test_product_flow_of_explicit_factors(shape: tuple[int, int, int]) -> None:
    """One Euler step of both factors changes the product by h times the flow, up to h^2."""
    rows, inner, columns = shape
    draw = np.random.default_rng(11)
    u, v, g = draw.normal(size=(rows, inner)), draw.normal(size=(columns, inner)), draw.normal(size=(rows, columns))
    rate = 0.7
    du, dv = -rate * g @ v, -rate * g.T @ u
    direct = du @ v.T + u @ dv.T
    letters = {"U": u, "V": v, "G": g}
    total = np.zeros((rows, columns))
    for letter_pairs, coefficient in product_flow(Rational(7, 10)).terms.items():
        product = np.eye(rows)
        for name, transposed in letter_pairs:
            product = product @ (letters[name].T if transposed else letters[name])
        total += float(coefficient) * product
    assert np.allclose(total, direct, rtol=0, atol=ROUNDING)
    assert not np.allclose(total, -rate * (u @ u.T @ g), rtol=0, atol=1e-3), "one of the two terms is not enough"
    drift = u.T @ du + du.T @ u - v.T @ dv - dv.T @ v
    assert np.allclose(drift, 0, rtol=0, atol=ROUNDING)


def test_product_flow_as_words() -> None:
    eta = Symbol("eta", positive=True)
    assert (product_flow() + eta * (U @ U.T @ G + G @ V @ V.T)).is_zero()
    assert not (product_flow() + eta * (U @ U.T @ G)).is_zero()
    assert not (product_flow() + eta * (U.T @ U @ G + G @ V @ V.T)).is_zero()


def test_imbalance_is_conserved_and_the_sum_is_not() -> None:
    assert imbalance_velocity().is_zero()
    moving = {"U": -1 * (G @ V), "V": -1 * (G.T @ U)}
    assert not (U.T @ U + V.T @ V).derivative(moving).is_zero()
    assert not (U @ U.T - V @ V.T).derivative(moving).is_zero()
    unequal = {"U": -1 * (G @ V), "V": -2 * (G.T @ U)}
    assert not (U.T @ U - V.T @ V).derivative(unequal).is_zero(), "equal rates are needed"


def test_balanced_roots() -> None:
    assert all(residual.is_zero() for residual in balanced_root_residuals())
    product = U @ V.T
    assert not (U @ U.T @ U @ U.T - product @ product.T).is_zero(), "without balance it is false"
    assert not rewrite(U @ U.T - product @ product.T, ()).is_zero()


def factors(e: Any, sigma: float, mu: float, c: float, width: int) -> tuple[Any, Any]:
    """``U = u A``, ``V = v B`` ``A B^T = E/sigma``, ``A^T A = B^T B = P``, in a randomly rotated inner space."""
    left, singular, right = np.linalg.svd(e, full_matrices=False)
    rank = int((singular > 1e-9).sum())
    assert np.allclose(singular[:rank], sigma, rtol=1e-12)
    assert width >= rank
    rotation, _ = np.linalg.qr(np.random.default_rng(width).normal(size=(width, width)))
    pad = np.zeros((rank, width))
    pad[:, :rank] = np.eye(rank)
    a, bb = left[:, :rank] @ pad @ rotation, right[:rank].T @ pad @ rotation
    total = np.sqrt(c**2 + 4 * sigma**2 * mu**2)
    u, v = np.sqrt((total + c) / 2), np.sqrt((total - c) / 2) * (-1 if mu < 0 else 1)
    return u * a, v * bb


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("extra", [0, 3])
@pytest.mark.parametrize("mu", [0.8, -0.3])
@pytest.mark.parametrize("imbalance", [0, 2, Rational(-1, 2)])
def test_factor_on_explicit_factors(
    reference: ModuleType, setting: tuple[Any, int | None], extra: int, mu: float, imbalance: Any
) -> None:
    kind, noise = setting
    sizes = reference.Sizes(3, 2, 2, noise, query_kind=kind)
    line = collapsed_line(TokenTask(3, 2, 2, oo if noise is None else noise, query_kind=kind))
    for circuit, coordinate in (("OV", mu_OV), ("QK", mu_QK)):
        direction = line.directions[circuit]  # type: ignore[index]
        e = reference.array(sizes, circuit, reference.direction(sizes, circuit))
        sigma = float(direction.sigma)
        width = int(direction.rank) + extra
        u, v = factors(e, sigma, mu, float(imbalance), width)
        assert np.allclose(u @ v.T, mu * e, rtol=0, atol=ROUNDING), "the start is on the line"
        closed = float(rescaling(direction, coordinate, imbalance).factor.xreplace({coordinate: Rational(str(mu))}))
        moved = u @ u.T @ e + e @ v @ v.T
        assert np.allclose(moved, closed * e, rtol=0, atol=ROUNDING)
        assert not np.allclose(moved, closed / 2 * e, rtol=0, atol=1e-3), "a factor 2 shows"
        assert not np.allclose(moved, closed / sigma**2 * e, rtol=0, atol=1e-3) or sigma == 1


def test_factor_without_isometry_is_not_parallel(reference: ModuleType) -> None:
    """Twin: per-class queries with finite noise, balanced on the line: the product flow leaves the direction."""
    sizes = reference.Sizes(3, 2, 2, 2, query_kind="per_class")
    e = reference.array(sizes, "QK", reference.direction(sizes, "QK"))
    left, singular, right = np.linalg.svd(e, full_matrices=False)
    u, v = left * np.sqrt(singular), right.T * np.sqrt(singular)
    assert np.allclose(u @ v.T, e, rtol=0, atol=ROUNDING)
    moved = u @ u.T @ e + e @ v @ v.T
    ratio = (moved * e).sum() / (e * e).sum()
    assert not np.allclose(moved, ratio * e, rtol=0, atol=1e-2)
    direction = collapsed_line(TokenTask(3, 2, 2, 2, query_kind="per_class")).directions["QK"]
    for imbalance in (0, 1):
        with pytest.raises(NoLineError, match=r"E E\^T E = sigma\^2 E"):
            rescaling(direction, mu_QK, imbalance)


@pytest.mark.parametrize(
    ("kind", "noise", "sigma2"),
    [("shared", N, K * M * b * N / (M * b + N)), ("shared", oo, K * M * b), ("per_class", oo, K * b)],
)
def test_symbolic_factors(kind: Any, noise: Any, sigma2: Any) -> None:
    directions = collapsed_line(TokenTask(noise=noise, query_kind=kind)).directions
    for circuit, coordinate, square, c in (("OV", mu_OV, b, c_OV), ("QK", mu_QK, sigma2, c_QK)):
        direction = directions[circuit]  # type: ignore[index]
        balanced = rescaling(direction, coordinate)
        assert prove_zero(balanced.factor - 2 * sqrt(square) * Abs(coordinate)).answer == "equal"
        assert prove_zero(balanced.factor - 2 * square * Abs(coordinate)).answer == "different"
        assert prove_zero(balanced.factor - 2 * sqrt(square) * coordinate).answer == "different", "mu may be negative"
        imbalanced = rescaling(direction, coordinate, c)
        assert prove_zero(imbalanced.factor - sqrt(c**2 + 4 * square * coordinate**2)).answer == "equal"
        assert prove_zero(imbalanced.factor - sqrt(c**2 + 2 * square * coordinate**2)).answer == "different"
        assert prove_zero(imbalanced.factor - sqrt(c + 4 * square * coordinate**2)).answer == "different"
        assert [balanced.trace[0].rule, imbalanced.trace[0].rule] == ["square root", "projection"]
        for number in (1, -1):
            unit = rescaling(direction, coordinate, number)
            assert unit.trace == imbalanced.trace
            assert prove_zero(unit.factor - sqrt(1 + 4 * square * coordinate**2)).answer == "equal"
        assert (balanced.imbalance, imbalanced.imbalance) == (0, c)


def test_imbalanced_factor_tends_to_the_balanced_one() -> None:
    direction = collapsed_line(TokenTask(noise=oo)).directions["OV"]
    tiny = rescaling(direction, mu_OV, Rational(1, 10**20)).factor.xreplace({mu_OV: Integer(-3), b: Integer(4)})
    # sqrt(c^2 + 144) - 12 = c^2/24 to leading order
    assert abs(tiny.evalf(60) - 12) < Rational(1, 10**40)
    assert rescaling(direction, mu_OV).factor.xreplace({mu_OV: Integer(-3), b: Integer(4)}) == 12


def test_words_of_a_random_balanced_pair() -> None:
    """``U U^T`` is the root of ``W W^T`` on explicit balanced factors, and not on unbalanced ones."""
    draw = np.random.default_rng(2)
    q, _ = np.linalg.qr(draw.normal(size=(4, 4)))
    u = draw.normal(size=(3, 4))
    values, vectors = np.linalg.eigh(u.T @ u)
    v = q[:, :4] @ np.diag(np.sqrt(np.clip(values, 0, None))) @ vectors.T
    assert np.allclose(u.T @ u, v.T @ v, rtol=0, atol=ROUNDING)
    product = u @ v.T
    assert np.allclose(u @ u.T @ u @ u.T, product @ product.T, rtol=0, atol=1e-10)
    doubled = u @ (2 * v).T
    assert not np.allclose(u @ u.T @ u @ u.T, doubled @ doubled.T, rtol=0, atol=1e-3)


def explicit(words: Words, letters: dict[str, Any], values: dict[str, float]) -> Any:
    """A sum of words with numbers for its letters and for the symbols of its coefficients."""
    total: Any = 0.0
    for letters_of_word, coefficient in words.terms.items():
        factors_of_word = [letters[name].T if transposed else letters[name] for name, transposed in letters_of_word]
        number = coefficient.xreplace({s: Rational(str(values[s.name])) for s in coefficient.free_symbols})
        total = total + float(number) * np.linalg.multi_dot([np.eye(len(factors_of_word[0])), *factors_of_word])
    return total


@pytest.mark.parametrize("rule", [*PROJECTION, *ISOMETRY], ids=lambda rule: str(rule.word))
def test_rules_hold_for_explicit_matrices(rule: Any) -> None:
    """``A`` and ``B`` with one projection ``P = A^T A = B^T B``, and ``E = sigma A B^T``."""
    draw = np.random.default_rng(17)
    columns = np.linalg.qr(draw.normal(size=(4, 2)))[0]
    a, bb = (np.linalg.qr(draw.normal(size=(rows, 2)))[0] @ columns.T for rows in (3, 5))
    letters = {"A": a, "B": bb, "P": columns @ columns.T, "E": 0.7 * a @ bb.T}
    left = explicit(Words.of({rule.word: Integer(1)}), letters, {})
    right = explicit(rule.image, letters, {"sigma": 0.7})
    assert np.allclose(left, right, rtol=0, atol=ROUNDING)
    assert not np.allclose(left, 0.9 * right, rtol=0, atol=1e-3), "neither side vanishes"


@pytest.mark.parametrize("text", ["B^T A A^T A", "A P P^T", "P A^T A P", "P^T P B^T", "B^T B P B^T"])
def test_projections_are_reduced_to_one_letter(text: str) -> None:
    """Each word equals A, P or B^T times at most one other factor by ``P = P^T = P P``, ``A P = A`` and ``B P = B``."""
    reduced = {
        "B^T A A^T A": "B^T A",
        "A P P^T": "A",
        "P A^T A P": "P",
        "P^T P B^T": "B^T",
        "B^T B P B^T": "B^T",
    }
    assert rewrite(Words.of({word(text): Integer(1)}), PROJECTION).terms == {word(reduced[text]): 1}


def test_flow_on_a_direction_refuses_what_it_does_not_know() -> None:
    E = matrix("E")
    left, right = E @ E.T, E.T @ E
    flow = U @ U.T @ G + G @ V @ V.T
    sigma2 = _on_direction(flow, left, right, ISOMETRY, E) / 2
    assert sigma2 == Symbol("sigma", positive=True) ** 2, "E E^T E + E E^T E = 2 sigma^2 E"
    three = _on_direction(flow + 2 * (U @ U.T @ G), left, right, ISOMETRY, 5 * E)
    assert three == 4 * sigma2, "coefficients of the flow count, and the target's cancels"
    with pytest.raises(GradlineError, match="unexpected word"):
        _on_direction(flow + G @ V @ U.T, left, right, ISOMETRY, E)
    with pytest.raises(GradlineError, match="is not parallel to E"):
        _on_direction(flow, left, right, (), E)
    with pytest.raises(GradlineError, match="is not parallel to E"):
        _on_direction(flow, left + G @ E.T, right, ISOMETRY, E)


def test_factors_are_refused_where_a_hypothesis_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twins: without ``E E^T E = sigma^2 E`` there is no root, without ``A P = A`` or ``B P = B`` a factor turns."""
    monkeypatch.setattr("theory.factorization.ISOMETRY", ())
    with pytest.raises(GradlineError, match=r"balanced root: .* is left"):
        _balanced_factor.__wrapped__()
    for dropped in ("A P", "B P"):
        kept = tuple(rule for rule in PROJECTION if rule.word != word(dropped))
        monkeypatch.setattr("theory.factorization.PROJECTION", kept)
        with pytest.raises(GradlineError, match="the factors leave U = u A, V = v B"):
            _imbalanced_factor.__wrapped__()
    monkeypatch.setattr("theory.factorization.is_zero", lambda expression: False)
    with pytest.raises(GradlineError, match=r"imbalanced factor: .* is left of"):
        _imbalanced_factor.__wrapped__()


def test_traces_of_both_factors() -> None:
    """The root is ``|mu| E E^T/sigma``; squaring the imbalanced factor eliminates ``u`` and ``v``."""
    E, mu, sigma = matrix("E"), Symbol("mu", real=True), Symbol("sigma", positive=True)
    value, (root, flow) = _balanced_factor()
    assert [(step.rule, step.name) for step in (root, flow)] == [("square root", "U U^T"), ("product flow", "factor")]
    assert (root.output - (Abs(mu) / sigma) * (E @ E.T)).is_zero()
    assert (root.inputs[0] - mu**2 * (E @ E.T)).is_zero()
    assert (flow.inputs[1] - (Abs(mu) / sigma) * (E.T @ E)).is_zero()
    assert flow.output == value == 2 * sigma * Abs(mu)
    closed, (before, after) = _imbalanced_factor()
    assert [(s.rule, s.name) for s in (before, after)] == [("projection", "factor"), ("elimination", "factor")]
    u, v, c = (Symbol(name, real=True) for name in "uvc")
    assert before.output == after.inputs[0] == u**2 + v**2
    assert after.output == closed == sqrt(c**2 + 4 * sigma**2 * mu**2)
    assert (before.inputs[0] - matrix("A") @ matrix("B").T).is_zero()


def test_traces_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chain rule for both factors, product rule for ``W`` and for the imbalance, and the squares of the roots."""
    eta, W = Symbol("eta", positive=True), U @ V.T
    of_u, of_v, of_w = product_trace()
    assert [(s.rule, s.name) for s in (of_u, of_v, of_w)] == [
        ("chain rule", "dU/dt"),
        ("chain rule", "dV/dt"),
        ("product rule", "dW/dt"),
    ]
    assert (of_u.output + eta * (G @ V)).is_zero()
    assert (of_v.output + eta * (G.T @ U)).is_zero()
    assert of_u.inputs == of_v.inputs == (W,)
    assert of_w.inputs == (of_u.output, of_v.output)
    assert (of_w.output - of_u.output @ V.T - U @ of_v.output.T).is_zero()
    *first, balance = balance_trace()
    assert first == [of_u, of_v]
    assert (balance.rule, balance.name) == ("product rule", "d(U^T U - V^T V)/dt")
    assert balance.inputs == (U.T @ U - V.T @ V,)
    assert balance.output.is_zero()
    left, right = root_trace()
    assert [(s.rule, s.name) for s in (left, right)] == [("rewriting", "(U U^T)^2"), ("rewriting", "W^T W")]
    assert left.inputs == (U @ U.T @ U @ U.T,)
    assert (left.output - W @ W.T).is_zero(), "the square of U U^T is W W^T"
    assert right.inputs == (W.T @ W,)
    assert (right.output - V @ V.T @ V @ V.T).is_zero(), "W^T W is the square of V V^T"
    for residuals in ((U - V, U - U), (U - U, U - V)):
        monkeypatch.setattr("theory.factorization.balanced_root_residuals", lambda found=residuals: found)
        with pytest.raises(GradlineError, match="no roots of W W"):
            root_trace()
