"""The attention model: parameterizations, imbalance and width, and their errors."""

from __future__ import annotations

import math
from typing import Any

import pytest
from sympy import I, Rational, Symbol, oo, sqrt

from theory import symbols
from theory.model import PARAMETERIZATIONS, AttentionModel
from theory.symbols import M, c_OV, c_QK, eta_OV, t
from theory.task import TokenTask

SHARED = TokenTask()
PER_CLASS = TokenTask(query_kind="per_class")
CIRCUITS = ("qk", "ov")


@pytest.mark.parametrize(("name", "forms"), PARAMETERIZATIONS.items())
def test_names_of_the_four_parameterizations(name: str, forms: tuple[Any, Any]) -> None:
    model = AttentionModel(SHARED, qk=forms[0], ov=forms[1])
    assert model.parameterization == name
    letters = {"collapsed": "C", "factorized": "F"}
    assert name == f"{letters[model.form('QK')]}A{letters[model.form('OV')]}O"
    assert model.is_balanced("QK") is (forms[0] == "factorized")
    assert model.is_balanced("OV") is (forms[1] == "factorized")


@pytest.mark.parametrize("circuit", CIRCUITS)
@pytest.mark.parametrize(
    ("form", "near"),
    [
        ("Factorized", "factorized"),
        ("fact", "factorized"),
        ("coll", "collapsed"),
        (None, "collapsed"),
        (3, "collapsed"),
    ],
)
def test_unknown_form_gets_the_nearest(circuit: str, form: Any, near: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^{circuit}=.*expected 'collapsed' or 'factorized'; did you mean '{near}'\?$"
    ):
        AttentionModel(SHARED, **{circuit: form})


@pytest.mark.parametrize("task", [None, 3, "task", TokenTask])
def test_task_must_be_a_task(task: Any) -> None:
    with pytest.raises(TypeError, match="expected a TokenTask"):
        AttentionModel(task)


@pytest.mark.parametrize("circuit", CIRCUITS)
def test_collapsed_circuits_have_neither_imbalance_nor_width(circuit: str) -> None:
    for keyword, value in ((f"imbalance_{circuit}", 1), (f"imbalance_{circuit}", c_QK), (f"width_{circuit}", 5)):
        with pytest.raises(ValueError, match=rf"^{keyword}=.*is collapsed.*use {circuit}='factorized'$"):
            AttentionModel(SHARED, **{keyword: value})
        AttentionModel(SHARED, **{keyword: value, circuit: "factorized"})
    assert AttentionModel(SHARED, **{f"imbalance_{circuit}": 0}) == AttentionModel(SHARED)
    assert AttentionModel(SHARED, **{f"width_{circuit}": None}) == AttentionModel(SHARED)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("x", TypeError),
        (math.nan, ValueError),
        (oo, ValueError),
        (I, ValueError),
        (Symbol("c"), ValueError),
        (Symbol("c", real=True), ValueError),
        (Symbol("c_OV", real=True), ValueError),
        (t, ValueError),
        (True, TypeError),
        (None, TypeError),
        ([1], TypeError),
    ],
    ids=str,
)
@pytest.mark.parametrize("circuit", CIRCUITS)
def test_bad_imbalance(circuit: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=rf"^imbalance_{circuit}=") as caught:
        AttentionModel(SHARED, **{circuit: "factorized", f"imbalance_{circuit}": value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "value", [1, -2, 0.5, Rational(-1, 3), sqrt(2), c_OV, -c_OV, Symbol("d", negative=True)], ids=str
)
def test_imbalance_is_kept_exactly(value: Any) -> None:
    model = AttentionModel(SHARED, ov="factorized", imbalance_ov=value)
    assert model.imbalance("OV") == (Rational(1, 2) if value == 0.5 else value)
    assert not model.is_balanced("OV")
    assert model.imbalance("QK") == 0


# (task, circuit, least width)
RANKS = [
    (TokenTask(5), "ov", 4),
    (TokenTask(2), "ov", 1),
    (TokenTask(5), "qk", 1),
    (TokenTask(5, noise=oo), "qk", 1),
    (TokenTask(5, query_kind="per_class", noise=oo), "qk", 5),
    (TokenTask(5, query_kind="per_class"), "qk", 5),
]


@pytest.mark.parametrize(("task", "circuit", "rank"), RANKS)
def test_width_is_at_least_the_rank(task: TokenTask, circuit: str, rank: int) -> None:
    keyword = f"width_{circuit}"
    for width in (rank, rank + 1, 10**30):
        model = AttentionModel(task, **{circuit: "factorized", keyword: width})  # type: ignore[arg-type]
        assert getattr(model, keyword) == width
    with pytest.raises(ValueError, match=rf"^{keyword}={rank - 1}: expected"):
        AttentionModel(task, **{circuit: "factorized", keyword: rank - 1})  # type: ignore[arg-type]


def test_width_below_a_symbolic_rank() -> None:
    with pytest.raises(ValueError, match=r"^width_qk=1: expected at least the rank of the direction, M$"):
        AttentionModel(PER_CLASS, qk="factorized", width_qk=1)
    assert AttentionModel(PER_CLASS, qk="factorized", width_qk=M).width_qk == M
    assert AttentionModel(SHARED, qk="factorized", width_qk=1).width_qk == 1


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (2.5, ValueError),
        (math.nan, ValueError),
        (oo, ValueError),
        (eta_OV, ValueError),
        (Symbol("w"), ValueError),
        (Symbol("M"), ValueError),
        (M - 2, ValueError),
        (True, TypeError),
        ([1], TypeError),
    ],
    ids=str,
)
@pytest.mark.parametrize("circuit", CIRCUITS)
def test_bad_width(circuit: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=rf"^width_{circuit}=") as caught:
        AttentionModel(SHARED, **{circuit: "factorized", f"width_{circuit}": value})
    assert "\n" not in str(caught.value)


def test_equal_models_hash_alike() -> None:
    one = AttentionModel(TokenTask(3, noise=math.inf), ov="factorized", imbalance_ov=0.5)
    other = AttentionModel(TokenTask(3.0, noise=oo), ov="factorized", imbalance_ov=Rational(1, 2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != AttentionModel(TokenTask(3, noise=oo), ov="factorized", imbalance_ov=-0.5)


@pytest.mark.parametrize("name", ["alpha", "mu_OV", "t"])
def test_what_moves_is_no_parameter(name: str) -> None:
    symbol = getattr(symbols, name)
    with pytest.raises(ValueError, match=f"score_scale=.*{name} changes in time"):
        TokenTask(score_scale=1 + symbol**2)
    with pytest.raises(ValueError, match=f"{name} changes in time"):
        AttentionModel(TokenTask(), ov="factorized", imbalance_ov=1 + symbol**2)


def test_width_equal_to_the_symbolic_rank() -> None:
    assert AttentionModel(TokenTask(), ov="factorized", width_ov=symbols.M - 1).width_ov == symbols.M - 1
    with pytest.raises(ValueError, match="width_ov=M - 2"):
        AttentionModel(TokenTask(), ov="factorized", width_ov=symbols.M - 2)
