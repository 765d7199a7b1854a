"""The pages of the documentation: examples print what they say, links lead to files, commands are accepted and run."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

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


def test_a_broken_link_is_found() -> None:
    """The twin."""
    assert _broken(ROOT / "README.md", "[x](docs/nothing.md#a) [y](docs/theory.md) [z](#here)") == ["docs/nothing.md"]


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


@pytest.mark.parametrize("command", [c for c in _commands() if not SLOW.search(c)])
def test_quick_commands(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numerics.cli import app

    monkeypatch.chdir(tmp_path)
    Path("paper.tex").write_text(PAPER, encoding="utf-8")
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0, result.output
    for name in re.findall(r"\S+\.(?:pdf|png|csv|npz)", command):
        assert Path(name).stat().st_size > 0
