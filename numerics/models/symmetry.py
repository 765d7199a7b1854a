"""Symmetries of a torch loss: as signed permutations of its entries, tested at random points.

A permutation of the entries only changes the order in which the loss adds, so both values of an invariant loss agree to
rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from numerics.models.torch_loss import TorchLoss
from theory.models.blocks import Block, Generator, SignedPermutation, as_permutation
from theory.models.reduction import SymmetryError

__all__ = ["INVARIANCE", "POINTS", "check_differentiable", "check_invariant", "signed_permutation"]

Array = NDArray[np.float64]

#: Largest difference of an invariant loss (and of its gradient) relative to ``1 + |value|``: the rounding of a sum of
#: 10^5 terms in double precision is 10^5 * 2^-53 = 1e-11, and a loss without the symmetry differs by far more.
INVARIANCE = 1e-9
#: Random points at which invariance is tested, at three scales.
POINTS = 6
#: Step of central differences and the largest relative difference from autograd: truncation h^2 = 1e-10, rounding
#: 2^-53/h = 1e-11, times derivatives that may be a thousand times the value.
_STEP, _SLOPE = 1e-5, 1e-6


def _images(blocks: Sequence[Block], action: Any, flat: Array, label: str) -> Array:
    loss = TorchLoss(blocks, lambda **_: None)
    arrays = loss.split(torch.from_numpy(flat.copy()))
    try:
        images = action(dict(arrays))
    except (RuntimeError, IndexError) as error:
        raise ValueError(f"{label}: it can't be applied to the blocks: {str(error).splitlines()[0]}") from error
    if not isinstance(images, Mapping):
        raise TypeError(f"{label}: it returns {type(images).__name__}; expected a mapping from block names to tensors")
    unknown = sorted(set(images) - set(arrays))
    if unknown:
        raise ValueError(f"{label}: no block is called {unknown[0]!r}; expected some of {', '.join(arrays)}")
    found = []
    for block in blocks:
        image = images.get(block.name, arrays[block.name])
        shape = tuple(getattr(image, "shape", ()))
        if shape != block.axes:
            raise ValueError(f"{label}: the image of {block.name} has shape {shape}; expected {block.axes}")
        found.append(torch.as_tensor(image, dtype=torch.float64).numpy().ravel())
    return np.concatenate(found)


def signed_permutation(blocks: Sequence[Block], generator: Generator, label: str = "symmetry") -> SignedPermutation:
    """Return a symmetry as a signed permutation of all entries, found by applying it to the numbers of the entries.

    Parameters: ``blocks``; ``generator``, permutations of indices as in `theory.models.blocks.as_permutation`, or a
    function from a dict of torch tensors to one; ``label`` for messages.

    Raises: ``TypeError`` or ``ValueError`` for anything that is no signed permutation of the entries.

    >>> signed_permutation([Block("W", (1, 2))], lambda arrays: {"W": -arrays["W"].flip(1)})
    ((1, -1), (0, -1))
    """
    if isinstance(generator, Mapping) or not callable(generator):
        return as_permutation(blocks, generator, label)
    size = sum(block.size for block in blocks)
    names = np.arange(1, size + 1, dtype=np.float64)
    image = _images(blocks, generator, names, label)
    if sorted(abs(image).tolist()) != names.tolist():
        raise ValueError(f"{label}: expected a permutation of the entries, perhaps with signs; this function is none")
    moves = tuple((int(abs(value)) - 1, 1 if value > 0 else -1) for value in image)
    # a function can permute the numbers 1, 2, ... and still do something else to other values
    probe = np.random.default_rng(0).normal(size=size)
    if not np.array_equal(_images(blocks, generator, probe, label), permuted(moves, probe)):
        raise ValueError(f"{label}: it moves entries in a way that depends on their values; expected a permutation")
    return moves


def permuted(moves: SignedPermutation, flat: Array) -> Array:
    """The entries after a symmetry."""
    index, sign = np.array(moves).T
    return np.asarray(sign * flat[index])


def _points(size: int, seed: int) -> list[Array]:
    draw = np.random.default_rng(seed)
    return [draw.normal(size=size) * scale for scale in (1.0, 0.3, 2.0) for _ in range(POINTS // 3)]


def check_differentiable(loss: TorchLoss, size: int, seed: int) -> None:
    """Refuse a loss whose gradient by autograd is missing, not finite or not its slope at random points.

    Raises: ``ValueError`` or ``TypeError`` that says which.
    """
    draw = np.random.default_rng(seed + 1)
    wrong = 0
    for point in _points(size, seed):
        value, gradient = loss.gradient(point)
        if not np.isfinite(value):
            raise ValueError(f"loss: {value} at a random point; expected a finite number")
        way = draw.normal(size=size)
        slope = (loss.value(point + _STEP * way) - loss.value(point - _STEP * way)) / (2 * _STEP)
        scale = 1 + abs(value) + float(np.abs(gradient) @ np.abs(way))
        wrong += int(abs(slope - float(gradient @ way)) > _SLOPE * scale)
    # a kink between the two points of one difference is chance, at most points it is the loss
    if 2 * wrong > POINTS:
        raise ValueError(
            f"loss: not differentiable, at {wrong} of {POINTS} random points the gradient by autograd is not the slope "
            "of the loss (something in it is detached, rounded or random)"
        )


def check_invariant(loss: TorchLoss, moves: SignedPermutation, label: str, seed: int) -> None:
    """Refuse a symmetry under which the loss or its gradient changes at a random point by more than `INVARIANCE`.

    Raises: `SymmetryError` naming the generator and a point, most entries of it 0.
    """
    for point in _points(len(moves), seed):
        value, gradient = loss.gradient(point)
        other, moved = loss.gradient(permuted(moves, point))
        if _far(value, other):
            raise SymmetryError(_refusal(loss, moves, point, label))
        # L(g x) = L(x) gives grad L(g x) = g grad L(x)
        gap = np.abs(moved - permuted(moves, gradient))
        if (gap > INVARIANCE * (1 + np.abs(gradient).max())).any():
            index = int(gap.argmax())
            raise SymmetryError(
                f"{label}: the gradient of the loss is not invariant, entry {index} differs by {gap[index]:.3g} at a "
                "random point where the loss agrees"
            )


def _far(one: float, other: float) -> bool:
    return bool(abs(one - other) > INVARIANCE * (1 + abs(one)))


def _refusal(loss: TorchLoss, moves: SignedPermutation, point: Array, label: str) -> str:
    """A point where the loss changes, simplified: entries become 0 or 1 as long as it does."""

    def differs(at: Array) -> bool:
        one, other = loss.value(at), loss.value(permuted(moves, at))
        return bool(np.isfinite([one, other]).all()) and _far(one, other)

    best = _simplified(point, differs)
    one, other = loss.value(best), loss.value(permuted(moves, best))
    names = [s.name for block in loss.blocks for s in block.symbols]
    shown = [f"{name}={value:.6g}" for name, value in zip(names, best, strict=True) if value != 0]
    rest = ", the other entries 0" if 0 < len(shown) < len(names) else "" if shown else "all entries 0"
    return (
        f"{label}: the loss is not invariant; it is {one:.6g} and after the symmetry {other:.6g} "
        f"at {', '.join(shown)}{rest}"
    )


def _simplified(point: Array, differs: Callable[[Array], bool]) -> Array:
    best = point.copy()
    for simple in (0.0, 1.0):
        for index in range(len(best)):
            if best[index] in (0.0, simple):
                continue
            trial = best.copy()
            trial[index] = simple
            if differs(trial):
                best = trial
    return best
