"""The command line: output in every format, exit codes, and one line for every wrong input."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numerics import evidence, figures
from numerics.cli import run
from numerics.commands import console
from numerics.output import check_file, write_files
from theory import AttentionModel, TokenTask, derive, registry
from theory.registry import Claim, Obligation
from theory.symbols import alpha, gamma, m, mu_OV, n

ROOT = Path(__file__).parents[2]
SIZES = ("-M", "3", "-b", "2", "-K", "2", "-N", "2", "-m", "1", "-n", "1")
SMALL = ("simulate", *SIZES, "--ratio", "1", "--until-loss", "0.9")
FIG4 = ("simulate", "-M", "20", "-b", "50", "-K", "50", "-N", "oo", "-m", "5", "-n", "50", "--until-loss", "1e-4")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Call = Callable[..., Result]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run_it(*args: str) -> Result:
        code = run(args)
        return Result(code, *capsys.readouterr())

    return run_it


def process(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "numerics.cli", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT, **options)


def without(options: tuple[str, ...], name: str) -> tuple[str, ...]:
    at = options.index(name)
    return options[:at] + options[at + 2 :]


# Wrong input ------------------------------------------------------------------------------------------------------

FACO = (*SMALL, "--model", "FACO")
FAFO = (*SMALL, "--model", "FAFO", "--start", "mu_OV=0.1,mu_QK=0.1")

#: What is wrong; the closest that is right (the twin); words of the message.
WRONG: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "one class": ((*SMALL, "-M", "1"), (*SMALL, "-M", "2", "--until-loss", "0.5"), ("--classes=1", "at least 2")),
    "no informative slot": ((*SMALL, "-m", "0"), (*SMALL, "-m", "1"), ("--informative-slots=0", "at least 1")),
    "no noise slot": ((*SMALL, "-n", "0"), (*SMALL, "-n", "2"), ("--noise-slots=0", "at least 1")),
    "half a token": ((*SMALL, "-b", "2.5"), (*SMALL, "-b", "2.0"), ("--block=2.5", "integer")),
    "finite only": ((*SMALL, "-K", "oo"), (*SMALL, "-N", "oo"), ("--queries=oo", "integer of at least 1")),
    "negative rate": ((*SMALL, "--eta-ov", "-1"), (*SMALL, "--eta-ov", "2"), ("--eta-ov=-1", "above 0")),
    "zero ratio": ((*SMALL, "--ratio", "0"), (*SMALL, "--ratio", "1/3"), ("--ratio=0", "above 0")),
    "empty ratio": ((*SMALL, "--ratio", "1,"), (*SMALL, "--ratio", "1,2"), ("--ratio=1,", "number 2 is missing")),
    "no ratio": ((*SMALL, "--ratio", ","), (*SMALL, "--ratio", "1,2"), ("--ratio=,", "number 1 is missing")),
    "NaN": ((*SMALL, "--eta-ov", "nan"), (*SMALL, "--eta-ov", "1e-3"), ("--eta-ov=nan", "number")),
    "infinite start": ((*SMALL, "--start-qk", "inf"), (*SMALL, "--start-qk", "-.1"), ("--start-qk=inf", "number")),
    "beyond double": ((*SMALL, "--eta-ov", "1e999"), (*SMALL, "--eta-ov", "1e99"), ("1e999", "double precision")),
    "division by zero": ((*SMALL, "--gamma", "1/0"), (*SMALL, "--gamma", "1/2"), ("--score-scale=1/0", "rational")),
    "score scale 0": ((*SMALL, "--gamma", "0"), (*SMALL, "--gamma", "3"), ("--score-scale=0", "above 0")),
    "code": (
        (*SMALL, "--gamma", "__import__('os').getcwd()"),
        (*SMALL, "--gamma", "0.125"),
        ("--score-scale=__import__('os').getcwd()", "rational number such as 0.125 or 1/8"),
    ),
    "width below rank": ((*FAFO, "--width-ov", "1"), (*FAFO, "--width-ov", "2"), ("--width-ov=1", "rank", "2")),
    "width of a collapsed circuit": (
        (*SMALL, "--width-qk", "3"),
        (*FAFO, "--width-qk", "3"),
        ("--width-qk=3", "collapsed", "--qk factorized"),
    ),
    "imbalance of a collapsed circuit": (
        (*SMALL, "--imbalance-qk", "1"),
        (*FACO, "--imbalance-qk", "1"),
        ("--imbalance-qk=1", "collapsed"),
    ),
    "balanced circuit without a start": (FACO, (*FACO, "--start-qk", "0.2"), ("no start for mu_QK", "balanced")),
    "stationary start": (
        (*FACO, "--start-qk", "0"),
        (*FACO, "--start-qk", "-0.2"),
        ("mu_QK", "stationary", "other than 0"),
    ),
    "size left without a value": (without(SMALL, "-N"), (*SMALL, "-N", "oo"), ("no value for N", "--noise")),
    "symbol as a size": ((*SMALL, "-M", "M"), SMALL, ("no value for M", "--classes")),
    "symbol as an imbalance": (
        (*FACO, "--imbalance-qk", "c_QK"),
        (*FACO, "--imbalance-qk", "-0.5"),
        ("no value for c_QK", "--imbalance-qk"),
    ),
    "rate left without a value": (
        without(SMALL, "--ratio"),
        (*without(SMALL, "--ratio"), "--eta-qk", "2"),
        ("no value for eta_QK", "--ratio"),
    ),
    "a name too many": (
        (*SMALL, "--start", "mu_OK=1"),
        (*SMALL, "--start", "mu_QK=1"),
        ("mu_OK", "expected mu_OV, mu_QK", "did you mean"),
    ),
    "a start twice": ((*SMALL, "--start", "mu_OV=0", "--start-ov", "0"), (*SMALL, "--start-ov", "0"), ("twice",)),
    "a start without a name": ((*SMALL, "--start", "0.1"), (*SMALL, "--start-ov", "0.1"), ("mu_OV=0.1",)),
    "two rates": ((*SMALL, "--eta-qk", "1"), SMALL, ("--eta-qk and --ratio",)),
    "no end": (without(SMALL, "--until-loss"), SMALL, ("--until-loss, --until-time or both",)),
    "target above the initial loss": (
        (*SMALL, "--until-loss", "2"),
        (*SMALL, "--until-loss", "1.09"),
        ("--until-loss=2.0", "below the initial one", "1.098"),
    ),
    "time limit before target": (
        (*SMALL, "--until-time", "0.01"),
        (*SMALL, "--until-time", "1e3"),
        ("t=0.01", "loss reached is 1.0", "--until-time"),
    ),
    "unknown time": ((*SMALL, "--time", "taw"), (*SMALL, "--time", "tau"), ("--time=taw", "did you mean tau")),
    "tolerance": ((*SMALL, "--rtol", "1e-20"), (*SMALL, "--rtol", "1e-8"), ("--rtol=1e-20", "from 1e-11")),
    "unknown model": ((*SMALL, "--model", "CACA"), (*SMALL, "--model", "caco"), ("--model=CACA", "CACO")),
    "unknown form": ((*SMALL, "--qk", "colapsed"), (*SMALL, "--qk", "collapsed"), ("did you mean collapsed",)),
    "form twice": (
        (*SMALL, "--model", "CACO", "--qk", "collapsed"),
        (*SMALL, "--model", "CACO"),
        ("--model and --qk",),
    ),
    "query kind": (
        (*SMALL, "--query-kind", "pre_class"),
        (*SMALL, "--query-kind", "per-class"),
        ("--query-kind=pre_class", "did you mean per_class"),
    ),
    "no folder": ((*SMALL, "--out", "no/a.csv"), (*SMALL, "--out", "a.csv"), ("--out=no/a.csv", "folder no does not")),
    "extension": ((*SMALL, "--out", "a.txt"), (*SMALL, "--out", "a.NPZ"), ("'.txt'", ".csv or .npz")),
    "plot extension": ((*SMALL, "--plot", "a.jpg"), (*SMALL, "--plot", "a.png"), ("'.jpg'", ".pdf or .png")),
    "a folder as file": ((*SMALL, "--out", "."), (*SMALL, "--out", "b.csv"), ("folder", "file name")),
    "points without a file": ((*SMALL, "--points", "5"), (*SMALL, "--points", "5", "--out", "a.csv"), ("--out",)),
    "one point": (
        (*SMALL, "--out", "a.csv", "--points", "1"),
        (*SMALL, "--out", "a.csv", "--points", "2"),
        ("--points=1", "from 2 to"),
    ),
    "no line": (
        ("derive", "--model", "FAFO", "--query-kind", "per_class", *SIZES),
        ("derive", "--model", "FAFO", "--query-kind", "per_class", *SIZES, "-N", "oo"),
        ("E E^T E = sigma^2 E",),
    ),
    "two formats": (("derive", *SIZES, "--json", "--latex"), ("derive", *SIZES, "--json"), ("--latex and --json",)),
    "unknown option": (("derive", "--modle", "CACO"), ("derive", "--model", "CACO", *SIZES), ("did you mean --model",)),
    "option without a value": (("derive", "--model"), ("derive", *SIZES), ("--model",)),
    "extra word": (("derive", "CACO"), ("derive", *SIZES), ("CACO",)),
    "unknown command": (("verfy", "--list"), ("verify", "--list"), ("'verfy'", "did you mean 'verify'")),
    "no command": ((), ("--version",), ("expected derive, verify, simulate",)),
    "unknown claim": (
        ("verify", "--claim", "balancednes"),
        ("verify", "--claim", "balancedness"),
        ("'balancednes'", "did you mean 'balancedness'"),
    ),
    "claim and list": (("verify", "--list", "--claim", "balancedness"), ("verify", "--list"), ("--list",)),
    "seed": (
        ("verify", "--seed", "-1", "--claim", "balancedness"),
        ("verify", "--seed", "7", "--claim", "balancedness"),
        ("--seed=-1", "at least 0"),
    ),
    "evidence in no folder": (
        ("verify", "--claim", "balancedness", "--json", "no/e.json"),
        ("verify", "--claim", "balancedness", "--json", "e.json"),
        ("folder no does not exist",),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_refused_in_one_line(name: str, call: Call, tmp_path: Path) -> None:
    wrong, _, words = WRONG[name]
    extra = (
        ("--out", "kept.csv") if wrong[:1] == ("simulate",) and "--out" not in wrong and "--points" not in wrong else ()
    )
    result = call(*wrong, *extra)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("gradline: error: ")
    assert result.err.endswith("\n")
    assert result.err.count("\n") == 1
    assert [w for w in words if w not in result.err] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", WRONG)
def test_the_closest_right_input_is_accepted(name: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    claims_are(monkeypatch, replace(registry.find("balancedness"), subject=None))  # without the full model: fast
    result = call(*WRONG[name][1])
    assert (result.code, result.err) == (0, "")
    assert result.out


def test_input_is_refused_before_anything_is_computed(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("computed")

    monkeypatch.setattr("numerics.integrate.simulate", fail)
    assert call(*SMALL, "--out", "no/a.csv").code == 2
    with pytest.raises(AssertionError, match="computed"):
        call(*SMALL, "--out", "a.csv")


def test_control_characters_do_not_reach_the_terminal(call: Call) -> None:
    result = call("derive", "--model", "\x1b[31m\nCACO")
    assert result.code == 2
    assert "\x1b" not in result.err
    assert result.err.count("\n") == 1


# derive -----------------------------------------------------------------------------------------------------------


def test_derive_prints_the_whole_system(call: Call) -> None:
    out = call("derive", "--model", "FACO", "--gamma", "gamma").out
    for piece in ("dμ_OV/dt =", "dμ_QK/dt =", "α =", "L =", "E_QK[informative] =", "|E_QK|^2 =", "σ_QK (once) ="):
        assert piece in out
    for piece in ("constant (QK)", "slope (μ_QK > 0) =", "slope (μ_QK < 0) =", "x =", "M is an integer >= 2", "γ > 0"):
        assert piece in out
    assert "Derivation" not in out
    assert "slope =" in call("derive").out  # collapsed circuits have one branch, without a condition


def test_derive_shows_its_steps_on_request(call: Call) -> None:
    out = call("derive", "--trace").out
    assert "Derivation" in out
    assert "1. symmetry: orbits =" in out
    assert "separation: d mu_QK/d mu_OV" in out


def test_derive_as_json_is_the_derived_system(call: Call) -> None:
    data = json.loads(call("derive", "--json", "--trace", *SIZES).out)
    flow = derive(AttentionModel(TokenTask(3, 2, 2, 2, 1, 1)))
    assert data["velocity"]["mu_QK"]["str"] == str(flow.compact["mu_QK"])
    assert data["line"]["OV"]["norm2"]["str"] == "4"
    assert data["line"]["QK"]["singular_values"] == [
        {"value": {"str": "sqrt(3)", "latex": r"\sqrt{3}"}, "times": {"str": "1", "latex": "1"}}
    ]
    assert data["parameters"] == ["eta_OV", "eta_QK"]
    assert data["trace"][0]["rule"] == "symmetry"
    other = json.loads(call("derive", "--json", *SIZES, "-b", "3").out)
    assert other["velocity"] != data["velocity"]
    assert "trace" not in other


@pytest.mark.parametrize(("model", "count"), [("CACO", 1), ("CAFO", 2), ("FACO", 2), ("FAFO", 4)])
def test_every_sign_of_a_balanced_circuit_has_its_branch(model: str, count: int, call: Call) -> None:
    found = json.loads(call("derive", "--json", "--model", model).out)["first_integral"]
    assert len(found) == len({branch["condition"] for branch in found}) == count
    assert len({branch["slope"]["str"] for branch in found}) == min(count, 2)


def test_derive_as_latex_uses_the_symbol_table(call: Call) -> None:
    args = ("derive", "--latex", "--model", "FAFO", "--imbalance-ov", "c_OV", "--imbalance-qk", "c_QK")
    out = call(*args).out
    assert out.count(r"\begin{align*}") == out.count(r"\end{align*}") == 4
    formulas = "\n".join(line for line in out.splitlines() if not line.startswith("%"))
    for piece in (
        r"\mu_{\mathrm{OV}}",
        r"\eta_{\mathrm{QK}}",
        r"c_{\mathrm{QK}}",
        r"W_{\mathrm{QK}}[\text{informative}]",
    ):
        assert piece in formulas
    assert formulas.count("{") == formulas.count("}")
    for raw in ("mu_OV", "mu_{OV}", "eta_{QK}", "c_{QK}", "W_{QK"):  # the names without the table
        assert raw not in formulas


def test_symbols_may_be_named(call: Call) -> None:
    assert call("derive", "-M", "M", "-N", "N").out == call("derive").out
    assert call("derive", "-N", "oo").out != call("derive").out


# simulate ---------------------------------------------------------------------------------------------------------

#: Figure 4 of arXiv 2608.06776, as printed by the code published with it.
PUBLISHED = {
    "0.01": ((2.55e6, 81.669, 0.559, 0.149, 1.0e-4), (78.797, 0.521, 0.144, 2.215e-4)),
    "0.1": ((4.9e6, 42.282, 1.395, 0.287, 1.0e-4), (41.216, 1.334, 0.275, 2.253e-4)),
}


def table_rows(out: str) -> dict[tuple[str, str], list[float]]:
    rows = [line.split() for line in out.splitlines()]
    return {(row[0], row[1]): [float(x) for x in row[2:]] for row in rows if row[1:2] in (["half"], ["end"])}


def shows(value: float, printed: float, digits: str) -> bool:
    """Whether a value rounds to the printed one."""
    return float(format(value, digits)) == printed


def agrees(rows: dict[tuple[str, str], list[float]], ratio: str, published: str) -> bool:
    end, half = PUBLISHED[published]
    tau, _, ov, qk, mass, loss, *_ = rows[ratio, "end"]
    _, _, ov2, qk2, mass2, loss2 = rows[ratio, "half"]
    coordinates = zip((ov, qk, mass, ov2, qk2, mass2), (*end[1:4], *half[:3]), strict=True)
    return (
        shows(tau, end[0], ".2e")
        and all(shows(found, printed, ".3f") for found, printed in coordinates)
        and shows(loss, end[4], ".1e")
        and shows(loss2, half[3], ".3e")
    )


def test_the_published_rows_can_be_read_off(call: Call) -> None:
    rows = table_rows(call(*FIG4, "--ratio", "0.01,0.1").out)
    assert agrees(rows, "0.01", "0.01")
    assert agrees(rows, "0.1", "0.1")
    assert not agrees(rows, "0.1", "0.01")
    assert not agrees(table_rows(call(*FIG4, "--ratio", "0.1", "-b", "51").out), "0.1", "0.1")


def test_the_summary_as_json(call: Call) -> None:
    data = json.loads(call(*SMALL, "--ratio", "2", "--eta-ov", "0.5", "--json").out)
    assert [r["ratio"] for r in data["runs"]] == [1.0, 2.0]  # a repeated option adds runs
    assert [r["eta_QK"] for r in data["runs"]] == [0.5, 1.0]
    assert data["runs"][0]["end"]["loss"] == pytest.approx(0.9, rel=1e-12)  # the event is met to rounding
    assert data["runs"][0]["halfway"]["t"] == data["runs"][0]["end"]["t"] / 2
    assert data["task"]["noise"] == "2"
    assert data["start"] == {"mu_OV": 0.0, "mu_QK": 0.0}


def test_csv_and_npz_hold_the_same_rows(call: Call) -> None:
    args = (*SMALL, "--ratio", "4", "--points", "7")
    assert call(*args, "--out", "a.csv").code == call(*args, "--out", "a.npz").code == 0
    rows = list(csv.DictReader(io.StringIO(Path("a.csv").read_text())))
    with np.load("a.npz") as arrays:
        assert set(arrays.files) == set(rows[0])
        for name in arrays.files:
            assert arrays[name].tolist() == [float(row[name]) for row in rows]
        assert arrays["run"].tolist() == [1] * 7 + [2] * 7
        assert arrays["ratio"].tolist() == [1.0] * 7 + [4.0] * 7
        steps = np.diff(arrays["t"][:7])
    assert steps == pytest.approx(steps[0])  # even in time: equal to rounding


def test_points_can_be_even_in_log_time(call: Call) -> None:
    call(*SMALL, "--points", "9", "--time", "log", "--out", "a.npz")
    with np.load("a.npz") as arrays:
        t, loss = arrays["t"], arrays["loss"]
    assert t[0] == 0
    assert np.all(np.diff(t, 2) > 0)
    assert loss[-1] == pytest.approx(0.9, rel=1e-12)  # the last point is the end


def test_the_whole_grid_is_written_by_default(call: Call) -> None:
    call(*SMALL, "--out", "a.csv")
    assert len(Path("a.csv").read_text().splitlines()) > 100


@pytest.mark.parametrize(("option", "name"), [("--plot", "a.pdf"), ("--out", "a.csv")])
def test_files_are_the_same_bytes_each_time(option: str, name: str, call: Call) -> None:
    written = []
    for ratio in ("1", "1", *(["3"] if option == "--out" else [])):
        assert call(*without(SMALL, "--ratio"), "--ratio", ratio, option, name).code == 0
        written.append(Path(name).read_bytes())
    assert written[0] == written[1]
    assert written[2:] != written[:1]


def test_the_format_follows_the_extension(call: Call) -> None:
    assert call(*SMALL, "--plot", "a.PNG", "--out", "a.csv").code == 0
    assert Path("a.PNG").read_bytes().startswith(b"\x89PNG")
    assert Path("a.csv").read_bytes().startswith(b"run,ratio,t,tau,")


def test_the_figure_shows_every_run() -> None:
    from numerics import simulate

    batch: Any = simulate(
        AttentionModel(TokenTask(3, 2, 2, 2, 1, 1)), {"eta_OV": 1, "eta_QK": [1, 2, 4]}, until_loss=0.9
    )
    figure = figures.trajectory_figure(batch.runs, ["1", "2", "4"])
    for axis in figure.axes:
        curves = [line for line in axis.lines if len(line.get_xdata()) > 1]
        assert len({str(line.get_color()) for line in curves}) == 3
        assert axis.get_xscale() == "log"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["1", "2", "4"]
    assert figures.trajectory_figure(batch.runs[:1], ["1"]).legends == []
    with pytest.raises(ValueError, match="3 runs with 2 labels"):
        figures.trajectory_figure(batch.runs, ["1", "2"])


# verify -----------------------------------------------------------------------------------------------------------


def claims_are(monkeypatch: pytest.MonkeyPatch, *claims: Claim) -> None:
    monkeypatch.setattr(registry, "claims", lambda: claims)


RIGHT = replace(registry.find("attention-mass"), subject=None)
WRONG_MASS = RIGHT.with_stated(alpha=m / (m + n))
BALANCE = registry.find("balancedness").stated["conserved"]
OPEN = Claim(
    "open",
    {},
    lambda stated: [Obligation("balance", BALANCE, decisive=False)],
    "Decided by nobody",
    "a hypothesis used in one direction only",
)


def test_a_proved_claim(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    claims_are(monkeypatch, RIGHT)
    result = call("verify")
    assert result.code == 0
    assert "proved" in result.out
    assert "refuted" not in result.out
    assert "1 claims: 1 proved; seed 0" in result.out


def test_a_refuted_claim_shows_its_witness(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    claims_are(monkeypatch, RIGHT, WRONG_MASS, OPEN)
    result = call("verify", "--json", "e.json")
    assert result.code == 1  # goes before undecided
    assert "refuted attention-mass, symbolic:" in result.out
    assert "mu_QK=" in result.out
    data = json.loads(Path("e.json").read_text())
    assert [c["verdict"] for c in data["claims"]] == ["proved", "refuted", "undecided"]


def test_an_undecided_claim(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    claims_are(monkeypatch, RIGHT, OPEN)
    result = call("verify")
    assert result.code == 3
    assert "1 undecided" in result.out
    assert "2 proved" not in result.out


def test_a_contradiction_is_no_verdict(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def contradict(*_: Any, **__: Any) -> None:
        raise evidence.ContradictionError("open: proved, but autograd contradicts it")

    monkeypatch.setattr(evidence, "verify", contradict)
    result = call("verify", "--json", "e.json")
    assert (result.code, result.out) == (3, "")
    assert result.err == "gradline: error: open: proved, but autograd contradicts it\n"
    assert not Path("e.json").exists()


def test_evidence_on_standard_output_and_chosen_claims(call: Call) -> None:
    args = ("verify", "--json", "-", "--claim", "product-flow", "--claim", "balancedness", "--claim", "product-flow")
    data = json.loads(call(*args).out)
    assert [c["id"] for c in data["claims"]] == ["product-flow", "balancedness"]
    assert data["seed"] == 0


def test_the_list_of_claims(call: Call) -> None:
    out = call("verify", "--list").out
    assert all(claim.id in out for claim in registry.claims())


# The process ------------------------------------------------------------------------------------------------------

HEAVY = ("sympy", "numpy", "torch", "scipy", "matplotlib", "flint")
LOADED = "import sys; from numerics.cli import run; run({args!r}); sys.stderr.write(' '.join(sorted(sys.modules)))"


@pytest.mark.parametrize("args", [["--help"], ["simulate", "--help"], ["--version"], ["verify", "--no"]])
def test_help_loads_no_heavy_library(args: list[str]) -> None:
    code = LOADED.format(args=args)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=ROOT)
    loaded = set(done.stderr.split())
    assert "numerics.cli" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_a_derivation_loads_sympy_and_no_numerics() -> None:
    code = LOADED.format(args=["derive", "--json"])
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=ROOT)
    loaded = set(done.stderr.split())
    assert "sympy" in loaded
    assert loaded.isdisjoint({"torch", "scipy", "matplotlib"})


def test_help_documents_the_published_call(call: Call) -> None:
    assert [name for name in ("derive", "verify", "simulate") if name not in call("--help").out] == []
    out = " ".join(call("simulate", "--help").out.split())
    assert "--ratio 0.01,0.1,1,10,100" in out


@pytest.mark.parametrize("args", [("--help",), ("--version",), ("derive", *SIZES)])
def test_a_closed_pipe_is_quiet(args: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "numerics.cli", *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        message = child.stderr.read()
        code = child.wait(timeout=120)
    assert message == b""
    assert code == 141


def test_a_full_disk_is_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    command = [sys.executable, "-m", "numerics.cli", "--version"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False, cwd=ROOT
        )
    assert done.returncode == 2
    assert done.stderr.startswith("gradline: error: ")
    assert done.stderr.count("\n") == 1


def test_ascii_output_where_unicode_is_impossible(call: Call) -> None:
    done = process("derive", *SIZES, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "dmu_OV/dt" in done.stdout
    assert done.stdout.isascii()
    assert not call("derive", *SIZES).out.isascii()


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch, *args: str, **env: str) -> tuple[str, str]:
    """What a command prints on a terminal of 70 columns, on both streams."""
    streams = Terminal(), Terminal()
    with monkeypatch.context() as patch:
        for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
            patch.delenv(name, raising=False)
        for name, value in {"TERM": "xterm-256color", "COLUMNS": "70", **env}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        assert run(args) == 0
    return streams[0].getvalue(), streams[1].getvalue()


def test_color_and_progress_on_a_terminal_only(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    claims_are(monkeypatch, RIGHT)
    out, err = on_terminal(monkeypatch, "verify")
    assert "\x1b[32mproved" in out
    assert "verifying" in err
    assert "\x1b[32m" not in on_terminal(monkeypatch, "verify", NO_COLOR="1")[0]
    plain = call("verify")
    assert "\x1b" not in plain.out + plain.err
    assert "verifying" not in plain.err


def test_progress_of_laws_on_a_terminal_only(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    args = ("laws", "--widths", "2", "2", "2")
    out, err = on_terminal(monkeypatch, *args, COLUMNS="120")
    assert "laws" in err
    assert any(label in err for label in ("fields of the architecture", "equations for", "brackets of"))
    assert "conservation laws: 3 (certified)" in out
    plain = call(*args)
    assert plain.err == ""
    assert plain.out.splitlines()[:-1] == out.splitlines()[:-1]


def test_tables_are_not_cut_without_a_terminal(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    claims_are(monkeypatch, replace(RIGHT, id="a-name-that-is-as-long-as-a-whole-line-of-a-narrow-terminal-could-be"))
    line = next(x for x in call("verify").out.splitlines() if "a-name" in x)
    assert "could-be" in line
    assert "normal form" in line
    assert line.endswith(" s")
    folded = on_terminal(monkeypatch, "verify")[0]
    assert not any("a-name" in x and "normal form" in x for x in folded.splitlines())


@pytest.mark.parametrize(
    ("args", "target"),
    [
        ((*SMALL, "--out", "a.csv"), "numerics.integrate.simulate"),
        (("verify", "--json", "a.json"), "numerics.evidence.verify"),
    ],
)
def test_an_interrupt_writes_nothing(
    args: tuple[str, ...], target: str, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(target, interrupt)
    (tmp_path / args[-1]).write_text("before")
    result = call(*args)
    assert (result.code, result.out) == (130, "")
    assert result.err.count("\n") == 1
    assert (tmp_path / args[-1]).read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


# Files and data ---------------------------------------------------------------------------------------------------


def test_files_are_written_all_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "gone" / "b.csv"
    first.write_text("before")
    with pytest.raises(FileNotFoundError):
        write_files({first: b"after", second: b"after"})
    assert first.read_text() == "before"
    assert list(tmp_path.iterdir()) == [first]
    second.parent.mkdir()
    write_files({first: b"after", second: b"after"})
    assert first.read_bytes() == second.read_bytes() == b"after"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.csv", "b.csv", "gone"]


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe.csv"
    os.mkfifo(fifo)
    with pytest.raises(ValueError, match="not a regular file"):
        check_file("--out", str(fifo), (".csv",))
    (tmp_path / "real.csv").touch()
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_files({check_file("--out", str(tmp_path / "link.csv"), (".csv",)): b"new"})
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_bytes() == b"new"


def test_no_permission_is_noticed_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_file("--out", str(tmp_path / "a.csv"), (".csv",)).name == "a.csv"
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ValueError, match="no permission"):
        check_file("--out", str(tmp_path / "a.csv"), (".csv",))


def test_json_is_strict() -> None:
    data = {
        "a": np.float64(0.5),
        "b": np.arange(2),
        "c": float("inf"),
        "d": (True, None),
        "e": alpha * gamma,
        1: -mu_OV,
    }
    assert json.loads(console.dump_json(data), parse_constant=pytest.fail) == {
        "a": 0.5,
        "b": [0, 1],
        "c": "inf",
        "d": [True, None],
        "e": "alpha*gamma",
        "1": "-mu_OV",
    }
