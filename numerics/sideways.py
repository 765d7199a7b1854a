"""How fast the full matrix model amplifies a disturbance beside the line: the error budget of a trajectory.

The line is invariant, not always attracting. Where the linearized flow grows sideways by ``G``, rounding of
size ``1e-15`` ends ``1e-15 G`` off the line in double precision, whatever the tolerance of the integrator.
Source: section 4 of the theory (the line), section 2 (gradient flow).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from numerics.explicit_line import line_part
from numerics.gradient_flow import Objective, one_thread
from numerics.sizes import finite_number
from theory.errors import GradlineError

if TYPE_CHECKING:
    from numerics.matrix_model import MatrixModel

__all__ = ["SidewaysGrowth", "sideways_growth"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SidewaysGrowth:
    """Largest entry of ``W`` beside the line at the end, per unit of the largest entry of the disturbance."""

    OV: float
    QK: float


def _tangent_velocity(objective: Objective, state: Array) -> Array:
    """Velocity of (P, dP): ``-eta dL/dP`` and ``-eta H dP`` with the Hessian ``H`` of the exact loss."""
    flat, tangent = (torch.from_numpy(part) for part in np.split(state, 2))
    leaf = flat.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(objective.value(leaf)[0], leaf, create_graph=True)
    (turned,) = torch.autograd.grad(gradient @ tangent, leaf)
    return -np.concatenate([objective.rates * gradient.detach().numpy(), objective.rates * turned.numpy()])


def _matrix_tangents(objective: Objective, state: Array) -> list[Array]:
    """Change of ``W`` for a change of the parameters: half the difference of two sides, exact for a product."""
    flat, tangent = (torch.from_numpy(part) for part in np.split(state, 2))
    scale = float(tangent.abs().max())
    sides = [objective.split(flat + sign * tangent / scale) for sign in (1, -1)]
    found = []
    for circuit in ("OV", "QK"):
        plus, minus = (objective.net.effective(circuit, side).numpy() for side in sides)
        found.append((plus - minus) * (scale / 2))
    return found


def sideways_growth(
    net: MatrixModel, rates: Mapping[str, Any], time: float, seed: int = 0, rtol: float = 1e-6
) -> SidewaysGrowth:
    """Return how much a small random disturbance of the start grows beside the line.

    ``d(dP)/dt = -eta H(P) dP`` along ``dP/dt = -eta dL/dP``, ``H`` the Hessian of the exact loss.

    Parameters: ``net``, the start; ``rates``: ``eta_OV``, ``eta_QK`` above 0; ``time`` > 0; ``seed`` of the
    disturbance; ``rtol``, relative tolerance.

    Returns: `SidewaysGrowth`; times the rounding of the start it estimates the distance from the line.

    Raises: ``ValueError`` for bad input, `theory.errors.GradlineError` if the integration fails.

    Source: linearization of the flow of the full model.

    >>> from numerics.matrix_model import MatrixModel
    >>> from theory.task import TokenTask
    >>> task = TokenTask(2, 2, 1, 2, informative_slots=1, noise_slots=1)
    >>> growth = sideways_growth(MatrixModel(task), {"eta_OV": 1, "eta_QK": 1}, time=10)
    >>> growth.OV < 10 and growth.QK < 10
    True
    """
    objective = Objective(net, rates)
    end = finite_number("time", time, positive=True)
    tangent = np.random.default_rng(seed).uniform(-1, 1, objective.start.size)
    start = np.concatenate([objective.start, tangent / np.abs(tangent).max()])
    with one_thread():
        found = solve_ivp(
            lambda _t, state: _tangent_velocity(objective, state),
            (0.0, end),
            start,
            "DOP853",
            t_eval=[end],
            rtol=rtol,
            atol=rtol * 1e-3,
        )
    if not found.success:
        raise GradlineError(f"linearized flow of the matrix model: {found.message}; take a shorter time")
    directions = net.directions()
    output, query_key = _matrix_tangents(objective, found.y[:, -1])
    return SidewaysGrowth(line_part(output, directions.E_OV)[1], line_part(query_key, directions.E_QK)[1])
