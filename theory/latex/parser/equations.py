r"""The equations of a display: rows, continued rows, chains, conditions and the branches of ``cases``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from theory.latex.notation import Notation
from theory.latex.parser.atoms import FormulaReader
from theory.latex.parser.grammar import relation_at
from theory.latex.parser.nodes import Branch, Cases, Node
from theory.latex.parser.rows import Group, Row, groups_of, without_stop
from theory.latex.parser.vocabulary import Vocabulary, read_key, vocabulary
from theory.latex.source.document import Display
from theory.latex.source.items import Environment, Item, TextItem, is_command, is_mark, key_text, nest, text_of
from theory.latex.source.tokens import LatexError, Place, tokenize

__all__ = ["Chain", "Condition", "Group", "Row", "groups_of", "read_group", "read_parts", "read_sides"]

_CONNECTORS = frozenset(
    (
        *("if", "for", "where", "and", "with", "when", "so", "so that", "hence", "thus", "for all", "whenever", "i.e."),
        *("provided", "that is", "which gives", "then", "as", "using", "since", "because", "while", "both", "where we"),
        *("provided that", "under", "assuming", "on", "at", "where now", "here", "with initial condition", "by"),
    )
)
_CONDITIONS = ("<", "<=", ">", ">=", "!=")


@dataclass(frozen=True)
class Chain:
    """``a = b = c``: sides and the relations between them; an expression that stands alone has one side."""

    sides: tuple[Node | Cases, ...]
    relations: tuple[str, ...]
    place: Place
    latex: tuple[str, ...] = ()


@dataclass(frozen=True)
class Condition:
    """An inequality, or ``t \\to 0``, that a paper writes beside an equation or alone."""

    left: Node
    relation: str
    right: Node
    place: Place


@dataclass(frozen=True)
class Parts:
    """What one equation says: chains of equalities, and the conditions beside them; or inequalities alone."""

    chains: tuple[Chain, ...]
    conditions: tuple[Condition, ...] = field(default=())


def read_group(display: Display, group: Group, words: Vocabulary) -> Parts:
    """The chains and conditions of one equation of a display.

    Raises: `LatexError` for what is not understood.
    """
    try:
        return read_parts(group.items, words, group.end)
    except RecursionError:
        raise LatexError(group.place, "a formula that is nested too deep") from None


def read_parts(items: Sequence[Item], words: Vocabulary, end: Place) -> Parts:
    """The chains and conditions that items say, separated by commas and words."""
    chains: list[Chain] = []
    conditions: list[Condition] = []
    for piece in _opened(items):
        found = _piece(piece, words, end)
        if isinstance(found, Condition):
            conditions.append(found)
        elif found is not None:
            chains.append(found)
    alone = next((chain for chain in chains if not chain.relations), None)
    if alone is not None and len(chains) > 1:
        raise LatexError(alone.place, f"{alone.latex[0][:40]}: an expression that is no equation")
    if not chains and all(condition.relation == "to" for condition in conditions):
        raise LatexError(items[0].place if items else end, "no equation here; expected something with =")
    return Parts(tuple(chains), tuple(conditions))


def _pieces(items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    """Items between commas, semicolons and connecting words outside of fences."""
    current: list[Item] = []
    depth = 0
    trimmed = without_stop(tuple(items))
    while trimmed and _is_remark(trimmed[-1]):
        trimmed = without_stop(trimmed[:-1])
    for item in trimmed:
        if is_mark(item, "(", "[") or is_command(item, "left", "{", "lbrace"):
            depth += 1
        elif is_mark(item, ")", "]") or is_command(item, "right", "}", "rbrace"):
            depth -= 1
        connects = isinstance(item, TextItem) and _connects(item)
        if not depth and (is_mark(item, ",", ";") or connects):
            yield tuple(current)
            current = []
            yield from item.formulas if isinstance(item, TextItem) else ()
        else:
            current.append(item)
    yield tuple(current)


def _opened(items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    """Pieces, with those inside of a piece that is one relation in parentheses."""
    for piece in _pieces(items):
        yield from _pieces(piece[1:-1]) if _is_fenced(piece) else (piece,)


def _is_remark(item: Item) -> bool:
    if not isinstance(item, TextItem) or item.formulas:
        return False
    words = item.words.strip(" ,.;")
    return (words.startswith("(") and words.endswith(")")) or not words


def _connects(item: TextItem) -> bool:
    words = item.words.strip(" ,.;:").lower()
    known = words in _CONNECTORS or (" " in words and all(word in _CONNECTORS for word in words.split()))
    return known or _is_remark(item)


def _sides(items: Sequence[Item]) -> tuple[list[list[Item]], list[str], list[Item]]:
    """Items between relations outside of fences, and the relations."""
    sides: list[list[Item]] = [[]]
    relations: list[str] = []
    signs: list[Item] = []
    depth, at = 0, 0
    while at < len(items):
        item = items[at]
        if is_mark(item, "(", "[") or is_command(item, "left", "{", "lbrace"):
            depth += 1
        elif is_mark(item, ")", "]") or is_command(item, "right", "}", "rbrace"):
            depth -= 1
        found = relation_at(items, at) if not depth else None
        if found is not None:
            relations.append(found[0])
            signs.append(item)
            sides.append([])
            at = found[1]
        else:
            sides[-1].append(item)
            at += 1
    return sides, relations, signs


def read_sides(latex: str, notation: Notation) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    r"""The sides of one equation in LaTeX, and the relations between them.

    Parameters: ``latex``, without dollars; ``notation``, the symbol table. Raises: `LatexError`.

    >>> from theory.latex.notation import Notation
    >>> read_sides(r"L \le \alpha", Notation())[1]
    ('<=',)
    """
    lines = latex.split("\n")
    end = Place("formula", len(lines), len(lines[-1]) + 1)
    sides, relations, _ = _sides(nest(list(tokenize(latex, "formula")), end))
    words = vocabulary(notation)
    return tuple(FormulaReader(side, words, end).everything() for side in sides), tuple(relations)


def _piece(items: Sequence[Item], words: Vocabulary, end: Place) -> Chain | Condition | None:
    if not items:
        return None
    sides, relations, signs = _sides(items)
    for relation, sign in zip(relations, signs, strict=True):
        if relation == "?":
            raise LatexError(sign.place, f"the relation {text_of([sign])} is not understood")
    for at, sign in enumerate(signs):
        if not sides[at] or not sides[at + 1]:
            raise LatexError(sign.place, f"{text_of([sign])} lacks a side")
    if relations and all(relation in _CONDITIONS for relation in relations):
        if len(sides) != 2:
            raise LatexError(signs[1].place, "a chain of inequalities is not understood")
        left, right = (FormulaReader(side, words, end).everything() for side in sides)
        return Condition(left, relations[0], right, items[0].place)
    if relations == ["to"] and read_key(sides[0]) is not None:
        left, right = (FormulaReader(side, words, end).everything() for side in (sides[0], _without_side(sides[1])))
        return Condition(left, "to", right, items[0].place)
    if any(relation in _CONDITIONS for relation in relations):
        raise LatexError(signs[0].place, "equalities and inequalities in one chain are not understood")
    ends = [sign.place for sign in signs] + [end]
    nodes = tuple(_side(side, words, place) for side, place in zip(sides, ends, strict=True))
    return Chain(nodes, tuple(relations), items[0].place, tuple(text_of(side) for side in sides))


def _is_fenced(items: Sequence[Item]) -> bool:
    """Whether items are one relation in parentheses, such as ``(t \\to 0)``."""
    if len(items) < 4 or not is_mark(items[0], "(") or not is_mark(items[-1], ")"):
        return False
    inside = items[1:-1]
    return not any(is_mark(item, "(", ")") for item in inside) and bool(_sides(inside)[1])


def _without_side(items: Sequence[Item]) -> Sequence[Item]:
    """A limit without the sign that tells from which side it is reached, as in ``0^+``."""
    if len(items) > 2 and is_mark(items[-2], "^") and key_text(items[-1:]) in ("+", "-"):
        return items[:-2]
    return items


def _side(items: Sequence[Item], words: Vocabulary, end: Place) -> Node | Cases:
    """A side of an equation: an expression, or ``cases``."""
    inner = items[2:-2] if len(items) == 5 and is_command(items[0], "left") else items
    if len(inner) == 1 and isinstance(inner[0], Environment) and inner[0].name in ("cases", "dcases", "rcases"):
        return _cases(inner[0], words)
    return FormulaReader(items, words, end).everything()


def _cases(environment: Environment, words: Vocabulary) -> Cases:
    branches = []
    for row in split_rows(environment.items):
        if not row:
            continue
        columns: list[list[Item]] = [[]]
        for item in row:
            if is_mark(item, "&"):
                columns.append([])
            else:
                columns[-1].append(item)
        value = columns[0]
        while value and is_mark(value[-1], ",", ";", "."):
            value.pop()
        conditions = []
        for piece in _pieces([item for column in columns[1:] for item in column]):
            found = _piece(piece, words, environment.place)
            if isinstance(found, Chain):
                raise LatexError(found.place, "an equality as condition of a case is not understood")
            if found is not None:
                conditions.append((found.left, found.relation, found.right))
        if not conditions:
            raise LatexError(row[0].place, "a case without an inequality as its condition is not understood")
        node = FormulaReader(value, words, row[-1].place).everything()
        branches.append(Branch(node, tuple(conditions), row[0].place))
    if not branches:
        raise LatexError(environment.place, "no case in these cases")
    return Cases(tuple(branches), environment.place)


def split_rows(items: Sequence[Item]) -> list[tuple[Item, ...]]:
    r"""Items between ``\\``."""
    rows: list[list[Item]] = [[]]
    for item in items:
        if is_command(item, "\\", "newline", "cr"):
            rows.append([])
        else:
            rows[-1].append(item)
    return [tuple(row) for row in rows]
