"""Simulation of any gradient flow: two integrations that must agree, to a time or to a loss.

The flows of the two coordinates have an integrator of their own (`numerics.integrate`), with charts and log time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from numerics.conditions import Stop, read_stop, read_times
from numerics.models.flow import NumericFlow
from numerics.run_errors import IntegrationError, TimeLimitError
from numerics.sizes import check_choice, check_names, finite_number
from theory.models import GradientFlow

__all__ = ["Agreed", "FlowRun", "Problem", "integrate_twice", "simulate_flow"]

Array = NDArray[np.float64]

#: Largest difference of the two integrations, as a multiple of ``rtol``.
AGREEMENT = 100.0
#: Their tolerances as fractions of ``rtol``; the tighter run is returned.
_LOOSE, _TIGHT = 0.1, 0.003
_METHODS = ("DOP853", "LSODA")
_POINTS = 129
#: A run to a loss with no time limit gives up here, in the units of ``t``.
_LONGEST = 1e12
_MOST_CALLS = 300_000


@dataclass(frozen=True)
class Problem:
    """A flow with numbers: ``field`` and ``loss`` (or None) of a vector of states, and the start."""

    field: Callable[[Array], Array]
    loss: Callable[[Array], float] | None
    start: Array
    label: str


@dataclass(frozen=True)
class Agreed:
    """The tighter of two runs at ``t`` (R,), ``values`` (states, R), and the largest difference from the other."""

    t: Array
    values: Array
    error: float


@dataclass(frozen=True, eq=False)
class FlowRun:
    """A trajectory of a gradient flow.

    ``t`` (R,), from 0 to the end; ``values``, state name -> (R,), also as ``run["u"]`` and ``run.u``; ``loss`` (R,), or
    None where the flow has none; ``error_estimate``, the largest difference of two integrations relative to ``1 +
    |value|``; ``parameters`` and ``start``; ``flow``.
    """

    t: Array
    values: Mapping[str, Array]
    loss: Array | None
    error_estimate: float
    parameters: Mapping[str, float]
    start: Mapping[str, float]
    flow: GradientFlow | NumericFlow

    def __getitem__(self, state: Any) -> Array:
        """The values of a state, by name or symbol."""
        name = str(state)
        if name not in self.values:
            raise KeyError(f"{name}: expected one of {', '.join(self.values)}")
        return self.values[name]

    def __getattr__(self, name: str) -> Array:
        values = self.__dict__.get("values", {})
        if name in values:
            return values[name]
        raise AttributeError(f"no state or attribute {name!r}; the states are {', '.join(values)}")


def _once(problem: Problem, stop: Stop, times: Array | None, rtol: float, method: Any) -> Any:
    """One integration, SciPy's answer."""
    events = None
    if stop.loss is not None and problem.loss is not None:
        loss, target = problem.loss, stop.loss

        def reached(_: float, y: Array) -> float:
            return float(loss(y) - target)

        reached.terminal = True  # type: ignore[attr-defined]
        events = [reached]
    end = stop.time if stop.time is not None else _LONGEST
    calls = 0

    def field(_: float, y: Array) -> Array:
        nonlocal calls
        calls += 1
        if calls > _MOST_CALLS:
            raise IntegrationError(
                f"{problem.label}: {_MOST_CALLS} evaluations do not reach the end of the run; shorten it, raise the "
                "target or use method='LSODA'"
            )
        return problem.field(y)

    with np.errstate(all="ignore"):
        run = solve_ivp(
            field,
            (0.0, end),
            problem.start,
            method=method,
            t_eval=times,
            rtol=rtol,
            atol=rtol,
            events=events,
        )
    if not run.success or not np.isfinite(run.y).all():
        raise IntegrationError(
            f"{problem.label}: integration with {method} failed: {run.message}; change start or rtol"
        )
    if events is not None and run.status != 1:
        at = problem.loss(run.y[:, -1]) if problem.loss is not None else np.nan
        raise TimeLimitError(
            f"until_loss={stop.loss!r}: not reached by t={end:.6g}, the loss is {at:.6g} there; raise the target or "
            "until_time",
            float(at),
            end,
        )
    return run


def _end(problem: Problem, stop: Stop, rtol: float, method: str) -> float:
    """The time at which the target loss is reached."""
    return float(_once(problem, stop, None, rtol, method).t_events[0][0])


def integrate_twice(
    problem: Problem, stop: Stop, times: Array | None = None, rtol: float = 1e-10, method: str = "DOP853"
) -> Agreed:
    """Integrate with two tolerances and return the tighter run.

    Raises: `IntegrationError` where one fails or both differ by more than ``AGREEMENT * rtol``; `TimeLimitError`.
    """
    # solve_ivp takes no tolerance below 100 units of rounding
    tolerances = [max(rtol * part, 3e-14) for part in (_LOOSE, _TIGHT)]
    ends = [stop.time or _LONGEST] * 2
    if stop.loss is not None:
        ends = [_end(problem, stop, tolerance, method) for tolerance in tolerances]
    if times is not None and times[-1] > ends[1]:
        raise ValueError(f"times: {times[-1]:.6g} lies beyond the end of the run, t={ends[1]:.6g}")
    grid = np.linspace(0.0, ends[1], _POINTS) if times is None else times
    end = Stop(None, max(float(grid[-1]), np.nextafter(0.0, 1.0)))
    found = [_once(problem, end, grid, tolerance, method).y for tolerance in tolerances]
    gap = float(np.max(np.abs(found[0] - found[1]) / (1 + np.abs(found[1])), initial=0.0))
    late = abs(ends[0] - ends[1]) / (1 + ends[1])
    error = max(gap, late)
    if not error <= AGREEMENT * rtol:
        raise IntegrationError(
            f"{problem.label}: two runs with different tolerances differ by {error:.3g}, more than {AGREEMENT:g} "
            f"rtol = {AGREEMENT * rtol:.3g}; change rtol, or shorten the run"
        )
    return Agreed(grid, found[1], error)


