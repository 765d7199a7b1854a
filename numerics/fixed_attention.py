"""Output-value while the attention is held fixed, in closed form.

    H(mu_OV) - H(mu_0) = eta_OV alpha rate t/(b (M-1)),    H = int (1 + e^(alpha mu)/(M-1)) dz,    dz = rate dmu/f_OV

Collapsed output by the Wright omega function (the log-argument form of Lambert's ``W_0``, which never overflows),
balanced output by the root of a relation of exponential integrals, imbalanced output by a quadrature and its root.

Source: arXiv 2608.06776, fixed attention; claims `fixed-attention-collapsed`, `fixed-attention-factorized`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numerics.ascent import INVERSE_ERROR, Ascent
from numerics.conditions import as_flow
from numerics.curve_inputs import circuit_of, constants_of, read_given
from numerics.sizes import finite_number
from theory.flow import ReducedFlow
from theory.model import AttentionModel

__all__ = ["FixedAttentionState", "fixed_attention"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class FixedAttentionState:
    """Output-value at times ``t``: ``mu_OV``, ``loss`` and ``error_estimate`` of ``mu_OV``, relative to ``1 +
    |mu_OV|``; arrays of one shape.
    """

    t: Array
    mu_OV: Array
    loss: Array
    error_estimate: Array


def _numbers(name: str, given: ArrayLike, low: float, high: float, open_low: bool, wanted: str) -> Array:
    array = np.asarray(given)
    if array.dtype.kind not in "fiu":
        finite_number(name, given if np.ndim(given) == 0 else array.ravel()[0])
        raise TypeError(f"{name}: expected {wanted}, got an array of {array.dtype}")
    array = array.astype(np.float64)
    good = np.isfinite(array) & (array <= high) & ((array > low) if open_low else (array >= low))
    if not good.all():
        raise ValueError(f"{name}={float(array[~good].flat[0])!r}: expected {wanted}")
    return array


def _completed(given: Any, name: str) -> Any:
    """What was given, with a value for what plays no part."""
    if given is not None and not isinstance(given, Mapping):
        return given
    here = dict(given or {})
    return here if any(str(key) == name for key in here) else {**here, name: 1.0}


def fixed_attention(
    flow: ReducedFlow | AttentionModel,
    parameters: Mapping[Any, Any],
    start: Mapping[Any, Any] | None = None,
    *,
    attention: ArrayLike,
    t: ArrayLike,
) -> FixedAttentionState:
    """Return ``mu_OV`` at given times while the attention is held fixed, without integrating.

        collapsed: alpha mu = A/(M-1) - W_0(e^(A/(M-1))/(M-1)),
                   A = alpha^2 eta_OV t/b + e^(alpha mu_0) + (M-1) alpha mu_0
        balanced:  Ei(alpha mu) + (M-1) log|mu| - sign(mu_0) 2 alpha eta_OV t/sqrt(b) constant

    Parameters: ``flow``, a `ReducedFlow` or an `AttentionModel`, of which output-value counts; ``parameters``, those
    of the flow (``eta_QK``, which plays no part, may be left out); ``start``, ``mu_OV``, 0 by default, required and
    nonzero where output-value is balanced; ``attention``, above 0 and at most 1; ``t``, times of at least 0. Arrays
    are broadcast together.

    Returns: a `FixedAttentionState`. Raises: ``ValueError`` or ``TypeError`` for wrong input.

    Source: arXiv 2608.06776, fixed attention; claims `fixed-attention-collapsed`, `fixed-attention-factorized`.

    >>> from theory import AttentionModel, TokenTask
    >>> model = AttentionModel(TokenTask(classes=4, block=10, queries=1, noise=10, informative_slots=1, noise_slots=1))
    >>> found = fixed_attention(model, {"eta_OV": 0.01}, attention=[0.2, 1.0], t=125_000)
    >>> found.loss.round(4).tolist()
    [0.7184, 0.0265]
    """
    flow = as_flow(flow)
    share = _numbers("attention", attention, 0.0, 1.0, True, "a number above 0 and at most 1")
    times = _numbers("t", t, 0.0, np.inf, False, "a finite time of at least 0")
    known, begin = read_given(flow, _completed(parameters, "eta_QK"), _completed(start, "mu_QK"))
    shape = np.broadcast_shapes(share.shape, times.shape, *(np.shape(x) for x in (*known.values(), *begin.values())))
    constants = constants_of(flow, known)
    share, times, first = (np.broadcast_to(x, shape).astype(np.float64) for x in (share, times, begin["mu_OV"]))
    circuit = circuit_of(flow, "OV", {**constants, "mu_OV": first})
    others = constants["classes"] - 1
    with np.errstate(all="ignore"):
        height = times * known["eta_OV"] * share * circuit.rate / (constants["block"] * others)
        ascent = Ascent(circuit, np.broadcast_to(-np.log(others), shape), share, first)
        moving = height > 0
        log_w, d = ascent.inverse(np.where(moving, height, 1.0))
        d = np.where(moving, ascent.polished(height, d), 0.0)
        v = ascent.value(d)
        outside = 1 / (1 + np.exp(np.where(moving, log_w, ascent.log_odds(first))))
        error = height * INVERSE_ERROR[circuit.kind] * circuit.speed(v) * outside
        error = error + 4 * _EPS * (np.abs(v) + np.abs(first))
        loss = np.logaddexp(0.0, -ascent.log_odds(v))
    return FixedAttentionState(times, v, loss, error / (1 + np.abs(v)))
