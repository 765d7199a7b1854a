"""The end-to-end matrix of a deep linear net with balanced layers.

Source: arXiv 1802.06509.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import matmul
from typing import Any

from sympy import Add, Integer, Matrix, Rational, Symbol, diag

from theory.models import Block, Model, reduce_model
from theory.models.trial import Comparison, Trial
from theory.reference.common import reference_claim
from theory.registry import Claim, Obligation, Stated
from theory.words import Rule, Words, gradient, matrix, rewrite

DEPTHS = (2, 3, 4)
eta = Symbol("eta", positive=True)
#: ``R = (W W^T)^(1/N)``, ``Q = (W^T W)^(1/N)``, ``G = dL/dW``.
R, Q, G = matrix("R"), matrix("Q"), matrix("G")
_ONE = Words.of({(): Integer(1)})


def _power(base: Words, exponent: int) -> Words:
    return reduce(matmul, [base] * exponent, _ONE)


def _layers(depth: int) -> list[Words]:
    return [matrix(f"W{j}") for j in range(1, depth + 1)]


def _balanced(depth: int) -> tuple[Rule, ...]:
    """``W_(j+1)^T W_(j+1) -> W_j W_j^T``."""
    return tuple(
        Rule(((f"W{j + 1}", True), (f"W{j + 1}", False)), matrix(f"W{j}") @ matrix(f"W{j}").T) for j in range(1, depth)
    )


def _obligations(stated: Stated) -> Iterator[Obligation]:
    for depth in DEPTHS:
        layers, rules = _layers(depth), _balanced(depth)
        product = reduce(matmul, reversed(layers))
        velocity = {f"W{j}": (-eta) * gradient(product, "G", f"W{j}") for j in range(1, depth + 1)}
        roots = {"R": layers[-1] @ layers[-1].T, "Q": layers[0].T @ layers[0]}
        left = product.derivative(velocity) - stated[f"dW/dt, N = {depth}"].replace(roots)
        yield Obligation(f"dW/dt, N = {depth}", rewrite(left, rules), decisive=False, hypotheses=rules)
        for name, square in (("R", product @ product.T), ("Q", product.T @ product)):
            root = rewrite(square - _power(roots[name], depth), rules)
            yield Obligation(f"{name}^N, N = {depth}", root, decisive=False, hypotheses=rules)


def _trials() -> list[Trial]:
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


def claims() -> tuple[Claim, ...]:
    """`arora-end-to-end`."""
    stated = {}
    for depth in DEPTHS:
        terms = [_power(R, j - 1) @ G @ _power(Q, depth - j) for j in range(1, depth + 1)]
        stated[f"dW/dt, N = {depth}"] = (-eta) * reduce(lambda a, b: a + b, terms)
    text = "dW/dt = -eta sum_j (W W^T)^((j-1)/N) G (W^T W)^((N-j)/N) for N balanced layers, here N = 2, 3, 4"
    assumptions = ("layers are balanced: W_(j+1)^T W_(j+1) = W_j W_j^T", "R and Q are the positive N-th roots")
    return (
        reference_claim(
            "arora-end-to-end", "End-to-end flow", text, stated, _obligations, "arXiv 1802.06509", assumptions, _trials
        ),
    )
