"""Every ``gradline`` command in a block of the pages is accepted, and the quick ones run with exit code 0."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent
PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/howto").glob("*.md")})
#: These take longer than ten seconds, or read files that a reader has written before.
SLOW = re.compile(r"verify|figure (?!.*--quick)|report|--theory|--evidence|--notation")
#: A paper in which no equation is linked: what is checked in a paper has tests of its own.
PAPER = "\\section{Nothing is linked here}\n"


def _commands() -> list[str]:
    blocks = [b for p in PAGES for b in re.findall(r"^```sh\n(.*?)^```", p.read_text(encoding="utf-8"), re.M | re.S)]
    lines = [line.split("#")[0].split(" > ")[0].strip() for block in blocks for line in block.splitlines()]
    return sorted({line.split("gradline ", 1)[1] for line in lines if re.match(r"(\.venv/bin/)?gradline ", line)})


def _options(command: str) -> tuple[str, list[str]]:
    name, *rest = shlex.split(command)
    return name, [word.split("=")[0] for word in rest if re.fullmatch(r"--?[A-Za-z][\w-]*(=.*)?", word)]


def _unknown(command: str) -> list[str]:
    """The options of a command that it does not have."""
    from typer.main import get_command

    from numerics.cli import app

    name, options = _options(command)
    group = get_command(app)
    known = group.commands[name].params  # type: ignore[attr-defined]
    return [o for o in options if o not in {s for p in known for s in (*p.opts, *p.secondary_opts)}]


def test_options_exist() -> None:
    assert len(_commands()) >= 12
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
