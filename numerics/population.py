"""The distribution of the token task: exact population by enumeration of multisets, and sampled batches.

Source: section 1 of arXiv 2608.06776 (data model).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numerics.sizes import Sizes
from theory.errors import GradlineError

__all__ = [
    "POPULATION_LIMIT",
    "Batch",
    "Population",
    "enumerate_population",
    "population_size",
    "sample_batch",
]

#: Largest number of entries (pairs times tokens) that is enumerated: 40 MB in double precision.
POPULATION_LIMIT = 5_000_000


@dataclass(frozen=True)
class Population:
    """All distinct (query, token counts) pairs.

    ``queries`` (P,), ``counts`` (P, T), ``labels`` (P,), ``probabilities`` (P,).
    """

    queries: Tensor
    counts: Tensor
    labels: Tensor
    probabilities: Tensor

    @cached_property
    def log_counts(self) -> Tensor:
        """Logarithm of the counts, ``-inf`` for absent tokens: shape (P, T)."""
        return self.counts.log()


@dataclass(frozen=True)
class Batch:
    """Sampled sequences, informative slots first: ``queries`` (B,), ``tokens`` (B, m + n), ``labels``
    (B,)."""

    queries: Tensor
    tokens: Tensor
    labels: Tensor


def _multisets(kinds: int, slots: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Counts (C, kinds) and probabilities (C,) of ``slots`` uniform draws from ``kinds`` tokens."""
    draws = list(itertools.combinations_with_replacement(range(kinds), slots))
    counts = np.zeros((len(draws), kinds))
    for row, draw in enumerate(draws):
        np.add.at(counts[row], list(draw), 1.0)
    sequences = kinds**slots
    orders = math.factorial(slots)
    weights = [(orders // math.prod(math.factorial(int(count)) for count in row)) / sequences for row in counts]
    return counts, np.array(weights)


def population_size(sizes: Sizes) -> int:
    """Number of distinct (query, token counts) pairs, ``M K C(b + m - 1, m) C(N + n - 1, n)``."""
    informative = math.comb(sizes.block + sizes.informative_slots - 1, sizes.informative_slots)
    noise = math.comb(sizes.noise_tokens + sizes.noise_slots - 1, sizes.noise_slots)
    return sizes.classes * sizes.queries * informative * noise


def enumerate_population(sizes: Sizes, limit: int = POPULATION_LIMIT) -> Population:
    """Return every (query, token counts) pair with its label and probability.

    A multiset with counts ``c`` of ``s`` slots on ``k`` tokens has probability ``s!/(prod c_i!) / k**s``.

    Parameters: ``sizes``; ``limit``, the largest number of entries (pairs times tokens).

    Raises: `theory.errors.GradlineError` when the population is larger, stating both numbers.

    >>> sizes = Sizes(2, 2, 1, 1, True, 2, 1, False, 1.0)
    >>> enumerate_population(sizes).probabilities.tolist()
    [0.125, 0.25, 0.125, 0.125, 0.25, 0.125]
    """
    size = population_size(sizes)
    if size * sizes.tokens > limit:
        raise GradlineError(
            f"enumeration of the population: {size} (query, token counts) pairs over {sizes.tokens} "
            f"tokens are {size * sizes.tokens} entries, above the limit of {limit}; take sampled batches "
            "or a smaller task"
        )
    own, own_weights = _multisets(sizes.block, sizes.informative_slots)
    noise, noise_weights = _multisets(sizes.noise_tokens, sizes.noise_slots)
    pairs = len(own) * len(noise)
    weights = np.outer(own_weights, noise_weights).ravel() / (sizes.classes * sizes.queries)
    queries, counts, labels = [], [], []
    for label in range(sizes.classes):
        block = np.zeros((pairs, sizes.tokens))
        first = label * sizes.block
        block[:, first : first + sizes.block] = np.repeat(own, len(noise), axis=0)
        block[:, sizes.informative_tokens :] = np.tile(noise, (len(own), 1))
        for query in sizes.queries_of(label):
            queries.append(np.full(pairs, query))
            labels.append(np.full(pairs, label))
            counts.append(block)
    return Population(
        torch.from_numpy(np.concatenate(queries)),
        torch.from_numpy(np.concatenate(counts)),
        torch.from_numpy(np.concatenate(labels)),
        torch.from_numpy(np.tile(weights, sizes.classes * sizes.queries)),
    )


def sample_batch(sizes: Sizes, batch_size: int, generator: torch.Generator | None = None) -> Batch:
    """Return independent sequences of the task.

    Parameters: ``sizes``; ``batch_size`` B >= 1; ``generator``, torch's default one if not given.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"batch_size={batch_size!r}: expected an integer of at least 1")

    def uniform(high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=generator)

    labels = uniform(sizes.classes, batch_size)
    queries = uniform(sizes.queries, batch_size)
    if sizes.per_class:
        queries = queries + labels * sizes.queries
    own = uniform(sizes.block, batch_size, sizes.informative_slots) + labels[:, None] * sizes.block
    noise = uniform(sizes.noise_tokens, batch_size, sizes.noise_slots) + sizes.informative_tokens
    return Batch(queries, torch.cat([own, noise], dim=1), labels)
