"""The pages of the documentation: examples print what they say, links lead to files, commands are accepted and run."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase
from typer.testing import CliRunner

from theory.registry import claims

ROOT = Path(__file__).parent.parent
PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/howto").glob("*.md")})
#: The least number of examples of the pages that are made of them.
LEAST = {"README.md": 16, "docs/evidence.md": 11, "docs/figures.md": 9, "docs/models.md": 9}
#: These take longer than ten seconds, or read files that a reader has written before.
SLOW = re.compile(r"verify|figure (?!.*--quick)|report|--theory|--evidence|--notation")
#: Commands within a text that are whole: others leave their arguments out.
WHOLE = r"`gradline ((?:derive|laws|simulate|stop) (?!\.\.\.)[^`]*)`"
#: A paper in which no equation is linked: what is checked in a paper has tests of its own.
PAPER = "\\section{Nothing is linked here}\n"


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _run(page: Path) -> doctest.TestResults:
    return doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8", verbose=False
    )


@pytest.mark.parametrize("page", [p for p in PAGES if ">>> " in p.read_text(encoding="utf-8")], ids=_name)
def test_examples(page: Path) -> None:
    outcome = _run(page)
    assert outcome.attempted >= LEAST.get(_name(page), 1)
    assert outcome.failed == 0


@pytest.mark.parametrize(
    ("page", "right", "wrong"), [("README.md", "'different'", "'equal'"), ("docs/evidence.md", "\n1/M\n", "\n1/N\n")]
)
def test_a_wrong_example_fails(page: str, right: str, wrong: str, tmp_path: Path) -> None:
    """The twin: an edited answer is noticed."""
    changed = tmp_path / "page.md"
    changed.write_text((ROOT / page).read_text(encoding="utf-8").replace(right, wrong), encoding="utf-8")
    assert _run(changed).failed == 1


def _broken(page: Path, text: str) -> list[str]:
    """The targets of links of a page that are neither addresses nor anchors nor files."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", prose)
    files = (t.partition("#")[0] for t in targets if "://" not in t and not t.startswith("#"))
    return [f for f in files if not (page.parent / f).exists()]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_to_files(page: Path) -> None:
    assert _broken(page, page.read_text(encoding="utf-8")) == []


def test_the_map_of_the_code() -> None:
    """Folders and files that the page for contributors names exist, and it tells all that grows the tests."""
    page = (ROOT / "docs/contributing.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:theory|numerics|tests)/[\w./]*)`", page)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert len(paths) > 20
    used = {v for f in (ROOT / "tests").rglob("*.py") for v in re.findall(r"GRADLINE_[A-Z_]+", f.read_text("utf-8"))}
    assert used - {"GRADLINE_FAST"} == set(re.findall(r"GRADLINE_[A-Z_]+", page))


def test_a_broken_link_is_found() -> None:
    """The twin."""
    assert _broken(ROOT / "README.md", "[x](docs/nothing.md#a) [y](docs/theory.md) [z](#here)") == ["docs/nothing.md"]


def _told(readme: str) -> list[str]:
    """The claims of the table of what is proved."""
    table = readme.partition("## What is proved")[2].partition("\n## ")[0]
    rows = [row for row in table.splitlines() if row.startswith("| ")]
    return [name for row in rows for name in re.findall(r"`([^`]*)`", row.rsplit("|", 2)[1])]


def test_the_table_of_what_is_proved() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    known = [claim.id for claim in claims()]
    assert sorted(_told(readme)) == sorted(known)
    assert f"All {len(known)} are *proved*" in readme
    assert sorted(_told(readme.replace("`loss-rate`", "`loss-rats`"))) != sorted(known)


