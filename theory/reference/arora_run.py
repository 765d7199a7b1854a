"""Runs of a deep linear net with a balanced start. Source: arXiv 1802.06509."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

from sympy import Add, Matrix, Rational, diag

from theory.models import Block, Model, reduce_model
from theory.models.trial import Comparison, Trial
from theory.reference.common import eta
from theory.registry import Stated
from theory.words import Words


def trials() -> list[Trial]:
    """Three layers of 2 x 2 with a balanced start, ``L = |W - T|^2/2``."""
    target = Matrix([[1, 0], [Rational(1, 2), 2]])
    blocks = tuple(Block(f"W{j}", (2, 2), Rational(1, 2)) for j in (1, 2, 3))
    first, second, third = (b.array for b in blocks)
    whole = third * second * first
    flow = reduce_model(Model(blocks, Add(*(e**2 for e in whole - target)) / 2))
    turn, values = Matrix([[3, -4], [4, 3]]) / 5, diag(1, Rational(1, 2))
    start = [turn * values, values * turn.T, turn * values]

    def compare(stated: Stated) -> Iterator[Comparison]:
        known = {"R": third * third.T, "Q": first.T * first, "G": whole - target}
        rate = _evaluate(stated["dW/dt, N = 3"], known).xreplace({eta: Rational(1, 2)})
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            yield Comparison(f"dW/dt[{i}, {j}]", flow.along(whole[i, j]), rate[i, j])

    return [Trial("three layers", flow, dict(zip(flow.states, [e for m in start for e in m], strict=True)), 2, compare)]


def _evaluate(words: Words, values: dict[str, Any]) -> Any:
    total = Matrix.zeros(2, 2)
    for word, coefficient in words.terms.items():
        factors = [values[name].T if transposed else values[name] for name, transposed in word]
        total += coefficient * reduce(lambda a, b: a * b, factors, Matrix.eye(2))
    return total