def _read(what: str, symbols: Any, given: Mapping[Any, Any] | None) -> dict[str, float]:
    names = [s.name for s in symbols]
    if not names:
        if given:
            raise ValueError(f"{what}: {next(iter(given))} given; this flow has none")
        return {}
    named = check_names(what, {} if given is None else given, names)
    missing = [n for n in names if n not in named]
    if missing:
        raise ValueError(
            f"no {'value' if what == 'parameters' else what} for {missing[0]}; expected {', '.join(names)}"
        )
    return {
        s.name: finite_number(s.name if what == "parameters" else f"start {s.name}", named[s.name], bool(s.is_positive))
        for s in symbols
    }


def _symbolic(flow: GradientFlow, parameters: Mapping[str, float]) -> tuple[Any, Any]:
    from numerics.kernels import compile_kernel
    from numerics.scalar import scalar_function

    kernel, values, count = compile_kernel(flow), tuple(parameters.values()), len(flow.states)
    plain = scalar_function(kernel)

    def field(y: Array) -> Array:
        return np.array(plain(*y.tolist(), *values)[:count], dtype=np.float64)

    def loss(y: Array) -> float:
        return float(plain(*y.tolist(), *values)[count])

    return field, (None if flow.loss is None else loss)


def simulate_flow(
    flow: GradientFlow | NumericFlow,
    parameters: Mapping[Any, Any] | None = None,
    start: Mapping[Any, Any] | None = None,
    until_loss: float | None = None,
    until_time: float | None = None,
    *,
    times: ArrayLike | None = None,
    rtol: float = 1e-10,
    method: str = "DOP853",
) -> FlowRun:
    """Integrate a gradient flow twice, to a loss or for a time, and return the trajectory if both agree.

        dx/dt = velocity(x; parameters),    x(0) = start

    Parameters: ``flow``; ``parameters`` and ``start``, a number for each parameter and each state, by name or symbol;
    ``until_loss``, ``until_time`` or both; ``times``, the output grid, by default 129 even times; ``rtol``, from 1e-11
    to 1e-3; ``method``, ``"DOP853"`` or ``"LSODA"``.

    Returns: a `FlowRun`.

    Raises: ``ValueError`` or ``TypeError`` for wrong input; `IntegrationError` where integration fails or both
    integrations differ by more than 100 ``rtol``; `TimeLimitError` where the limit comes before the target.

    >>> from sympy import symbols
    >>> u, v = symbols("u v", real=True)
    >>> run = simulate_flow(GradientFlow({u: v, v: u}), start={"u": 0, "v": 1}, until_time=1)
    >>> print(f"{run.u[-1]:.9f}")
    1.175201194
    """
    if not isinstance(flow, (GradientFlow, NumericFlow)):
        raise TypeError(f"flow={flow!r}: expected a ReducedFlow (theory.derive), an AttentionModel or a GradientFlow")
    values, begin = _read("parameters", flow.parameters, parameters), _read("start", flow.states, start)
    rtol = finite_number("rtol", rtol, positive=True)
    if not 1e-11 <= rtol <= 1e-3:
        raise ValueError(f"rtol={rtol}: expected a tolerance from 1e-11 to 1e-3")
    method = check_choice("method", method, _METHODS)
    stop, grid = read_stop(until_loss, until_time, 1.0), read_times(times, 1.0)
    if isinstance(flow, NumericFlow):
        metric = flow.metric_values(values)
        field, loss = (lambda y: -flow.slopes(y) / metric), flow.loss
    else:
        field, loss = _symbolic(flow, values)
    problem = Problem(field, loss, np.array(list(begin.values())), flow.name)
    _check(problem, stop, begin)
    from numerics.gradient_flow import one_thread

    with one_thread():
        found = integrate_twice(problem, stop, grid, rtol, method)
        losses = None if loss is None else np.array([loss(y) for y in found.values.T])
    return FlowRun(
        t=found.t,
        values=MappingProxyType({s.name: v for s, v in zip(flow.states, found.values, strict=True)}),
        loss=losses,
        error_estimate=found.error,
        parameters=MappingProxyType(values),
        start=MappingProxyType(begin),
        flow=flow,
    )


def _check(problem: Problem, stop: Stop, begin: Mapping[str, float]) -> None:
    """Refuse a start without a velocity, and a target that the start is below already."""
    with np.errstate(all="ignore"):
        speed = problem.field(problem.start)
    shown = ", ".join(f"{name}={value!r}" for name, value in begin.items())
    if not np.isfinite(speed).all():
        raise ValueError(f"start {shown}: the velocity is not finite there; expected another start")
    if not speed.any():
        raise ValueError(f"start {shown}: stationary, every velocity is 0; expected a start that moves")
    if stop.loss is None:
        return
    if problem.loss is None:
        raise ValueError("until_loss: this flow has no loss; expected until_time")
    first = problem.loss(problem.start)
    if stop.loss >= first:
        raise ValueError(f"until_loss={stop.loss!r}: expected a loss below the initial one, {first!r}")
