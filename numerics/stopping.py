"""States at a given loss without integration: the loss fixes the margin ``alpha mu_OV``, the first integral the rest.

    alpha mu_OV = ell = log((M-1)/(e^L - 1)),    Y(mu_QK) - Y(q_0) = kappa gamma (X(mu_OV) - X(v_0)),
    Y(q) = int dq/((1 - alpha) f_QK(q)),    X(v) = int v dv/f_OV(v),    f = 1, 2 sigma |mu|, sqrt(c^2 + 4 sigma^2 mu^2)

The margin increases along every flow, so the loss is reached once. With ``mu_OV >= 0`` ``mu_QK`` increases and
the root is the only one above the start. With ``mu_OV < 0`` ``mu_QK`` falls until ``mu_OV = 0``: a loss above
``log M`` is met on that piece of the curve, where the root is the only one, a loss below it after the turning
point.

Source: arXiv 2608.06776, stopping loss; section 7 of the theory; claims `stopping-state`, `time-on-curve`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expi

from numerics.conditions import as_flow, read_parameters, read_start
from numerics.sizes import finite_number
from theory.errors import GradlineError
from theory.flow import ReducedFlow
from theory.model import AttentionModel
from theory.orbits import Circuit

__all__ = ["StoppingState", "stopping_state"]

Array = NDArray[np.float64]
#: Relative tolerance of the quadratures.
_EPS = 1e-13
_LARGEST = 700.0
#: ``Ei(x) - log|x|`` is Euler's constant to rounding for ``|x|`` below ``e^-40``.
_TINY = 80.0


@dataclass(frozen=True)
class StoppingState:
    """The states at which a loss is reached, arrays of one shape; ``t``, the time it takes, only if asked for."""

    loss: Array
    mu_OV: Array
    mu_QK: Array
    attention: Array
    t: Array | None = None


@dataclass(frozen=True)
class _Circuit:
    """The rate factor ``f`` of a circuit and the coordinate ``z``, ``dz = dmu/f`` up to a constant, that increases with
    ``mu``: ``mu``, ``sign log|mu|`` or ``asinh(mu/width)``.
    """

    kind: str
    sigma: float = 0.5
    width: float = 1.0
    sign: float = 1.0

    @property
    def rate(self) -> float:
        """``dz/dmu`` times ``f``: 1 or ``2 sigma``."""
        return 1.0 if self.kind == "collapsed" else 2 * self.sigma

    def z(self, mu: float) -> float:
        if self.kind == "collapsed":
            return mu
        return self.sign * math.log(abs(mu)) if self.kind == "balanced" else math.asinh(mu / self.width)

    def mu(self, z: float) -> float:
        if self.kind == "collapsed":
            return z
        if self.kind == "balanced":
            power = self.sign * z
            return self.sign * math.exp(power) if power < _LARGEST else self.sign * math.inf
        return self.width * math.sinh(z) if abs(z) < _LARGEST else math.copysign(math.inf, z)

    def output_rise(self, v: float, v_0: float) -> float:
        """``X(v) - X(v_0)``."""
        if self.kind == "collapsed":
            return (v - v_0) * (v + v_0) / 2
        if self.kind == "balanced":
            return (abs(v) - abs(v_0)) / (2 * self.sigma)
        roots = math.hypot(self.width, v) + math.hypot(self.width, v_0)
        return (v - v_0) * (v + v_0) / roots / (2 * self.sigma)


@dataclass(frozen=True)
class _Curve:
    """The curve of a flow with numbers from a start ``(v_0, q_0)``; ``weight = m/n``, ``pull = kappa gamma``."""

    output: _Circuit
    query: _Circuit
    classes: float
    block: float
    weight: float
    scale: float
    pull: float
    rate: float
    start: tuple[float, float]

    def attention(self, q: float) -> float:
        """``alpha`` at a value of ``mu_QK``."""
        return 1 / (1 + math.exp(-min(self.scale * q + math.log(self.weight), _LARGEST)))

    def output_at(self, q: float, margin: float) -> float:
        """``mu_OV`` at which ``alpha mu_OV`` is the margin."""
        return margin * (1 + math.exp(min(-self.scale * q - math.log(self.weight), _LARGEST)))

    def rise(self, q_0: float, z: float) -> float:
        """``Y(q) - Y(q_0)`` where ``q`` lies a distance ``z`` from ``q_0`` in its coordinate."""
        query, scale = self.query, self.scale
        if query.kind == "collapsed":
            power = scale * z + max(scale * q_0, -_LARGEST)
            grown = (
                math.exp(scale * q_0) * math.expm1(scale * z) if power < _LARGEST and scale * z < _LARGEST else math.inf
            )
            return self.weight / scale * grown + z
        first = query.z(q_0)
        if query.kind == "balanced" and abs(z) > 0.5:
            levels = self._exponential_integral(first + z), self._exponential_integral(first)
            return float(query.sign * self.weight * (levels[0] - levels[1]) + z) / query.rate

        def density(x: float) -> float:
            power = scale * query.mu(first + x)
            return 1 + self.weight * math.exp(power) if power < _LARGEST else math.inf

        if not math.isfinite(density(z)):
            return math.inf
        return float(quad(density, 0.0, z, epsabs=0.0, epsrel=_EPS, limit=200)[0]) / query.rate

    def _exponential_integral(self, z: float) -> float:
        """``Ei(gamma q)``; near 0 by its logarithm, where ``q`` itself would underflow."""
        power = self.query.sign * z
        if power < -_TINY:
            return float(np.euler_gamma) + math.log(self.scale) + power
        return float(expi(self.scale * self.query.mu(z)))

    def query_after(self, q_0: float, height: float) -> float:
        """``mu_QK`` where ``Y(q) - Y(q_0)`` is the height."""
        if height == 0:
            return q_0
        z = _root(lambda z: self.rise(q_0, z) - height, 1.0 if height > 0 else -1.0)
        return self.query.mu(self.query.z(q_0) + z)

    def query_at(self, v: float) -> float:
        """``mu_QK`` on the curve at a value of ``mu_OV``."""
        v_0, q_0 = self.start
        return self.query_after(q_0, self.pull * self.output.output_rise(v, v_0))

    def margin(self, loss: float) -> float:
        """``log((M-1)/(e^L - 1))``."""
        return math.log(self.classes - 1) - loss - math.log(-math.expm1(-loss))

    def stop(self, loss: float) -> tuple[float, float]:
        """``(mu_OV, mu_QK)`` at a loss below that of the start."""
        (v_0, q_0), margin = self.start, self.margin(loss)
        if v_0 < 0:
            turn = self.query_at(0.0)
            if margin < 0:
                return self._before_the_turn(margin, turn)
            if margin == 0:
                return 0.0, turn
            v_0, q_0 = 0.0, turn

        def excess(z: float) -> float:
            q = self.query.mu(self.query.z(q_0) + z)
            ahead = self.rise(q_0, z)
            return ahead - self.pull * self.output.output_rise(self.output_at(q, margin), v_0)

        q = self.query.mu(self.query.z(q_0) + _root(excess, 1.0))
        return self.output_at(q, margin), q

    def _before_the_turn(self, margin: float, turn: float) -> tuple[float, float]:
        """The root between the start, where ``mu_OV < 0``, and the turning point of ``mu_QK``."""
        v_0, q_0 = self.start

        def excess(z: float) -> float:
            q = self.query.mu(self.query.z(q_0) + z)
            return self.rise(q_0, z) - self.pull * self.output.output_rise(self.output_at(q, margin), v_0)

        # at the start mu_OV is still ahead of the curve (> 0), at the turning point, where the curve has 0, behind it
        end = self.query.z(turn) - self.query.z(q_0)
        z = end if excess(end) >= 0 else float(brentq(excess, end, 0.0, xtol=1e-300, rtol=_RTOL, maxiter=500))
        q = self.query.mu(self.query.z(q_0) + z)
        return self.output_at(q, margin), q

    def time(self, v: float) -> float:
        """Time from the start to a value of ``mu_OV``: the integral of ``b D/(eta_OV alpha f_OV)`` over ``mu_OV``."""
        first, last = self.output.z(self.start[0]), self.output.z(v)

        def pace(z: float) -> float:
            v = self.output.mu(z)
            share = self.attention(self.query_at(v))
            return (math.exp(share * v) + self.classes - 1) / share

        found, error = quad(pace, first, last, epsabs=0.0, epsrel=1e-11, limit=400)[:2]
        if not error <= 1e-8 * abs(found):
            raise GradlineError(
                f"time to mu_OV={v:.6g}: the quadrature is good to {error:.2g} of {found:.6g} only; use simulate"
            )
        return float(found) * self.block / (self.rate * self.output.rate)


_RTOL = 8.9e-16


def _root(function: Callable[[float], float], step: float) -> float:
    """The root of an increasing function that is not positive at 0 (``step > 0``), or not negative (``step < 0``)."""
    if function(0.0) * step >= 0:
        return 0.0
    near, far = 0.0, step * 1e-3
    for _ in range(2000):
        value = function(far)
        if value * step >= 0 and math.isfinite(value):
            return far if value == 0 else float(brentq(function, near, far, xtol=1e-300, rtol=_RTOL, maxiter=1000))
        if math.isfinite(value):
            near, far = far, 2 * far
        else:
            far = (near + far) / 2
    raise GradlineError("stopping state: no bracket in double precision; start closer to 0 or take a larger loss")


def _circuit(flow: ReducedFlow, circuit: Circuit, numbers: Mapping[Any, Any], start: float) -> _Circuit:
    if flow.model.form(circuit) == "collapsed":
        return _Circuit("collapsed")
    sigma = float(flow.definitions[f"sigma_{circuit}"].xreplace(numbers))
    if flow.model.is_balanced(circuit):
        return _Circuit("balanced", sigma, sign=math.copysign(1.0, start))
    imbalance = abs(float(sympy.sympify(flow.model.imbalance(circuit)).xreplace(numbers)))
    return _Circuit("imbalanced", sigma, imbalance / (2 * sigma))


def _curve(flow: ReducedFlow, parameters: Mapping[str, float], start: Mapping[str, float]) -> _Curve:
    numbers = {s: sympy.Float(parameters[s.name], 20) for s in flow.parameters}

    def number(value: Any) -> float:
        return float(value.xreplace(numbers))

    task = flow.task
    scale = number(task.score_scale)
    return _Curve(
        output=_circuit(flow, "OV", numbers, start["mu_OV"]),
        query=_circuit(flow, "QK", numbers, start["mu_QK"]),
        classes=number(task.classes),
        block=number(task.block),
        weight=number(task.informative_slots) / number(task.noise_slots),
        scale=scale,
        pull=number(flow.definitions["kappa"]) * scale,
        rate=parameters["eta_OV"],
        start=(start["mu_OV"], start["mu_QK"]),
    )


def _check_reached(curve: _Curve, loss: float) -> None:
    v_0, q_0 = curve.start
    first = np.logaddexp(0.0, math.log(curve.classes - 1) - curve.attention(q_0) * v_0)
    if loss >= first:
        raise ValueError(f"loss={loss!r}: expected a loss below that of the start, {float(first)!r}")
    if curve.output.kind == "balanced" and v_0 < 0 and loss <= math.log(curve.classes):
        raise ValueError(
            f"loss={loss!r}: never reached, mu_OV < 0 keeps its sign in a balanced circuit and the loss stays above "
            f"log(M) = {math.log(curve.classes)!r}"
        )


def _one(
    flow: ReducedFlow, parameters: Mapping[Any, Any], start: Mapping[Any, Any] | None, loss: Any, time: bool
) -> tuple[float, ...]:
    target = finite_number("loss", loss, positive=True)
    curve = _curve(flow, read_parameters(flow, parameters), read_start(flow, start))
    _check_reached(curve, target)
    v, q = curve.stop(target)
    return target, v, q, curve.attention(q), curve.time(v) if time else math.nan


def stopping_state(
    flow: ReducedFlow | AttentionModel,
    parameters: Mapping[Any, Any],
    start: Mapping[Any, Any] | None = None,
    *,
    loss: ArrayLike,
    time: bool = False,
) -> StoppingState:
    """Return where a flow is when its loss has fallen to given values, without integrating it.

        alpha mu_OV = log((M-1)/(e^L - 1)),    y(mu_QK) - slope x(mu_OV) constant

    Parameters: ``flow``, a `ReducedFlow` or an `AttentionModel`; ``parameters`` and ``start`` as for
    `numerics.simulate`; ``loss``, one or several values above 0 and below that of the start; ``time``, whether
    to compute the time it takes, by quadrature. Arrays are broadcast together, losses included.

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
    given: list[dict[Any, Any]] = [dict(x) if isinstance(x, Mapping) else {} for x in (parameters, start)]
    entries = [
        (i, key, value) for i, mapping in enumerate(given) for key, value in mapping.items() if np.ndim(value) > 0
    ]
    losses = np.asarray(loss)
    try:
        *wide, losses = np.broadcast_arrays(*(np.asarray(value) for *_, value in entries), losses)
    except ValueError:
        raise ValueError(
            f"loss of shape {losses.shape} does not broadcast with the arrays among parameters and start"
        ) from None
    found = []
    for at in np.ndindex(losses.shape):
        here = [dict(mapping) for mapping in given]
        for (i, key, _), values in zip(entries, wide, strict=True):
            here[i][key] = values[at]
        first = here[0] if isinstance(parameters, Mapping) else parameters
        second = here[1] if start is None or isinstance(start, Mapping) else start
        found.append(_one(flow, first, second, losses[at], time))
    columns = np.array(found, dtype=np.float64).reshape(*losses.shape, 5)
    reached, v, q, attention, t = np.moveaxis(columns, -1, 0)
    return StoppingState(reached, v, q, attention, t if time else None)
