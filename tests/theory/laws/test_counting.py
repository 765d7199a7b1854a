"""Counts against published ones, with certificates, and twins where a law is missing or too many are claimed."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from random import Random

import pytest
from sympy import Matrix, cosh, exp, sqrt, symbols

from theory.errors import GradlineError
from theory.laws import ARCHITECTURES, architecture, count_laws, gradient_fields, independent, jets, polynomial_laws
from theory.laws.counting import PRIMES

#: Numbers of independent laws of two-layer linear nets (n, r, m) and of deep ones, arXiv 2307.00144 and section 13.
TWO_LAYERS = {
    (1, 1, 1): 1,
    (1, 2, 1): 3,
    (1, 3, 1): 5,
    (2, 2, 2): 3,
    (2, 3, 2): 6,
    (2, 4, 2): 10,
    (2, 5, 2): 14,
    (3, 3, 3): 6,
    (4, 2, 3): 3,
}
DEEP = {(5, 3, 2): 6, (3, 4, 2, 4): 13, (3, 2, 3, 2): 9, (2, 2, 4, 2): 13}


def _formula(n: int, r: int, m: int) -> int:
    rank = min(n + m, r)
    return rank * (2 * r + 1 - rank) // 2


@pytest.mark.parametrize("widths", TWO_LAYERS)
def test_two_layer_nets(widths: tuple[int, int, int]) -> None:
    fields = architecture("linear", widths)
    count = count_laws(fields, polynomial_laws(fields))
    assert count.certified
    assert count.count == TWO_LAYERS[widths] == _formula(*widths)


def _balances(widths: tuple[int, ...]) -> list:
    layers = [
        Matrix(b, a, lambda i, j, k=k: symbols(f"W{k + 1}_{i + 1}_{j + 1}"))
        for k, (a, b) in enumerate(pairwise(widths))
    ]
    differences = [after.T * after - before * before.T for before, after in pairwise(layers)]
    return [d[i, j] for d in differences for i in range(d.rows) for j in range(i, d.rows)]


@pytest.mark.parametrize("widths", DEEP)
def test_deep_nets_against_their_balances(widths: tuple[int, ...]) -> None:
    fields = architecture("linear", widths)
    count = count_laws(fields, _balances(widths))
    assert count.certified
    assert count.count == DEEP[widths]
    assert str(count) == f"{DEEP[widths]} (certified)"


def test_a_single_field_leaves_all_but_one() -> None:
    """With both end widths 1 there is one field: D - 1 laws, more than the balances."""
    fields = architecture("linear", [1, 2, 2, 1])
    count = count_laws(fields, _balances((1, 2, 2, 1)))
    assert (count.count, count.certified) == (7, True)
    assert len(independent(_balances((1, 2, 2, 1)), fields)) == 6


def test_without_known_laws_the_count_is_not_certified() -> None:
    count = count_laws(architecture("linear", [3, 2, 3]))
    assert (count.count, count.at_least, count.complete, count.certified) == (3, 0, True, False)
    assert str(count) == "at least 0; 3 by ranks modulo two primes at random points"


def test_without_brackets_too_many_laws_remain() -> None:
    """Brackets matter: the bare gradients of a 2-3-2 net leave more room than there are laws."""
    count = count_laws(architecture("linear", [2, 3, 2]), depth=1)
    assert (count.count, count.complete) == (8, False)
    assert str(count) == "at least 0, at most 8"
    assert count_laws(architecture("linear", [2, 3, 2])).count == 6


@pytest.mark.parametrize(
    ("name", "widths", "options", "expected"),
    [
        ("relu", (3, 2, 2), {}, 2),
        ("relu", (3, 2, 2), {"bias": True}, 2),
        ("attention", (3, 2, 2, 3), {}, 6),
        ("attention", (2, 2, 1, 2), {"heads": 2}, 8),
        ("attention", (3, 2, 2, 3), {"rotary": True}, 4),
        ("swiglu", (1, 2, 1), {}, 2),
    ],
)
def test_quadratic_laws_certify(name: str, widths: tuple[int, ...], options: dict, expected: int) -> None:
    fields = architecture(name, widths, **options)
    count = count_laws(fields, polynomial_laws(fields))
    assert (count.count, count.certified) == (expected, True)


@pytest.mark.parametrize("name", ["gelu", "silu"])
def test_smooth_feed_forward_layers_have_no_laws(name: str) -> None:
    fields = architecture(name, [1, 2, 1])
    assert polynomial_laws(fields) == ()
    assert str(count_laws(fields)) == "0 (certified)"


@pytest.mark.parametrize(("name", "expected"), [("moe-softmax", 1), ("moe-sigmoid", 0)])
def test_router_columns(name: str, expected: int) -> None:
    """Softmax gates conserve the sum of the router's columns, normalized sigmoids don't."""
    fields = architecture(name, [1, 2, 1])
    found = polynomial_laws(fields, 1)
    assert len(found) == expected
    router = symbols("R_1_1 R_1_2")
    assert [law.free_symbols for law in found] == [set(router)] * expected
    assert count_laws(fields, found).count == expected


def test_softmax_cross_entropy_conserves_row_sums() -> None:
    fields = architecture("softmax-cross-entropy", [2, 2])
    found = polynomial_laws(fields, 1)
    rows = {sum(symbols(f"W_{i}_1 W_{i}_2")) for i in (1, 2)}
    assert set(found) == rows
    assert count_laws(fields, found).certified


def test_value_softmax_with_a_law_that_is_no_polynomial() -> None:
    fields = architecture("value-softmax", [2, 2])
    a, b = symbols("a_1_1 a_2_1")
    v = Matrix(2, 2, symbols("V_1_1 V_1_2 V_2_1 V_2_2"))
    difference = v[:, 0] - v[:, 1]
    law = cosh(a - b) - difference.dot(difference) / 2
    found = polynomial_laws(fields, 1)
    assert count_laws(fields, found).certified is False
    count = count_laws(fields, [*found, law])
    assert (count.count, count.certified) == (2, True)


def test_the_order_of_the_prime_allows_roots() -> None:
    x = symbols("x")
    for p in PRIMES:
        root = sqrt(2) * x
        row = gradient_fields([root], [x]).point(Random(0), p).field([1])
        assert row[0] ** 2 % p == 2


def test_roots_of_products_are_products_of_roots() -> None:
    """Both fields are parallel: sqrt(6)/sqrt(2) is sqrt(3), modulo a prime too."""
    x, y = symbols("x y")
    parallel = gradient_fields([sqrt(2) * x + sqrt(6) * y, x + sqrt(3) * y], [x, y])
    assert count_laws(parallel, [sqrt(3) * x - y]).count == count_laws(parallel).count == 1
    across = gradient_fields([sqrt(2) * x + sqrt(6) * y, x - sqrt(3) * y], [x, y])
    assert count_laws(across).count == 0
    with pytest.raises(GradlineError, match=r"sqrt\(7\) does not exist modulo the prime"):
        count_laws(gradient_fields([sqrt(7) * x + y], [x, y]))


def test_a_wrong_law_certifies_nothing() -> None:
    x, y, z = symbols("x y z")
    fields = gradient_fields([x * y * z, x + y], [x, y, z])
    assert str(count_laws(fields)) == "0 (certified)"
    with pytest.raises(ValueError, match=r"laws: x\*\*2 is not conserved along every field"):
        count_laws(fields, [x**2])
    other = symbols("x", real=True)
    for act in (lambda: count_laws(fields, [other]), lambda: gradient_fields([other * y], [x, y])):
        with pytest.raises(ValueError, match="two different symbols are named 'x'"):
            act()
    with pytest.raises(TypeError, match="expected GradientFields"):
        count_laws({x: y}, [x])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "widths", "heads"),
    [
        ("linear", (2, 3, 1, 2), 1),
        ("relu", (2, 3, 1), 1),
        ("gelu", (1, 2, 1), 1),
        ("silu", (1, 2, 1), 1),
        ("swiglu", (2, 1, 3), 1),
        ("attention", (3, 2, 1, 2), 2),
        ("softmax-cross-entropy", (2, 3), 1),
        ("value-softmax", (2, 3), 1),
        ("moe-softmax", (2, 2, 1), 1),
        ("moe-sigmoid", (1, 2, 2), 1),
    ],
)
def test_the_number_of_parameters_is_known_before(name: str, widths: tuple[int, ...], heads: int) -> None:
    assert ARCHITECTURES[name].size(*widths) * heads == architecture(name, widths, heads=heads).dimension


def test_widths_beyond_the_exact_engine_are_refused_at_once() -> None:
    with pytest.raises(GradlineError, match="linear 900 900: 810000 parameters, the exact engine can do 2500"):
        architecture("linear", [900, 900])
    with pytest.raises(TypeError, match="widths=5: expected a sequence of integers, input hidden"):
        architecture("linear", 5)  # type: ignore[arg-type]


def test_jets_are_derivatives() -> None:
    """(x + 1)/x^3 at 2, along 1: value 3/8, slope -2/x^3 - 3/x^4 = -7/16."""
    p = PRIMES[0]
    x = (2, 1)
    value = jets.multiply(jets.add(x, 1, p), jets.power(x, -3, p), p)
    residues = [Fraction(3, 8), Fraction(-7, 16)]
    assert value == tuple(f.numerator * pow(f.denominator, -1, p) % p for f in residues)
    with pytest.raises(ZeroDivisionError):
        jets.inverse((0, 1), p)


def test_brackets_against_linear_fields() -> None:
    """[Ax, Bx] = (BA - AB) x for linear fields; here those of u v and u^2/2."""
    u, v = symbols("u v")
    fields = gradient_fields([u * v, u**2 / 2], [u, v])
    point = fields.point(Random(1), PRIMES[0])
    x = Matrix(point.coordinates)
    a, b = Matrix([[0, 1], [1, 0]]), Matrix([[1, 0], [0, 0]])
    expected = [int(c) % PRIMES[0] for c in (b * a - a * b) * x]
    assert point.bracket([[1, 0], [0, 1]]) == expected
    assert point.bracket([[0, 1], [1, 0]]) == [-c % PRIMES[0] for c in expected]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lineer", [2, 2]), "model 'lineer': expected one of linear"),
        (("linear", [2]), "linear expects input hidden ... output"),
        (("relu", [2, 2]), "relu expects input hidden output"),
        (("linear", [2, 0]), "expected positive integers"),
        (("softmax-cross-entropy", [2, 1]), "classes 1: expected at least 2"),
    ],
)
def test_bad_architectures(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        architecture(*arguments)


def test_options_belong_to_their_architecture() -> None:
    with pytest.raises(ValueError, match="heads=2"):
        architecture("linear", [2, 2], heads=2)
    with pytest.raises(ValueError, match="bias: known for relu only"):
        architecture("linear", [2, 2], bias=True)
    with pytest.raises(ValueError, match="query width 3"):
        architecture("attention", [3, 3, 2, 3], rotary=True)


def test_bad_fields() -> None:
    x, y = symbols("x y")
    with pytest.raises(ValueError, match="at least one symbol"):
        gradient_fields([x], [])
    with pytest.raises(TypeError, match="expected a SymPy symbol"):
        gradient_fields([x], [x + 1])
    with pytest.raises(ValueError, match="y is no parameter"):
        gradient_fields([x], [x], {y: 1})
    with pytest.raises(GradlineError, match="no polynomial"):
        count_laws(gradient_fields([exp(1 / x)], [x]))
