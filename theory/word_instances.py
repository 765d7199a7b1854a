"""Small rational matrices on which an identity in matrices fails although its hypotheses hold, exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, product
from random import Random
from typing import Any

from sympy import Integer, Matrix, Rational, Symbol, eye, ones, zeros

from theory.words import Rule, Words

__all__ = ["Instance", "evaluate", "find_instance", "letters"]

_SIZES = (1, 2, 3)
_DRAWS = 12


@dataclass(frozen=True)
class Instance:
    """A square rational matrix for each letter and a rational number for each symbol."""

    matrices: Mapping[str, Any]
    scalars: Mapping[Symbol, Rational]

    @property
    def size(self) -> int:
        """Rows of each matrix."""
        return int(next(iter(self.matrices.values())).rows) if self.matrices else 1


def letters(words: Words) -> frozenset[str]:
    """The names of the matrices in an expression."""
    return frozenset(name for word in words.terms for name, _ in word)


def evaluate(words: Words, instance: Instance) -> Any:
    """The value of an expression in matrices, exactly.

    >>> from theory.words import matrix
    >>> A = matrix("A")
    >>> evaluate(A @ A.T, Instance({"A": Matrix([[1, 2], [0, 1]])}, {}))
    Matrix([
    [5, 2],
    [2, 1]])
    """
    total = zeros(instance.size, instance.size)
    for word, coefficient in words.terms.items():
        value = eye(instance.size)
        for name, transposed in word:
            factor = instance.matrices[name]
            value = value * (factor.T if transposed else factor)
        total = total + coefficient.xreplace(dict(instance.scalars)) * value
    return total


def _satisfies(instance: Instance, rules: Sequence[Rule]) -> bool:
    return all(evaluate(Words.of({r.word: Integer(1)}) - r.image, instance).is_zero_matrix for r in rules)


def find_instance(words: Words, rules: Sequence[Rule] = (), others: Sequence[Words] = ()) -> Instance | None:
    """Search matrices for which an expression is not zero although every hypothesis holds.

    Parameters: ``words``, an expression; ``rules``, the hypotheses, each ``word = image``; ``others``, expressions
    whose letters and symbols need values too.
    Returns: an `Instance` of the smallest size found, or None. Both facts are checked in exact arithmetic.

    >>> from theory.factorization import BALANCED
    >>> from theory.words import matrix
    >>> U, V = matrix("U"), matrix("V")
    >>> found = find_instance(U @ U.T - V @ V.T, BALANCED)
    >>> found.matrices["U"].T * found.matrices["U"] == found.matrices["V"].T * found.matrices["V"]
    True
    """
    shown = letters(words).union(*(letters(w) for w in others))
    needed = shown.union(*(letters(r.image) | {name for name, _ in r.word} for r in rules))
    symbols = set().union(*(c.free_symbols for w in (words, *others) for c in w.terms.values()))
    ordered = sorted(symbols, key=lambda s: str(s.name))
    for size, shift in product(_SIZES, (0, 1)):
        scalars = {s: Integer(v) for s, v in zip(ordered, count(1 + shift), strict=False)}
        for matrices in _worlds(sorted(needed), size):
            found = Instance(matrices, scalars)
            if not evaluate(words, found).is_zero_matrix and _satisfies(found, rules):
                return Instance({name: matrices[name] for name in sorted(shown)}, scalars)
    return None


def _worlds(names: Sequence[str], size: int) -> Iterator[dict[str, Any]]:
    """Assignments of matrices, some of them made to satisfy the hypotheses in use: orthogonal multiples, projections,
    zero row and column sums, balanced layers ``W1, W2, ...``.
    """
    random = Random(f"{size}")
    for draw in range(_DRAWS):
        world = {name: _small(random, size) for name in names}
        if "1" in world:
            world["1"] = ones(size, size)
            yield from ({**world, "G": g} for g in _zero_sums(random, size))
        yield world
        turned = [_orthogonal(random, size) for _ in range(3)]
        if {"U", "V"} <= set(world):
            yield {**world, "V": turned[0] * world["U"]}
        layers = sorted(name for name in world if name[0] == "W" and name[1:].isdecimal())
        if layers:
            yield {**world, **_balanced_layers(random, layers, size)}
        if "P" in world:
            projection = _projection(size, 1 + draw % size)
            sides = {name: turned[i] * projection for i, name in enumerate(("A", "B"))}
            yield {**world, **sides, "P": projection}


def _small(random: Random, size: int) -> Any:
    return Matrix(size, size, [random.randint(-1, 2) for _ in range(size * size)])


def _zero_sums(random: Random, size: int) -> tuple[Any, ...]:
    """Matrices whose columns, rows, or both sum to zero."""
    centered = size * eye(size) - ones(size, size)
    drawn = _small(random, size)
    return centered * drawn, drawn * centered, centered * drawn * centered


def _balanced_layers(random: Random, names: Sequence[str], size: int) -> dict[str, Any]:
    """Layers ``O_j D O_(j-1)^T``, for which ``W_(j+1)^T W_(j+1) = W_j W_j^T``."""
    values = Matrix(size, size, lambda i, j: random.randint(1, 3) if i == j else 0)
    turns = [_orthogonal(random, size) for _ in range(len(names) + 1)]
    return {name: turns[j + 1] * values * turns[j].T for j, name in enumerate(names)}


def _orthogonal(random: Random, size: int) -> Any:
    """A signed permutation, or a rational rotation of two coordinates."""
    order = list(range(size))
    random.shuffle(order)
    turned = Matrix(size, size, lambda i, j: random.choice((1, -1)) if order[i] == j else 0)
    if size > 1 and random.random() < 0.5:
        turn = eye(size)
        turn[:2, :2] = Matrix([[Rational(3, 5), Rational(4, 5)], [Rational(-4, 5), Rational(3, 5)]])
        turned = turn * turned
    return turned


def _projection(size: int, rank: int) -> Any:
    return Matrix(size, size, lambda i, j: 1 if int(i) == int(j) < rank else 0)
