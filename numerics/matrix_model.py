"""The full attention model, written by hand in torch: the independent witness of the reduced theory.

Every entry of both matrices is a parameter; no symmetry, line or reduced formula enters the loss. The line
sets the start and is what the distance is measured to. Source: section 2 of the theory, arXiv 2608.06776.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numerics.explicit_line import (
    Directions,
    LineDistance,
    direction_rank,
    explicit_directions,
    factors,
    line_part,
)
from numerics.population import POPULATION_LIMIT, Batch, Population, enumerate_population, sample_batch
from numerics.sizes import TaskLike, check_choice, check_names, concrete_sizes, finite_number

if TYPE_CHECKING:
    from numerics.gradient_flow import MatrixRun

__all__ = ["MatrixModel"]

Array = NDArray[np.float64]
_KINDS = ("collapsed", "factorized")


def _width(circuit: str, width: int | None, rank: int) -> int:
    if width is None:
        return rank
    if isinstance(width, bool) or not isinstance(width, int) or width < rank:
        raise ValueError(
            f"width_{circuit.lower()}={width!r}: expected an integer of at least {rank}, the rank of E_{circuit}"
        )
    return width


def _imbalance(circuit: str, kind: str, imbalance: Any, width: int | None) -> float:
    low = circuit.lower()
    c = finite_number(f"imbalance_{low}", imbalance)
    if kind == "collapsed" and (c != 0 or width is not None):
        name = f"imbalance_{low}={imbalance}" if c != 0 else f"width_{low}={width}"
        raise ValueError(f"{name}: the {circuit} circuit is collapsed; expected {low}='factorized' with it")
    return c


def _start(circuit: str, kind: str, start: Mapping[str, Any], imbalance: float) -> float:
    name = f"mu_{circuit}"
    balanced = kind == "factorized" and imbalance == 0
    if balanced and name not in start:
        raise ValueError(f"start has no {name}: a balanced factorized circuit needs a start other than 0")
    mu = finite_number(name, start.get(name, 0.0))
    if balanced and mu == 0:
        raise ValueError(f"{name}=0 is stationary for a balanced factorized circuit: expected a start other than 0")
    return mu


class MatrixModel(nn.Module):
    """The attention model on the token task, with full matrices in double precision.

    Score of slot ``t``: ``gamma W_QK[q, x_t]``; attention: softmax over slots; logits: ``W_OV`` times the
    attention-weighted token counts; loss: cross-entropy of the label over the exact population or a batch.

    Parameters: ``task`` with concrete sizes (``noise=oo`` is one noise token whose embedding is zero);
    ``qk``, ``ov``: ``"collapsed"`` or ``"factorized"``; ``start``: ``mu_OV`` and ``mu_QK`` on the line
    (default 0 for collapsed and imbalanced circuits, required and not 0 for balanced factorized ones);
    ``imbalance_qk``, ``imbalance_ov``: ``c`` in ``U^T U - V^T V = c P``; ``width_qk``, ``width_ov``: inner
    widths, by default the rank of the direction; ``seed`` of the random gauge of the factors.

    Parameters of the module: ``W_OV`` (M, T) or ``U_OV`` (M, width) and ``V_OV`` (T, width), ``W_QK`` (Q, T)
    or ``U_QK`` (Q, width) and ``V_QK`` (T, width). Columns: block of class 0, 1, ..., then noise. Rows of
    ``W_QK``: the K shared queries, or the K queries of class 0, of class 1, ...

    Raises: ``ValueError`` or ``TypeError`` in one line for symbolic sizes, unknown names and choices, a width
    below the rank, an imbalance or width of a collapsed circuit, a stationary start.

    Source: sections 1, 2 and 5 of the theory.

    >>> from theory.task import TokenTask
    >>> task = TokenTask(classes=3, block=2, queries=2, noise=2, informative_slots=2, noise_slots=1)
    >>> net = MatrixModel(task, ov="factorized", start={"mu_OV": 0.1})
    >>> {name: tuple(value.shape) for name, value in net.named_parameters()}
    {'U_OV': (3, 2), 'V_OV': (8, 2), 'W_QK': (2, 8)}
    >>> round(net.loss().item(), 6), round(net.attention().item(), 6)
    (1.054665, 0.666667)
    """

    embedding: Tensor

    def __init__(
        self,
        task: TaskLike,
        qk: str = "collapsed",
        ov: str = "collapsed",
        start: Mapping[str, Any] | None = None,
        *,
        imbalance_qk: Any = 0.0,
        imbalance_ov: Any = 0.0,
        width_qk: int | None = None,
        width_ov: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.sizes = concrete_sizes(task)
        self.kinds = {"OV": check_choice("ov", ov, _KINDS), "QK": check_choice("qk", qk, _KINDS)}
        named = check_names("start", {} if start is None else start, ("mu_OV", "mu_QK"))
        embedding = torch.ones(self.sizes.tokens, dtype=torch.float64)
        if self.sizes.zero_noise:
            embedding[-1] = 0.0
        self.register_buffer("embedding", embedding)
        self._directions = explicit_directions(self.sizes)
        self._population: Population | None = None
        for index, (circuit, imbalance, width) in enumerate(
            (("OV", imbalance_ov, width_ov), ("QK", imbalance_qk, width_qk))
        ):
            c = _imbalance(circuit, self.kinds[circuit], imbalance, width)
            mu = _start(circuit, self.kinds[circuit], named, c)
            self._add(circuit, mu, c, width, 2 * seed + index)

    def _add(self, circuit: str, mu: float, imbalance: float, width: int | None, seed: int) -> None:
        direction = self._directions.E_OV if circuit == "OV" else self._directions.E_QK
        if self.kinds[circuit] == "collapsed":
            new = {f"W_{circuit}": mu * direction}
        else:
            inner = _width(circuit, width, direction_rank(direction))
            left, right = factors(direction, mu, imbalance, inner, seed)
            new = {f"U_{circuit}": left, f"V_{circuit}": right * self.embedding.numpy()[:, None]}
        for name, value in new.items():
            self.register_parameter(name, nn.Parameter(torch.tensor(value, dtype=torch.float64)))

    def effective(self, circuit: str, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return the matrix of circuit ``"OV"`` or ``"QK"`` that acts on embedded tokens; parameters may be stacked."""
        if self.kinds[circuit] == "collapsed":
            return parameters[f"W_{circuit}"] * self.embedding
        return parameters[f"U_{circuit}"] @ parameters[f"V_{circuit}"].mT * self.embedding

    def matrices(self) -> dict[str, Tensor]:
        """Return the effective ``{"W_OV": (M, T), "W_QK": (Q, T)}``."""
        parameters = dict(self.named_parameters())
        return {f"W_{circuit}": self.effective(circuit, parameters) for circuit in self.kinds}

    def __getattr__(self, name: str) -> Any:
        # W_OV and W_QK are parameters of collapsed circuits; of factorized ones they are products
        if name in ("W_OV", "W_QK") and self.kinds[name[2:]] == "factorized":
            return self.effective(name[2:], dict(self.named_parameters()))
        return super().__getattr__(name)

    def set_matrices(self, **matrices: Any) -> None:
        """Overwrite parameters by name (``W_OV=...``, or ``U_OV=...``, ...), on the line or off it.

        Raises: ``ValueError`` for a name that is not a parameter of this model, a wrong shape, an entry that
        is not finite, or a non-zero entry for the noise token of zero embedding.
        """
        own = dict(self.named_parameters())
        new = {}
        for name, value in check_names("set_matrices", matrices, tuple(own)).items():
            tensor = torch.as_tensor(value, dtype=torch.float64).detach()
            if tensor.shape != own[name].shape:
                raise ValueError(f"{name} has shape {tuple(tensor.shape)}: expected {tuple(own[name].shape)}")
            if not tensor.isfinite().all():
                raise ValueError(f"{name} has an entry that is not finite: expected finite numbers")
            frozen = tensor[-1] if name.startswith("V") else tensor[:, -1]
            if self.sizes.zero_noise and not name.startswith("U") and frozen.any():
                raise ValueError(f"{name} is not 0 on the noise token: with noise=oo its embedding is zero and frozen")
            new[name] = tensor
        with torch.no_grad():
            for name, tensor in new.items():
                own[name].copy_(tensor)

    def population(self, limit: int = POPULATION_LIMIT) -> Population:
        """Return the exact population: distinct (query, token counts) pairs, labels and probabilities.

        Raises: `theory.errors.GradlineError` when it has more entries than ``limit``, stating both.
        """
        if self._population is None:
            self._population = enumerate_population(self.sizes, limit)
        return self._population

    def sample(self, batch_size: int, generator: torch.Generator | None = None) -> Batch:
        """Return ``batch_size`` independent sequences; works for tasks of any size."""
        return sample_batch(self.sizes, batch_size, generator)

    def on_population(self, W_OV: Tensor, W_QK: Tensor) -> tuple[Tensor, Tensor]:
        """Return the exact loss and the expected attention on informative slots for given matrices.

        A token of count ``k`` weighs ``k exp(score)``: the softmax of ``score + log k``, safe for any score.
        """
        rows = self.population()
        scores = self.sizes.score_scale * W_QK.index_select(0, rows.queries)
        attention = torch.softmax(scores + rows.log_counts, dim=1)
        losses = nn.functional.cross_entropy(attention @ W_OV.T, rows.labels, reduction="none")
        mass = attention.detach()[:, : self.sizes.informative_tokens].sum(dim=1)
        return rows.probabilities @ losses, rows.probabilities @ mass

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return logits (B, M) and the attention mass on informative slots (B,) of sampled sequences."""
        W_OV, W_QK = self.matrices().values()
        scores = self.sizes.score_scale * W_QK[batch.queries].gather(1, batch.tokens)
        attention = torch.softmax(scores, dim=1)
        values = W_OV.T[batch.tokens]
        mass = attention[:, : self.sizes.informative_slots].sum(dim=1)
        return torch.einsum("bs,bsc->bc", attention, values), mass

    def loss(self, batch: Batch | None = None) -> Tensor:
        """Return the cross-entropy, exact over the population or the mean over a batch."""
        if batch is None:
            return self.on_population(**self.matrices())[0]
        return nn.functional.cross_entropy(self(batch)[0], batch.labels)

    def attention(self, batch: Batch | None = None) -> Tensor:
        """Return the expected attention mass on informative slots, exact or the mean over a batch."""
        with torch.no_grad():
            return self.on_population(**self.matrices())[1] if batch is None else self(batch)[1].mean()

    def gradients(self) -> dict[str, Array]:
        """Return ``dL/dW`` of the exact loss as ``{"W_OV": (M, T), "W_QK": (Q, T)}``, factorized or not."""
        leaves = {name: W.detach().requires_grad_() for name, W in self.matrices().items()}
        loss, _ = self.on_population(**leaves)
        found = torch.autograd.grad(loss, list(leaves.values()))
        return {name: (grad * self.embedding).numpy() for name, grad in zip(leaves, found, strict=True)}

    def directions(self) -> Directions:
        """Return the explicit directions ``.E_OV`` (M, T) and ``.E_QK`` (Q, T) of the line."""
        return self._directions

    def _line_parts(self) -> list[tuple[float, float, float]]:
        matrices = (W.detach().numpy() for W in self.matrices().values())
        return [line_part(W, E) for W, E in zip(matrices, (self._directions.E_OV, self._directions.E_QK), strict=True)]

    def coordinates(self) -> dict[str, float]:
        """Return the projections ``mu = <W, E>/<E, E>`` as ``{"mu_OV": ..., "mu_QK": ...}``."""
        (output, _, _), (query_key, _, _) = self._line_parts()
        return {"mu_OV": output, "mu_QK": query_key}

    def distance_to_line(self) -> LineDistance:
        """Return the largest entry of each ``W`` minus its projection, and its relative Frobenius norm."""
        (_, output, relative_output), (_, query_key, relative_query_key) = self._line_parts()
        return LineDistance(output, query_key, relative_output, relative_query_key)

    def gradient_flow(
        self,
        rates: Mapping[str, Any],
        times: float | Sequence[float] | Array | None = None,
        until_loss: float | None = None,
        *,
        rtol: float = 1e-11,
        atol: float = 1e-12,
        max_steps: int = 100_000,
        update: bool = False,
    ) -> MatrixRun:
        """Integrate ``dP/dt = -eta dL/dP`` from here; see `numerics.gradient_flow.gradient_flow`."""
        from numerics.gradient_flow import gradient_flow

        options = {"rtol": rtol, "atol": atol}
        return gradient_flow(self, rates, times, until_loss, **options, max_steps=max_steps, update=update)

    def gradient_descent(
        self,
        rates: Mapping[str, Any],
        steps: int,
        step_size: float = 1.0,
        *,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        update: bool = False,
    ) -> MatrixRun:
        """Descend from the present parameters; see `numerics.gradient_flow.gradient_descent`."""
        from numerics.gradient_flow import gradient_descent

        return gradient_descent(
            self,
            rates,
            steps,
            step_size,
            momentum=momentum,
            nesterov=nesterov,
            weight_decay=weight_decay,
            update=update,
        )
