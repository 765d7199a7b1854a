"""``gradline latex``: files that compile, alone and inside an author's paper, the same bytes each time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from numerics.cli import run
from numerics.latex_verdicts import exact_verdicts, recorded_verdicts
from theory.latex import Notation
from theory.latex.documents import bodies, verdict_files
from theory.registry import claims, find

PAPER = Path(__file__).parent.parent / "data" / "icml_style.tex"
LATEXMK = shutil.which("latexmk")
needs_latexmk = pytest.mark.skipif(LATEXMK is None, reason="latexmk is not installed; the Debian package is latexmk")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("latex") / "out"
    assert run(["latex", "--out", str(out)]) == 0
    return out


def compiled(folder: Path, name: str) -> str:
    """The log of a document that latexmk compiles."""
    assert LATEXMK is not None
    command = [LATEXMK, "-pdf", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", f"{name}.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    log = (folder / f"{name}.log").read_text(errors="replace")
    assert done.returncode == 0, log[-3000:]
    return log


def complaints(log: str) -> list[str]:
    return re.findall(r"^(?:Overfull .*|LaTeX Warning: .*|Package \w+ Warning: .*|! .*)$", log, re.MULTILINE)


def test_files_of_every_claim(folder: Path) -> None:
    names = {p.name for p in folder.iterdir()}
    for claim in claims():
        assert {f"gl-statement-{claim.id}.tex", f"gl-proof-{claim.id}.tex"} <= names
        assert any(name.startswith(f"gl-eq-{claim.id}-") for name in names)
    assert {"gl-paper.tex", "gl-macros.tex", "gl-table-verdicts.tex", "gl-figure-attention.pdf"} <= names


def test_manifest_has_the_hash_of_every_file(folder: Path) -> None:
    data = json.loads((folder / "gl-manifest.json").read_text())
    found = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}
    assert data["files"].items() <= found.items()
    assert {n for n in found if n.startswith("gl-") and n.endswith((".tex", ".pdf"))} - set(data["files"]) <= {
        "gl-paper.pdf"
    }


def test_bodies_define_nothing_and_have_no_labels(folder: Path) -> None:
    for path in folder.glob("gl-*.tex"):
        text = path.read_text()
        assert "\t" not in text
        if path.name in ("gl-paper.tex", "gl-macros.tex"):
            continue
        assert not re.search(r"\\(label|newcommand|def|newtheorem|begin\{(theorem|proof|equation|align)\})", text), path
    defined = re.findall(r"\\(?:providecommand|newcommand)\{\\(\w+)\}", (folder / "gl-macros.tex").read_text())
    assert defined
    assert all(name.startswith("gl") for name in defined)


def test_every_claim_carries_its_computed_verdict(folder: Path) -> None:
    text = (folder / "gl-macros.tex").read_text()
    for claim in claims():
        assert f"\\csname gl-verdict-{claim.id}\\endcsname{{proved}}" in text
        assert f"\\glcheck{{{claim.id}}}" in (folder / f"gl-statement-{claim.id}.tex").read_text()


def test_a_wrong_claim_is_called_refuted() -> None:
    right = find("flow-collapsed")
    wrong = right.with_stated(mu_OV=2 * right.stated["mu_OV"])
    verdicts = exact_verdicts([wrong])
    assert verdicts["flow-collapsed"][0] == "refuted"
    assert "{refuted}" in verdict_files([wrong], verdicts, Notation())["gl-macros.tex"]


@needs_latexmk
def test_the_paper_compiles_without_a_complaint(folder: Path) -> None:
    assert complaints(compiled(folder, "gl-paper")) == []


@needs_latexmk
def test_bodies_compile_inside_a_paper_in_icml_style(folder: Path) -> None:
    shutil.copy(PAPER, folder / "author.tex")
    assert complaints(compiled(folder, "author")) == []


@needs_latexmk
def test_a_formula_too_wide_is_a_complaint(folder: Path) -> None:
    body = r"\begin{equation*}" + "+".join(["x_{\\mathrm{wide}}"] * 40) + r"\end{equation*}"
    source = r"\documentclass[twocolumn]{article}\usepackage{amsmath}\begin{document}" + body + r"\end{document}"
    (folder / "wide.tex").write_text(source)
    assert any("Overfull" in c for c in complaints(compiled(folder, "wide")))


@needs_latexmk
def test_every_equation_compiles_in_align(folder: Path) -> None:
    names = sorted(p.stem for p in folder.glob("gl-eq-*.tex"))
    rows = "\\\\\n".join(rf"\input{{{name}}}" for name in names)
    source = (
        r"\documentclass[10pt,twocolumn]{article}"
        r"\usepackage[letterpaper,textwidth=6.75in,textheight=9in,columnsep=0.25in]{geometry}"
        rf"\usepackage{{amsmath}}\allowdisplaybreaks\begin{{document}}\begin{{gather*}}{rows}\end{{gather*}}\end{{document}}"
    )
    (folder / "equations.tex").write_text(source)
    assert complaints(compiled(folder, "equations")) == []


def test_output_does_not_depend_on_the_hash_seed(folder: Path) -> None:
    code = (
        "import json; from theory import claims; from theory.latex import Notation;"
        "from theory.latex.documents import bodies; print(json.dumps(bodies(claims(), Notation())))"
    )
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    for name, text in json.loads(done.stdout).items():
        assert (folder / name).read_text() == text


def test_own_names_reach_every_formula() -> None:
    notation = Notation(names={"mu_QK": r"\muQK"}, derivative="dot", prefix="my")
    files = bodies([find("flow-collapsed"), find("integral-faco"), find("early-time")], notation)
    assert all(name.startswith("my-") for name in files)
    assert not any(r"\mu_{\mathrm{QK}}" in text for text in files.values())
    assert r"\dot{\muQK}" in files["my-eq-flow-collapsed-mu-QK-shared-N.tex"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "missing/deeper"], "does not exist"),
        (["--out", ".", "--column", "20"], "expected a width in points above 29"),
        (["--out", ".", "--column", "wide"], "--column"),
        (["--out", ".", "--notation", "missing.toml"], "missing.toml"),
        (["--out", ".", "--evidence", "missing.json"], "missing.json"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["latex", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert list(tmp_path.iterdir()) == []


def test_evidence_for_other_formulas_is_refused(tmp_path: Path) -> None:
    from numerics import verify
    from numerics.certificates import save

    path = tmp_path / "evidence.json"
    save(verify([find("noise-correction"), find("balancedness")]), path)
    found = recorded_verdicts(path, [find("noise-correction")])
    assert found["noise-correction"][0] == "proved"
    assert "symbolic" in found["noise-correction"][1]
    other = find("noise-correction").with_stated(shared=find("noise-correction").stated["per_class"])
    with pytest.raises(ValueError, match="states other formulas"):
        recorded_verdicts(path, [other])
    with pytest.raises(ValueError, match="nothing about flow-cafo"):
        recorded_verdicts(path, [find("flow-cafo")])
