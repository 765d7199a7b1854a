"""The look that all figures share: fonts, colors that color-blind readers tell apart, the mark of a quick version.

Source of the palette for categories: Okabe and Ito, Color Universal Design (2008); ordered values take viridis.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "CATEGORIES",
    "FORMATS",
    "MARKERS",
    "PAGE",
    "figure_bytes",
    "mark_quick",
    "ordered_colors",
    "settle",
    "styled",
]

#: File extension -> format.
FORMATS = {".pdf": "pdf", ".png": "png"}
#: Width of a page, in inches.
PAGE = 6.9
#: Colors for categories, in the order to use them.
CATEGORIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: Markers that go with them, so that the figure can be read in gray.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.color": "0.88",
    "lines.solid_capstyle": "round",
    "mathtext.fontset": "cm",
    "pdf.fonttype": 42,
    "svg.hashsalt": "gradline",
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the common style while a block runs; nothing global stays changed."""
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        yield


def ordered_colors(count: int) -> list[Any]:
    """Colors of ordered values by lightness, told apart by color-blind readers and in gray."""
    import numpy as np
    from matplotlib import colormaps

    if count == 1:
        return ["#1f4e79"]
    return list(colormaps["viridis"](np.linspace(0.0, 0.88, count)))


def mark_quick(figure: Figure) -> None:
    """Say in the picture that it shows a reduced version."""
    figure.suptitle("quick version: reduced, not for publication", fontsize=8, color="#B00020")


def settle(figure: Figure) -> None:
    """Lay a figure out once, for all formats, instead of once or twice for each."""
    engine = figure.get_layout_engine()
    if engine is not None:
        with styled():
            engine.execute(figure)
            figure.set_layout_engine(None)


def figure_bytes(figure: Figure, path: Path) -> bytes:
    """The figure as the content of a file, in the format of its extension; the same bytes each time."""
    # fontTools reports the age of the embedded fonts on stderr
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    kind = FORMATS[path.suffix.lower()]
    metadata: dict[str, Any] = {"CreationDate": None} if kind == "pdf" else {"Software": None}
    stream = io.BytesIO()
    with styled():
        figure.savefig(stream, format=kind, dpi=200, metadata=metadata)
    return stream.getvalue()
