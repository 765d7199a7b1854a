"""Sphinx: reference pages from docstrings. Paragraphs stay paragraphs, indented lines and examples become code."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_MARK = re.compile(r"``(.+?)``|`([^`]+)`")


def text(line: str) -> Iterator[Any]:
    """Words and literals of a line."""
    end = 0
    for found in _MARK.finditer(line):
        yield nodes.Text(line[end : found.start()])
        word = found[1] or found[2]
        yield nodes.literal(word, word)
        end = found.end()
    yield nodes.Text(line[end:])


def blocks(docstring: str) -> Iterator[Any]:
    """Paragraphs, code and examples of a docstring."""
    for part in re.split(r"\n\s*\n", inspect.cleandoc(docstring)):
        lines = part.splitlines()
        if lines[0].startswith((">>>", " ")):
            code = nodes.literal_block(part, part)
            code["language"] = "pycon" if lines[0].startswith(">>>") else "text"
            yield code
            continue
        paragraph = nodes.paragraph()
        for item in text(" ".join(line.strip() for line in lines)):
            paragraph += item
        yield paragraph


def public(module: Any) -> Iterator[tuple[str, Any]]:
    """The public names of a module with their objects."""
    for name in getattr(module, "__all__", ()):
        found = getattr(module, name)
        if inspect.isclass(found) or inspect.isroutine(found):
            yield name, found


def _signature(name: str, found: Any) -> str:
    try:
        shown = str(inspect.signature(found))
    except (TypeError, ValueError):
        return name
    plain = re.sub(r"'([^']*)'", r"\1", re.sub(r"<object object at 0x\w+>", "...", shown))
    return f"{name}{plain}"


class Api(SphinxDirective):
    """The reference of one module."""

    required_arguments = 1

    def run(self) -> list[Any]:
        module = importlib.import_module(self.arguments[0])
        found: list[Any] = [*blocks(module.__doc__ or "")]
        for name, item in public(module):
            section = nodes.section(ids=[nodes.make_id(f"{module.__name__}-{name}")])
            title = nodes.title()
            title += nodes.literal(name, name)
            section += title
            signature = nodes.literal_block(_signature(name, item), _signature(name, item))
            signature["language"] = "python"
            signature["classes"].append("signature")
            section += signature
            if not item.__doc__:
                raise self.error(f"{module.__name__}.{name} has no docstring")
            for block in blocks(item.__doc__):
                section += block
            found.append(section)
        return found


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("api", Api)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
