"""Orbits of the sequences by union-find under explicit permutations; the flow of products against explicit matrices."""

from __future__ import annotations

import random
from typing import Any

import pytest
from sympy import Matrix, Rational, zeros

from theory.sequences import SequenceSymmetry, gram_flow

Pair = tuple[int, int]


def generators(symmetry: SequenceSymmetry) -> list[tuple[list[int], list[int]]]:
    """Permutations (outputs, tokens): exchanges of two classes, of equal common tokens, of equal weights, of the rest.

    Outputs: targets, then the rest. Tokens: last tokens, other common ones, blocks.
    """
    M, weights = symmetry.classes, symmetry.block_weights
    size = symmetry.common + M * len(weights)
    found = []

    def exchange(outputs: list[Pair], tokens: list[Pair]) -> None:
        pair = list(range(size)), list(range(size))
        for side, moves in zip(pair, (outputs, tokens), strict=True):
            for i, j in moves:
                side[i], side[j] = j, i
        found.append(pair)

    def block(c: int, j: int) -> int:
        return symmetry.common + c * len(weights) + j

    for c in range(M - 1):
        exchange([(c, c + 1)], [(c, c + 1), *((block(c, j), block(c + 1, j)) for j in range(len(weights)))])
        for i, w in enumerate(weights):
            for j in range(i + 1, len(weights)):
                if weights[j] == w:
                    exchange([], [(block(d, i), block(d, j)) for d in range(M)])
    for t in range(M, symmetry.common - 1):
        exchange([], [(t, t + 1)])
    for o in range(M, size - 1):
        exchange([(o, o + 1)], [])
    return found


def brute_orbits(symmetry: SequenceSymmetry) -> list[int]:
    """Sizes of the orbits of (output, token) pairs, sorted."""
    size = symmetry.common + symmetry.classes * len(symmetry.block_weights)
    parent = {(o, t): (o, t) for o in range(size) for t in range(size)}

    def root(pair: Pair) -> Pair:
        while parent[pair] != pair:
            pair = parent[pair]
        return pair

    for outputs, tokens in generators(symmetry):
        for o, t in list(parent):
            parent[root((o, t))] = root((outputs[o], tokens[t]))
    counts: dict[Pair, int] = {}
    for pair in parent:
        counts[root(pair)] = counts.get(root(pair), 0) + 1
    return sorted(counts.values())


@pytest.mark.parametrize("sizes", [(2, 5, (1, 2)), (3, 7, (2,)), (3, 8, (1, 1, 3)), (2, 6, (4, 1, 4))])
def test_orbits_by_union_find(sizes: Any) -> None:
    symmetry = SequenceSymmetry(*sizes)
    assert sorted(int(o.size) for o in symmetry.orbits) == brute_orbits(symmetry)
    assert len({o.symbol for o in symmetry.orbits}) == len(symmetry.orbits)


def test_union_find_tells_unequal_weights_apart() -> None:
    assert brute_orbits(SequenceSymmetry(2, 5, (1, 2))) != brute_orbits(SequenceSymmetry(2, 5, (1, 1)))


def test_the_paper_has_35_values_and_two_of_the_bias() -> None:
    symmetry = SequenceSymmetry(4, 10, tuple(range(1, 11)))
    assert len(symmetry.orbits) == 35
    assert sum(o.size for o in symmetry.orbits) == 2500
    assert [o.size for o in symmetry.bias_orbits] == [4, 46]


def explicit(rows: int, columns: int, draw: random.Random) -> Matrix:
    return Matrix(rows, columns, lambda i, j: Rational(draw.randint(-9, 9), draw.randint(1, 5)))


def evaluate(words: Any, letters: dict[str, Matrix], shape: Pair) -> Matrix:
    total = zeros(*shape)
    for word, coefficient in words.terms.items():
        product = None
        for name, transposed in word:
            letter = letters[name].T if transposed else letters[name]
            product = letter if product is None else product * letter
        total += coefficient * product
    return total


def test_the_flow_of_products_is_that_of_the_factors() -> None:
    draw, eta = random.Random(3), Rational(2, 7)
    U, V, G = explicit(3, 2, draw), explicit(4, 2, draw), explicit(3, 4, draw)
    dU, dV = -eta * G * V, -eta * G.T * U
    letters = {"W": U * V.T, "A": U * U.T, "B": V * V.T, "G": G}
    wanted = {"W": dU * V.T + U * dV.T, "A": dU * U.T + U * dU.T, "B": dV * V.T + V * dV.T}
    flow = gram_flow(eta)
    for name, value in wanted.items():
        assert evaluate(flow[name], letters, value.shape) == value
    # twin: with A and B exchanged in the letters of A's flow nothing fits
    assert evaluate(flow["A"], letters | {"G": -G}, (3, 3)) != wanted["A"]
