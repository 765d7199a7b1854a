"""Expressions as LaTeX in an author"s notation."""

from __future__ import annotations

from theory.latex.printer.printing import DEFAULT, MatrixForm, MatrixRoot, relation_terms, sum_terms, to_latex

__all__ = ["DEFAULT", "MatrixForm", "MatrixRoot", "relation_terms", "sum_terms", "to_latex"]
