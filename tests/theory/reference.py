"""Independent oracles for the derivation: explicit index pairs, enumerated sequences, explicit matrices.

Nothing here uses a formula of the theory: orbits come from generators of the group by union-find, the loss from the
definition of the model by enumeration of every sequence, gradients from central differences in 60 digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

Token = tuple[Any, ...]
Pair = tuple[Token, Token]
Matrix = dict[Pair, Any]

#: Digits of the multiprecision oracle and step of its central differences: the truncation error is of order
#: STEP^2 = 1e-40, the rounding error of order 10^-60/STEP = 1e-40.
DIGITS = 60
STEP = mpmath.mpf(10) ** -20
#: A hundred thousand times the errors above, and far below any difference between right and wrong formulas.
GRADIENT_TOLERANCE = mpmath.mpf(10) ** -35


@dataclass(frozen=True)
class Sizes:
    """A concrete task; ``noise=None`` means zero embeddings."""

    classes: int = 2
    block: int = 2
    queries: int = 2
    noise: int | None = 2
    informative_slots: int = 1
    noise_slots: int = 1
    query_kind: str = "shared"
    score_scale: Fraction = Fraction(1)

    @property
    def outputs(self) -> list[Token]:
        return [("class", y) for y in range(self.classes)]

    def own(self, y: int) -> list[Token]:
        return [("informative", y, j) for j in range(self.block)]

    @property
    def noise_tokens(self) -> list[Token]:
        return [("noise", j) for j in range(self.noise or 0)]

    @property
    def tokens(self) -> list[Token]:
        return [t for y in range(self.classes) for t in self.own(y)] + self.noise_tokens

    def queries_of(self, y: int) -> list[Token]:
        if self.query_kind == "shared":
            return [("query", k) for k in range(self.queries)]
        return [("query", y, k) for k in range(self.queries)]

    @property
    def all_queries(self) -> list[Token]:
        return list(dict.fromkeys(q for y in range(self.classes) for q in self.queries_of(y)))

    def rows(self, circuit: str) -> list[Token]:
        return self.outputs if circuit == "OV" else self.all_queries

    def pairs(self, circuit: str) -> list[Pair]:
        return list(itertools.product(self.rows(circuit), self.tokens))


def _swap(token: Token, position: int, first: int, kinds: tuple[str, ...], where: Callable[[Token], bool]) -> Token:
    if token[0] not in kinds or not where(token):
        return token
    image = {first: first + 1, first + 1: first}.get(token[position], token[position])
    return (*token[:position], image, *token[position + 1 :])


def _generators(sizes: Sizes) -> Iterator[Callable[[Token], Token]]:
    """Transpositions that generate the group: of classes, and of tokens inside one set."""
    per_class = sizes.query_kind == "per_class"
    labelled = ("class", "informative", *(["query"] if per_class else []))
    for y in range(sizes.classes - 1):
        yield lambda t, y=y: _swap(t, 1, y, labelled, lambda _: True)
    for y in range(sizes.classes):
        for j in range(sizes.block - 1):
            yield lambda t, y=y, j=j: _swap(t, 2, j, ("informative",), lambda s: s[1] == y)
        for k in range(sizes.queries - 1 if per_class else 0):
            yield lambda t, y=y, k=k: _swap(t, 2, k, ("query",), lambda s: s[1] == y)
    for j in range((sizes.noise or 1) - 1):
        yield lambda t, j=j: _swap(t, 1, j, ("noise",), lambda _: True)
    for k in range(0 if per_class else sizes.queries - 1):
        yield lambda t, k=k: _swap(t, 1, k, ("query",), lambda _: True)


def brute_orbits(sizes: Sizes, circuit: str) -> list[set[Pair]]:
    """Orbits of the group on the entries of a circuit, by union-find over its generators."""
    parent: dict[Pair, Pair] = {pair: pair for pair in sizes.pairs(circuit)}

    def root(pair: Pair) -> Pair:
        while parent[pair] != pair:
            pair = parent[pair]
        return pair

    for generator in _generators(sizes):
        for row, column in sizes.pairs(circuit):
            parent[root((row, column))] = root((generator(row), generator(column)))
    groups: dict[Pair, set[Pair]] = {}
    for pair in parent:
        groups.setdefault(root(pair), set()).add(pair)
    return list(groups.values())


def orbit_name(circuit: str, pair: Pair) -> str:
    """The name that `theory.orbits` gives to the orbit of an entry, from the entry itself."""
    row, column = pair
    if column[0] == "noise":
        return f"W_{circuit}_noise"
    if row[0] == "query" and len(row) == 2:
        return f"W_{circuit}_informative"
    return f"W_{circuit}_{'same' if row[1] == column[1] else 'other'}"


def sequences(sizes: Sizes) -> Iterator[tuple[int, Token, tuple[Token, ...]]]:
    """Every (label, query, attended tokens), all equally likely; zero embeddings appear as ``("zero",)``."""
    noise = sizes.noise_tokens or [("zero",)]
    for y in range(sizes.classes):
        for query in sizes.queries_of(y):
            for own in itertools.product(sizes.own(y), repeat=sizes.informative_slots):
                for other in itertools.product(noise, repeat=sizes.noise_slots):
                    yield y, query, own + other


def sequence_loss(sizes: Sizes, ov: Matrix, qk: Matrix, sequence: Any, lib: Any) -> Any:
    """Cross-entropy of one sequence from the definition: softmax of scores, weighted counts, log-sum-exp.

    ``lib`` gives ``exp`` and ``log``: `mpmath` or `sympy`.
    """
    label, query, slots = sequence
    scale = sizes.score_scale.numerator * lib.exp(0) / sizes.score_scale.denominator
    weights = [lib.exp(scale * qk.get((query, token), 0)) for token in slots]
    total = sum(weights)
    logits = [
        sum(w / total * ov.get((out, x), 0) for w, x in zip(weights, slots, strict=True)) for out in sizes.outputs
    ]
    return lib.log(sum(lib.exp(z - logits[label]) for z in logits))


def population_loss(sizes: Sizes, ov: Matrix, qk: Matrix, lib: Any = mpmath) -> Any:
    """The population cross-entropy, by enumeration of every sequence."""
    losses = [sequence_loss(sizes, ov, qk, sequence, lib) for sequence in sequences(sizes)]
    return sum(losses) / len(losses)


def gradient(sizes: Sizes, ov: Matrix, qk: Matrix, circuit: str, pair: Pair) -> Any:
    """One entry of ``dL/dW`` by a central difference in `DIGITS` digits."""
    values = []
    for sign in (1, -1):
        shifted = dict(ov if circuit == "OV" else qk)
        shifted[pair] += sign * STEP
        values.append(population_loss(sizes, shifted, qk) if circuit == "OV" else population_loss(sizes, ov, shifted))
    return (values[0] - values[1]) / (2 * STEP)


def array(sizes: Sizes, circuit: str, matrix: Matrix) -> Any:
    """A matrix as a NumPy array."""
    return np.array([[float(matrix[row, column]) for column in sizes.tokens] for row in sizes.rows(circuit)])


def direction(sizes: Sizes, circuit: str) -> Matrix:
    """The direction of section 4 in exact fractions, entry by entry."""
    result: Matrix = {}
    block = sizes.block * (1 if sizes.query_kind == "per_class" else sizes.classes)
    for row, column in sizes.pairs(circuit):
        name = orbit_name(circuit, (row, column))
        if circuit == "OV":
            value = {"W_OV_noise": Fraction(0)}.get(
                name, Fraction(int(name == "W_OV_same")) - Fraction(1, sizes.classes)
            )
        elif sizes.noise is None:
            value = Fraction(int(name != "W_QK_other"))
        else:
            inside, outside = Fraction(sizes.noise, block + sizes.noise), Fraction(-block, block + sizes.noise)
            value = {"W_QK_noise": outside, "W_QK_other": Fraction(0)}.get(name, inside)
        result[row, column] = value
    return result
