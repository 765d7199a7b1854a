"""The task: what it accepts, how it stores it, and one-line messages for everything else."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any

import pytest
from sympy import Dummy, Float, Integer, Matrix, Rational, S, Symbol, oo, pi, sqrt, zoo

from theory.symbols import K, M, N, b, gamma, m, mu_OV, n
from theory.task import TokenTask, exact_number

SIZES = {"classes": 2, "block": 1, "queries": 1, "noise": 1, "informative_slots": 1, "noise_slots": 1}
BAD_VALUES = [
    (0, ValueError),
    (-3, ValueError),
    (2.5, ValueError),
    (math.nan, ValueError),
    (-math.inf, ValueError),
    (-oo, ValueError),
    (zoo, ValueError),
    (S.NaN, ValueError),
    (Rational(5, 2), ValueError),
    (Fraction(1, 3), ValueError),
    (sqrt(2), ValueError),
    (pi, ValueError),
    (Symbol("x"), ValueError),
    (Symbol("x", integer=True), ValueError),
    (Symbol("x", positive=True), ValueError),
    (gamma, ValueError),
    (Symbol("M"), ValueError),
    (Symbol("K", integer=True, positive=True, even=True), ValueError),
    (M + 1, ValueError),
    (True, TypeError),
    ("3", TypeError),
    ("oo", TypeError),
    (None, TypeError),
    ([3], TypeError),
    (3 + 0j, TypeError),
    (Matrix([3]), TypeError),
]


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(("value", "error"), BAD_VALUES, ids=str)
def test_bad_size_is_one_line_that_names_the_field(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        TokenTask(**{name: value})
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{name}=")
    assert "expected" in message or "use `from theory.symbols import" in message


@pytest.mark.parametrize("name", SIZES)
def test_least_size_is_accepted_and_one_less_is_not(name: str) -> None:
    least = SIZES[name]
    assert getattr(TokenTask(**{name: least}), name) == least
    with pytest.raises(
        ValueError, match=f"^{name}={least - 1}: expected an integer of at least {least}, or a positive"
    ):
        TokenTask(**{name: least - 1})


@pytest.mark.parametrize("name", [name for name in SIZES if name != "noise"])
@pytest.mark.parametrize("value", [math.inf, oo])
def test_only_noise_may_be_infinite(name: str, value: Any) -> None:
    assert TokenTask(noise=value).noise is oo
    assert not TokenTask(noise=value).noise_is_finite
    with pytest.raises(ValueError, match=f"^{name}="):
        TokenTask(**{name: value})


@pytest.mark.parametrize("value", [3, 3.0, Integer(3), Float(3.0), Fraction(3), Rational(6, 2)], ids=repr)
@pytest.mark.parametrize("name", SIZES)
def test_whole_numbers_of_any_type_become_integers(name: str, value: Any) -> None:
    stored = getattr(TokenTask(**{name: value}), name)
    assert isinstance(stored, Integer)
    assert stored == 3
    assert TokenTask(**{name: value}) == TokenTask(**{name: 3})
    assert hash(TokenTask(**{name: value})) == hash(TokenTask(**{name: 3}))


def test_defaults_are_the_canonical_symbols() -> None:
    task = TokenTask()
    sizes = (task.classes, task.block, task.queries, task.noise, task.informative_slots, task.noise_slots)
    assert sizes == (M, b, K, N, m, n)
    assert task.score_scale == 1
    assert task.noise_is_finite
    assert task.free_symbols == frozenset({M, b, K, N, m, n})
    assert TokenTask(2, 1, 1, oo, 1, 1).free_symbols == frozenset()


def test_other_symbols_and_repeated_symbols_are_accepted() -> None:
    other = Symbol("C", integer=True, positive=True)
    dummy = Dummy("C", integer=True, positive=True)
    assert TokenTask(classes=other, block=dummy).free_symbols == {other, dummy, K, N, m, n}
    assert TokenTask(noise=b).noise == b


def test_task_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        TokenTask().block = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1),
        (0.1, Rational(1, 10)),
        (Fraction(1, 3), Rational(1, 3)),
        (Fraction(2, 7), Rational(2, 7)),
        (Float("0.25"), Rational(1, 4)),
        (1e-5, Rational(1, 100000)),
        (gamma, gamma),
        (gamma / 2, gamma / 2),
        (1 / sqrt(Symbol("d", positive=True)), 1 / sqrt(Symbol("d", positive=True))),
    ],
    ids=str,
)
def test_score_scale_is_exact(value: Any, expected: Any) -> None:
    assert TokenTask(score_scale=value).score_scale == expected
    assert TokenTask(score_scale=value).score_scale != expected * Rational(1001, 1000)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (-gamma, ValueError),
        (math.nan, ValueError),
        (math.inf, ValueError),
        (oo, ValueError),
        (S.NaN, ValueError),
        ("abc", TypeError),
        (mu_OV, ValueError),
        (Symbol("gamma"), ValueError),
        (Symbol("x", real=True), ValueError),
        (True, TypeError),
        (None, TypeError),
        ([1], TypeError),
        (1j, TypeError),
    ],
    ids=str,
)
def test_bad_score_scale(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^score_scale=") as caught:
        TokenTask(score_scale=value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "near"),
    [
        ("Shared", "shared"),
        ("perclass", "per_class"),
        ("per class", "per_class"),
        ("per-class", "per_class"),
        ("", "shared"),
        (None, "shared"),
    ],
)
def test_unknown_query_kind_gets_the_nearest(value: Any, near: str) -> None:
    with pytest.raises(ValueError, match=rf"expected 'shared' or 'per_class'; did you mean '{near}'\?$"):
        TokenTask(query_kind=value)


def test_symbol_of_other_assumptions_is_told_apart_by_name() -> None:
    with pytest.raises(ValueError, match=r"from theory\.symbols import M"):
        TokenTask(classes=Symbol("M", positive=True))
    with pytest.raises(ValueError, match=r"from theory\.symbols import gamma"):
        exact_number("score_scale", 2 * Symbol("gamma", real=True))
    assert exact_number("score_scale", 2 * gamma) == 2 * gamma
