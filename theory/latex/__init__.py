"""LaTeX of the theory: notation, printer, documents."""

from __future__ import annotations

from theory.latex.notation import Notation, Rate, load_notation
from theory.latex.printer import to_latex

__all__ = ["Notation", "Rate", "load_notation", "to_latex"]
