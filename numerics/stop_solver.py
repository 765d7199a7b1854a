"""Where curves meet a margin, and how long that takes: one increasing equation, one quadrature.

    alpha(q(v)) v = ell,    t = int b (e^(alpha v) + M - 1)/(eta_OV alpha f_OV(v)) dv

The margin increases along every flow, so in ``u = log|v|`` the equation ``log alpha + u = log|ell|`` has slope at
least 1 on both sides of 0. Its root lies above ``log|ell|``, and below ``log|ell| - log alpha`` at the least
attention on the way, or ``log|v_0|`` where ``ell < 0``. Time is smooth across 0 in the coordinate of the output.

Source: section 7 of the theory; claims `stopping-state`, `time-on-curve`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from numerics.ascent import INVERSE_ERROR
from numerics.curve import Curve
from numerics.quadrature import integrate
from numerics.roots import increasing_root

__all__ = ["elapsed", "margin_at", "states_at"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
_EPS = float(np.finfo(np.float64).eps)
#: Bound of half the relative curvature of the equation, where a step of 1e-6 is the last.
_CURVATURE = 1e3


def margin_at(loss: Any, classes: Any) -> Any:
    """``log((M-1)/(e^L - 1))``, the margin ``alpha mu_OV`` at a loss.

    >>> float(margin_at(1e-300, 2))
    690.7755278982137
    """
    return np.log(classes - 1) - loss - np.log(-np.expm1(-loss))


def _slopes(curve: Curve, v: Any, q: Any, log_w: Any) -> tuple[Any, Any, Any]:
    """``1 - alpha``, and ``v d/dmu_OV`` of the coordinate ``z`` of ``mu_QK`` on the curve and of ``log alpha``.

    The former is ``rate pull (1 - alpha) v^2/f_OV``, the latter ``gamma (1 - alpha) dmu_QK/dz`` times it.
    """
    outside = 1 / (1 + np.exp(log_w))
    strength = curve.query.rate * curve.pull / curve.output.rate
    moves = strength * v * (v / curve.output.speed(v)) * outside
    return outside, moves, curve.scale * curve.query.speed(q) * moves * outside


def _bounds(curve: Curve, margin: Array, size: Array) -> tuple[Array, Array]:
    """Where ``log|v|`` lies."""
    begun, behind = np.log(np.abs(curve.v_0)), np.asarray(curve.v_0) < 0
    least = curve.log_odds(curve.q_0)
    low = np.where(behind, size, np.maximum(size, begun))
    if behind.any():
        least = np.where(behind, curve.log_odds_at(np.zeros(margin.shape))[0], least)
    high = np.where(margin < 0, begun, size - curve.log_attention(least))
    return low, np.maximum(low, high)


def states_at(curve: Curve, margin: Array) -> tuple[Array, Array, Array]:
    """Solve for the states at margins above those of the starts.

    Parameters: ``curve``, whose fields are numbers or arrays (n,); ``margin``, (n,). Returns: ``mu_OV``, ``mu_QK``
    and the estimated error of both, relative to ``1 + |mu|``.
    """
    turning = margin == 0
    size = np.log(np.where(turning, 1.0, np.abs(margin)))
    side = np.where(margin < 0, -1.0, 1.0)
    low, high = _bounds(curve, np.where(turning, 1.0, margin), size)
    guess: list[Any] = [None]

    def excess(u: Array) -> tuple[Array, Array]:
        v = side * np.exp(u)
        log_w, guess[0] = curve.log_odds_at(v, guess[0])
        value = curve.log_attention(log_w) + (u - size)
        return value, value / (1 + _slopes(curve, v, curve.ascent.value(guess[0]), log_w)[2])

    u = increasing_root(excess, low, high, 0.5 * (low + high), floor=1.0, last_step=1e-6)
    v = np.where(turning, 0.0, side * np.exp(u))
    log_w, d = curve.log_odds_at(v, guess[0])
    outside, moves, slope = _slopes(curve, v, curve.ascent.value(d), log_w)
    # one more step of Newton's rule, with what is at hand
    step = np.where(turning, 0.0, curve.log_attention(log_w) + (u - size)) / (1 + slope)
    v = v * (1 - step)
    d = curve.ascent.polished(curve.height(v), d - moves * step)
    q = curve.ascent.value(d)
    return v, q, _state_error(curve, v, q, step, outside, moves, slope)


def _state_error(curve: Curve, v: Array, q: Array, step: Array, outside: Array, moves: Array, slope: Array) -> Array:
    """What is left after the last step, a multiple of its square, and what the rounding of both equations does."""
    height = np.abs(curve.height(v)) * INVERSE_ERROR[curve.query.kind]
    speed = curve.query.speed(q)
    query = height * speed * outside + 4 * _EPS * (np.abs(q) + np.abs(curve.q_0))
    relative = (curve.scale * outside * query + 4 * _EPS) / (1 + slope) + _CURVATURE * step**2
    return np.maximum(relative * np.abs(v) / (1 + np.abs(v)), (query + speed * moves * relative) / (1 + np.abs(q)))


def elapsed(curve: Curve, index: Index, v: Array) -> tuple[Array, Array, Array]:
    """Integrate the time from the starts to values of ``mu_OV``.

    Parameters: ``curve``, whose fields are numbers or arrays over curves; ``index`` (n,), the curve of each value;
    ``v`` (n,), at or after the start. Values on one curve share their quadratures. Returns: times, their error
    estimates, and the relative change of the time with the relative change of ``1 + |v|``.
    """
    z, start = curve.output.z(v), curve.output.z(curve.v_0)
    order = np.lexsort((z, index))
    curves, last = index[order], z[order]
    first = np.empty(last.shape)
    first[1:] = last[:-1]
    begins = np.ones(last.shape, dtype=bool)
    begins[1:] = curves[1:] != curves[:-1]
    first[begins] = start[curves[begins]] if isinstance(start, np.ndarray) else start

    def pace(x: Array, panel: Index) -> Array:
        part = curve.pick((curves[panel], None))
        value = part.output.mu(x)
        log_alpha = part.log_attention(part.log_odds_at(value)[0])
        margin = np.exp(log_alpha) * value
        return np.asarray(np.exp(margin - log_alpha) + (part.classes - 1) * np.exp(-log_alpha))

    pieces, gaps = integrate(pace, first, last)
    sums = np.empty((2, v.size))
    heads = np.flatnonzero(begins)
    for low, high in zip(heads, [*heads[1:], v.size], strict=True):
        np.cumsum(pieces[low:high], out=sums[0, low:high])
        np.cumsum(gaps[low:high], out=sums[1, low:high])
    at = curve.pick(curves)
    unit = at.block / (at.rate * at.output.rate)
    ends = pace(last[:, None], np.arange(v.size))[:, 0] / at.output.speed(v[order])
    t, error = sums * unit
    late = ends * unit * (1 + np.abs(v[order])) / np.maximum(t, np.finfo(np.float64).tiny)
    found = np.empty((3, v.size))
    found[:, order] = t, error, late
    return found[0], found[1], found[2]
