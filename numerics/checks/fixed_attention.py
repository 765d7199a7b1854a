"""The model with its attention held fixed: mass ``alpha`` evenly on informative slots, ``1 - alpha`` on noise slots.

Two of them: written out in balls, and in torch with every entry trained. Source: section 7 of the theory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from numerics.checks.cases import Array, Case
from numerics.checks.explicit_model import Matrix, direction, sequences
from numerics.checks.tape import Node, ball, constant, gradient, total
from numerics.explicit_line import factors
from theory.symbols import M, b, eta_OV, m, n

__all__ = ["Run", "enclosed_loss", "torch_run", "torch_velocity"]


def enclosed_loss(case: Case, output: Matrix, attention: Any) -> tuple[Any, Matrix, Any]:
    """Enclose the loss for a matrix ``W_OV`` of balls, its gradient, and its derivative by the attention."""
    leaves = [[Node(x) for x in row] for row in output]
    alpha, slots = Node(ball(attention)), [int(case.values[s]) for s in (m, n)]
    shares = [alpha.scaled(1 / ball(slots[0]))] * slots[0]
    shares += [(constant(1) - alpha).scaled(1 / ball(slots[1]))] * slots[1]
    tokens = int(case.values[M] * case.values[b])
    losses = []
    for sequence in sequences(case):
        seen = [(s, t) for s, t in zip(shares, sequence.tokens, strict=True) if case.finite or t < tokens]
        logits = [total(s * row[t] for s, t in seen) for row in leaves]
        own = logits[sequence.label]
        losses.append(total((z - own).exp() for z in logits).log())
    mean = total(losses).scaled(1 / ball(len(losses)))
    flat = [x for row in leaves for x in row]
    *slopes, by_attention = gradient(mean, [*flat, alpha])
    columns = len(output[0])
    return mean.value, [slopes[i : i + columns] for i in range(0, len(slopes), columns)], by_attention


def _loss(case: Case, attention: float) -> Callable[[Tensor], Tensor]:
    """The loss as a function of ``W_OV`` in torch."""
    slots = [int(case.values[s]) for s in (m, n)]
    shares = [attention / slots[0]] * slots[0] + [(1 - attention) / slots[1]] * slots[1]
    weights = torch.tensor(shares, dtype=torch.float64)
    found = sorted({(s.label, s.tokens) for s in sequences(case)})
    tokens = torch.tensor([tokens for _, tokens in found])
    labels = torch.tensor([label for label, _ in found])
    alive = torch.ones_like(tokens) if case.finite else (tokens < int(case.values[M] * case.values[b])).long()
    share = weights * alive

    def loss(W: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(torch.einsum("ps,cps->pc", share, W[:, tokens]), labels)

    return loss


def _parameters(case: Case, code: str, start: float) -> list[Array]:
    E = np.array([[float(e) for e in row] for row in direction(case, "OV")])
    if code == "C":
        return [start * E]
    return list(factors(E, start, 0.0, E.shape[0] - 1, seed=0))


def torch_velocity(case: Case, code: str, start: float, attention: float) -> tuple[float, float]:
    """``d mu_OV/dt`` of the trained parameters on the line at a start, and the derivative of the loss by attention."""
    E = torch.tensor([[float(e) for e in row] for row in direction(case, "OV")], dtype=torch.float64)
    leaves = [torch.tensor(p, requires_grad=True) for p in _parameters(case, code, start)]
    loss = _loss(case, attention)(leaves[0] if code == "C" else leaves[0] @ leaves[1].T)
    slopes = torch.autograd.grad(loss, leaves)
    rate = -float(case.values[eta_OV])
    speed = slopes[0] if code == "C" else slopes[0] @ leaves[1].T + leaves[0] @ slopes[1].T
    mass = torch.tensor(attention, dtype=torch.float64, requires_grad=True)
    W = start * E
    sensitivity = torch.autograd.grad(_loss_of_mass(case, W, mass), mass)[0]
    return rate * float(((speed * E).sum() / (E * E).sum()).detach()), float(sensitivity)


def _loss_of_mass(case: Case, W: Tensor, mass: Tensor) -> Tensor:
    """The loss as a function of the attention, linear in it before the softmax over classes."""
    found = list(sequences(case))
    tokens, informative = torch.tensor([s.tokens for s in found]), int(case.values[m])
    labels = torch.tensor([s.label for s in found])
    means = [W[:, part].mean(dim=2) for part in (tokens[:, :informative], tokens[:, informative:])]
    return torch.nn.functional.cross_entropy((mass * means[0] + (1 - mass) * means[1]).T, labels)


@dataclass(frozen=True)
class Run:
    """The coordinate ``mu_OV`` of the integrated model at times ``t``."""

    t: Array
    mu_OV: Array


def torch_run(case: Case, code: str, start: float, attention: float, times: Array, rtol: float) -> Run:
    """Integrate gradient flow of every entry of ``W_OV`` (or of its factors) with the attention held fixed."""
    E = np.array([[float(e) for e in row] for row in direction(case, "OV")])
    first = _parameters(case, code, start)
    shapes, sizes = [p.shape for p in first], [p.size for p in first]
    loss, rate = _loss(case, attention), -float(case.values[eta_OV])

    def split(flat: Tensor) -> list[Tensor]:
        return [x.view(s) for x, s in zip(torch.split(flat, sizes), shapes, strict=True)]

    def product(parts: list[Tensor]) -> Tensor:
        return parts[0] if code == "C" else parts[0] @ parts[1].T

    def velocity(_t: float, state: Array) -> Array:
        leaf = torch.from_numpy(state.copy()).requires_grad_()
        found: Array = rate * torch.autograd.grad(loss(product(split(leaf))), leaf)[0].numpy()
        return found

    flat = np.concatenate([p.ravel() for p in first])
    found = solve_ivp(velocity, (0.0, float(times[-1])), flat, "DOP853", times, rtol=rtol, atol=rtol)
    matrices = [product(split(torch.from_numpy(state.copy()))).numpy() for state in found.y.T]
    return Run(times, np.array([np.vdot(W, E) / np.vdot(E, E) for W in matrices]))
