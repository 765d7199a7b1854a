"""The full model sees every error in the derivation, and the run over claims counts and reports."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from numerics.cli import run
from numerics.mutation import (
    ClaimMutants,
    InjectedError,
    MutantResult,
    MutationReport,
    statement_results,
    try_mutants,
    witness_injection,
)
from theory.mutation.injections import INJECTIONS
from theory.registry import find

FEW = ("rescaling-half", "gradient-sign")


@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda i: i.name)
def test_the_full_model_catches_an_error(injection: object) -> None:
    name = injection.name  # type: ignore[attr-defined]
    seen = witness_injection(name)
    assert seen.caught
    assert "the derivation refuses" not in seen.detail  # the witness itself saw it


@pytest.mark.parametrize("seed", range(3))
def test_the_right_derivation_is_not_contradicted(seed: int) -> None:
    assert not witness_injection(None, seed).caught


def test_counts_and_answers() -> None:
    found = statement_results(find("balancedness"), seed=2)
    assert found.count("survivor") == 0
    assert found.count("proved") >= 2  # twice and minus the conserved quantity
    assert found.count("refuted") >= 20
    assert len(found.results) == sum(found.count(a) for a in ("refuted", "equivalent", "proved", "survivor"))


@pytest.fixture(scope="module")
def report() -> MutationReport:
    return try_mutants([find("noise-correction"), find("rescaling-balanced")], count=5, workers=1, injections=FEW)


def test_the_same_seed_gives_the_same_report(report: MutationReport) -> None:
    again = try_mutants([find("noise-correction"), find("rescaling-balanced")], count=5, workers=2, injections=FEW)
    for one, other in zip(report.claims, again.claims, strict=True):
        assert replace(one, seconds=0.0) == replace(other, seconds=0.0)
    assert report.injections == again.injections
    assert report.exit_code == 0


def test_a_survivor_or_a_missed_error_fails(report: MutationReport) -> None:
    open_one = MutantResult("f", "made", "made", "survivor", "undecided")
    surviving = replace(report, claims=(*report.claims, ClaimMutants("made", (open_one,), 0.0)))
    assert surviving.survivors == (("made", open_one),)
    assert surviving.exit_code == 1
    missed = replace(report, injections=(InjectedError("made", "made", "made", False, "84 comparisons agree"),))
    assert missed.exit_code == 1


def test_reports_are_json(report: MutationReport) -> None:
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert [c["id"] for c in data["claims"]] == ["noise-correction", "rescaling-balanced"]
    assert sum(data["claims"][0]["counts"].values()) == len(data["claims"][0]["mutants"])
    assert [i["caught"] for i in data["injections"]] == [True, True]


def test_the_command(
    report: MutationReport, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def answer(chosen: object, *, seed: int, progress: object) -> MutationReport:
        asked.append((chosen, seed))
        return report

    monkeypatch.setattr("numerics.mutation.try_mutants", answer)
    path = tmp_path / "mutants.json"
    assert run(["verify", "--mutants", "--claim", "noise-correction", "--seed", "7", "--json", str(path)]) == 0
    assert asked == [((find("noise-correction"),), 7)]
    assert json.loads(path.read_text())["injections"]
    shown = capsys.readouterr().out
    assert "0 survivors; 2 of 2 errors in the derivation caught" in shown
    open_one = MutantResult("f", "made", "twice the formula", "survivor", "undecided")
    report = replace(report, claims=(ClaimMutants("made", (open_one,), 0.0),))
    assert run(["verify", "--mutants"]) == 1
    assert "survivor of made, f: twice the formula" in capsys.readouterr().out
    assert run(["verify", "--mutants", "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["claims"][0]["id"] == "made"
    assert run(["verify", "--mutants", "--list"]) == 2
