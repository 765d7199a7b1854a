"""Gradients of laws at generic points modulo a prime."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from sympy import Expr, Symbol, diff

from theory.laws.coordinates import rational_form
from theory.laws.program import compile_program

__all__ = ["gradient_rows"]


def gradient_rows(laws: Sequence[Expr], parameters: Sequence[Symbol], random: Random, p: int) -> list[list[int]]:
    """Return the gradient of each law with respect to the parameters, all at one random point modulo ``p``."""
    width = len(parameters)
    form = rational_form([diff(law, x) for law in laws for x in parameters], parameters)
    arguments = [*parameters, *form.adjoined, *form.constants]
    program = compile_program(form.expressions, arguments)
    while True:
        try:
            values = program.run([random.randrange(1, p) for _ in arguments], p)
        except ZeroDivisionError:
            continue
        flat = [int(v) for v in values]  # type: ignore[arg-type]
        return [flat[i : i + width] for i in range(0, len(flat), width)]
