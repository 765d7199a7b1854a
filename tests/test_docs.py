"""The pages of the documentation: examples run and say what they print, links to files lead somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/howto").glob("*.md")})
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
#: These pages are run by the tests of what they describe.
ELSEWHERE = {"README.md", "models.md", "figures.md", "evidence.md"}


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _examples() -> list[Path]:
    return [p for p in PAGES if p.name not in ELSEWHERE and ">>> " in p.read_text(encoding="utf-8")]


def _broken(page: Path, text: str) -> list[str]:
    """The targets of links of a page that are neither addresses nor anchors nor files."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", prose)
    files = (t.partition("#")[0] for t in targets if "://" not in t and not t.startswith("#"))
    return [f for f in files if not (page.parent / f).exists()]


@pytest.mark.parametrize("page", _examples(), ids=_name)
def test_examples(page: Path) -> None:
    outcome = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_to_files(page: Path) -> None:
    assert _broken(page, page.read_text(encoding="utf-8")) == []


def test_a_broken_link_is_found() -> None:
    """The twin."""
    assert _broken(ROOT / "README.md", "[x](docs/nothing.md#a) [y](docs/theory.md) [z](#here)") == ["docs/nothing.md"]
