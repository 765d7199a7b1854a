"""The trained models, many runs at once: losses and hand-written gradients on batches of token counts.

Runs are stacked along the first axes of every parameter, so that a step of all of them costs a few products of small
matrices. A factorized circuit is ``W = U V^T``, with ``dL/dU = G V`` and ``dL/dV = G^T U`` where ``G = dL/dW``.

Source: arXiv 2608.06776, models of Figs. 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numerics.training.data import SequenceData

__all__ = ["Batch", "FixedAttention", "Measured", "Parameters", "TrainedAttention"]

Parameters = dict[str, Tensor]
Kind = Literal["collapsed", "factorized"]


@dataclass(frozen=True)
class Batch:
    """Sequences of several runs, as the model wants them; further axes may come first.

    ``counts`` (R, B, T): normalized, or their logarithms; ``targets`` (R, B, 1), the token to predict; ``classes``
    (R, B, M), one-hot, where the model needs them.
    """

    counts: Tensor
    targets: Tensor
    classes: Tensor

    def steps(self) -> Iterator[Batch]:
        """Yield the batches along the first axis."""
        for parts in zip(self.counts.unbind(), self.targets.unbind(), self.classes.unbind(), strict=True):
            yield Batch(*parts)


def _batch(data: SequenceData, counts: Tensor, labels: NDArray[Any]) -> Batch:
    own = torch.from_numpy(labels)
    classes = torch.nn.functional.one_hot(own, data.classes).to(counts.dtype)
    return Batch(counts, torch.tensor(data.targets)[own][..., None], classes)


@lru_cache(maxsize=32)
def _masses(alphas: tuple[float, ...], data: SequenceData, dtype: torch.dtype, shift: float) -> Tensor:
    """Attention (A, 1, T) that multiplies normalized counts."""
    own = torch.tensor(alphas, dtype=torch.float64)[:, None] + shift
    informative = torch.arange(data.vocabulary) >= data.common
    return torch.where(informative, own, 1 - own).to(dtype)[:, None, :]


@dataclass(frozen=True)
class Measured:
    """Of every run and sequence: loss, probability of the target, attention mass on tokens of a block."""

    loss: Tensor
    probability: Tensor
    attention: Tensor


def _multiply(left: Tensor, right: Tensor) -> Tensor:
    """The product of stacked matrices; for a single stack without the detour that ``@`` takes."""
    return torch.bmm(left, right) if left.ndim == 3 else left @ right


def _product(parameters: Parameters, circuit: str) -> Tensor:
    if f"W_{circuit}" in parameters:
        return parameters[f"W_{circuit}"]
    return _multiply(parameters[f"U_{circuit}"], parameters[f"V_{circuit}"].mT)


def _factor_gradients(parameters: Parameters, circuit: str, gradient: Tensor) -> Parameters:
    """Gradients of a circuit's parameters from that of its matrix."""
    if f"W_{circuit}" in parameters:
        return {f"W_{circuit}": gradient}
    U, V = parameters[f"U_{circuit}"], parameters[f"V_{circuit}"]
    return {f"U_{circuit}": _multiply(gradient, V), f"V_{circuit}": _multiply(gradient.mT, U)}


def _uniform(shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.float64]:
    """PyTorch's default initialization of a linear layer, variance ``1/(3 inputs)``."""
    bound = 1 / math.sqrt(shape[-1])
    return generator.uniform(-bound, bound, shape)


def _start(circuit: str, kind: Kind, size: int, scale: float | None, generator: Any) -> dict[str, NDArray[np.float64]]:
    names = (f"W_{circuit}",) if kind == "collapsed" else (f"U_{circuit}", f"V_{circuit}")
    if scale is not None:
        return {name: scale * np.eye(size) for name in names}
    return {name: _uniform((size, size), generator) for name in names}


def _stack(starts: list[dict[str, NDArray[np.float64]]], dtype: torch.dtype) -> Parameters:
    return {name: torch.tensor(np.stack([s[name] for s in starts]), dtype=dtype) for name in starts[0]}


