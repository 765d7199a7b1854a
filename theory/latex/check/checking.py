r"""The check of a paper: each displayed equation against the claim that it is linked to.

An equation is linked by a comment ``% gradline: claim-id`` or by a label one of whose parts between colons is the id,
such as ``\label{eq:flow-collapsed}``. Others get suggestions, never a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from sympy import Dummy, Symbol

from theory.errors import GradlineError
from theory.frozen import FrozenMap
from theory.latex.check.edited import edited_files
from theory.latex.check.findings import Finding
from theory.latex.check.judging import judge
from theory.latex.check.stated import Statement, statements
from theory.latex.check.suggesting import Suggester
from theory.latex.names import default_latex
from theory.latex.notation import Notation
from theory.latex.parser.equations import read_group
from theory.latex.parser.rows import Group, groups_of
from theory.latex.parser.vocabulary import CONSTANT, DENOMINATOR, FORMULA, Vocabulary, vocabulary
from theory.latex.source.document import Display, Paper, read_paper
from theory.latex.source.items import text_of
from theory.latex.source.macros import Macros
from theory.latex.source.tokens import LatexError, Place, Token, shown
from theory.registry import Claim
from theory.registry import claims as all_claims

__all__ = ["Checked", "Report", "Status", "check_paper"]

Status = Literal["match", "enclosed", "differs", "undecided", "unparsed", "unlinked", "skipped"]
_SKIP = "skip"
_WRITABLE = re.compile(r"[A-Za-z]+[0-9]*(_[A-Za-z0-9]+)*")


@dataclass(frozen=True)
class Checked:
    """One equation of a paper: where it is, what it is linked to, and what was found."""

    place: Place
    latex: str
    labels: tuple[str, ...]
    claims: tuple[str, ...]
    status: Status
    reason: str = ""
    finding: Finding | None = None
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """All equations of a paper, files that were read, and remarks."""

    paper: str
    equations: tuple[Checked, ...]
    files: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=lambda: FrozenMap({}))

    @property
    def exit_code(self) -> int:
        """1 where an equation differs or a generated file was edited, 3 where something is open, else 0."""
        found = {e.status for e in self.equations}
        if "differs" in found or self.edited:
            return 1
        return 3 if found & {"unparsed", "undecided"} else 0


class _Checker:
    """A paper with the claims and the symbol table it is checked against."""

    def __init__(self, claims: Sequence[Claim], notation: Notation) -> None:
        self.claims = {claim.id: claim for claim in claims}
        self.notation = notation
        self.stated: dict[str, tuple[Statement, ...]] = {}
        self.tables: list[tuple[Macros, Vocabulary]] = []
        self.suggester: Suggester | None = None

    def words(self, macros: Macros, place: Place) -> Vocabulary:
        """The symbol table with these macros."""
        for known, table in self.tables:
            if known is macros:
                return table
        try:
            table = vocabulary(self.notation, macros)
        except ValueError as error:
            if not macros:
                raise
            raise LatexError(place, f"with the macros in force here: {error}") from None
        self.tables.append((macros, table))
        return table

    def statements(self, claim: str) -> tuple[Statement, ...]:
        """What a claim states."""
        if claim not in self.stated:
            self.stated[claim] = statements(self.claims[claim])
        return self.stated[claim]

    def display(self, display: Display) -> Iterable[Checked]:
        """The equations of one display."""
        try:
            groups = groups_of(display)
        except LatexError as error:
            if _is_fatal(error):
                raise
            notes = (*display.notes, *(t for t in display.tokens if t.kind == "note"))
            labels = tuple(_labels(display.tokens))
            ids = (*(i for note in notes for i in self.ids(note)), *self.named(labels))
            yield Checked(display.place, "", labels, ids, "unparsed" if ids else "unlinked", str(error))
            return
        for group in groups:
            found = self.group(display, group)
            if found is not None:
                yield found

    def ids(self, note: Token) -> tuple[str, ...]:
        """The claims that a comment names."""
        names = note.text.replace(",", " ").split()
        if not names:
            raise LatexError(note.place, "expected the id of a claim, or skip, behind 'gradline:'")
        for name in names:
            if name != _SKIP and name not in self.claims:
                near = get_close_matches(name, [*self.claims, _SKIP], 1, 0.0)[0]
                raise LatexError(note.place, f"unknown claim {name!r}; did you mean {near!r}?")
        return tuple(names)

    def links(self, display: Display, group: Group) -> tuple[str, ...]:
        """The claims that an equation is linked to: by the comments at it, at its display, or by its labels."""
        for notes in (group.notes, display.notes):
            found = tuple(dict.fromkeys(i for note in notes for i in self.ids(note)))
            if found:
                return found
        return self.named(group.labels)

    def named(self, labels: Sequence[str]) -> tuple[str, ...]:
        """The claims that labels name."""
        parts = [part for label in labels for part in label.split(":")]
        return tuple(dict.fromkeys(part for part in parts if part in self.claims))

    def group(self, display: Display, group: Group) -> Checked | None:
        """One equation; None for one without a number that nobody linked."""
        links = self.links(display, group)
        latex = text_of(group.items)
        if _SKIP in links:
            return Checked(group.place, latex, group.labels, (), "skipped")
        if not links:
            return self.unlinked(display, group, latex) if group.numbered and group.items else None
        try:
            words = self.words(display.macros, group.place)
            parts = read_group(display, group, words)
            stated = tuple(s for claim in links for s in self.statements(claim))
            if not stated:
                reason = f"{', '.join(links)} states no equation that could be compared"
                return Checked(group.place, latex, group.labels, links, "undecided", reason)
            finding = judge(parts, stated, words)
        except LatexError as error:
            return Checked(group.place, latex, group.labels, links, "unparsed", str(error))
        except (GradlineError, TypeError, ValueError) as error:  # beyond the exact procedures
            reason = " ".join(str(error).split())
            return Checked(group.place, latex, group.labels, links, "undecided", reason)
        return Checked(group.place, latex, group.labels, links, finding.status, finding.reason, finding)

    def unlinked(self, display: Display, group: Group, latex: str) -> Checked:
        """An equation without a claim, with the claims that it may be."""
        if self.suggester is None:
            self.suggester = Suggester({i: self.statements(i) for i in self.claims})
        try:
            words = self.words(display.macros, group.place)
            parts = read_group(display, group, words)
        except LatexError:
            parts = None
        found = self.suggester.suggest(parts, group.labels)
        return Checked(group.place, latex, group.labels, (), "unlinked", suggestions=found)


def _labels(tokens: Sequence[Token]) -> Iterator[str]:
    """The labels in a display that is not understood."""
    for at, token in enumerate(tokens):
        if token.is_command("label"):
            inside = tokens[at + 2 :]
            end = next((i for i, t in enumerate(inside) if t.kind == "close"), 0)
            yield shown(list(inside[:end]))


def _is_fatal(error: LatexError) -> bool:
    """A macro without end spoils the whole paper, as TeX would not end either."""
    return "for ever" in error.message or "expands to more" in error.message


def check_paper(path: str | Path, claims: Sequence[Claim] | None = None, notation: Notation | None = None) -> Report:
    r"""Check the equations of a paper against claims.

    Parameters: ``path``, the main LaTeX file; ``claims``, by default those of the theory; ``notation``, its symbols.
    Returns: a `Report`.
    Raises: `LatexError` in one line with file, line and column where the paper can't be read (see `read_paper`) or a
    comment names an unknown claim; ``OSError`` where the file can't be opened.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "paper.tex"
    >>> text = r"\begin{equation}\label{eq:loss-on-line} L = \log(1 + (M-1) e^{\alpha\mu_{OV}}) \end{equation}"
    >>> _ = file.write_text(text)
    >>> (found,) = check_paper(file).equations
    >>> found.status, found.finding.repair.text
    ('differs', 'the other sign in the exponent')
    """
    paper = read_paper(path)
    notation = notation or Notation()
    notation = notation if claims is None else own(notation, claims)
    checker = _Checker(all_claims() if claims is None else claims, notation)
    found = tuple(e for display in paper.displays for e in checker.display(display))
    counts: dict[str, int] = {}
    for equation in found:
        counts[equation.status] = counts.get(equation.status, 0) + 1
    edited = edited_files(paper.files)
    return Report(str(path), found, _names(paper), paper.remarks, edited, FrozenMap(counts))


def own(notation: Notation, claims: Sequence[Claim]) -> Notation:
    """A notation with the symbols of an author's claims, in place of those of the theory that have their names.

    >>> from sympy import Eq, Symbol
    >>> speed = Symbol("w", positive=True)
    >>> own(Notation(), [Claim("mine", Eq(speed, 2, evaluate=False))]).symbol("w") is speed
    True
    """
    values = (v for claim in claims for s in statements(claim) for v in (s.quantity, s.value))
    found = {x for v in values for x in getattr(v, "free_symbols", ()) if isinstance(x, Symbol)}
    known = {*notation.table, FORMULA, CONSTANT, DENOMINATOR}
    fresh = [s for s in sorted(found - known, key=str) if not isinstance(s, Dummy)]
    new = {s: default_latex(s.name) for s in fresh if _WRITABLE.fullmatch(s.name)}
    return replace(notation, names={**notation.names, **new}) if new else notation


def _names(paper: Paper) -> tuple[str, ...]:
    return tuple(str(file) for file in paper.files)
