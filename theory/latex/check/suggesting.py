"""Claims that an equation without a link may be about: by its labels, and by its value at two points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from theory.latex.check.preparing import speaks_of_no_loss
from theory.latex.check.repair import tables_of, vanishes
from theory.latex.check.stated import Statement
from theory.latex.check.values import Values
from theory.latex.names import SCALARS
from theory.latex.parser.equations import Parts

__all__ = ["Suggester"]

_MOST = 3
_ALIKE = 0.6


def _without_loss(values: Values) -> Values:
    """Values without the loss, which would make every formula for it true beside any claim."""
    return {symbol: value for symbol, value in values.items() if symbol != SCALARS["L"]}


class Suggester:
    """The statements of all claims with values of their symbols."""

    def __init__(self, stated: Mapping[str, Sequence[Statement]]) -> None:
        self.ids = tuple(stated)
        self.tables: list[tuple[str, list[Values]]] = []
        for claim, found in stated.items():
            for statement in found:
                if statement.kind == "equation" and statement.relation == "=":
                    tables = tables_of(statement, (), ())
                    own = speaks_of_no_loss(statement)
                    self.tables.append((claim, [_without_loss(t) if own else t for t in tables]))

    def suggest(self, parts: Parts | None, labels: Sequence[str]) -> tuple[str, ...]:
        """At most three claims, those whose equation has the same value first."""
        found: list[str] = []
        for chain in parts.chains if parts is not None else ():
            for left, right in zip(chain.sides, chain.sides[1:], strict=False):
                for claim, tables in self.tables:
                    if tables and all(vanishes(left, right, values) for values in tables):
                        found.append(claim)
        for label in labels:
            for part in label.split(":"):
                found += get_close_matches(part, self.ids, 1, _ALIKE)
        return tuple(dict.fromkeys(found))[:_MOST]
