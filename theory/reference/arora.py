"""The end-to-end matrix of a deep linear net with balanced layers.

Source: arXiv 1802.06509.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import matmul

from sympy import Integer

from theory.reference.arora_run import trials
from theory.reference.common import eta, reference_claim
from theory.registry import Claim, Obligation, Stated
from theory.words import Rule, Words, gradient, matrix, rewrite

DEPTHS = (2, 3, 4)
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
            "arora-end-to-end", "End-to-end flow", text, stated, _obligations, "arXiv 1802.06509", assumptions, trials
        ),
    )
