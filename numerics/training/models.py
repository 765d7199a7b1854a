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
from numpy.typing import DTypeLike, NDArray

from numerics.training.data import SequenceData

__all__ = ["Batch", "FixedAttention", "Measured", "Parameters", "TrainedAttention"]

Array = NDArray[Any]
Parameters = dict[str, Array]
Kind = Literal["collapsed", "factorized"]


@dataclass(frozen=True)
class Batch:
    """Sequences of several runs, as the model wants them; further axes may come first.

    ``counts`` (R, B, T): normalized, or their logarithms; ``targets`` (R, B), the token to predict; ``classes``
    (R, B, M), one-hot.
    """

    counts: Array
    targets: Array
    classes: Array

    def steps(self) -> Iterator[Batch]:
        """Yield the batches along the first axis."""
        for parts in zip(self.counts, self.targets, self.classes, strict=True):
            yield Batch(*parts)


def _batch(data: SequenceData, counts: Array, labels: Array) -> Batch:
    return Batch(counts, np.array(data.targets)[labels], np.eye(data.classes, dtype=counts.dtype)[labels])


@dataclass(frozen=True)
class Measured:
    """Of every run and sequence: loss, probability of the target, attention mass on tokens of a block."""

    loss: Array
    probability: Array
    attention: Array


def _turned(matrices: Array) -> Array:
    return matrices.swapaxes(-1, -2)


def _product(parameters: Parameters, circuit: str) -> Array:
    if f"W_{circuit}" in parameters:
        return parameters[f"W_{circuit}"]
    found: Array = parameters[f"U_{circuit}"] @ _turned(parameters[f"V_{circuit}"])
    return found


def _factor_gradients(parameters: Parameters, circuit: str, gradient: Array) -> Parameters:
    """Gradients of a circuit's parameters from that of its matrix."""
    if f"W_{circuit}" in parameters:
        return {f"W_{circuit}": gradient}
    U, V = parameters[f"U_{circuit}"], parameters[f"V_{circuit}"]
    return {f"U_{circuit}": gradient @ V, f"V_{circuit}": _turned(gradient) @ U}


@lru_cache(maxsize=8)
def _rows(number: int) -> Array:
    return np.arange(number)


def _softmax(scores: Array) -> Array:
    """Softmax over the last axis, in place."""
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores


def _cross_entropy(logits: Array, targets: Array) -> tuple[Array, Array]:
    """Losses (R, B, A) of logits (R, B, A, outputs) and, in their place, probabilities minus the one-hot targets."""
    logits -= logits.max(-1, keepdims=True)
    flat = logits.reshape(-1, *logits.shape[2:])
    rows, chosen = _rows(len(flat)), targets.ravel()
    picked = flat[rows, :, chosen]
    np.exp(logits, out=logits)
    total = logits.sum(-1)
    logits /= total[..., None]
    flat[rows, :, chosen] -= 1
    losses: Array = np.log(total) - picked.reshape(total.shape)
    return losses, logits


@lru_cache(maxsize=32)
def _masses(alphas: tuple[float, ...], data: SequenceData, dtype: Any, shift: float) -> Array:
    """Attention (A, 1, T) that multiplies normalized counts."""
    own = np.array(alphas)[:, None] + shift
    informative = np.arange(data.vocabulary) >= data.common
    return np.where(informative, own, 1 - own).astype(dtype)[:, None, :]


def _uniform(shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.float64]:
    """PyTorch's default initialization of a linear layer, variance ``1/(3 inputs)``."""
    bound = 1 / math.sqrt(shape[-1])
    return generator.uniform(-bound, bound, shape)


def _start(circuit: str, kind: Kind, size: int, scale: float | None, generator: Any) -> Parameters:
    names = (f"W_{circuit}",) if kind == "collapsed" else (f"U_{circuit}", f"V_{circuit}")
    if scale is not None:
        return {name: scale * np.eye(size) for name in names}
    return {name: _uniform((size, size), generator) for name in names}


