"""``gradline check``: exit codes, what it prints, and one line for each bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from numerics.cli import run

RIGHT = r"\begin{equation}\label{eq:loss-on-line} L = \log(1+(M-1)e^{-\alpha\mu_{OV}}) \end{equation}"
WRONG = RIGHT.replace("M-1", "M+1")
UNKNOWN = RIGHT.replace("M-1", "k-1")


def write(folder: Path, text: str) -> str:
    path = folder / "paper.tex"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (RIGHT, 0, "1 match (exact)"),
        (WRONG, 1, "right with - in place of +"),
        (UNKNOWN, 3, "unknown symbol k"),
        (RIGHT + WRONG + UNKNOWN, 1, "1 match (exact), 1 differs, 1 unparsed"),
        ("no equation", 0, "0 equations in 1 file: none"),
    ],
)
def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, said: str) -> None:
    assert run(["check", write(tmp_path, text)]) == code
    out, err = capsys.readouterr()
    assert said in out
    assert err == ""


def test_report_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", write(tmp_path, "\n" + WRONG), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    (equation,) = data["equations"]
    assert (equation["status"], equation["claims"], equation["line"]) == ("differs", ["loss-on-line"], 2)
    assert equation["change"]["text"] == "- in place of +"
    assert set(equation["values"]) == {"left", "right", "L"}
    assert data["exit_code"] == 1
    assert data["counts"] == {"differs": 1}


BAD = [
    ("{", "paper.tex:1:1: this { has no }"),
    (r"\begin{equation} x_{ \end{equation}", "paper.tex:1:20: this { has no }"),
    (r"\input{paper}", "this file inputs itself"),
    (r"\def\x{\x}\[\x\]", r"macro \x, defined at"),
    (r"\input{missing}", "no such file"),
    ("% gradline: loss\n" + RIGHT, "unknown claim 'loss'; did you mean 'loss-rate'?"),
]


@pytest.mark.parametrize(("text", "said"), BAD, ids=[text for text, _ in BAD])
def test_bad_papers_get_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    assert run(["check", write(tmp_path, text)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


def test_bad_arguments_get_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paper = write(tmp_path, RIGHT)
    (tmp_path / "latin.tex").write_bytes(b"\xe9")
    cases = {
        (str(tmp_path / "none.tex"),): "none.tex: No such file",
        (str(tmp_path),): "not a regular file",
        (str(tmp_path / "latin.tex"),): "latin.tex:1:1: byte 0xe9 is not UTF-8",
        (paper, "--theory", "theory.paper"): "expected module:name",
        (paper, "--theory", "no_such_module:x"): "no module 'no_such_module'",
        (paper, "--theory", "theory.paper:CLAIM"): "did you mean 'CLAIMS'?",
        (paper, "--theory", "theory.paper:SOURCE"): "has no 'SOURCE'",
        (paper, "--theory", "theory.symbols:STATES"): "expected a list of theory.Claim",
        (paper, "--notation", str(tmp_path / "none.toml")): "none.toml: No such file",
    }
    for arguments, said in cases.items():
        assert run(["check", *arguments]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert said in err


def test_own_claims_and_own_symbols(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_theory_of_check.py").write_text(
        "from sympy import Eq\nfrom theory import Claim\nfrom theory.symbols import M, b, alpha\n"
        "claims = [Claim('mine', Eq(alpha, b / M, evaluate=False))]\n"
    )
    (tmp_path / "mine.toml").write_text('[names]\nalpha = "\\\\varrho"\n')
    monkeypatch.chdir(tmp_path)
    paper = write(tmp_path, r"\begin{equation}\label{mine} M\varrho = b \end{equation}")
    arguments = ["check", paper, "--theory", "my_theory_of_check:claims", "--notation", "mine.toml"]
    assert run(arguments) == 0
    assert "match (exact)" in capsys.readouterr().out
    assert run(arguments[:4]) == 3
    assert r"unknown command \varrho" in capsys.readouterr().out
