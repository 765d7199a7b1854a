"""How far a circuit has moved: the increasing, convex integral that first integrals and fixed attention share.

    H = int (1 + w) dz,    w = e^(log_weight + scale mu),    from mu = start, dz = rate dmu/f

For attention ``w = (m/n) e^(gamma mu_QK) = alpha/(1 - alpha)`` and ``H`` is ``rate Y``; for output-value at fixed
attention ``w = e^(alpha mu_OV)/(M-1)`` and ``H`` is proportional to time. Each inverse is one root between bounds;
for a collapsed circuit it is a Wright omega function.

Source: sections 6 and 7 of the theory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import wrightomega

from numerics.circuits import Circuit, exponential_growth, pick
from numerics.quadrature import gauss, integrate
from numerics.roots import increasing_root

__all__ = ["INVERSE_ERROR", "Ascent"]

Array = NDArray[np.float64]
_LARGEST = 700.0
#: Below this argument the Wright omega function is the exponential, to rounding.
_FAR = 40.0
_EPS = float(np.finfo(np.float64).eps)
#: Relative error of an inverse: rounding, rounding of a difference of exponential integrals, a quadrature.
INVERSE_ERROR = {"collapsed": 4 * _EPS, "balanced": 32 * _EPS, "imbalanced": 1e-13}


@dataclass(frozen=True)
class Ascent:
    """The integral from starts; ``log_weight``, ``scale`` and ``start`` are numbers, or arrays of one shape."""

    circuit: Circuit
    log_weight: Any
    scale: Any
    start: Any

    def pick(self, index: Any) -> Ascent:
        """Some of them; ``index`` may be a tuple, as for arrays."""
        return Ascent(
            self.circuit.pick(index), pick(self.log_weight, index), pick(self.scale, index), pick(self.start, index)
        )

    @cached_property
    def _begun(self) -> tuple[Any, Any, Any]:
        """``log w`` at the start, ``w`` there without overflow, and their sum."""
        first = self.log_odds(self.start)
        weight = np.exp(np.minimum(first, _LARGEST))
        return first, weight, weight + first

    def log_odds(self, mu: Any) -> Any:
        """``log w``."""
        return self.scale * mu + self.log_weight

    def value(self, d: Any) -> Any:
        """The coordinate, ``d`` from the start in ``z``."""
        return self.circuit.moved(self.start, d)

    def height(self, d: Any) -> Any:
        """``H``, ``d`` from the start in ``z``."""
        if self.circuit.kind == "collapsed":
            first, weight, _ = self._begun
            return d + _growth(first, weight, self.scale * d) / self.scale
        if self.circuit.kind == "balanced":
            return d + np.exp(self.log_weight) * self._balanced_growth(d)
        return d + self._imbalanced_growth(d)

    def _balanced_growth(self, d: Any) -> Any:
        """``int_0^d e^(scale mu) dx``, by a Gauss rule where the closed form would cancel."""
        first = self.scale * self.start
        last = self.circuit.moved(first, d)
        found = d + self.circuit.sign * (exponential_growth(last) - exponential_growth(first))
        near = (np.abs(last - first) < 2.0) & (np.abs(d) < 0.5)
        if not np.any(near):
            return found
        first, sign, step = (np.broadcast_to(x, near.shape)[near] for x in (first, self.circuit.sign, d))
        nodes, weights = gauss(16)
        inner = step[:, None] * (0.5 * (1 + nodes))
        found[near] = 0.5 * step * (np.exp(first[:, None] * np.exp(sign[:, None] * inner)) @ weights)
        return found

    def _imbalanced_growth(self, d: Any) -> Any:
        """``int_0^d w dx``, by adaptive quadrature."""
        flat = np.ravel(d)
        one = self._flat(np.shape(d))
        reachable = one.log_odds(one.value(flat)) < _LARGEST
        found = np.where(reachable, 0.0, np.inf)
        keep = np.flatnonzero(reachable)

        def density(x: Array, index: NDArray[np.intp]) -> Array:
            part = one.pick((keep[index], None))
            return np.asarray(np.exp(part.log_odds(part.value(x))))

        found[keep] = integrate(density, np.zeros(keep.size), flat[keep], 1e-13)[0]
        return found.reshape(np.shape(d))

    def _flat(self, shape: tuple[int, ...]) -> Ascent:
        """One for each entry of arrays of a shape."""

        def spread(value: Any) -> Any:
            return np.broadcast_to(value, shape).ravel()

        c = self.circuit
        flat = Circuit(c.kind, spread(c.sigma), spread(c.width), spread(c.sign))
        return Ascent(flat, spread(self.log_weight), spread(self.scale), spread(self.start))

    def inverse(self, height: Any, guess: Any = None) -> tuple[Any, Any]:
        """``log w`` and ``d`` where ``H`` is the height; ``guess`` of ``d`` where there is no closed form.

        Convex, so the height over the first slope bounds ``d`` on one side; the slope is at least 1 on the other.
        """
        if self.circuit.kind == "collapsed":
            first, _, level = self._begun
            argument = self.scale * height + level
            found = np.log(wrightomega(argument))
            if np.min(argument, initial=0.0) < -_LARGEST:
                found = np.where(argument < -_FAR, argument, found)
            return found, (found - first) / self.scale
        high = height / (1 + self._begun[1])
        low = np.where(height < 0, height, 0.0)

        def newton(d: Any) -> tuple[Any, Any]:
            level = self.height(d)
            slope = 1 + np.exp(np.minimum(self.log_odds(self.value(d)), _LARGEST))
            excess = level - height
            share = np.where(height > 0, excess / height, 0.0)
            # above the root Newton's rule for the logarithm, which an exponential doesn't slow down
            return excess, np.where(share > 0, np.log1p(share) * level, excess) / slope

        d = increasing_root(newton, low, high, np.where(height < 0, low, high) if guess is None else guess)
        return self.log_odds(self.value(d)), d

    def polished(self, height: Any, d: Any) -> Any:
        """``d`` of a closed form to full relative precision, by a step of Newton's rule."""
        if self.circuit.kind != "collapsed":
            return d
        step = (self.height(d) - height) / (1 + np.exp(self.log_odds(self.start + d)))
        return np.where(np.isfinite(step), d - step, d)


def _growth(log_w: Any, w: Any, x: Any) -> Any:
    """``w (e^x - 1)`` without overflow of ``e^x`` alone."""
    return np.where(np.abs(x) < 1.0, w * np.expm1(np.clip(x, -1.0, 1.0)), np.exp(log_w + x) - w)
