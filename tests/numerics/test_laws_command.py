"""``gradline laws``: counts for programs and for people, one line for a wrong input."""

from __future__ import annotations

import json

import pytest
from sympy import symbols

from numerics.cli import run
from numerics.commands.laws import _decay
from theory.laws import gradient_fields


def test_count_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["laws", "--model", "linear", "--widths", "2", "1", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["count"], found["certified"], found["parameters"]) == (1, True, 4)
    assert found["laws"] == ["W1_1_1**2 + W1_1_2**2 - W2_1_1**2 - W2_2_1**2"]


def test_count_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["laws", "--widths", "1,2,1", "--degree", "1"]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first == "linear 1 2 1: 4 parameters, conservation laws: 3 (certified)"
    assert last.startswith("0 polynomial laws up to degree 1, each proved")


def test_weight_decay(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["laws", "--widths", "2", "1", "2", "--weight-decay"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("W2_2_1**2   h(t) = h(0) exp(-2*eta*lambda*t)")
    # the law of a softmax layer is linear: half the rate
    words = ["laws", "--model", "softmax-cross-entropy", "--widths", "1", "2", "--degree", "1", "--json"]
    assert run([*words, "--weight-decay"]) == 0
    assert json.loads(capsys.readouterr().out)["decay"] == ["h(t) = h(0) exp(-eta*lambda*t)"]
    assert run(words) == 0
    assert "decay" not in json.loads(capsys.readouterr().out)


def test_a_law_without_one_rate_shows_its_derivative() -> None:
    """No architecture has such a law among its shortest ones."""
    u, v = symbols("u v")
    fields = gradient_fields([u * v], [u, v])
    assert _decay(u**2 - v**2, fields) == "h(t) = h(0) exp(-2*eta*lambda*t)"
    balance = u**2 - v**2
    assert _decay(balance**2 + balance, fields) == "dh/dt = -2*eta*lambda*(u**2 - v**2)*(2*u**2 - 2*v**2 + 1)"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "lineer", "--widths", "2", "2"], "did you mean linear?"),
        (["--widths", "2", "x"], "--widths=x: expected an integer of at least 1"),
        ([], "--widths: expected input hidden ... output for linear"),
        (["--model", "relu", "--widths", "2", "2"], "widths 2 2: relu expects input hidden output"),
        (
            ["--widths", "2", "2", "--heads", "2"],
            "heads=2: expected an integer of at least 1, and more than 1",
        ),
        (["--widths", "9", "9", "9"], "more than 2500; degree 1 fits"),
        (["--widths", "300", "300", "300"], "180000 parameters, the exact engine can do 2500"),
        (["--widths", "2", "2", "--degree", "0"], "--degree=0: expected an integer of at least 1"),
    ],
)
def test_one_line_for_a_wrong_input(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["laws", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
