"""Named figures: the published numbers to every printed digit, files that are the same each time, the quick mark."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numerics.cli import run
from numerics.figures import FIGURES, stopping_curves
from numerics.figures.drawing import Request, csv_bytes, draw
from numerics.integrate import simulate

PUBLISHED = json.loads((Path(__file__).parents[1] / "data" / "published.json").read_text())["fig4"]


@pytest.fixture(scope="module")
def fig4() -> Any:
    return draw("fig4")


def printed_alike(printed: str, value: float) -> bool:
    """Whether a value, rounded to the digits that were printed, is the printed number."""
    if "e" in printed:
        digits = len(printed.split("e", maxsplit=1)[0].replace(".", "")) - 1
        return float(f"{value:.{digits}e}") == float(printed)
    return f"{value:.{len(printed.split('.')[1])}f}" == printed


@pytest.mark.parametrize("row", PUBLISHED["rows"], ids=lambda row: str(row["ratio"]))
def test_published_rows_to_every_digit(row: dict[str, Any], fig4: Any) -> None:
    ours = next(r for r in fig4.facts["rows"] if r["ratio"] == row["ratio"])
    compared = [(row[at][name], ours[at][name]) for at in ("end", "halfway") for name in row[at]]
    assert len(compared) == 9
    assert [pair for pair in compared if not printed_alike(*pair)] == []


def test_a_digit_too_many_differs(fig4: Any) -> None:
    """Twin: the last printed digit moved by one is noticed in each number."""
    row, ours = PUBLISHED["rows"][0], fig4.facts["rows"][0]
    assert not printed_alike("81.668", ours["end"]["mu_OV"])
    assert not printed_alike("2.54e+06", ours["end"]["tau"])
    assert printed_alike(row["end"]["tau"], ours["end"]["tau"])


def test_courses_are_those_of_integration() -> None:
    """Time courses without integration against an integrated run, which is good to 1e-8 in t and the coordinates."""
    course = stopping_curves.courses((10.0,), 40)
    course = {name: values[0] for name, values in course.items()}
    times = course["t"][:-1]
    run_ = simulate(
        stopping_curves.published_flow(), {"eta_OV": 1, "eta_QK": 10}, until_time=course["t"][-1], times=times
    )
    np.testing.assert_allclose(run_.mu_OV, course["mu_OV"][:-1], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(run_.attention, course["attention"][:-1], rtol=1e-8)
    assert np.all(np.diff(course["t"]) > 0)


def test_halfway_is_halfway(fig4: Any) -> None:
    for row in fig4.facts["rows"]:
        # four secant steps from an interpolated start; what was seen is below 1e-13
        assert row["halfway"]["t"] == pytest.approx(row["end"]["t"] / 2, rel=1e-10)


def test_files_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command writes every format, twice the same bytes, and the quick version says so in the picture."""
    contents = []
    for name in ("one", "two"):
        assert run(["figure", "fig4", "--quick", "--json", "--out", str(tmp_path / name)]) == 0
        facts = json.loads(capsys.readouterr().out)
        contents.append({Path(p).name: Path(p).read_bytes() for p in facts["files"]})
    assert contents[0] == contents[1]
    assert sorted(contents[0]) == ["fig4-courses.csv", "fig4.csv", "fig4.pdf", "fig4.png"]
    assert b"CreationDate" not in contents[0]["fig4.pdf"]
    rows = list(csv.DictReader(contents[0]["fig4.csv"].decode().splitlines()))
    assert len(rows) == 3 * 12
    assert float(rows[-1]["loss"]) == pytest.approx(1e-4)
    assert facts["quick"] is True


def test_quick_is_marked(fig4: Any) -> None:
    assert "quick" in draw("fig4", Request(quick=True)).figure.get_suptitle()
    assert fig4.figure.get_suptitle() == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fig44",), "did you mean fig4?"),
        (("fig3", "--seeds", "0"), "--seeds=0: expected an integer of at least 1"),
        (("fig4", "--seeds", "2"), "fig4 shows no runs with seeds"),
        (("fig4", "--out", "no/such"), "does not exist"),
    ],
)
def test_refusals(arguments: tuple[str, ...], words: str, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["figure", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error
    assert list(tmp_path.iterdir()) == []


def test_points_lie_on_the_lines() -> None:
    """Figure ``line``, its quick version: the full model in the straightened coordinates, every parameterization."""
    drawing = draw("line", Request(quick=True))
    table = drawing.tables[""]
    assert sorted(set(table["model"])) == ["CACO", "CAFO", "FACO", "FAFO"]
    # the runs are good to 1e-10 of the coordinates, which a few tens of slope make 1e-8 of y
    np.testing.assert_allclose(table["y"], table["y_line"], rtol=1e-8, atol=1e-8)
    wrong = np.asarray(table["y_line"]) * 1.001
    assert np.abs(np.asarray(table["y"]) - wrong).max() > 1e-3


def test_csv_and_names() -> None:
    assert csv_bytes({"a": np.array([0.1]), "b": ["x"]}) == b"a,b\n0.1,x\n"
    assert {"fig4", "line"} <= set(FIGURES)
