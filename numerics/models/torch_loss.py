"""A user's torch loss as a function of one flat vector of all entries, each call checked."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from theory.models import Block

__all__ = ["TorchLoss"]

Array = NDArray[np.float64]


class TorchLoss:
    """``loss(**blocks)`` in double precision, with its gradient by autograd.

    Raises, when called: ``TypeError`` for a loss that is no scalar tensor of double precision; ``ValueError`` for
    shapes that don't fit together and where the loss has no gradient.
    """

    def __init__(self, blocks: Sequence[Block], loss: Any) -> None:
        self.blocks, self.function = tuple(blocks), loss
        names = {block.name: None for block in self.blocks}
        try:
            inspect.signature(loss).bind(**names)
        except TypeError as error:
            expected = ", ".join(names)
            raise TypeError(f"loss: {error}; expected a function of the blocks by name, loss({expected})") from None

    def split(self, flat: Tensor) -> dict[str, Tensor]:
        """The blocks of a flat vector."""
        parts = torch.split(flat, [block.size for block in self.blocks])
        return {block.name: part.view(block.axes) for block, part in zip(self.blocks, parts, strict=True)}

    def _checked(self, blocks: Mapping[str, Tensor]) -> Tensor:
        try:
            value = self.function(**blocks)
        except (RuntimeError, IndexError, ValueError) as error:
            shapes = ", ".join(f"{block.name} {block.axes}" for block in self.blocks)
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"loss: it can't be evaluated on blocks of shapes {shapes}: {text}") from error
        if not isinstance(value, Tensor):
            raise TypeError(f"loss: it returns {type(value).__name__}; expected a torch tensor, one number")
        if value.shape != ():
            raise TypeError(
                f"loss: it returns a tensor of shape {tuple(value.shape)}; expected a scalar, such as its sum or mean"
            )
        if value.dtype != torch.float64:
            raise TypeError(f"loss: it returns {value.dtype}; expected torch.float64, the precision of the blocks")
        return value

    def value(self, flat: Array) -> float:
        """The loss at all entries."""
        with torch.no_grad():
            return float(self._checked(self.split(torch.from_numpy(flat))))

    def gradient(self, flat: Array) -> tuple[float, Array]:
        """The loss and its gradient at all entries.

        Raises: ``ValueError`` where autograd gives no gradient, or none that is finite.
        """
        blocks = {name: part.clone().requires_grad_() for name, part in self.split(torch.from_numpy(flat)).items()}
        value = self._checked(blocks)
        if value.grad_fn is None:
            raise ValueError(
                "loss: not differentiable, autograd sees no block in it (detached, or rebuilt as a tensor)"
            )
        found = torch.autograd.grad(value, list(blocks.values()), allow_unused=True)
        for name, part in zip(blocks, found, strict=True):
            if part is None:
                raise ValueError(f"loss: not differentiable in {name}, autograd sees no path to it; leave it out")
            if not part.isfinite().all():
                raise ValueError(f"loss: not differentiable, the gradient in {name} is not finite at {_point(blocks)}")
        return float(value.detach()), np.concatenate([part.numpy().ravel() for part in found])


def _point(blocks: Mapping[str, Tensor]) -> str:
    shown = [f"{name}={np.round(part.detach().numpy(), 3).tolist()}" for name, part in blocks.items()]
    return ", ".join(shown)[:300]