@dataclass(frozen=True)
class FixedAttention:
    """Output-value circuits under a fixed attention: mass ``alpha`` on the tokens of a block, the rest on the common.

    ``z = W x + bias`` with ``x = alpha (block counts)/(their sum) + (1-alpha) (common counts)/(their sum)``. A
    seed's sequences are those of all its ``alphas``.

    Parameters: ``data``; ``ov``, ``"collapsed"`` (with bias) or ``"factorized"`` (without); ``alphas`` (A,).

    Source: arXiv 2608.06776, Fig. 3.
    """

    data: SequenceData
    ov: Kind
    alphas: tuple[float, ...]

    def start(self, seeds: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Parameters:
        """Return initial parameters, matrices (S, A, T, T): each seed has one for all ``alphas``."""
        starts = []
        for seed in seeds:
            generator = np.random.default_rng([seed, 0])
            found = _start("OV", self.ov, self.data.vocabulary, None, generator)
            if self.ov == "collapsed":
                # a bias is initialized with the bound of its layer, 1/sqrt(inputs)
                found["bias_OV"] = _uniform((self.data.vocabulary,), generator)
            starts.append({name: np.stack([value] * len(self.alphas)) for name, value in found.items()})
        return _stack(starts, dtype)

    def features(self, counts: NDArray[Any], labels: NDArray[Any], dtype: torch.dtype) -> Batch:
        """Normalize counts (..., T) within the block tokens and within the common tokens."""
        own = counts[..., self.data.common :].sum(-1, keepdims=True)
        other = counts[..., : self.data.common].sum(-1, keepdims=True)
        if not own.all():
            raise ValueError("a sequence has no token of a block: expected at least one to attend to")
        x = torch.from_numpy(counts).to(dtype)
        x[..., self.data.common :] /= torch.from_numpy(own).to(dtype)
        x[..., : self.data.common] /= torch.from_numpy(other).to(dtype)
        return _batch(self.data, x, labels)

    def _log_probabilities(self, parameters: Parameters, batch: Batch, shift: float = 0.0) -> Tensor:
        """Logarithms (S, B, A, outputs) of predicted probabilities."""
        W = _product(parameters, "OV")
        seeds, alphas, outputs, tokens = W.shape
        weighted = (W * _masses(self.alphas, self.data, W.dtype, shift)).view(seeds, alphas * outputs, tokens)
        logits = torch.bmm(batch.counts, weighted.mT).view(seeds, -1, alphas, outputs)
        if "bias_OV" in parameters:
            logits += parameters["bias_OV"][:, None]
        return torch.log_softmax(logits, -1)

    def _targets(self, batch: Batch) -> Tensor:
        return batch.targets[:, :, None].expand(-1, -1, len(self.alphas), 1)

    def gradients(self, parameters: Parameters, batch: Batch) -> tuple[Tensor, Parameters]:
        """Return the mean losses (S, A) and the gradients of every parameter."""
        logs = self._log_probabilities(parameters, batch)
        seeds, size, alphas, outputs = logs.shape
        targets = self._targets(batch)
        losses = logs.gather(-1, targets).mean((1, 3)).neg_()
        slope = logs.exp_()
        slope.scatter_add_(-1, targets, slope.new_full(targets.shape, -1.0))
        slope /= size
        G = torch.bmm(slope.view(seeds, size, alphas * outputs).mT, batch.counts)
        G = G.view(seeds, alphas, outputs, -1).mul_(_masses(self.alphas, self.data, slope.dtype, 0.0))
        found = _factor_gradients(parameters, "OV", G)
        if "bias_OV" in parameters:
            found["bias_OV"] = slope.sum(1)
        return losses, found

    def losses(self, parameters: Parameters, batch: Batch, shift: float = 0.0) -> Tensor:
        """Return the mean losses (S, A) of the same weights with attention ``alpha + shift``."""
        logs = self._log_probabilities(parameters, batch, shift)
        return -logs.gather(-1, self._targets(batch)).mean((1, 3))


@dataclass(frozen=True)
class TrainedAttention:
    """The attention model: scores ``scale W_QK[query, token]``, softmax over all positions, logits ``W_OV`` times it.

    The softmax over positions is one over tokens with the logarithms of their counts added to the scores.

    Parameters: ``data``; ``qk`` and ``ov``, ``"collapsed"`` or ``"factorized"``; ``scale`` of the scores,
    ``1/sqrt(vocabulary)`` by default; ``start_qk`` and ``start_ov``: start from this multiple of the identity, by
    default from PyTorch's initialization of a linear layer.

    Source: arXiv 2608.06776, Fig. 2.
    """

    data: SequenceData
    qk: Kind
    ov: Kind
    start_qk: float | None = None
    start_ov: float | None = None
    scale: float | None = None

    @property
    def _queries(self) -> slice:
        """Rows of the query-key matrix that sequences look up: neighbors."""
        return slice(self.data.last_tokens[0], self.data.last_tokens[-1] + 1)

    @property
    def score_scale(self) -> float:
        """The factor of the scores."""
        return 1 / math.sqrt(self.data.vocabulary) if self.scale is None else self.scale

    def start(self, seeds: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Parameters:
        """Return initial parameters (R, T, T), one run for each seed."""
        starts = []
        for seed in seeds:
            generator = np.random.default_rng([seed, 0])
            query_key = _start("QK", self.qk, self.data.vocabulary, self.start_qk, generator)
            starts.append(query_key | _start("OV", self.ov, self.data.vocabulary, self.start_ov, generator))
        return _stack(starts, dtype)

    def features(self, counts: NDArray[Any], labels: NDArray[Any], dtype: torch.dtype) -> Batch:
        """Take the logarithms of counts (..., T), -inf for absent tokens."""
        with np.errstate(divide="ignore"):
            table = torch.from_numpy(np.log(np.arange(256))).to(dtype)
        return _batch(self.data, table[torch.from_numpy(counts).int()], labels)

    def _attention(self, parameters: Parameters, batch: Batch) -> Tensor:
        if "W_QK" in parameters:
            scores = parameters["W_QK"][:, self._queries]
        else:
            scores = torch.bmm(parameters["U_QK"][:, self._queries], parameters["V_QK"].mT)
        return torch.softmax(torch.baddbmm(batch.counts, batch.classes, scores, alpha=self.score_scale), -1)

    def gradients(self, parameters: Parameters, batch: Batch) -> tuple[Tensor, Parameters]:
        """Return the mean losses (R,) and the gradients of every parameter."""
        attention = self._attention(parameters, batch)
        W = _product(parameters, "OV")
        logs = torch.log_softmax(torch.bmm(attention, W.mT), -1)
        losses = logs.gather(-1, batch.targets).mean((1, 2)).neg_()
        slope = logs.exp_()
        slope.scatter_add_(-1, batch.targets, slope.new_full(batch.targets.shape, -1.0))
        slope /= slope.shape[1]
        found = _factor_gradients(parameters, "OV", torch.bmm(slope.mT, attention))
        by_attention = torch.bmm(slope, W).mul_(attention)
        by_score = by_attention.sub_(attention.mul_(by_attention.sum(-1, keepdim=True)))
        rows = torch.bmm(batch.classes.mT, by_score).mul_(self.score_scale)
        return losses, found | self._query_key(parameters, rows)

    def _query_key(self, parameters: Parameters, rows: Tensor) -> Parameters:
        """Gradients of the query-key circuit, whose matrix moves in the ``rows`` of query tokens only."""
        first = next(parameters[name] for name in ("W_QK", "U_QK") if name in parameters)
        whole = torch.zeros_like(first)
        if "W_QK" in parameters:
            whole[:, self._queries] = rows
            return {"W_QK": whole}
        torch.bmm(rows, parameters["V_QK"], out=whole[:, self._queries])
        return {"U_QK": whole, "V_QK": torch.bmm(rows.mT, parameters["U_QK"][:, self._queries])}

    def measure(self, parameters: Mapping[str, Tensor], batch: Batch) -> Measured:
        """Return losses, probabilities of the target and attention on tokens of a block, each (R, B)."""
        own = dict(parameters)
        attention = self._attention(own, batch)
        logs = torch.log_softmax(torch.bmm(attention, _product(own, "OV").mT), -1)
        found = logs.gather(-1, batch.targets)[..., 0]
        return Measured(-found, found.exp(), attention[..., self.data.common :].sum(-1))
