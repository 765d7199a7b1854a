"""LaTeX formulas as trees and values, by the symbol table of a notation."""

from __future__ import annotations

from theory.latex.parser.formula import parse, parse_latex

__all__ = ["parse", "parse_latex"]
