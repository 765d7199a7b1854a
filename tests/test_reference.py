"""The reference: every public name is on a page, says what it is, and every public function shows an example."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(page.stem for page in (DOCS / "reference").glob("*.md"))


def _public(module: ModuleType) -> dict[str, Any]:
    found = {name: getattr(module, name) for name in module.__all__}
    return {name: value for name, value in found.items() if not inspect.ismodule(value)}


def _untold(names: dict[str, Any]) -> list[str]:
    """Functions without an example, classes without a text of their own."""
    missing = []
    for name, value in names.items():
        text = inspect.getdoc(value) or ""
        if inspect.isfunction(value) and ">>> " not in text:
            missing.append(f"{name}: no example")
        elif inspect.isclass(value) and (not value.__doc__ or value.__doc__.startswith(f"{name}(")):
            missing.append(f"{name}: no text")
    return missing


@pytest.mark.parametrize("page", PAGES)
def test_names_of_a_page(page: str) -> None:
    module = import_module(page)
    names = _public(module)
    assert names
    assert _untold(names) == []
    assert f"```{{api}} {page}\n" in (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")


def test_every_page_is_listed() -> None:
    listed = re.findall(r"^reference/(\S+)$", (DOCS / "reference.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == PAGES


def test_a_function_without_an_example_is_found() -> None:
    """The twin."""

    def told() -> None:
        """Do nothing.

        >>> told()
        """

    def untold() -> None:
        """Do nothing."""

    class Plain:
        pass

    assert _untold({"told": told, "untold": untold, "Plain": Plain}) == ["untold: no example", "Plain: no text"]
