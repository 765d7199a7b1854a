"""Every example of the README runs and prints what it says."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

README = Path(__file__).parent.parent / "README.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


def test_python_examples() -> None:
    outcome = doctest.testfile(str(README), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert outcome.attempted > 15
    assert outcome.failed == 0


def test_a_wrong_example_fails(tmp_path: Path) -> None:
    """The twin: an edited answer is noticed."""
    wrong = tmp_path / "README.md"
    wrong.write_text(README.read_text(encoding="utf-8").replace("'different'", "'equal'"), encoding="utf-8")
    assert doctest.testfile(
        str(wrong), module_relative=False, optionflags=FLAGS, encoding="utf-8", verbose=False
    ).failed


def _commands() -> list[str]:
    """The derive and simulate commands in backquotes; verify has tests of its own."""
    found = re.findall(r"`gradline ((?:derive|simulate)[^`]*)`", README.read_text(encoding="utf-8"))
    return sorted(set(found))


def test_there_are_commands() -> None:
    assert len(_commands()) >= 2


@pytest.mark.parametrize("line", _commands())
def test_commands(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numerics.cli import app

    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, shlex.split(line))
    assert result.exit_code == 0, result.output
    for name in re.findall(r"\S+\.(?:pdf|png|csv|npz)", line):
        assert (tmp_path / name).stat().st_size > 0
