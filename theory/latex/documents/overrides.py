r"""Equations in an author's own hand: accepted only if they read back as what they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from theory.identities import prove_zero
from theory.latex.claims.equations import Equation, equations, folded
from theory.latex.notation import Notation
from theory.latex.parser.equations import read_sides
from theory.latex.parser.evaluate import evaluate, form_read
from theory.latex.parser.vocabulary import CONSTANT
from theory.registry import Claim
from theory.words import Words

__all__ = ["check_overrides"]

_WRITTEN = {"~": r"\sim", "to": r"\to", ">=": r"\ge", "<=": r"\le", "!=": r"\ne"}


def check_overrides(claims: Iterable[Claim], notation: Notation) -> None:
    """Read every override of a notation back and compare it with its equation.

    Raises: ``ValueError`` for an id that is no equation, with the nearest, or an override that says something else;
    `theory.latex.source.tokens.LatexError` with line and column for one that can't be read.
    """
    if not notation.overrides:
        return
    known = {e.id: e for claim in claims for e in (*folded(claim), *equations(claim))}
    for identity, latex in notation.overrides.items():
        if identity not in known:
            near = get_close_matches(identity, known, 1, 0.0)[0]
            raise ValueError(f"overrides: no equation {identity!r}; did you mean {near!r}?")
        _check(known[identity], latex, notation)


def _check(equation: Equation, latex: str, notation: Notation) -> None:
    sides, relations = read_sides(latex, notation)
    expected, relation = _sides(equation)
    if len(expected) != len(sides) or any(found != relation for found in relations):
        sign = _WRITTEN.get(relation, relation)
        what = f"one {sign} between a left and a right side" if sign else "an expression alone"
        raise ValueError(f"overrides: {equation.id}: expected {what}")
    for read, value in zip(sides, expected, strict=True):
        if not _same(evaluate(read), value):
            raise ValueError(f"overrides: {equation.id}: {latex} is not {_shown(expected, relation)} in other words")


def _sides(equation: Equation) -> tuple[tuple[Any, ...], str]:
    """What the sides of an equation are read as, and the relation between them."""
    if equation.left is None:
        return (equation.right,), ""
    if equation.relation == "const":
        return (equation.left, CONSTANT), "="
    return (form_read(equation.left), form_read(equation.right)), equation.relation


def _shown(sides: tuple[Any, ...], relation: str) -> str:
    return f" {relation} ".join(map(str, sides))


def _same(read: Any, value: Any) -> bool:
    if isinstance(read, Words) or isinstance(value, Words):
        return isinstance(read, Words) and isinstance(value, Words) and (read - value).is_zero()
    return bool(read == value or prove_zero(read - value).answer == "equal")
