"""``gradline stop``: the numbers of the library as JSON, table and file; wrong input in one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from numerics.cli import run
from numerics.stopping import stopping_state
from theory.model import AttentionModel
from theory.task import TokenTask

SIZES = ("-M", "3", "-b", "2", "-K", "2", "-N", "oo", "-m", "2", "-n", "1")
TASK = TokenTask(3, 2, 2, float("inf"), 2, 1)


def test_json_and_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "stops.csv"
    given = (
        "--model",
        "FACO",
        "--start-qk",
        "-0.2",
        "--ratio",
        "1,5",
        "--loss",
        "0.5,1e-3",
        "--json",
        "--out",
        str(out),
    )
    assert run(["stop", *SIZES, *given]) == 0
    data = json.loads(capsys.readouterr().out)
    found = stopping_state(
        AttentionModel(TASK, qk="factorized"), {"eta_OV": 1, "eta_QK": 5}, {"mu_QK": -0.2}, loss=[0.5, 1e-3], time=True
    )
    assert found.t is not None
    assert [s["mu_QK"] for s in data["states"][2:]] == pytest.approx(found.mu_QK.tolist(), rel=1e-12)
    assert [s["t"] for s in data["states"][2:]] == pytest.approx(found.t.tolist(), rel=1e-9)
    assert [s["ratio"] for s in data["states"]] == [1, 1, 5, 5]
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [float(row["attention"]) for row in rows] == [s["attention"] for s in data["states"]]


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["stop", *SIZES, "--ratio", "10", "--loss", "1e-2", "--no-time"]) == 0
    text = capsys.readouterr().out
    assert "CACO" in text
    assert "tau" not in text
    assert "0.01" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*SIZES, "--ratio", "1"), "no loss to stop at"),
        ((*SIZES, "--ratio", "1", "--loss", "0"), "--loss=0: expected a number above 0"),
        ((*SIZES, "--ratio", "1", "--loss", "2"), "expected a loss below that of the start"),
        ((*SIZES, "--loss", "0.1"), "no value for eta_QK"),
        ((*SIZES, "--ratio", "1", "--loss", "0.1", "--out", "a.txt"), "unknown extension"),
        ((*SIZES[:-2], "--ratio", "1", "--loss", "0.1"), "no value for n"),
    ],
)
def test_refusals(arguments: tuple[str, ...], words: str, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["stop", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error
    assert list(tmp_path.iterdir()) == []