def _commands() -> list[str]:
    """The commands in blocks, and those within a text that are whole."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    blocks = "".join(block for text in texts for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S))
    lines = (line.split("#")[0].split(" > ")[0].strip() for line in blocks.splitlines())
    shown = {line.split("gradline ", 1)[1] for line in lines if re.match(r"(\.venv/bin/)?gradline ", line)}
    return sorted(shown.union(*(re.findall(WHOLE, text) for text in texts)))


def _unknown(command: str) -> list[str]:
    """The options of a command that it does not have."""
    from typer.main import get_command

    from numerics.cli import app

    name, *rest = shlex.split(command)
    options = [word.split("=")[0] for word in rest if re.fullmatch(r"--?[A-Za-z][\w-]*(=.*)?", word)]
    known = get_command(app).commands[name].params  # type: ignore[attr-defined]
    return [o for o in options if o not in {s for p in known for s in (*p.opts, *p.secondary_opts)}]


def test_options_exist() -> None:
    assert len(_commands()) >= 18
    assert {command: _unknown(command) for command in _commands() if _unknown(command)} == {}


def test_an_unknown_option_is_found() -> None:
    """The twin."""
    assert _unknown("verify --json x.json --jason y") == ["--jason"]


def _block(page: str, start: str) -> str:
    """A block of code of a page, by how it begins."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return next(b for b in re.findall(r"^```\w+\n(.*?)^```", text, re.M | re.S) if b.startswith(start))


#: What a reader has written before, as the pages show it.
GIVEN = {
    "paper.tex": PAPER,
    "notation.toml": _block("latex.md", "derivative ="),
    "mine.toml": _block("latex.md", "derivative ="),
    "mytheory.py": _block("check.md", "# mytheory.py"),
}
#: Minutes each: run with GRADLINE_LONG=1.
LONG = ("verify", "figure fig2 --out figures", "figure fig3 --out figures")
WRITTEN = {"verify --json evidence.json": "evidence.json", "figure fig4 --out figures": "figures/fig4.pdf"} | {
    "report evidence.json --out report": "report/report.html", "figure line --out figures": "figures/line.pdf",
}  # fmt: skip


def test_slow_commands(tmp_path: Path) -> None:
    """In one folder, as a reader does: the evidence first, then what is made of it."""
    for name, text in GIVEN.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    slow = [c for c in _commands() if SLOW.search(c) and (c not in LONG or os.environ.get("GRADLINE_LONG"))]
    slow.sort(key=lambda c: "--json" not in c)
    assert len(slow) >= 9
    for command in slow:
        words = [sys.executable, "-m", "numerics.cli", *shlex.split(command)]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        if command in WRITTEN:
            assert (tmp_path / WRITTEN[command]).stat().st_size > 0
    assert sorted(WRITTEN) == sorted(c for c in slow if c in WRITTEN)


def test_the_sweep_as_a_job_array(tmp_path: Path) -> None:
    """Two tasks of an array, then all points: nothing is run twice."""
    (tmp_path / "sweep.py").write_text(_block("howto/sweep-on-a-cluster.md", "# sweep.py"), encoding="utf-8")
    said = []
    for task in ("0", "1", None):
        array = {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_COUNT": "2"} if task else {}
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **array}
        words = [sys.executable, "sweep.py"]
        said.append(
            subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
        )
    assert said == [
        "task 0: 3 run, 0 kept, 0 failed\n", "task 1: 3 run, 0 kept, 0 failed\n", "task 0: 0 run, 6 kept, 0 failed\n",
    ]  # fmt: skip


def test_the_property_test_of_the_readme() -> None:
    block = _block("../README.md", "from itertools import pairwise")
    module: dict[str, Any] = {"__name__": "readme", "Phase": Phase}
    quick = block.replace("max_examples=10", "max_examples=3, phases=[Phase.generate]")
    exec(quick, module)
    module["test_loss_falls"]()
    exec(quick.replace("after < before", "after > before"), module)  # the twin
    with pytest.raises(AssertionError):
        module["test_loss_falls"]()


def test_the_module_of_own_claims(tmp_path: Path) -> None:
    from theory.latex.check import check_paper

    module: dict[str, Any] = {}
    exec(GIVEN["mytheory.py"], module)
    paper = tmp_path / "paper.tex"
    said = ("e^L = 1+(M-1)e^{-\\mu_{OV}}", "e^L = 1+Me^{-\\mu_{OV}}")
    paper.write_text(
        "".join(rf"\begin{{equation}}\label{{my-loss}}{s}\end{{equation}}" for s in said), encoding="utf-8"
    )
    assert [e.status for e in check_paper(paper, module["claims"]).equations] == ["match", "differs"]


@pytest.mark.parametrize("command", [c for c in _commands() if not SLOW.search(c)])
def test_quick_commands(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numerics.cli import app

    monkeypatch.chdir(tmp_path)
    Path("paper.tex").write_text(PAPER, encoding="utf-8")
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0, result.output
    for name in re.findall(r"\S+\.(?:pdf|png|csv|npz)", command):
        assert Path(name).stat().st_size > 0
