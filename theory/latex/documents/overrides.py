r"""Equations in an author's own hand: accepted only if they read back as what they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from sympy import Basic

from theory.identities import prove_zero
from theory.latex.claims.equations import Equation, equations, folded
from theory.latex.notation import Notation
from theory.latex.parser import parse_latex
from theory.latex.printer import MatrixForm
from theory.registry import Claim
from theory.words import Words, matrix

__all__ = ["check_overrides"]

_RELATIONS = {"const": "=", "~": r"\sim", "to": r"\to"}
_CONSTANTS = (r"\mathrm{const}", r"\text{const}", r"\mathrm{const.}")


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
    for side, value in _sides(equation, latex):
        if not _same(parse_latex(side, notation), _plain(value)):
            raise ValueError(f"overrides: {equation.id}: {side} is not {value}; expected the same in other words")


def _sides(equation: Equation, latex: str) -> list[tuple[str, Any]]:
    """The sides of an override, each with what it stands for."""
    if equation.left is None:
        return [(latex, equation.right)]
    sign = _RELATIONS.get(equation.relation, equation.relation)
    sides = [side.strip() for side in latex.split(sign)]
    if len(sides) != 2:
        raise ValueError(f"overrides: {equation.id}: expected one {sign} between a left and a right side")
    if equation.relation != "const":
        return list(zip(sides, (equation.left, equation.right), strict=True))
    if sides[1] not in _CONSTANTS:
        raise ValueError(f"overrides: {equation.id}: expected {sign} {_CONSTANTS[0]} at the end")
    return [(sides[0], equation.left)]


def _plain(value: Any) -> Any:
    """What the parser reads for a side; forms of matrices beside derivatives have no reading."""
    if isinstance(value, MatrixForm) and value.kind == "rate":
        return matrix(f"d{value.letter}/dt")
    if isinstance(value, Basic | Words):
        return value
    raise ValueError(f"overrides: {value} can't be read back; leave this equation as it is")


def _same(read: Any, value: Any) -> bool:
    if isinstance(read, Words) or isinstance(value, Words):
        return isinstance(read, Words) and isinstance(value, Words) and (read - value).is_zero()
    return bool(read == value or prove_zero(read - value).answer == "equal")
