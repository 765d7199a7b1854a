"""Trained arrays of a user's model, and symmetries that permute their entries.

A symmetry maps entries to entries, perhaps with a sign; it may be written as permutations of the indices of each block
or as a function of the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import index
from typing import Any, TypeAlias

from sympy import ImmutableDenseMatrix, Integer, Symbol

from theory.inputs import exact

__all__ = ["Action", "Block", "Generator", "SignedPermutation", "as_permutation", "check_blocks"]

#: For each axis of each block that moves, the images of the indices, or None for an axis that stays.
Permutations: TypeAlias = Mapping[str, Sequence[Sequence[int] | None]]
#: A function from arrays by name to arrays by name.
Action: TypeAlias = Callable[[dict[str, Any]], Mapping[str, Any]]
Generator: TypeAlias = "Permutations | Action"
#: For each entry, in the order of the blocks, the entry it takes its value from and the sign.
SignedPermutation: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Block:
    """A trained array.

    ``name``; ``shape``, one or two axes; ``rate``, its learning rate, a number or a symbol.

    Raises: ``TypeError`` or ``ValueError`` for a wrong name or shape.

    >>> Block("W", (2, 2)).symbols
    (W_1_1, W_1_2, W_2_1, W_2_2)
    """

    name: str
    shape: int | tuple[int, ...]
    rate: Any = 1

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise ValueError(f"block name {self.name!r}: expected an identifier such as 'W_QK'")
        given: Any = self.shape
        shape = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
        whole = all(isinstance(n, int | Integer) and not isinstance(n, bool) and n >= 1 for n in shape)
        if not whole or not 1 <= len(shape) <= 2:
            raise ValueError(f"block {self.name}: shape {self.shape}: expected one or two positive integers")
        object.__setattr__(self, "shape", tuple(int(n) for n in shape))
        rate = exact(self.rate)
        if rate.is_extended_nonpositive:
            raise ValueError(f"block {self.name}: learning rate {rate}: expected a positive number or symbol")

    @property
    def axes(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return (self.shape,) if isinstance(self.shape, int) else self.shape

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.axes)

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The entries, row by row; indices from 1."""
        entries = product(*(range(1, n + 1) for n in self.axes))
        return tuple(Symbol("_".join([self.name, *map(str, entry)]), real=True) for entry in entries)

    @property
    def array(self) -> ImmutableDenseMatrix:
        """The entries as a SymPy matrix; a block with one axis is a column."""
        rows, columns = (*self.axes, 1)[:2]
        return ImmutableDenseMatrix(rows, columns, self.symbols)


def check_blocks(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks, each name once."""
    if isinstance(blocks, Block):
        raise TypeError(f"blocks: {blocks.name} alone; expected a sequence, such as [{blocks.name}]")
    chosen = tuple(blocks)
    if not chosen:
        raise ValueError("blocks: expected at least one Block")
    for block in chosen:
        if not isinstance(block, Block):
            raise TypeError(f"blocks: {block!r}: expected a theory.models.Block")
    names = [s.name for block in chosen for s in block.symbols]
    twice = next((n for n in names if names.count(n) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise ValueError(f"blocks: two entries are called {twice}; expected distinct names")
    moving = next((b for b in chosen if exact(b.rate).free_symbols & {s for c in chosen for s in c.symbols}), None)
    if moving is not None:
        raise ValueError(f"block {moving.name}: learning rate {moving.rate} is trained itself; expected a constant")
    return chosen


def _offsets(blocks: Sequence[Block]) -> dict[str, int]:
    found, total = {}, 0
    for block in blocks:
        found[block.name] = total
        total += block.size
    return found


def _axis(block: Block, axis: int, images: Sequence[int] | None, label: str) -> tuple[int, ...]:
    length = block.axes[axis]
    if images is None:
        return tuple(range(length))
    try:
        chosen = tuple(index(i) for i in images)
    except TypeError:
        raise TypeError(f"{label}: {images} on axis {axis} of {block.name}: expected 0..{length - 1}") from None
    if sorted(chosen) != list(range(length)):
        raise ValueError(f"{label}: {chosen} on axis {axis} of {block.name}: expected a permutation of 0..{length - 1}")
    return chosen


def _of_indices(blocks: Sequence[Block], given: Permutations, label: str) -> SignedPermutation:
    offset = _offsets(blocks)
    unknown = sorted(set(given) - set(offset))
    if unknown:
        raise ValueError(f"{label}: no block is called {unknown[0]!r}; expected some of {', '.join(offset)}")
    found: list[tuple[int, int]] = []
    for block in blocks:
        axes = given.get(block.name, (None,) * len(block.axes))
        if len(axes) != len(block.axes):
            raise ValueError(
                f"{label}: {len(axes)} permutations for {block.name} of shape {block.axes}: expected one for each axis"
            )
        images = [_axis(block, axis, images, label) for axis, images in enumerate(axes)]
        strides = [math.prod(block.axes[axis + 1 :]) for axis in range(len(block.axes))]
        for entry in product(*images):
            found.append((offset[block.name] + sum(i * s for i, s in zip(entry, strides, strict=True)), 1))
    return tuple(found)


def _of_action(blocks: Sequence[Block], action: Action, label: str) -> SignedPermutation:
    position = {s: i for i, s in enumerate(s for block in blocks for s in block.symbols)}
    images = action({block.name: block.array for block in blocks})
    found: list[tuple[int, int]] = []
    for block in blocks:
        image = images.get(block.name, block.array) if isinstance(images, Mapping) else None
        if getattr(image, "shape", None) != block.array.shape:
            raise ValueError(f"{label}: the image of {block.name} has not the shape {block.array.shape} it came with")
        for entry in tuple(image):
            plain, sign = (entry, 1) if entry in position else (-entry, -1)
            if plain not in position:
                raise ValueError(f"{label}: {entry} in the image of {block.name}: expected an entry or minus an entry")
            found.append((position[plain], sign))
    return tuple(found)


def as_permutation(blocks: Sequence[Block], generator: Generator, label: str = "symmetry") -> SignedPermutation:
    """Return a symmetry as a signed permutation of all entries.

    Parameters: ``blocks``; ``generator``, ``{"W": (rows, columns)}`` with the images of the indices of each axis,
    or a function from a dict of SymPy matrices to one; ``label`` for messages.

    Raises: ``TypeError`` or ``ValueError`` for anything that is no signed permutation of the entries.

    >>> as_permutation([Block("W", (1, 2))], {"W": (None, [1, 0])})
    ((1, 1), (0, 1))
    """
    if isinstance(generator, Mapping):
        found = _of_indices(blocks, generator, label)
    elif callable(generator):
        found = _of_action(blocks, generator, label)
    else:
        raise TypeError(f"{label}: {generator!r}: expected a mapping from block names to permutations, or a function")
    if sorted(i for i, _ in found) != list(range(len(found))):
        raise ValueError(f"{label}: two entries take the value of the same one; expected a permutation of the entries")
    return found
