"""The rate factors of circuits and the coordinates in which they are even.

    f = 1,  2 sigma |mu|,  sqrt(c^2 + 4 sigma^2 mu^2),    dz = rate dmu/f

Source: section 5 of the theory; claims `rescaling-balanced`, `rescaling-imbalanced`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expi

__all__ = ["Circuit", "exponential_growth", "pick"]

#: Above this the exponential integral overflows, or is about to.
_LARGEST = 715.0


def pick(value: Any, index: Any) -> Any:
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
        d = np.clip(d, -2 * _LARGEST, 2 * _LARGEST)
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
        return replace(self, **{n: pick(getattr(self, n), index) for n in ("sigma", "width", "sign")})


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
    far = np.where((np.abs(p) > 1.0) & (p < _LARGEST), p, 2.0)
    large = np.where(p < _LARGEST, expi(far) - np.log(np.abs(far)) - np.euler_gamma, np.inf)
    return np.where(np.abs(p) > 1.0, large, series)
