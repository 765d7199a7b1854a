"""Nested square roots: decided where a root is a square in the field of the others, and never by a guess."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from sympy import Abs, Integer, Rational, Symbol, acosh, asinh, exp, expand, log, sqrt

from theory.algebra import Fraction, Tower
from theory.converter import Converter
from theory.denesting import square_roots
from theory.identities import compare, prove_zero
from theory.normal_form import convert
from theory.symbols import M, b, mu_OV, mu_QK

x, y = mu_OV, mu_QK
p, q = Symbol("p", positive=True), Symbol("q", positive=True)

EQUAL = [
    (sqrt(b + 2 * sqrt(b) + 1), sqrt(b) + 1),
    (sqrt(b - 2 * sqrt(b) + 1), sqrt(b) - 1),
    (sqrt(p - 2 * sqrt(p) + 1), Abs(sqrt(p) - 1)),
    (sqrt(M + 2 * sqrt(M - 1)), sqrt(M - 1) + 1),
    (sqrt(5 + 2 * sqrt(6)), sqrt(2) + sqrt(3)),
    (sqrt(5 - 2 * sqrt(6)), sqrt(3) - sqrt(2)),
    (sqrt(2 + sqrt(3)), (sqrt(6) + sqrt(2)) / 2),
    (sqrt(2 + sqrt(3)) * sqrt(2 - sqrt(3)), Integer(1)),
    (sqrt(6 + 2 * sqrt(2) + 2 * sqrt(3) + 2 * sqrt(6)), 1 + sqrt(2) + sqrt(3)),
    (sqrt(x**2 + 2 * Abs(x) + 1), Abs(x) + 1),
    (sqrt(x**2 + 2 * x * sqrt(p) + p), Abs(x + sqrt(p))),
    (sqrt(2 * x**2 + 1 + 2 * x * sqrt(x**2 + 1)), x + sqrt(x**2 + 1)),
    (sqrt(x + sqrt(x**2 - 1)), sqrt((x + 1) / 2) + sqrt((x - 1) / 2)),
    (sqrt(p + 1 + sqrt(p**2 + 2 * p)), sqrt((p + 2) / 2) + sqrt(p / 2)),
    (sqrt(exp(x) + 2 * exp(x / 2) + 1), exp(x / 2) + 1),
    (sqrt(sqrt(p) + 1) * sqrt(sqrt(p) + 2), sqrt(p + 3 * sqrt(p) + 2)),
    ((b + 2 * sqrt(b) + 1) ** Rational(3, 2), (sqrt(b) + 1) ** 3),
    ((b + 2 * sqrt(b) + 1) ** Rational(-1, 4), 1 / sqrt(sqrt(b) + 1)),
    (sqrt(sqrt(b + 2 * sqrt(b) + 1) + 2 * sqrt(sqrt(b) + 1) + 1), sqrt(sqrt(b) + 1) + 1),
    (log(b + 2 * sqrt(b) + 1), 2 * log(sqrt(b) + 1)),
    (2 * log(sqrt(2 + sqrt(3))), log(2 + sqrt(3))),
    (acosh(2 * p**2 + 1), 2 * asinh(p)),
]


@pytest.mark.parametrize(("nested", "plain"), EQUAL, ids=str)
def test_nested_roots_are_decided_both_ways_round(nested: Any, plain: Any) -> None:
    assert prove_zero(nested - plain).answer == "equal"
    assert prove_zero(plain * (x**2 + 1) - nested * (x**2 + 1)).answer == "equal"
    # twins: a small error, and the sign
    assert prove_zero(nested - plain * Rational(1001, 1000)).answer == "different"
    assert prove_zero(nested + plain).answer == "different"


def test_the_sign_of_a_root_needs_a_proof() -> None:
    nested = sqrt(p - 2 * sqrt(p) + 1)
    assert compare(nested, sqrt(p) - 1).answer == "different"
    assert compare(nested, sqrt(p) - 1, [p > 1]).answer == "equal"
    assert compare(nested, 1 - sqrt(p), [p < 1]).answer == "equal"
    assert compare(sqrt(x**2 + 2 * x * sqrt(p) + p), x + sqrt(p), [x > 0]).answer == "equal"
    assert "sqrt(b) + 1 > 0" in compare(sqrt(b + 2 * sqrt(b) + 1), sqrt(b) + 1).assumptions


def member(random: Random, radicals: list[Any]) -> Any:
    """A random element of a field with square roots adjoined."""
    base = [Integer(1), x, p, M]
    terms = random.sample([u * s for u in base for s in (Integer(1), *radicals)], random.randint(2, 3))
    return sum((random.choice((-2, -1, 1, 3)) * t for t in terms), Integer(0))


def test_random_squares_are_found_and_near_squares_are_not() -> None:
    undecided = []
    for seed in range(60):
        random = Random(seed)
        radicals = random.sample([sqrt(p), sqrt(M - 1), sqrt(2), sqrt(x**2 + 1), sqrt(p + 3)], random.randint(1, 2))
        root = member(random, radicals)
        square = expand(root**2)
        answer = compare(sqrt(square), Abs(root)).answer
        assert answer != "different", (seed, root)
        if answer == "undecided":
            undecided.append(seed)
        near = square + random.choice((1, p, x**2)) / Integer(10) ** 6
        assert compare(sqrt(near), Abs(root)).answer != "equal", (seed, root)
    # a factor like sqrt(2) of an absolute value of unknown sign is not always seen: 4% of 150 seeds
    assert len(undecided) <= 5, undecided


def fractions(expr: Any) -> tuple[Converter, Tower, Fraction]:
    converter, value = convert(expr)
    return converter, converter.tower, value


def test_square_roots_of_a_polynomial() -> None:
    _, tower, value = fractions(b + 2 * sqrt(b) + 1)
    found = list(square_roots(tower, value.num))
    assert sqrt(b) + 1 in [tower.fraction_expr(f) for f in found]
    assert all(tower.equal(tower.mul(f, f), value) for f in found)
    assert list(square_roots(tower, value.num + 1)) == []
    # without roots, the factors of the polynomial say it all, and nothing is searched for
    _, tower, value = fractions(b**2 + 2 * b + 1)
    assert list(square_roots(tower, value.num)) == []
