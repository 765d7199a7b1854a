"""Noncommutative polynomials in matrices and their transposes: identities that hold for matrices of any shapes.

An expression is a sum of words, each a product of letters ``A`` or ``A^T`` with a commutative coefficient. Two
expressions with the same words are equal for matrices of all shapes that fit. Rewriting rules on words (``A^T A
-> P``) express hypotheses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Integer, factor

from theory.errors import GradlineError
from theory.frozen import FrozenMap

__all__ = ["Letter", "Rule", "Words", "gradient", "matrix", "rewrite"]

#: A matrix name and whether it is transposed.
Letter = tuple[str, bool]
Word = tuple[Letter, ...]

_MAX_REWRITES = 1000


@dataclass(frozen=True)
class Words:
    """A sum of words: a mapping of words to non-zero commutative coefficients."""

    terms: Mapping[Word, Any]

    @staticmethod
    def of(terms: Mapping[Word, Any]) -> Words:
        """Build an expression, dropping words whose coefficient is the zero polynomial."""
        reduced = {word: factor(c) for word, c in terms.items()}
        return Words(FrozenMap({word: c for word, c in sorted(reduced.items()) if c != 0}))

    def __add__(self, other: Words) -> Words:
        terms = dict(self.terms)
        for word, c in other.terms.items():
            terms[word] = terms.get(word, Integer(0)) + c
        return Words.of(terms)

    def __sub__(self, other: Words) -> Words:
        return self + (-1) * other

    def __rmul__(self, scalar: Any) -> Words:
        return Words.of({word: scalar * c for word, c in self.terms.items()})

    def __matmul__(self, other: Words) -> Words:
        terms: dict[Word, Any] = {}
        for left, x in self.terms.items():
            for right, y in other.terms.items():
                terms[left + right] = terms.get(left + right, Integer(0)) + x * y
        return Words.of(terms)

    @property
    def T(self) -> Words:
        """The transpose."""
        return Words.of({tuple((a, not t) for a, t in reversed(word)): c for word, c in self.terms.items()})

    def is_zero(self) -> bool:
        """Whether no word is left: the expression vanishes for matrices of all shapes."""
        return not self.terms

    def replace(self, images: Mapping[str, Words]) -> Words:
        """Replace letters by expressions, transposed where the letter is."""
        total = Words.of({})
        for word, c in self.terms.items():
            product = Words.of({(): c})
            for name, transposed in word:
                image = images.get(name, matrix(name))
                product = product @ (image.T if transposed else image)
            total = total + product
        return total

    def derivative(self, velocity: Mapping[str, Words]) -> Words:
        """The time derivative by the product rule; letters without a velocity are constant."""
        total = Words.of({})
        for word, c in self.terms.items():
            for i, (name, transposed) in enumerate(word):
                if name in velocity:
                    image = velocity[name].T if transposed else velocity[name]
                    total = total + c * (Words.of({word[:i]: 1}) @ image @ Words.of({word[i + 1 :]: 1}))
        return total

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        texts = []
        for word, c in self.terms.items():
            product = " ".join(a + "^T" if t else a for a, t in word) or "I"
            texts.append(product if c == 1 else f"({c}) {product}")
        return " + ".join(texts)


def matrix(name: str) -> Words:
    """A single matrix.

    >>> U, V = matrix("U"), matrix("V")
    >>> print((U @ V.T).T)
    V U^T
    """
    return Words.of({((name, False),): Integer(1)})


@dataclass(frozen=True)
class Rule:
    """A hypothesis ``word -> image`` used from left to right."""

    word: Word
    image: Words


def rewrite(expression: Words, rules: tuple[Rule, ...]) -> Words:
    """Apply rules until none applies; equality of the results proves equality under the hypotheses.

    Raises: `GradlineError` when the rules do not come to an end.
    """
    for _ in range(_MAX_REWRITES):
        for word, c in expression.terms.items():
            match = next(
                (
                    (i, rule)
                    for rule in rules
                    for i in range(len(word) - len(rule.word) + 1)
                    if word[i : i + len(rule.word)] == rule.word
                ),
                None,
            )
            if match is not None:
                i, rule = match
                image = Words.of({word[:i]: 1}) @ rule.image @ Words.of({word[i + len(rule.word) :]: 1})
                expression = expression - Words.of({word: c}) + c * image
                break
        else:
            return expression
    raise GradlineError(
        f"rewriting {expression}: the rules do not end within {_MAX_REWRITES} steps; give rules that shorten"
    )


def gradient(product: Words, cotangent: str, variable: str) -> Words:
    """The gradient of ``L(W)`` in a factor of ``W``, from ``dL = tr(G^T dW)`` with ``G = dL/dW``.

    Each occurrence of the variable in ``G^T W`` is rotated to the end of the trace, transposing the trace where
    the variable is transposed; ``dL = tr(X^T dA)`` then gives ``dL/dA = X``.

    >>> U, V = matrix("U"), matrix("V")
    >>> print(gradient(U @ V.T, "G", "U"), "and", gradient(U @ V.T, "G", "V"))
    G V and G^T U
    """
    total = Words.of({})
    for word, c in (matrix(cotangent).T @ product).terms.items():
        for i, (name, transposed) in enumerate(word):
            if name == variable:
                rest = Words.of({word[i + 1 :] + word[:i]: c})
                total = total + (rest if transposed else rest.T)
    return total
