"""Losses and gradients on token counts against torch on one-hot sequences, position by position."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from numerics.training import FixedAttention, SequenceData, TrainedAttention
from numerics.training.models import Batch

KINDS = ("collapsed", "factorized")
ALPHAS = (0.2, 0.7, 1.0)
#: Sums of a few hundred rounded terms of size 1.
ROUNDING = 1e-13


def sequences(data: SequenceData, size: int, runs: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, data.classes, (runs, size))
    return np.stack([data.sample(own, generator) for own in labels]), labels


def one_hot(counts: Any) -> Tensor:
    """The tokens (positions, T) of one sequence, in any order."""
    tokens = [t for t, k in enumerate(counts) for _ in range(k)]
    return torch.nn.functional.one_hot(torch.tensor(tokens), len(counts)).double()


def matrix(parameters: dict[str, Tensor], circuit: str, run: Any) -> Tensor:
    if f"W_{circuit}" in parameters:
        return parameters[f"W_{circuit}"][run]
    return parameters[f"U_{circuit}"][run] @ parameters[f"V_{circuit}"][run].T


def attention_loss(model: TrainedAttention, parameters: dict[str, Tensor], counts: Any, labels: Any) -> Tensor:
    """Mean losses (R,) from the definition: scores of all positions, softmax over positions, logits, cross-entropy."""
    found = []
    for run in range(len(counts)):
        losses = []
        for row, label in zip(counts[run], labels[run], strict=True):
            x = one_hot(row)
            query = torch.eye(len(row)).double()[model.data.last_tokens[label]]
            scores = x @ matrix(parameters, "QK", run).T @ query / math.sqrt(model.data.vocabulary)
            logits = matrix(parameters, "OV", run) @ (torch.softmax(scores, 0) @ x)
            losses.append(torch.logsumexp(logits, 0) - logits[model.data.targets[label]])
        found.append(torch.stack(losses).mean())
    return torch.stack(found)


def fixed_loss(model: FixedAttention, parameters: dict[str, Tensor], counts: Any, labels: Any, shift: float) -> Tensor:
    """Mean losses (S, A) from the definition of the attention of every position."""
    found = []
    for run, (at, alpha) in itertools.product(range(len(counts)), enumerate(model.alphas)):
        losses = []
        for row, label in zip(counts[run], labels[run], strict=True):
            x = one_hot(row)
            own = x.argmax(1) >= model.data.common
            mass = torch.where(own, (alpha + shift) / own.double().sum(), (1 - alpha - shift) / (~own).double().sum())
            logits = matrix(parameters, "OV", (run, at)) @ (mass @ x)
            if "bias_OV" in parameters:
                logits = logits + parameters["bias_OV"][run, at]
            losses.append(torch.logsumexp(logits, 0) - logits[model.data.targets[label]])
        found.append(torch.stack(losses).mean())
    return torch.stack(found).view(len(counts), -1)


def scattered(model: Any) -> dict[str, Tensor]:
    """Parameters far from any symmetric point."""
    generator = torch.Generator().manual_seed(1)
    start = model.start((0, 1))
    return {n: torch.randn(v.shape, generator=generator).double().requires_grad_() for n, v in start.items()}


def arrays(parameters: dict[str, Tensor]) -> dict[str, Any]:
    return {n: v.detach().numpy() for n, v in parameters.items()}


def batch_of(model: Any, counts: Any, labels: Any) -> Batch:
    found: Batch = model.features(counts, labels, np.float64)
    return found


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("ov", KINDS)
@pytest.mark.parametrize("qk", KINDS)
def test_trained_attention(qk: Any, ov: Any, swapped: bool) -> None:
    model = TrainedAttention(SequenceData(length=20, swapped=swapped), qk, ov)
    counts, labels = sequences(model.data, 6, 2)
    parameters = scattered(model)
    wanted = attention_loss(model, parameters, counts, labels)
    slopes = [s.numpy() for s in torch.autograd.grad(wanted.sum(), list(parameters.values()))]
    right = wanted.detach().numpy()
    losses, gradients = model.gradients(arrays(parameters), batch_of(model, counts, labels))
    seen = model.measure(arrays(parameters), batch_of(model, counts, labels))
    assert set(gradients) == set(parameters)
    assert np.abs(losses - right).max() < ROUNDING
    assert np.abs(seen.loss.mean(1) - right).max() < ROUNDING
    assert np.abs(np.log(seen.probability) + seen.loss).max() < ROUNDING
    for name, slope in zip(parameters, slopes, strict=True):
        assert np.abs(slope).max() > 1e-4
        assert np.abs(gradients[name] - slope).max() < ROUNDING


def test_the_query_is_attended_and_scores_are_scaled() -> None:
    """Twin: without the last position, or with another scale, the loss is another one."""
    model = TrainedAttention(SequenceData(length=20), "collapsed", "collapsed")
    counts, labels = sequences(model.data, 6, 2)
    parameters = scattered(model)
    right = attention_loss(model, parameters, counts, labels)
    shorter = counts.copy()
    for row, label in zip(shorter.reshape(-1, 50), labels.ravel(), strict=True):
        row[model.data.last_tokens[label]] -= 1
    assert (attention_loss(model, parameters, shorter, labels) - right).abs().max() > 1e-3
    other = TrainedAttention(model.data, "collapsed", "collapsed", scale=1.0)
    found = other.gradients(arrays(parameters), batch_of(model, counts, labels))[0]
    assert np.abs(found - right.detach().numpy()).max() > 1e-3


@pytest.mark.parametrize("ov", KINDS)
def test_fixed_attention(ov: Any) -> None:
    model = FixedAttention(SequenceData(length=20, swapped=True), ov, ALPHAS)
    counts, labels = sequences(model.data, 6, 2)
    parameters = scattered(model)
    wanted = fixed_loss(model, parameters, counts, labels, 0.0)
    slopes = [s.numpy() for s in torch.autograd.grad(wanted.sum(), list(parameters.values()))]
    batch = batch_of(model, counts, labels)
    losses, gradients = model.gradients(arrays(parameters), batch)
    assert np.abs(losses - wanted.detach().numpy()).max() < ROUNDING
    assert (model.losses(arrays(parameters), batch) == losses).all()
    shifted = fixed_loss(model, parameters, counts, labels, 0.005).detach().numpy()
    assert np.abs(model.losses(arrays(parameters), batch, 0.005) - shifted).max() < ROUNDING
    assert np.abs(shifted - losses).max() > 1e-5
    assert ("bias_OV" in parameters) == (ov == "collapsed")
    for name, slope in zip(parameters, slopes, strict=True):
        assert np.abs(slope).max() > 1e-3
        assert np.abs(gradients[name] - slope).max() < ROUNDING


def test_attention_on_the_block() -> None:
    """Equal scores: the mass is the share of positions with a token of a block."""
    model = TrainedAttention(SequenceData(), "factorized", "collapsed", start_qk=0.0)
    counts, labels = sequences(model.data, 20, 1)
    seen = model.measure(model.start((0,), np.float64), batch_of(model, counts, labels))
    share = counts[..., 10:].sum(-1) / 63
    assert np.abs(seen.attention - share).max() < ROUNDING


def test_starts() -> None:
    model = TrainedAttention(SequenceData(), "factorized", "factorized", start_ov=1e-6)
    start = model.start((7, 8), np.float64)
    for name in ("U_OV", "V_OV"):
        assert (start[name] == 1e-6 * np.eye(50)).all()
    linear = torch.nn.Linear(50, 50).weight.detach()
    for name in ("U_QK", "V_QK"):
        # both uniform up to 1/sqrt(50): the largest of 2500 entries is within 1% of the bound but once in e^25
        assert 0.99 < np.abs(start[name]).max() * math.sqrt(50) <= 1
        assert 0.99 < float(linear.abs().max() * math.sqrt(50)) <= 1
        assert (start[name][0] != start[name][1]).all()
        # 2500 squares of relative deviation sqrt(4/5): 5 standard errors are 9%
        assert abs((start[name][0] ** 2).mean() * 150 - 1) < 0.09
    fixed = FixedAttention(SequenceData(), "collapsed", ALPHAS).start((7,), np.float64)
    assert fixed["W_OV"].shape == (1, 3, 50, 50)
    assert (fixed["W_OV"][:, :1] == fixed["W_OV"]).all()
    assert fixed["bias_OV"].shape == (1, 3, 50)


def test_a_sequence_without_a_block_token_is_refused() -> None:
    model = FixedAttention(SequenceData(), "collapsed", ALPHAS)
    counts = np.zeros((1, 1, 50), np.uint8)
    counts[..., 1] = 63
    with pytest.raises(ValueError, match="no token of a block"):
        model.features(counts, np.zeros((1, 1), np.int64), np.float64)
