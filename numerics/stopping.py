"""States at a given loss without integration: the loss fixes the margin ``alpha mu_OV``, the first integral the rest.

    alpha mu_OV = ell = log((M-1)/(e^L - 1)),    y(mu_QK) - slope x(mu_OV) constant

`numerics.curve` has the first integral and its inverse, `numerics.stop_solver` the equation and the quadrature of the
time.

Source: arXiv 2608.06776, stopping loss; section 7 of the theory; claims `stopping-state`, `time-on-curve`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numerics.conditions import as_flow
from numerics.curve import Curve
from numerics.curve_inputs import Given, curve_of, read_given
from numerics.sizes import finite_number
from numerics.stop_solver import elapsed, margin_at, states_at
from theory.flow import ReducedFlow
from theory.model import AttentionModel

__all__ = ["StoppingState", "stopping_state"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StoppingState:
    """The states at which a loss is reached, arrays of one shape; times only if asked for.

    ``loss``, ``mu_OV``, ``mu_QK``, ``attention``; ``error_estimate`` of both coordinates, relative to ``1 + |mu|``:
    what the last step of the root leaves and the rounding that reaches it; ``t``, the time it takes, and
    ``t_error_estimate``, relative to ``t``: the difference of two quadrature rules, and what the error of the state
    does to the time.
    """

    loss: Array
    mu_OV: Array
    mu_QK: Array
    attention: Array
    error_estimate: Array
    t: Array | None = None
    t_error_estimate: Array | None = None


def _losses(loss: ArrayLike) -> Array:
    if np.ndim(loss) == 0:
        return np.asarray(finite_number("loss", loss, positive=True))
    array = np.asarray(loss)
    if not (array.dtype.kind in "fiu" and np.isfinite(array).all() and (array > 0).all()):
        return np.reshape([finite_number("loss", x, positive=True) for x in array.ravel()], array.shape)
    return array.astype(np.float64)


def _check_reached(curve: Curve, loss: Array) -> None:
    """Refuse losses that are not below that of the start, or that a balanced output of negative sign never reaches."""
    with np.errstate(over="ignore"):
        log_alpha = curve.log_attention(curve.log_odds(curve.q_0))
        first = np.logaddexp(0.0, np.log(curve.classes - 1) - np.exp(log_alpha) * curve.v_0)
    late = loss >= first
    if late.any():
        at = int(np.argmax(late))
        start = float(np.broadcast_to(first, loss.shape)[at])
        raise ValueError(f"loss={float(loss[at])!r}: expected a loss below that of the start, {start!r}")
    stuck = (np.asarray(curve.v_0) < 0) & (loss <= np.log(curve.classes)) & (curve.output.kind == "balanced")
    if stuck.any():
        at = int(np.argmax(stuck))
        least = math.log(float(np.broadcast_to(curve.classes, loss.shape)[at]))
        raise ValueError(
            f"loss={float(loss[at])!r}: never reached, mu_OV < 0 keeps its sign in a balanced circuit and the loss "
            f"stays above log(M) = {least!r}"
        )


def stopping_state(
    flow: ReducedFlow | AttentionModel,
    parameters: Given,
    start: Given | None = None,
    *,
    loss: ArrayLike,
    time: bool = False,
) -> StoppingState:
    """Return where a flow is when its loss has fallen to given values, without integrating it.

        alpha mu_OV = log((M-1)/(e^L - 1)),    y(mu_QK) - slope x(mu_OV) constant

    Parameters: ``flow``, a `ReducedFlow` or an `AttentionModel`; ``parameters`` and ``start`` as for
    `numerics.simulate`; ``loss``, one or several values above 0 and below that of the start; ``time``, whether
    to compute the time it takes, by quadrature. Arrays are broadcast together, losses included; losses on an axis
    of their own share the quadratures of their curve.

    Returns: a `StoppingState` of arrays; ``t`` is None unless asked for.

    Raises: ``ValueError`` or ``TypeError`` for wrong input and for a loss that is never reached; `GradlineError` where
    double precision has no bracket.

    Source: arXiv 2608.06776, stopping loss; claims `stopping-state`, `time-on-curve`.

    >>> from theory import AttentionModel, TokenTask
    >>> task = TokenTask(classes=20, block=50, queries=50, noise=float("inf"), informative_slots=5, noise_slots=50)
    >>> found = stopping_state(AttentionModel(task), {"eta_OV": 1, "eta_QK": [0.1, 1, 10]}, loss=1e-4)
    >>> found.attention.round(3).tolist()
    [0.287, 0.591, 0.922]
    """
    flow = as_flow(flow)
    known, begin = read_given(flow, parameters, start)
    losses = _losses(loss)
    try:
        own = np.broadcast_shapes(*(np.shape(value) for value in (*known.values(), *begin.values())))
        shape = np.broadcast_shapes(own, losses.shape)
    except ValueError:
        raise ValueError(
            f"loss of shape {losses.shape} does not broadcast with the arrays among parameters and start"
        ) from None
    curves = curve_of(flow, known, begin, own)
    index = np.broadcast_to(np.arange(math.prod(own)).reshape(own), shape).ravel()
    wanted = np.broadcast_to(losses, shape).ravel()
    each = curves.pick(index)
    _check_reached(each, wanted)
    with np.errstate(all="ignore"):
        v, q, error = states_at(each, margin_at(wanted, each.classes))
        attention = np.exp(each.log_attention(each.log_odds(q)))
        t = late = None
        if time:
            t, gap, sensitivity = elapsed(curves, index, v)
            late = (gap / t + sensitivity * error).reshape(shape)
            t = t.reshape(shape)
    states = [x.reshape(shape) for x in (wanted.copy(), v, q, attention, error)]
    return StoppingState(states[0], states[1], states[2], states[3], states[4], t, late)
