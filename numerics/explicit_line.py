"""Directions of the line, entry by entry, and starting factors by a numerical singular value decomposition.

Source: sections 4 and 5 of the theory (directions, factorization), arXiv 2608.06776.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numerics.sizes import Sizes

__all__ = ["Directions", "LineDistance", "direction_rank", "explicit_directions", "factors", "line_part"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Directions:
    """The directions ``E_OV`` (M, T) and ``E_QK`` (Q, T) as arrays."""

    E_OV: Array
    E_QK: Array


@dataclass(frozen=True)
class LineDistance:
    """``W`` minus its projection: largest entry, and Frobenius norm relative to ``W`` (0 for ``W = 0``)."""

    OV: float
    QK: float
    relative_OV: float
    relative_QK: float


def _query_key_entry(sizes: Sizes, query: int, token: int, own: float, noise: float) -> float:
    if token >= sizes.informative_tokens:
        return noise
    if sizes.per_class and token // sizes.block != query // sizes.queries:
        return 0.0
    return own


def explicit_directions(sizes: Sizes) -> Directions:
    """Return the two directions from their definition.

    ``E_OV[c, t] = 1[t in block c] - 1/M`` on informative tokens and 0 on noise; ``E_QK`` is ``a`` on
    informative tokens (of the query's own class if per class) and ``-c`` on noise, ``a + c = 1``, ``a S = c
    N`` with ``S = M b`` (shared) or ``b`` (per class); ``a = 1``, ``c = 0`` for zero-embedding noise.

    >>> explicit_directions(Sizes(2, 1, 1, 2, False, 1, 1, False, 1.0)).E_QK.tolist()
    [[0.5, 0.5, -0.5, -0.5]]
    """
    seen = sizes.block if sizes.per_class else sizes.informative_tokens
    total = seen + sizes.noise_tokens
    own, noise = (1.0, 0.0) if sizes.zero_noise else (sizes.noise_tokens / total, -seen / total)
    output = np.zeros((sizes.classes, sizes.tokens))
    for label in range(sizes.classes):
        for token in range(sizes.informative_tokens):
            output[label, token] = (token // sizes.block == label) - 1 / sizes.classes
    query_key = np.zeros((sizes.query_tokens, sizes.tokens))
    for query in range(sizes.query_tokens):
        for token in range(sizes.tokens):
            query_key[query, token] = _query_key_entry(sizes, query, token, own, noise)
    return Directions(output, query_key)


def direction_rank(direction: Array) -> int:
    """Rank of a direction, from its singular values."""
    return int(np.linalg.matrix_rank(direction))


def line_part(matrix: Array, direction: Array) -> tuple[float, float, float]:
    """Return ``<W, E>/<E, E>``, the largest entry of the residual and its relative Frobenius norm."""
    mu = float(np.vdot(direction, matrix) / np.vdot(direction, direction))
    rest = matrix - mu * direction
    norm = float(np.linalg.norm(matrix))
    return mu, float(np.abs(rest).max()), float(np.linalg.norm(rest)) / norm if norm else 0.0


def factors(direction: Array, mu: float, imbalance: float, width: int, seed: int) -> tuple[Array, Array]:
    """Return ``U``, ``V`` with ``U V^T = mu E`` and ``U^T U - V^T V = c P``, in a random orthogonal gauge.

    For each singular value ``s``: ``u v = s mu`` and ``u^2 - v^2 = c``, so ``u^2 = (sqrt(c^2 + 4 s^2 mu^2) +
    c)/2``.

    Parameters: ``direction`` E (rows, T); ``mu``; ``imbalance`` c; ``width`` at least the rank; ``seed`` of
    the gauge.

    Returns: arrays (rows, width) and (T, width); columns beyond the rank are zero before the gauge.

    >>> U, V = factors(np.diag([1.0, 1.0, 0.0]), -0.5, 2.0, 3, seed=0)
    >>> bool(np.allclose(U @ V.T, np.diag([-0.5, -0.5, 0.0])))
    True
    """
    rank = direction_rank(direction)
    left, singular, right = np.linalg.svd(direction, full_matrices=False)
    target = singular[:rank] * mu
    root = np.hypot(imbalance, 2 * target)
    large = np.sqrt((root + abs(imbalance)) / 2)
    small = np.divide(target, large, out=np.zeros(rank), where=large > 0)
    u, v = (large, small) if imbalance >= 0 else (small, large)
    gauge, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, width)))
    return left[:, :rank] * u @ gauge[:rank], right[:rank].T * v @ gauge[:rank]
