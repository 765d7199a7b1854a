"""The README picture: in the coordinates x and y of the first integral each run of the full model is a straight line.

Run with `python docs/images/line.py`; it writes line.png beside itself, as `gradline figure line` draws it.
"""

from __future__ import annotations

from pathlib import Path

from numerics.figures import draw
from numerics.figures.style import figure_bytes, settle


def main() -> None:
    """Draw the figure and keep the picture."""
    path = Path(__file__).with_name("line.png")
    drawing = draw("line")
    settle(drawing.figure)
    path.write_bytes(figure_bytes(drawing.figure, path))


if __name__ == "__main__":
    main()
