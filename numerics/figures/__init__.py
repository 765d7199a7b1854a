"""Figures: trajectories of a run, and those of the paper by name.

Each named figure is a module with ``draw(request) -> Drawing``; `FIGURES` says where. All share the look
of `numerics.figures.style`.

Source: the figures of arXiv 2608.06776.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from theory.lazy import lazy_names

if TYPE_CHECKING:
    from numerics.figures.drawing import Drawing as Drawing
    from numerics.figures.drawing import Request as Request
    from numerics.figures.drawing import draw as draw
    from numerics.figures.style import FORMATS as FORMATS
    from numerics.figures.style import figure_bytes as figure_bytes
    from numerics.figures.trajectories import trajectory_figure as trajectory_figure

_HOME = {
    "Drawing": "drawing",
    "Request": "drawing",
    "draw": "drawing",
    "FORMATS": "style",
    "figure_bytes": "style",
    "trajectory_figure": "trajectories",
}

#: Name of a figure -> module that draws it and what it shows.
FIGURES: dict[str, tuple[str, str]] = {
    "fig2": ("numerics.figures.heatmaps", "attention against the probability of the next token, after training"),
    "fig3": ("numerics.figures.fixed_attention", "training under fixed attention, and the flow of the orbit values"),
    "fig4": ("numerics.figures.stopping_curves", "time courses and stopping curves of the two scalar equations"),
    "line": ("numerics.figures.straight_lines", "the full model on the straight lines of the first integral"),
}

#: Those that show training runs of several seeds.
SEEDED = ("fig2", "fig3")

__all__ = [*_HOME, "FIGURES", "SEEDED"]  # noqa: PLE0604
__getattr__, __dir__ = lazy_names("numerics.figures", _HOME, ("FIGURES", "SEEDED"))
