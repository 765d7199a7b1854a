"""Matrix expressions evaluated on explicit matrices, with entries that are fractions or balls."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from theory.words import Words

__all__ = ["Exact", "entries", "evaluate_words", "fraction", "random_matrix"]

#: A two-dimensional array of Python objects.
Exact = np.ndarray[Any, Any]


def fraction(value: Any) -> Fraction:
    """A rational number of SymPy as a fraction."""
    return Fraction(int(value.p), int(value.q))


def random_matrix(rng: np.random.Generator, rows: int, columns: int) -> Exact:
    """A matrix of fractions with small numerators."""
    return np.array([[Fraction(int(x), 5) for x in row] for row in rng.integers(-9, 10, (rows, columns))], dtype=object)


def entries(matrix: Exact) -> list[Any]:
    """The entries in a list."""
    return list(matrix.ravel())


def evaluate_words(words: Words, matrices: Mapping[str, Exact], scalars: Mapping[str, Any]) -> Exact:
    """Evaluate a sum of products of matrices; coefficients are evaluated at rational ``scalars``.

    Raises: ``ValueError`` for an expression without a word.
    """
    total: Exact | None = None
    for word, coefficient in words.terms.items():
        product: Exact | None = None
        for letter, transposed in word:
            factor = matrices[letter].T if transposed else matrices[letter]
            product = factor if product is None else product @ factor
        if product is None:
            raise ValueError("a word without letters has no size")
        value = fraction(coefficient.xreplace({s: scalars[s.name] for s in coefficient.free_symbols}))
        part = product * convert(value, product)
        total = part if total is None else total + part
    if total is None:
        raise ValueError("no word to evaluate")
    return total


def convert(value: Fraction, like: Exact) -> Any:
    """A fraction as an entry of the kind that a matrix has."""
    first = like.ravel()[0]
    if isinstance(first, Fraction | int):
        return value
    if isinstance(first, float):
        return float(value)
    from numerics.checks.tape import ball

    return ball(value)