def _stack(starts: list[Parameters], dtype: DTypeLike) -> Parameters:
    return {name: np.stack([s[name] for s in starts]).astype(dtype) for name in starts[0]}


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

    def start(self, seeds: tuple[int, ...], dtype: DTypeLike = np.float32) -> Parameters:
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

    def features(self, counts: NDArray[Any], labels: NDArray[Any], dtype: DTypeLike) -> Batch:
        """Normalize counts (..., T) within the block tokens and within the common tokens."""
        own = counts[..., self.data.common :].sum(-1, keepdims=True)
        other = counts[..., : self.data.common].sum(-1, keepdims=True)
        if not own.all():
            raise ValueError("a sequence has no token of a block: expected at least one to attend to")
        x = counts.astype(dtype)
        x[..., self.data.common :] /= own
        x[..., : self.data.common] /= other
        return _batch(self.data, x, labels)

    def _logits(self, parameters: Parameters, batch: Batch, shift: float = 0.0) -> Array:
        """Logits (S, B, A, outputs)."""
        W = _product(parameters, "OV")
        seeds, alphas, outputs, tokens = W.shape
        weighted = (W * _masses(self.alphas, self.data, W.dtype, shift)).reshape(seeds, alphas * outputs, tokens)
        logits: Array = (batch.counts @ _turned(weighted)).reshape(seeds, -1, alphas, outputs)
        if "bias_OV" in parameters:
            logits += parameters["bias_OV"][:, None]
        return logits

    def gradients(self, parameters: Parameters, batch: Batch) -> tuple[Array, Parameters]:
        """Return the mean losses (S, A) and the gradients of every parameter."""
        losses, slope = _cross_entropy(self._logits(parameters, batch), batch.targets)
        seeds, size, alphas, outputs = slope.shape
        G = _turned(slope.reshape(seeds, size, alphas * outputs)) @ batch.counts
        G = G.reshape(seeds, alphas, outputs, -1)
        G *= _masses(self.alphas, self.data, G.dtype, 0.0) / size
        found = _factor_gradients(parameters, "OV", G)
        if "bias_OV" in parameters:
            found["bias_OV"] = slope.sum(1) / size
        return losses.mean(1), found

    def losses(self, parameters: Parameters, batch: Batch, shift: float = 0.0) -> Array:
        """Return the mean losses (S, A) of the same weights with attention ``alpha + shift``."""
        losses, _ = _cross_entropy(self._logits(parameters, batch, shift), batch.targets)
        found: Array = losses.mean(1, dtype=np.float64)
        return found


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

    def start(self, seeds: tuple[int, ...], dtype: DTypeLike = np.float32) -> Parameters:
        """Return initial parameters (R, T, T), one run for each seed."""
        starts = []
        for seed in seeds:
            generator = np.random.default_rng([seed, 0])
            query_key = _start("QK", self.qk, self.data.vocabulary, self.start_qk, generator)
            starts.append(query_key | _start("OV", self.ov, self.data.vocabulary, self.start_ov, generator))
        return _stack(starts, dtype)

    def features(self, counts: NDArray[Any], labels: NDArray[Any], dtype: DTypeLike) -> Batch:
        """Take the logarithms of counts (..., T), -inf for absent tokens."""
        with np.errstate(divide="ignore"):
            table = np.log(np.arange(256)).astype(dtype)
        return _batch(self.data, table[counts], labels)

    def _attention(self, parameters: Parameters, batch: Batch) -> Array:
        if "W_QK" in parameters:
            scores = self.score_scale * parameters["W_QK"][:, self._queries]
        else:
            scores = parameters["U_QK"][:, self._queries] @ _turned(parameters["V_QK"])
            scores *= self.score_scale
        return _softmax(batch.classes @ scores + batch.counts)

    def gradients(self, parameters: Parameters, batch: Batch) -> tuple[Array, Parameters]:
        """Return the mean losses (R,) and the gradients of every parameter."""
        attention = self._attention(parameters, batch)
        W = _product(parameters, "OV")
        losses, slope = _cross_entropy((attention @ _turned(W))[:, :, None], batch.targets)
        slope = slope[:, :, 0]
        slope /= slope.shape[1]
        found = _factor_gradients(parameters, "OV", _turned(slope) @ attention)
        by_score = slope @ W
        by_score *= attention
        by_score -= attention * by_score.sum(-1, keepdims=True)
        rows = _turned(batch.classes) @ by_score
        rows *= self.score_scale
        return losses.mean((1, 2)), found | self._query_key(parameters, rows)

    def _query_key(self, parameters: Parameters, rows: Array) -> Parameters:
        """Gradients of the query-key circuit, whose matrix moves in the ``rows`` of query tokens only."""
        whole = np.zeros_like(parameters["W_QK" if "W_QK" in parameters else "U_QK"])
        if "W_QK" in parameters:
            whole[:, self._queries] = rows
            return {"W_QK": whole}
        whole[:, self._queries] = rows @ parameters["V_QK"]
        return {"U_QK": whole, "V_QK": _turned(rows) @ parameters["U_QK"][:, self._queries]}

    def measure(self, parameters: Mapping[str, Array], batch: Batch) -> Measured:
        """Return losses, probabilities of the target and attention on tokens of a block, each (R, B)."""
        own = dict(parameters)
        attention = self._attention(own, batch)
        losses, _ = _cross_entropy((attention @ _turned(_product(own, "OV")))[:, :, None], batch.targets)
        return Measured(losses[..., 0], np.exp(-losses[..., 0]), attention[..., self.data.common :].sum(-1))
