"""A named figure: the picture, the data behind it, and what is worth printing about it.

Source: the figures of arXiv 2608.06776.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numerics.figures import FIGURES
from numerics.figures.style import figure_bytes, mark_quick, settle, styled
from numerics.sizes import check_choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Drawing", "Request", "csv_bytes", "draw"]

#: Name of a column -> its entries, a sequence or an array.
Columns = Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """How to draw: ``quick``, a reduced version; ``seeds``, how many where runs are drawn, ``None`` for the number of
    the figure; ``progress``, called with (done, total, label).
    """

    quick: bool = False
    seeds: int | None = None
    progress: Callable[..., None] | None = None


@dataclass(frozen=True, eq=False)
class Drawing:
    """``figure``, of matplotlib; ``tables``, by name (``""`` for the main one), columns of equal length;
    ``facts``, what a program reads of it; ``lines``, the same in words.
    """

    figure: Figure
    tables: Mapping[str, Columns]
    facts: Mapping[str, Any] = field(default_factory=dict)
    lines: tuple[str, ...] = ()

    def files(self, name: str, folder: Path) -> dict[Path, bytes]:
        """The content of ``NAME.pdf``, ``NAME.png`` and a CSV file for each table; the same bytes each time."""
        settle(self.figure)
        paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
        found = {path: figure_bytes(self.figure, path) for path in paths}
        for table, columns in self.tables.items():
            found[folder / f"{name}{'-' if table else ''}{table}.csv"] = csv_bytes(columns)
        return found


def csv_bytes(columns: Columns) -> bytes:
    """Columns as a CSV file, numbers with all their digits.

    >>> csv_bytes({"ratio": [0.1, 1.0], "model": ["CACO", "FAFO"]}).decode()
    'ratio,model\\n0.1,CACO\\n1.0,FAFO\\n'
    """
    plain = [getattr(column, "tolist", lambda column=column: list(column))() for column in columns.values()]
    rows = (",".join(x if isinstance(x, str) else repr(x) for x in row) for row in zip(*plain, strict=True))
    return ("\n".join([",".join(columns), *rows]) + "\n").encode()


def draw(name: str, request: Request | None = None) -> Drawing:
    """Draw a figure of the paper.

    Parameters: ``name``, one of `FIGURES`; ``request``, the full version by default.

    Returns: a `Drawing`; a quick one says so in the picture.

    Raises: ``ValueError`` for an unknown name.

    Source: arXiv 2608.06776.

    >>> draw("lines")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: figure='lines': expected one of ...; did you mean 'line'?
    """
    check_choice("figure", name, FIGURES)
    wanted = request or Request()
    with styled():
        drawing: Drawing = import_module(FIGURES[name][0]).draw(wanted)
        if wanted.quick:
            mark_quick(drawing.figure)
    return drawing
