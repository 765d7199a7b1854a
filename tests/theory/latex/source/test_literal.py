r"""What TeX reads letter by letter hides nothing of the paper: addresses, ``\verb`` and its kin, listings."""

from __future__ import annotations

from pathlib import Path

import pytest

from theory.latex.check import check_paper
from theory.latex.source.document import read_paper
from theory.latex.source.tokens import LatexError, shown

HIDDEN = [
    r"\url{http://a.b/c%20d}\[a\]",
    r"\href{http://a.b/c%20{d}#e}{text}\[a\]",
    r"\verb|{%$|\[a\]",
    r"\lstinline|{%$|\[a\]",
    r"\lstinline[language=C]!{%$!\[a\]",
    r"\lstinline{x % y}\[a\]",
    r"\mintinline{tex}|{%$|\[a\]",
    "\\begin{alltt} $ \\end{alltt}\\[a\\]",
    "\\begin{lstlisting}[a=b]\n\\[b\\] { \\end{lstlisting}\\[a\\]",
    r"\newcommand{\url}[1]{#1}\[a\]",
]


@pytest.mark.parametrize("text", HIDDEN)
def test_literal_text_is_passed_over(tmp_path: Path, text: str) -> None:
    path = tmp_path / "paper.tex"
    path.write_text(text, encoding="utf-8")
    assert [shown(d.tokens) for d in read_paper(path).displays] == ["a"]


def test_an_address_over_several_lines_is_read_as_text(tmp_path: Path) -> None:
    path = tmp_path / "paper.tex"
    path.write_text("\\url{a%20\n", encoding="utf-8")
    with pytest.raises(LatexError, match=r"paper.tex:1:5: this { has no }"):
        read_paper(path)


def test_codes_of_characters_are_remarked_upon(tmp_path: Path) -> None:
    path = tmp_path / "paper.tex"
    path.write_text("\\catcode`\\%=12 \\[a\\]", encoding="utf-8")
    assert read_paper(path).remarks == (f"{path}:1:1: \\catcode is not followed",)


def test_macros_that_merge_two_symbols_are_named_at_the_equation(tmp_path: Path) -> None:
    path = tmp_path / "paper.tex"
    loss = r"\begin{equation}\label{loss-on-line}L = \log(1+(M-1)e^{-\alpha\mu_{OV}})\end{equation}"
    path.write_text(f"{loss}\n{{\\renewcommand\\alpha{{\\beta}}{loss}}}", encoding="utf-8")
    first, second = check_paper(path).equations
    assert (first.status, second.status) == ("match", "unparsed")
    assert second.reason.startswith(f"{path}:2:")
    assert "beta and alpha are both read from" in second.reason


def test_a_long_formula_is_judged_without_a_search_for_its_repair(tmp_path: Path) -> None:
    path = tmp_path / "paper.tex"
    path.write_text(rf"\begin{{equation}}\label{{loss-on-line}}L={'+'.join(['M'] * 300)}\end{{equation}}")
    (found,) = check_paper(path).equations
    assert (found.status, found.finding.repair if found.finding else "") == ("differs", None)
