"""The pytest plugin: profiles, and what a failing property test of a user prints."""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = "pytester"

TEST = """
from hypothesis import settings
def test_profile():
    assert settings.default.max_examples == {count}
"""


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process finds the package of this test."""
    root = str(Path(__file__).parents[3])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH")))))
    monkeypatch.delenv("GRADLINE_PROFILE", raising=False)


def run(pytester: pytest.Pytester, text: str, *options: str) -> Any:
    """Run a test file in a process of its own; the plugin is loaded by name where the package is not installed."""
    pytester.makepyfile(text)
    installed = any(e.name == "gradline" for e in entry_points(group="pytest11"))
    load = () if installed else ("-p", "numerics.pytest_plugin")
    return pytester.runpytest_subprocess(*load, "-p", "no:cacheprovider", *options)


@pytest.mark.parametrize(("option", "count"), [("quick", 20), ("thorough", 500)])
def test_profiles(pytester: pytest.Pytester, option: str, count: int) -> None:
    run(pytester, TEST.format(count=count), f"--gradline-profile={option}").assert_outcomes(passed=1)


def test_unknown_profile(pytester: pytest.Pytester) -> None:
    found = run(pytester, TEST.format(count=20), "--gradline-profile=slow")
    assert found.ret != 0
    found.stderr.fnmatch_lines(["*invalid choice: 'slow'*"])
