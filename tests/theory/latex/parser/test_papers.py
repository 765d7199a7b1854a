"""Papers as files: macros, inputs, displays, rows; and what is wrong with a file, in one line with its place."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from theory.latex.notation import Notation
from theory.latex.parser.equations import read_group
from theory.latex.parser.evaluate import evaluate
from theory.latex.parser.rows import groups_of
from theory.latex.parser.vocabulary import vocabulary
from theory.latex.source.document import read_paper
from theory.latex.source.items import text_of
from theory.latex.source.macros import expand
from theory.latex.source.tokens import LatexError, shown

#: Each macro is twice the next one: 2^25 letters.
DOUBLING = "".join(rf"\def\x{a}{{\x{b}\x{b}}}" for a, b in pairwise("abcdefghijklmnopqrstuvwxyz"))


def write(folder: Path, text: str, name: str = "paper.tex") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def bodies(folder: Path, text: str) -> list[str]:
    """The displayed formulas of a paper, macros expanded, without blanks."""
    paper = read_paper(write(folder, text))
    return [shown(expand(d.tokens, d.macros)).replace(" ", "") for d in paper.displays]


def rows(folder: Path, text: str) -> list[str]:
    return [text_of(g.items) for d in read_paper(write(folder, text)).displays for g in groups_of(d)]


def refused(folder: Path, text: str) -> str:
    path = write(folder, text)
    with pytest.raises(LatexError) as caught:
        [groups_of(display) for display in read_paper(path).displays]
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("definition", "use", "expected"),
    [
        (r"\newcommand{\x}{ab}", r"\x", "ab"),
        (r"\newcommand\x[1]{a#1b}", r"\x{cd}\x e", "acdbaeb"),
        (r"\newcommand{\x}[2][z]{#1#2}", r"\x y\x[w]y", "zywy"),
        (r"\newcommand*{\x}{a}\renewcommand{\x}{b}", r"\x", "b"),
        (r"\providecommand{\x}{a}\providecommand{\x}{b}", r"\x", "a"),
        (r"\providecommand{\frac}{a}", r"\frac{x}{y}", r"\frac{x}{y}"),
        (r"\def\x{a}\def\y#1{b#1}", r"\x\y c", "abc"),
        (r"\let\old\alpha\renewcommand{\alpha}{\old x}", r"\alpha", r"\alphax"),
        (r"\DeclareMathOperator{\Ei}{Ei}", r"\Ei(x)", r"\operatorname{Ei}(x)"),
        (r"\DeclarePairedDelimiter{\abs}{\lvert}{\rvert}", r"\abs*{x}", r"\lvertx\rvert"),
        (r"\newcommand{\x}{\y y}\newcommand{\y}{z}", r"\x", "zy"),
        (r"\newcommand{\x}{a}{\renewcommand{\x}{b}}", r"\x", "a"),
        (r"{\gdef\x{b}}", r"\x", "b"),
    ],
)
def test_macros(tmp_path: Path, definition: str, use: str, expected: str) -> None:
    assert bodies(tmp_path, rf"{definition}\begin{{equation}}{use}\end{{equation}}") == [expected]


def test_macros_may_hold_the_environment(tmp_path: Path) -> None:
    text = r"\newcommand{\beq}{\begin{equation}}\newcommand{\eeq}{\end{equation}}\beq x=y \eeq"
    assert bodies(tmp_path, text) == ["x=y"]
    text = r"\newenvironment{eqn}{\begin{equation}}{\end{equation}}\begin{eqn} x=y \end{eqn}"
    assert bodies(tmp_path, text) == ["x=y"]


def test_what_is_no_formula_is_passed_over(tmp_path: Path) -> None:
    text = "\n".join(
        [
            r"Text with $x = 1$, \(y\), 50\% and \verb|\begin{equation}|. % \begin{equation} no \end{equation}",
            r"\begin{verbatim} \begin{equation} { \end{verbatim}",
            r"\iffalse \begin{equation} never \end{equation} \iftrue\fi \else \begin{equation} x \end{equation} \fi",
            r"\[ y \] $$ z $$ \end{document} \begin{equation} after \end{equation}",
        ]
    )
    assert bodies(tmp_path, text) == ["x", "y", "z"]


def test_inputs_are_followed_in_place(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write(tmp_path, r"\newcommand{\x}{a}\begin{equation}\x\end{equation}", "parts/one.tex")
    write(tmp_path, r"\x=b", "body.tex")
    write(tmp_path, r"\newcommand{\styled}{s}", "mine.sty")
    text = (
        r"\usepackage[o]{mine}\input{parts/one}\include{parts/one.tex}\begin{equation}\input{body}\styled\end{equation}"
    )
    assert bodies(tmp_path, text) == ["a", "a", "a=bs"]
    assert len(read_paper(tmp_path / "paper.tex").files) == 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\begin{align} x &= y \\ z &= 1 \end{align}", ["x=y", "z=1"]),
        (r"\begin{align} x &= y \\ &= z \\ &\quad + 1 \\[2pt] -y &= 2 \end{align}", ["x=y=z+1", "-y=2"]),
        (r"\begin{align*} x &= y & u &= v \end{align*}", ["x=y", "u=v"]),
        (r"\begin{equation}\begin{split} x &= y \\ &- z \end{split}\end{equation}", ["x=y-z"]),
        (r"\begin{equation}\left\{\begin{aligned} x &= y \\ z &= 1 \end{aligned}\right.\end{equation}", ["x=y", "z=1"]),
        (r"\begin{gather} x = y \nonumber \\ z = 1 \end{gather}", ["x=y", "z=1"]),
        (r"\begin{multline} x = y \\ + z \\ + 1 \end{multline}", ["x=y+z+1"]),
        (r"\begin{eqnarray} x & = & y \\ & = & z \end{eqnarray}", ["x=y=z"]),
        (r"\begin{align} x &= \left( y \right. \\ &\left. + z \right) \end{align}", [r"x=\left(y+z\right)"]),
        (r"\begin{align} x &= \bigl( y \\ &\quad z \bigr) \end{align}", ["x=(yz)"]),
        (r"\begin{equation} x = \begin{aligned}[t] &y \\ &+ z \end{aligned} \end{equation}", ["x=y+z"]),
        (r"\begin{alignat}{2} x &= y & z &= 1 \end{alignat}", ["x=y", "z=1"]),
    ],
)
def test_rows_of_one_equation_are_joined(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert rows(tmp_path, text) == expected


def test_labels_and_comments_stay_with_their_rows(tmp_path: Path) -> None:
    text = "\n".join(
        [
            "% gradline: one",
            r"\begin{align}",
            r"x &= y \label{a} \\ % gradline: two",
            r"z &= 1 \nonumber % gradline: three",
            r"\end{align}",
        ]
    )
    (display,) = read_paper(write(tmp_path, text)).displays
    first, second = groups_of(display)
    assert [note.text for note in display.notes] == ["one"]
    assert (first.labels, [n.text for n in first.notes], first.numbered) == (("a",), ["two"], True)
    assert (second.labels, [n.text for n in second.notes], second.numbered) == ((), ["three"], False)


def test_parts_of_an_equation(tmp_path: Path) -> None:
    text = r"""\begin{equation} x = y = \begin{cases} 1, & \text{if } \mu > 0 \\ 2 & \mu<0 \end{cases},
      \qquad D = \alpha, \quad\text{for $\gamma > 0$ and } M \ge 2. \end{equation}"""
    (display,) = read_paper(write(tmp_path, text)).displays
    (group,) = groups_of(display)
    parts = read_group(display, group, vocabulary(Notation()))
    assert [len(chain.sides) for chain in parts.chains] == [3, 2]
    assert [(str(evaluate(c.left)), c.relation) for c in parts.conditions] == [("gamma", ">"), ("M", ">=")]
    branches = parts.chains[0].sides[2].branches
    assert [(str(evaluate(b.value)), b.conditions[0][1]) for b in branches] == [("1", ">"), ("2", "<")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x\n  {y", "paper.tex:2:3: this { has no }"),
        ("x }", "paper.tex:1:3: this } has no {"),
        ("\\begin{equation}\n x_{a \\end{equation}", "paper.tex:2:4: this { has no }"),
        (r"\begin{equation} x", r"paper.tex:1:1: \begin{equation} has no end"),
        (r"\begin{theorem} x", r"paper.tex:1:1: \begin{theorem} has no \end{theorem}"),
        (r"\begin{a}\end{b}", r"paper.tex:1:10: \end{b} has no \begin{b}; \begin{a} at paper.tex:1:1 is open"),
        ("\n$x", "paper.tex:2:1: this $ has no partner"),
        (r"\begin{verbatim} x", r"paper.tex:1:1: \begin{verbatim} has no \end{verbatim}"),
        (r"\input{paper}", r"paper.tex:1:1: \input{paper}: this file inputs itself"),
        (r"\input{none}", r"paper.tex:1:1: \input{none}: no such file: none.tex"),
        (r"\def\x{a\x}\[\x\]", r"paper.tex:1:14: macro \x, defined at paper.tex:1:5, expands for ever"),
        (r"\def\x{\y}\def\y{\x}\[\y\]", r"macro \y, defined at paper.tex:1:15, expands for ever"),
        (r"\def\x{\begin{a}\x}\x", r"macro \x expands for ever"),
        (r"\def\x#1{#1#1#1#1#1#1#1#1}\[\x{\x{\x{\x{\x{\x{z}}}}}}\]", "expands to more than"),
        (DOUBLING + r"\[\xa\]", "expands to more than 20000 tokens"),
        (r"\[" + "{" * 30_000 + "}" * 30_000 + r"\]", "a display of more than 20000 tokens"),
        (r"\newcommand{\x}[1]{#1}\[\x\]", r"\x lacks an argument"),
        (r"\newcommand{\x}{a}\newcommand{\x}{b}\[\x\]", "defined twice, at paper.tex:1:13 and at paper.tex:1:31"),
        (r"\def\x#1.{a}\[\x b.\]", "its arguments are delimited"),
        ("% gradline: x\nText", "paper.tex:1:1: this comment for gradline stands neither before nor in a display"),
        (r"\iffalse x", r"paper.tex:1:1: \iffalse has no \fi"),
        ("\\", "paper.tex:1:1: a backslash at the end of the file"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refused(tmp_path, text)


def test_errors_name_the_file_they_are_in(tmp_path: Path) -> None:
    write(tmp_path, "fine\n  }", "part.tex")
    assert refused(tmp_path, r"\input{part}") == "part.tex:2:3: this } has no {"
    write(tmp_path, r"\input{paper}", "part.tex")
    assert refused(tmp_path, r"\input{part}") == r"part.tex:1:1: \input{paper}: this file inputs itself"
    (tmp_path / "part.tex").write_bytes(b"ok\n  \xe9")
    assert refused(tmp_path, r"\input{part}") == "part.tex:2:3: byte 0xe9 is not UTF-8; expected a file in UTF-8"


def test_a_macro_is_named_by_the_place_of_its_use(tmp_path: Path) -> None:
    text = "\\newcommand{\\x}{k}\n\\begin{equation}\n a = \\x\n\\end{equation}"
    (display,) = read_paper(write(tmp_path, text)).displays
    (group,) = groups_of(display)
    with pytest.raises(LatexError) as caught:
        read_group(display, group, vocabulary(Notation()))
    assert (caught.value.place.line, caught.value.place.column) == (3, 6)


def test_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "paper.tex"
    path.write_bytes("\ufeffText\r\n\\begin{equation}\r\n x=y \\end{equation}".encode())
    (display,) = read_paper(path).displays
    assert (display.place.line, display.place.column) == (2, 1)


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_main_file_that_is_none(tmp_path: Path, kind: str) -> None:
    path = tmp_path if kind == "folder" else tmp_path / "none.tex"
    with pytest.raises((OSError, ValueError)) as caught:
        read_paper(path)
    assert str(path) in str(caught.value)
