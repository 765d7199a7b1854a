r"""What TeX leaves out is not read: ``\iffalse`` and the switches of ``\newif``; other conditionals are read whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from theory.latex.source.document import read_paper
from theory.latex.source.tokens import LatexError, shown

SHOWN = [
    (r"\iffalse\[a\]\else\[b\]\fi", "b"),
    (r"\iftrue\[a\]\else\[b\]\fi\[c\]", "ac"),
    (r"\newif\ifdraft\ifdraft\[a\]\else\[b\]\fi", "b"),
    (r"\newif\ifdraft\drafttrue\ifdraft\[a\]\else\[b\]\fi", "a"),
    (r"\newif\ifdraft\drafttrue\draftfalse\ifdraft\[a\]\fi\[c\]", "c"),
    (r"\newif\ifdraft\ifdraft\iftrue\[a\]\else\[b\]\fi\else\[c\]\fi", "c"),
    (r"\newif\ifdraft\ifdraft\else\iffalse\[a\]\else\[b\]\fi\[c\]\fi\[d\]", "bcd"),
    (r"\iftrue\ifx\x\y\[a\]\else\[b\]\fi\[c\]\else\[d\]\fi\[e\]", "abce"),
    (r"\ifdefined\x\[a\]\else\[b\]\fi\[c\]", "abc"),
    (r"\if0\[a\]\fi\[b\]", "b"),
    (r"\if 0\[a\]\else\[b\]\fi\[c\]", "bc"),
    (r"\if00\[a\]\else\[b\]\fi\[c\]", "ac"),
    (r"\if0\x\[a\]\else\[b\]\fi", "ab"),
    (r"\[a\] \fi \else \[b\]", "ab"),
]


@pytest.mark.parametrize(("text", "expected"), SHOWN)
def test_what_is_shown_is_read(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "paper.tex"
    path.write_text(text, encoding="utf-8")
    assert "".join(shown(d.tokens) for d in read_paper(path).displays) == expected


@pytest.mark.parametrize("text", [r"\iffalse\[a\]", r"\iftrue\[a\]\else\[b\]", r"\newif\ifa\ifa\[a\]"])
def test_one_without_end_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "paper.tex"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LatexError, match=r"has no \\fi"):
        read_paper(path)
