"""Sequences of the paper's experiments as token counts: one-hot tokens of which only the counts matter.

Common tokens are shared by all classes, every class owns a block of tokens. A sequence has ``length - 2`` tokens
drawn from the common tokens and the block of its class, a last token that names the class, and a target token
that names it too:

    p(token) = weight(token) / (sum of the common weights + sum of the block's weights).

Source: arXiv 2608.06776, data of Figs. 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SequenceData"]


@dataclass(frozen=True)
class SequenceData:
    """The distribution of sequences; the defaults are those of the paper.

    Tokens ``0 ... common - 1`` are common; class ``i`` owns tokens ``common + block i ... common + block (i + 1) - 1``,
    next token ``1 + i`` and query token ``1 + classes + i``. The last token of a sequence is the query and the target
    the next token; ``swapped`` exchanges the two. Weights are integers, so that sampling is exact: the paper's are
    1 and 0.1, 0.2, ..., 1.0 in tenths.

    Parameters: ``classes``; ``common``, the number of common tokens; ``common_weight`` of each;
    ``block_weights`` of the tokens of a class; ``length`` of a sequence with its target; ``swapped``.

    Raises: ``ValueError`` for sizes that do not fit together.

    Source: arXiv 2608.06776, data of Figs. 2 and 3.

    >>> data = SequenceData()
    >>> data.vocabulary, data.last_tokens, data.targets
    (50, (5, 6, 7, 8), (1, 2, 3, 4))
    >>> counts = data.sample(np.array([0, 3]), np.random.default_rng(0))
    >>> counts.shape, counts.sum(axis=1).tolist()
    ((2, 50), [63, 63])
    """

    classes: int = 4
    common: int = 10
    common_weight: int = 10
    block_weights: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    length: int = 64
    swapped: bool = False

    def __post_init__(self) -> None:
        for name, low in (("classes", 2), ("common_weight", 1), ("length", 3)):
            _integer(name, getattr(self, name), low)
        _integer("common", self.common, 1 + 2 * self.classes)
        if not self.block_weights:
            raise ValueError("block_weights is empty: expected at least one positive integer")
        for weight in self.block_weights:
            _integer("block_weights", weight, 1)
        if self.length > 256:
            raise ValueError(f"length={self.length}: expected at most 256, counts are kept in single bytes")

    @property
    def block(self) -> int:
        """Tokens of a class."""
        return len(self.block_weights)

    @property
    def vocabulary(self) -> int:
        """Tokens in all; the model has as many outputs."""
        return self.common + self.classes * self.block

    @property
    def next_tokens(self) -> tuple[int, ...]:
        """The next token of every class."""
        return tuple(range(1, 1 + self.classes))

    @property
    def query_tokens(self) -> tuple[int, ...]:
        """The query token of every class."""
        return tuple(range(1 + self.classes, 1 + 2 * self.classes))

    @property
    def last_tokens(self) -> tuple[int, ...]:
        """The token at the last position, attended like the others, of every class."""
        return self.next_tokens if self.swapped else self.query_tokens

    @property
    def targets(self) -> tuple[int, ...]:
        """The token to predict, of every class."""
        return self.query_tokens if self.swapped else self.next_tokens

    def probabilities(self) -> NDArray[np.float64]:
        """Return the probabilities (classes, vocabulary) of a context token for every class."""
        weights = np.zeros((self.classes, self.vocabulary))
        weights[:, : self.common] = self.common_weight
        for label in range(self.classes):
            first = self.common + label * self.block
            weights[label, first : first + self.block] = self.block_weights
        return weights / weights.sum(axis=1, keepdims=True)

    def sample(self, labels: NDArray[Any], generator: np.random.Generator) -> NDArray[np.uint8]:
        """Return the token counts (B, vocabulary) of one sequence for each class in ``labels`` (B,).

        A context token is a ticket out of as many as the weights sum to; the tickets of a token are its weight.
        """
        own = self.common + self.block
        table = np.repeat(np.arange(own, dtype=np.int32), [self.common_weight] * self.common + [*self.block_weights])
        small = np.uint8 if table.size <= 256 else np.int64
        tickets = generator.integers(0, table.size, (labels.size, self.length - 2), dtype=small)
        places = table[tickets]
        places += own * np.arange(labels.size, dtype=np.int32)[:, None]
        drawn = np.bincount(places.ravel(), minlength=own * labels.size).reshape(labels.size, own)
        counts = np.zeros((labels.size, self.vocabulary), np.uint8)
        counts[:, : self.common] = drawn[:, : self.common]
        rows = np.arange(labels.size)
        blocks = counts[:, self.common :].reshape(labels.size, self.classes, self.block)
        blocks[rows, labels] = drawn[:, self.common :]
        counts[rows, np.array(self.last_tokens)[labels]] += 1
        return counts


def _integer(name: str, value: Any, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}={value!r}: expected an integer of at least {low}")
    if value < low:
        raise ValueError(f"{name}={value}: expected an integer of at least {low}")
