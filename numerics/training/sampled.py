"""Stochastic gradient descent of the full matrix model on sampled sequences, and how far it scatters from the line.

A batch of ``B`` independent sequences is a multinomial draw over the distinct (query, token counts) pairs of the task:

    P <- P - h eta dL_B/dP,   L_B = sum_i (k_i/B) loss_i,   k ~ Multinomial(B, population).

Full-batch descent stays on the line at any step; noise of variance ``1/B`` pushes runs off it by ``O(1/sqrt(B))``.

Source: arXiv 2608.06776; sections 4 and 9 of the theory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numerics.explicit_line import line_part
from numerics.matrix_model import MatrixModel
from numerics.sizes import check_names, finite_number

__all__ = ["Scatter", "batch_slope", "sampled_descent"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scatter:
    """Of every run: the Frobenius distances ``OV`` and ``QK`` (R,) from the line, and the coordinates ``mu_OV``,
    ``mu_QK`` (R,).
    """

    OV: Array
    QK: Array
    mu_OV: Array
    mu_QK: Array


def _products(net: MatrixModel, leaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Effective matrices (R, rows, T) of stacked parameters."""
    return {circuit: net.effective(circuit, leaves) for circuit in net.kinds}


def _losses(net: MatrixModel, leaves: Mapping[str, Tensor]) -> Tensor:
    """Losses (R, P) of every pair of the population."""
    rows, W = net.population(), _products(net, leaves)
    scores = net.sizes.score_scale * W["QK"][:, rows.queries]
    logits = torch.softmax(scores + rows.log_counts, dim=-1) @ W["OV"].mT
    logs = torch.log_softmax(logits, dim=-1)
    return -logs[:, torch.arange(len(rows.labels)), rows.labels]


def sampled_descent(
    net: MatrixModel,
    rates: Mapping[str, Any],
    steps: int,
    batch: int,
    *,
    runs: int = 32,
    seed: int = 0,
    step_size: float = 1.0,
) -> Scatter:
    """Descend ``runs`` times from the present parameters, each on its own batches.

    Parameters: ``net``; ``rates``, ``{"eta_OV": ..., "eta_QK": ...}``; ``steps``; ``batch``, sequences of a step;
    ``runs`` R; ``seed`` of the batches; ``step_size`` h.

    Returns: `Scatter` at the end.

    Raises: ``ValueError`` for counts below 1; `theory.errors.GradlineError` for a population too large to enumerate.

    Source: arXiv 2608.06776; section 9 of the theory.

    >>> from theory.task import TokenTask
    >>> net = MatrixModel(TokenTask(2, 1, 1, 1, 1, 1), start={"mu_OV": 0.5, "mu_QK": 0.5})
    >>> few, many = (sampled_descent(net, {"eta_OV": 1, "eta_QK": 1}, 3, size) for size in (10, 1000))
    >>> bool(few.OV.mean() > 5 * many.OV.mean())
    True
    """
    for name, value in (("steps", steps), ("batch", batch), ("runs", runs)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name}={value!r}: expected an integer of at least 1")
    eta = {n: finite_number(n, v) for n, v in check_names("rates", rates, ("eta_OV", "eta_QK")).items()}
    generator = np.random.default_rng(seed)
    shares = net.population().probabilities.numpy()
    state = {n: p.detach().expand(runs, *p.shape).clone() for n, p in net.named_parameters()}
    for _ in range(steps):
        drawn = torch.from_numpy(generator.multinomial(batch, shares / shares.sum(), size=runs) / batch)
        leaves = {n: p.requires_grad_() for n, p in state.items()}
        total = (drawn * _losses(net, leaves)).sum()
        slopes = torch.autograd.grad(total, list(leaves.values()))
        with torch.no_grad():
            moved = zip(state.items(), slopes, strict=True)
            state = {n: p.detach() - step_size * eta[f"eta_{n[-2:]}"] * g for (n, p), g in moved}
    return _scatter(net, state)


def _scatter(net: MatrixModel, state: Mapping[str, Tensor]) -> Scatter:
    directions = {"OV": net.directions().E_OV, "QK": net.directions().E_QK}
    found: dict[str, Array] = {}
    for circuit, W in _products(net, state).items():
        parts = [line_part(w, directions[circuit]) for w in W.numpy()]
        norms = np.linalg.norm(W.numpy(), axis=(1, 2))
        found[f"mu_{circuit}"] = np.array([mu for mu, _, _ in parts])
        found[circuit] = np.array([relative for _, _, relative in parts]) * norms
    return Scatter(**found)


def batch_slope(batches: Sequence[int], distances: Sequence[Array]) -> tuple[float, float]:
    """Return the slope of ``log(root mean square distance)`` over ``log(batch)`` and its standard error.

    The error of each mean square is its standard error over the runs; the fit is weighted by it.

    Parameters: ``batches`` (k,), at least two different ones; ``distances``, of each the distances (R,) of its runs.

    >>> slope, error = batch_slope([1, 100], [np.array([1.0, 1.1]), np.array([0.1, 0.11])])
    >>> round(slope, 12), error < 0.05
    (-0.5, True)
    """
    if len(set(batches)) < 2:
        raise ValueError(f"batches={list(batches)}: expected at least two different sizes")
    squares = [np.asarray(d, dtype=np.float64) ** 2 for d in distances]
    x = np.log(np.asarray(batches, dtype=np.float64))
    y = np.array([0.5 * np.log(s.mean()) for s in squares])
    # variance of half the logarithm of a mean
    spread = np.array([0.25 * s.var(ddof=1) / s.size / s.mean() ** 2 for s in squares])
    weights = 1 / np.maximum(spread, 1e-30)
    middle = (weights * x).sum() / weights.sum()
    leverage = weights * (x - middle)
    scale = (leverage * (x - middle)).sum()
    return float((leverage * y).sum() / scale), float(np.sqrt((leverage**2 * spread).sum()) / scale)
