"""The curve of a flow without integration: ``mu_QK`` as a function of ``mu_OV``, its inverse in the margin, its pace.

    Y(mu_QK) - Y(q_0) = pull (X(mu_OV) - X(v_0)),    Y(q) = int dq/((1 - alpha) f_QK(q)),    X(v) = int v dv/f_OV(v),

``f = 1``, ``2 sigma |mu|`` or ``sqrt(c^2 + 4 sigma^2 mu^2)`` and ``pull = kappa gamma``. A coordinate ``z`` with ``dz
= rate dmu/f`` increases with ``mu``; in it ``rate Y`` is the integral of ``1 + w``, ``w = (m/n) e^(gamma q) =
alpha/(1 - alpha)``, hence increasing and convex: each inverse is one root between bounds. With collapsed query-key it
is a Wright omega function.

Source: arXiv 2608.06776, conserved quantities; section 6 of the theory.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expi, wrightomega

from numerics.quadrature import gauss, integrate
from numerics.roots import increasing_root

__all__ = ["Circuit", "Curve", "exponential_growth"]

Array = NDArray[np.float64]
_LARGEST = 700.0
#: Below this argument the Wright omega function is the exponential, to rounding.
_FAR = 40.0


def _pick(value: Any, index: Any) -> Any:
    """The entries of what differs between curves."""
    return value[index] if isinstance(value, np.ndarray) else value


@dataclass(frozen=True)
class Circuit:
    """The rate factor ``f`` of a circuit and its coordinate ``z``: ``mu``, ``sign log|mu|`` or ``asinh(mu/width)``.

    ``kind``: collapsed, balanced or imbalanced; ``sigma``, ``width = |c|/(2 sigma)``, ``sign``: numbers, or arrays
    over curves.
    """

    kind: str
    sigma: Any = 0.5
    width: Any = 1.0
    sign: Any = 1.0

    @property
    def rate(self) -> Any:
        """``f dz/dmu``: 1 or ``2 sigma``."""
        return 1.0 if self.kind == "collapsed" else 2 * self.sigma

    def z(self, mu: Any) -> Any:
        """The coordinate of a value."""
        if self.kind == "collapsed":
            return mu
        return self.sign * np.log(np.abs(mu)) if self.kind == "balanced" else np.arcsinh(mu / self.width)

    def mu(self, z: Any) -> Any:
        """The value at a coordinate."""
        if self.kind == "collapsed":
            return z
        return self.sign * np.exp(self.sign * z) if self.kind == "balanced" else self.width * np.sinh(z)

    def moved(self, mu: Any, d: Any) -> Any:
        """The value a distance ``d`` further in the coordinate, without loss for small ``d``."""
        if self.kind == "collapsed":
            return mu + d
        if self.kind == "balanced":
            return mu * np.exp(self.sign * d)
        return mu + 2 * np.sinh(d / 2) * (np.hypot(self.width, mu) * np.cosh(d / 2) + mu * np.sinh(d / 2))

    def speed(self, mu: Any) -> Any:
        """``dmu/dz``."""
        if self.kind == "collapsed":
            return 1.0
        return np.abs(mu) if self.kind == "balanced" else np.hypot(self.width, mu)

    def output_rise(self, v: Any, v_0: Any) -> Any:
        """``X(v) - X(v_0)``."""
        if self.kind == "collapsed":
            return (v - v_0) * (v + v_0) / 2
        if self.kind == "balanced":
            return (np.abs(v) - np.abs(v_0)) / (2 * self.sigma)
        roots = np.hypot(self.width, v) + np.hypot(self.width, v_0)
        return (v - v_0) * ((v + v_0) / roots) / (2 * self.sigma)

    def pick(self, index: Any) -> Circuit:
        """The circuits of some curves; ``index`` may be a tuple, as for arrays."""
        return replace(self, **{n: _pick(getattr(self, n), index) for n in ("sigma", "width", "sign")})


def exponential_growth(p: Any) -> Any:
    """``int_0^p (e^s - 1)/s ds``, which is ``Ei(p) - log|p| - gamma``, to full relative precision.

    >>> float(exponential_growth(1e-9)), round(float(exponential_growth(2.0)), 12)
    (1.00000000025e-09, 3.68387151054)
    """
    p = np.asarray(p, dtype=np.float64)
    small = np.clip(p, -1.0, 1.0)
    series = np.zeros_like(small)
    for k in range(18, 0, -1):
        # s_k = p (1/k + (s_(k+1)) ...) with the factorials taken out
        series = small / k * (1.0 / k + series)
    far = np.where(np.abs(p) > 1.0, p, 2.0)
    return np.where(np.abs(p) > 1.0, expi(far) - np.log(np.abs(far)) - np.euler_gamma, series)


@dataclass(frozen=True)
class Curve:
    """Curves from starts ``(v_0, q_0)``; fields are numbers, or arrays over curves. ``log_weight = log(m/n)``."""

    output: Circuit
    query: Circuit
    classes: Any
    block: Any
    log_weight: Any
    scale: Any
    pull: Any
    rate: Any
    v_0: Any
    q_0: Any

    def pick(self, index: Any) -> Curve:
        """The curves with some numbers; ``index`` may be a tuple, as for arrays."""
        chosen = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(
            self,
            **{
                name: value.pick(index) if isinstance(value, Circuit) else _pick(value, index)
                for name, value in chosen.items()
            },
        )

    @cached_property
    def _begun(self) -> tuple[Any, Any, Any]:
        """``log w`` at the start, ``w`` there without overflow, and their sum."""
        first = self.log_odds(self.q_0)
        weight = np.exp(np.minimum(first, _LARGEST))
        return first, weight, weight + first

    def log_odds(self, q: Any) -> Any:
        """``log w``, where ``alpha = w/(1 + w)``."""
        return self.scale * q + self.log_weight

    def height(self, v: Any) -> Any:
        """``rate (Y(q) - Y(q_0))`` on the curve at a value of ``mu_OV``."""
        return self.query.rate * self.pull * self.output.output_rise(v, self.v_0)

    def rise(self, d: Any) -> Any:
        """``rate (Y(q) - Y(q_0))`` where ``q`` lies ``d`` from ``q_0`` in its coordinate."""
        if self.query.kind == "collapsed":
            first, weight, _ = self._begun
            return d + _growth(first, weight, self.scale * d) / self.scale
        if self.query.kind == "balanced":
            return d + np.exp(self.log_weight) * self._balanced_growth(d)
        return d + self._imbalanced_growth(d)

    def _balanced_growth(self, d: Any) -> Any:
        """``int_0^d e^(gamma q) dx``, by a Gauss rule where the closed form would cancel."""
        first = self.scale * self.q_0
        last = self.query.moved(first, d)
        found = d + self.query.sign * (exponential_growth(last) - exponential_growth(first))
        near = (np.abs(last - first) < 2.0) & (np.abs(d) < 0.5)
        if not np.any(near):
            return found
        first, sign, step = (np.broadcast_to(x, near.shape)[near] for x in (first, self.query.sign, d))
        nodes, weights = gauss(16)
        inner = step[:, None] * (0.5 * (1 + nodes))
        found[near] = 0.5 * step * (np.exp(first[:, None] * np.exp(sign[:, None] * inner)) @ weights)
        return found

    def _imbalanced_growth(self, d: Any) -> Any:
        shape = np.shape(d)
        flat = np.ravel(d)
        one = self._flat(shape)
        reachable = one.log_odds(one.query.moved(one.q_0, flat)) < _LARGEST
        found = np.where(reachable, 0.0, np.inf)
        keep = np.flatnonzero(reachable)

        def density(x: Array, index: NDArray[np.intp]) -> Array:
            part = one.pick((keep[index], None))
            return np.asarray(np.exp(part.log_odds(part.query.moved(part.q_0, x))))

        found[keep] = integrate(density, np.zeros(keep.size), flat[keep], 1e-13)[0]
        return found.reshape(shape)

    def _flat(self, shape: tuple[int, ...]) -> Curve:
        """Curves for arrays of a shape, one for each entry."""

        def spread(value: Any) -> Any:
            return np.broadcast_to(value, shape).ravel()

        def circuit(c: Circuit) -> Circuit:
            return Circuit(c.kind, spread(c.sigma), spread(c.width), spread(c.sign))

        rest = {f.name: spread(getattr(self, f.name)) for f in fields(self) if f.name not in ("output", "query")}
        return Curve(circuit(self.output), circuit(self.query), **rest)

    def log_odds_at(self, v: Any, guess: Any = None) -> tuple[Any, Any]:
        """``log w`` on the curve at values of ``mu_OV``, and the distance ``d`` of ``mu_QK`` from its start."""
        height = self.height(v)
        if self.query.kind != "collapsed":
            d = self._inverse(height, guess)
            return self.log_odds(self.query.moved(self.q_0, d)), d
        first, _, level = self._begun
        argument = self.scale * height + level
        found = np.log(wrightomega(argument))
        if np.min(argument, initial=0.0) < -_LARGEST:
            found = np.where(argument < -_FAR, argument, found)
        return found, (found - first) / self.scale

    def polished(self, v: Any, d: Any) -> Any:
        """``d``, to full relative precision, by Newton's rule on the first integral."""
        if self.query.kind != "collapsed":
            return d
        step = (self.rise(d) - self.height(v)) / (1 + np.exp(self.log_odds(self.q_0 + d)))
        return np.where(np.isfinite(step), d - step, d)

    def _inverse(self, height: Any, guess: Any) -> Any:
        """``d`` where ``rise(d)`` is the height: convex, so ``height`` over the first slope bounds it on one side."""
        high = height / (1 + self._begun[1])
        low = np.where(height < 0, height, 0.0)

        def newton(d: Any) -> tuple[Any, Any]:
            level = self.rise(d)
            slope = 1 + np.exp(np.minimum(self.log_odds(self.query.moved(self.q_0, d)), _LARGEST))
            excess = level - height
            share = np.where(height > 0, excess / height, 0.0)
            curved = np.where(share > 0, np.log1p(share) * level, excess)
            return excess, curved / slope

        return increasing_root(newton, low, high, np.where(height < 0, low, high) if guess is None else guess)

    def log_attention(self, log_w: Any) -> Any:
        """``log alpha``."""
        return -np.logaddexp(0.0, -log_w)


def _growth(log_w: Any, w: Any, x: Any) -> Any:
    """``w (e^x - 1)`` without overflow of ``e^x`` alone."""
    return np.where(np.abs(x) < 1.0, w * np.expm1(np.clip(x, -1.0, 1.0)), np.exp(log_w + x) - w)
