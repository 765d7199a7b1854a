"""Time along a trajectory of two states whose first integral is known: one quadrature, closed where a primitive is.

    t = int dx_1 / v_1(x_1, x_2(x_1)),    x_2(x_1) from  y(x_2) = C + slope x(x_1)

Source: section 7 of the theory, for any flow of two states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Add, Dummy, Integer, Integral, Symbol, diff, exp, log, sqrt
from sympy.polys.polytools import together

from theory.errors import GradlineError
from theory.identities import is_zero
from theory.inputs import check_names, exact
from theory.models.flow import GradientFlow
from theory.primitives import antiderivative, rational_antiderivative
from theory.separation import FirstIntegral, exponential_form

__all__ = ["CurveTime", "time_along_curve"]


@dataclass(frozen=True)
class CurveTime:
    """``time`` as a function of ``state``, up to a constant, and the ``other`` state where the law is ``constant``."""

    state: Symbol
    time: Any
    other: Any
    constant: Any


def _inverse(y: Any, state: Symbol, target: Any, sign: int) -> Any:
    """Solve ``y(state) = target`` for the state."""
    factor, rest = y.as_independent(state, as_Add=False)
    value = target / factor
    if rest == state:
        return value
    if rest == state**2:
        return sign * sqrt(value)
    if rest == log(sign * state):
        return sign * exp(value)
    if isinstance(rest, exp) and not (rate := rest.args[0] / state).has(state):
        return log(value) / rate
    raise GradlineError(f"closed-form time: y = {y} can't be solved for {state} by the primitives of the theory")


def _primitive(integrand: Any, state: Symbol) -> Any:
    found = rational_antiderivative(together(integrand), state)
    if found is not None:
        return found[0]
    try:
        value = sum((antiderivative(e, state, 1) for e in integrand.expand().as_ordered_terms()), Integer(0))
    except GradlineError:
        value = Integral(integrand, state)
    if value.has(Integral):
        raise GradlineError(f"closed-form time: no primitive of {integrand} among those of the theory; integrate it")
    return value


def _check(flow: GradientFlow, law: FirstIntegral, constant: Any) -> None:
    """Refuse a law of another flow, and a constant that moves."""
    if not isinstance(flow, GradientFlow) or not isinstance(law, FirstIntegral):
        raise TypeError("closed-form time: expected a GradientFlow and what first_integral returns for it")
    if len(flow.states) != 2:
        raise ValueError(f"closed-form time: {flow.name} has {len(flow.states)} states; expected two")
    level = exact(1 if constant is None else constant)
    check_names([level, *flow.states])
    if level.free_symbols & set(flow.states):
        raise ValueError(f"closed-form time: constant {level} depends on the states; expected a constant")
    drift = Add(*(diff(law.value, s) * exponential_form(flow.velocity[s]) for s in flow.states))
    if not is_zero(drift):
        raise GradlineError(f"closed-form time: {law.value} is not proved constant along {flow.name}; give its own law")


def time_along_curve(flow: GradientFlow, law: FirstIntegral, constant: Any = None) -> CurveTime:
    """Find the time along a trajectory in closed form, as a function of the first state, and prove it.

        dt/dx_1 = 1/v_1(x_1, x_2(x_1))

    Parameters: ``flow`` of two states; ``law``, its first integral; ``constant``, the value of the law on the curve (a
    number, or an expression without states), by default a positive symbol ``C``. The first state is taken to be
    positive where its sign matters.

    Returns: a `CurveTime`. Raises: `GradlineError` naming what has no inverse or the integrand without a primitive, and
    for a law that is not proved constant along the flow; ``ValueError`` or ``TypeError`` for wrong input.

    >>> from sympy import symbols
    >>> from theory.integrals import first_integral
    >>> u, v = symbols("u v", real=True)
    >>> turn = GradientFlow({u: v, v: u})
    >>> time_along_curve(turn, first_integral(turn)).time
    asinh(sqrt(2)*u/(2*sqrt(C)))
    """
    _check(flow, law, constant)
    first, second = flow.states
    level = Symbol("C", positive=True) if constant is None else constant
    x = Dummy(first.name, positive=True)
    target = (level + law.slope * law.x).xreplace({first: x})
    other = _inverse(law.y, second, target, law.signs[second.name])
    speed = exponential_form(flow.velocity[first]).xreplace({first: x, second: other})
    time = _primitive(1 / speed, x)
    if not is_zero(diff(time, x) * speed - 1):
        raise GradlineError(f"closed-form time: the derivative of {time} is not 1/{speed}")
    back = {x: first}
    return CurveTime(first, time.xreplace(back), other.xreplace(back), level)
