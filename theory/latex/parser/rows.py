r"""The rows of a display, with their labels, and the rows that belong to one equation.

A row that starts with a relation continues the row before; so does one that starts with ``+`` or ``-`` where one of the
two has no relation, and a row behind an open parenthesis or an operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from theory.latex.parser.grammar import RELATIONS, relation_at
from theory.latex.source.commands import NUMBERED, ONE_EQUATION, TEXTS
from theory.latex.source.document import Display
from theory.latex.source.items import Environment, Item, is_command, is_mark, nest
from theory.latex.source.macros import expand
from theory.latex.source.stream import Stream, stripped
from theory.latex.source.tokens import LatexError, Place, Token, shown

__all__ = ["Group", "Row", "groups_of", "without_stop"]

_MOST_TOKENS = 20_000
_BREAKS = ("\\", "newline", "cr", "tabularnewline")
_ROWS = ("aligned", "split", "gathered", "multlined", "alignedat")
_SYSTEMS = (*_ROWS, "cases", "dcases", "array")


@dataclass(frozen=True)
class Row:
    """One row: its items, labels and comments; ``numbered`` unless it says otherwise."""

    items: tuple[Item, ...]
    place: Place
    labels: tuple[str, ...] = ()
    notes: tuple[Token, ...] = ()
    numbered: bool = True


@dataclass(frozen=True)
class Group:
    """The rows of one equation as one sequence of items."""

    items: tuple[Item, ...]
    place: Place
    end: Place
    labels: tuple[str, ...] = ()
    notes: tuple[Token, ...] = ()
    numbered: bool = True


def groups_of(display: Display) -> tuple[Group, ...]:
    """The equations of a display, in order.

    Raises: `LatexError` for a macro that can't be expanded and for environments without a partner.
    """
    tokens = expand(display.tokens, display.macros)
    if len(tokens) > _MOST_TOKENS:
        raise LatexError(display.place, f"a display of more than {_MOST_TOKENS} tokens")
    end = tokens[-1].place if tokens else display.place
    name = display.environment.removesuffix("*")
    raw = list(_raw_rows(tokens, display, end))
    if name in ONE_EQUATION or name in ("[", "$$"):
        raw = [_merged(raw)] if raw else []
    rows = [r for row in raw for r in _unwrapped(row, name)]
    groups: list[Row] = []
    for row in rows:
        if groups and (not row.items or _continues(groups[-1].items, row.items)):
            groups[-1] = _merged([groups[-1], row])
        elif row.items or row.labels or row.notes:
            groups.append(row)
    numbered = display.environment in NUMBERED
    return tuple(
        Group(_joined(row.items), row.place, end, row.labels, row.notes, numbered and row.numbered) for row in groups
    )


def _raw_rows(tokens: Iterable[Token], display: Display, end: Place) -> Iterator[Row]:
    """Rows between line breaks outside of groups and inner environments."""
    stream = Stream(tokens, end)
    if display.environment.removesuffix("*") in ("alignat", "IEEEeqnarray"):
        stream.bracket()
        stream.argument(Token("command", "begin", display.place))
    row: list[Token] = []
    finished: _Finished | None = None
    depth = 0
    while stream.rest:
        token = stream.take()
        if token.kind == "open" or token.is_command("begin"):
            depth += 1
        elif token.kind == "close" or token.is_command("end"):
            depth -= 1
        if not depth and token.is_command(*_BREAKS):
            _skip_space_of_break(stream)
            if finished is not None:
                yield finished
            finished = _row(row, display, end, token.place)
            row = []
        elif token.kind == "note" and not stripped(row) and finished and token.place.line == finished.last_line:
            finished = replace(finished, notes=(*finished.notes, token))
        else:
            row.append(token)
    if finished is not None:
        yield finished
    last = _row(row, display, end, end)
    if last.items or last.labels or last.notes:
        yield last


@dataclass(frozen=True)
class _Finished(Row):
    """A row with the line of its end."""

    last_line: int = 0


def _skip_space_of_break(stream: Stream) -> None:
    r"""The star and the length that may follow ``\\``."""
    if stream.rest and stream.rest[0].is_mark("*"):
        stream.take()
    if stream.rest and stream.rest[0].is_mark("["):
        stream.bracket()


def _row(tokens: list[Token], display: Display, end: Place, stop: Place) -> _Finished:
    labels: list[str] = []
    notes: list[Token] = []
    kept: list[Token] = []
    numbered = True
    stream = Stream(tokens, end)
    while stream.rest:
        token = stream.take()
        if token.is_command("label"):
            labels.append(shown(stripped(stream.argument(token))))
        elif token.is_command("nonumber", "notag", "IEEEnonumber"):
            numbered = False
        elif token.is_command("IEEEyesnumber", "IEEEyessubnumber"):
            numbered = True
        elif token.is_command("tag"):
            stream.star()
            stream.argument(token)
            numbered = True
        elif token.kind == "note":
            notes.append(token)
        else:
            kept.append(token)
    content = _separated(stripped(kept))
    place = content[0].place if content else tokens[0].place if tokens else display.place
    return _Finished(nest(content, stop), place, tuple(labels), tuple(notes), numbered, stop.line)


def _separated(tokens: Sequence[Token]) -> tuple[Token, ...]:
    r"""Tokens with a comma for each ``\quad`` between an equation and what holds beside it.

    A space before a sign, a relation, a mark of alignment or at an end is only a space.
    """
    depth = 0
    before: Token | None = None
    found: list[Token] = []
    for at, token in enumerate(tokens):
        if token.kind == "open" or token.is_mark("(", "[") or token.is_command("begin", "left", "{", "lbrace"):
            depth += 1
        elif token.kind == "close" or token.is_mark(")", "]") or token.is_command("end", "right", "}", "rbrace"):
            depth -= 1
        if token.is_command("quad", "qquad") and not depth and before is not None and _ends(before):
            after = next((t for t in tokens[at + 1 :] if not _is_space(t)), None)
            found.append(Token("mark", ",", token.place) if _begins(after) else token)
        else:
            found.append(token)
        before = before if _is_space(found[-1]) else found[-1]
    return tuple(found)


def _is_space(token: Token) -> bool:
    return token.kind in ("space", "par") or token.is_command("quad", "qquad")


def _ends(token: Token) -> bool:
    """Whether an equation may end with a token."""
    return not token.is_mark("&", ",", ";", "+", "-", "=", "<", ">") and not token.is_command("cdot", "times")


def _begins(token: Token | None) -> bool:
    """Whether a condition may begin with a token."""
    if token is None or token.is_mark("&", ",", ";", ".", "+", "-", "=", "<", ">", ")", "]"):
        return False
    return not token.is_command("cdot", "times", "right", "}", "rbrace", "label", "tag", *RELATIONS, *TEXTS)


def _merged(rows: Sequence[Row]) -> Row:
    """Rows as one; it is numbered where one of them is."""
    first = next((row for row in rows if row.items), rows[0])
    return Row(
        tuple(item for row in rows for item in row.items),
        first.place,
        tuple(label for row in rows for label in row.labels),
        tuple(note for row in rows for note in row.notes),
        any(row.numbered for row in rows),
    )


def _unwrapped(row: Row, environment: str) -> Iterator[Row]:
    """The rows of an inner environment that is all of a row, and the equations in the columns of a row."""
    inner = _only_environment(row.items)
    if inner is None:
        yield from _columns(row, environment)
        return
    parts: list[list[Item]] = [[]]
    for item in inner.items:
        if is_command(item, *_BREAKS):
            parts.append([])
        else:
            parts[-1].append(item)
    first = True
    for part in parts:
        items = tuple(part)
        if is_mark(items[0] if items else None, "["):
            items = _without_length(items)
        if not items:
            continue
        found = Row(items, items[0].place, row.labels if first else (), row.notes, row.numbered)
        first = False
        yield from _columns(found, inner.name)


def _without_length(items: tuple[Item, ...]) -> tuple[Item, ...]:
    r"""A row without the length of the ``\\[2pt]`` before it."""
    end = next((i for i, item in enumerate(items) if is_mark(item, "]")), None)
    letters = "".join(i.text for i in items[1 : end or 1] if isinstance(i, Token))
    is_length = end is not None and letters.rstrip("ptemxcin")[-1:].isdigit() and not letters[-1:].isdigit()
    return items[end + 1 :] if end is not None and is_length else items


def _only_environment(items: tuple[Item, ...]) -> Environment | None:
    """The environment of rows that is all of a row, in braces of a system or not, but for a stop."""
    items = without_stop(items)
    if len(items) == 5 and is_command(items[0], "left") and is_command(items[3], "right"):
        items = items[2:3]
    if len(items) != 1 or not isinstance(items[0], Environment):
        return None
    found = items[0]
    return found if found.name in _SYSTEMS else None


def without_stop(items: tuple[Item, ...]) -> tuple[Item, ...]:
    r"""Items without the punctuation at their end; the dot of a ``\right.`` is none."""
    while items and is_mark(items[-1], ",", ".", ";", ":"):
        if len(items) > 1 and is_command(items[-2], "right"):
            break
        items = items[:-1]
    return items


def _columns(row: Row, environment: str) -> Iterator[Row]:
    """Each pair of columns of ``align`` holds an equation of its own; elsewhere marks of alignment mean nothing."""
    columns: list[list[Item]] = [[]]
    for item in row.items:
        if is_mark(item, "&"):
            columns.append([])
        else:
            columns[-1].append(item)
    pairs = environment in ("align", "flalign", "alignat", "aligned", "alignedat", "split")
    if not pairs or len(columns) < 3:
        yield replace(row, items=tuple(item for column in columns for item in column))
        return
    merged = [tuple(item for column in columns[i : i + 2] for item in column) for i in range(0, len(columns), 2)]
    start = 0
    for position, items in enumerate(merged):
        if items or position == start:
            empty = position > start
            yield replace(
                row,
                items=items,
                place=items[0].place if items else row.place,
                labels=() if empty else row.labels,
            )


def _relations(items: Sequence[Item]) -> bool:
    depth = 0
    for at, item in enumerate(items):
        if is_mark(item, "(", "[") or is_command(item, "left"):
            depth += 1
        elif is_mark(item, ")", "]") or is_command(item, "right"):
            depth -= 1
        if not depth and relation_at(items, at) is not None:
            return True
    return False


def _depth(items: Sequence[Item]) -> int:
    """Parentheses that are open at the end; those of the pairs that end in a dot at a line break are closed."""
    depth = 0
    for item in items:
        if is_mark(item, "(", "[") or is_command(item, "{", "lbrace"):
            depth += 1
        elif is_mark(item, ")", "]") or is_command(item, "}", "rbrace"):
            depth -= 1
    return depth


def _continues(before: Sequence[Item], row: Sequence[Item]) -> bool:
    """Whether a row belongs to the equation before it."""
    first = row[0]
    if before and (_depth(before) > 0 or is_mark(before[-1], "+", "-", "=") or is_command(before[-1], "cdot", "times")):
        return True
    if relation_at(row, 0) is not None:
        return True
    if is_mark(first, "+", "-", "/") or is_command(first, "cdot", "times", "left"):
        if not _relations(row) or (before and not _relations(before)):
            return True
        return len(row) > 1 and is_command(first, "left") and is_mark(row[1], ".")
    return False


def _joined(items: tuple[Item, ...]) -> tuple[Item, ...]:
    r"""Items without ``\right. \left.`` at a line break, and with the rows of inner environments put in."""
    found: list[Item] = []
    for item in items:
        if isinstance(item, Environment) and item.name in _ROWS:
            found.extend(_inline(item))
        else:
            found.append(item)
    at = 0
    while at + 3 < len(found):
        closes = is_command(found[at], "right") and is_mark(found[at + 1], ".")
        opens = is_command(found[at + 2], "left") and is_mark(found[at + 3], ".")
        if closes and opens:
            del found[at : at + 4]
        else:
            at += 1
    return tuple(found)


def _inline(environment: Environment) -> Iterator[Item]:
    """The rows of an environment that is part of a row: each must continue the one before."""
    rows: list[list[Item]] = [[]]
    for item in environment.items:
        if is_command(item, *_BREAKS):
            rows.append([])
        elif not is_mark(item, "&"):
            rows[-1].append(item)
    before: list[Item] = []
    for row in rows:
        if row and before and not _continues(before, row):
            raise LatexError(
                row[0].place, f"a row of \\begin{{{environment.name}}} that does not continue the one before"
            )
        before += row
    yield from before
