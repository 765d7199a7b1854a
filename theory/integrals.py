"""First integrals of the reduced flow: the curve becomes a straight line in suitable coordinates.

When ``d mu_QK / d mu_OV`` splits into a factor in each coordinate, ``Y(mu_QK) d mu_QK = slope X(mu_OV) d
mu_OV``, and with the antiderivatives ``y`` and ``x`` the combination ``y - slope x`` is constant along the
flow.

Source: arXiv 2608.06776, conserved quantities; claims `integral-caco`, `integral-cafo`, `integral-faco`,
`integral-fafo`, `integral-imbalanced-ov`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sympy import Abs, Gt, Integer, Lt, Symbol, diff, factor

from theory.errors import GradlineError
from theory.flow import ReducedFlow, derive
from theory.frozen import FrozenMap
from theory.identities import is_zero
from theory.line import COORDINATES
from theory.models.flow import GradientFlow
from theory.separation import FirstIntegral, first_integral_of, separate, straighten
from theory.symbols import mu_OV, mu_QK
from theory.task import GENERIC_SCALE
from theory.trace import Assumption, Step

__all__ = ["FirstIntegral", "first_integral"]


def _signs(flow: ReducedFlow | GradientFlow, signs: Mapping[Any, int] | None) -> dict[Symbol, int]:
    if signs is not None and not isinstance(signs, Mapping):
        raise TypeError(f"signs={signs!r}: expected a mapping such as {{'mu_QK': -1}}")
    by_name: dict[str, int] = {}
    names = [s.name for s in flow.states]
    for key, value in (signs or {}).items():
        name = str(key)
        if name not in names:
            raise ValueError(f"signs: unknown state {name!r}; expected {' or '.join(names)}")
        if isinstance(value, bool) or value not in (1, -1) or by_name.get(name, value) != value:
            raise ValueError(f"signs: {name}={value!r}; expected one sign, 1 or -1")
        by_name[name] = int(value)
    return {s: by_name.get(s.name, 1) for s in flow.states}


def _with_scale(flow: ReducedFlow, signs: tuple[tuple[Symbol, int], ...]) -> FirstIntegral:
    """The integral for a score scale that is an expression, from that with a symbol in its place; proved for
    the given flow.
    """
    generic = _first_integral(derive(replace(flow.model, task=flow.task.generic_scale)), signs)
    scale = {GENERIC_SCALE: flow.task.score_scale}
    x, y, slope = (e.xreplace(scale) for e in (generic.x, generic.y, generic.slope))
    _prove(y - slope * x, flow, dict(signs))
    return replace(generic, x=x, y=y, slope=slope, assumptions=flow.assumptions + _one_sign(flow, dict(signs)))


def _balanced(flow: ReducedFlow) -> set[Symbol]:
    """The states of balanced circuits, which keep their sign."""
    return {COORDINATES[c] for c in COORDINATES if flow.model.is_balanced(c)}


def _branch(flow: ReducedFlow, signs: Mapping[Symbol, int]) -> dict[Any, Any]:
    """Absolute values of the states of balanced circuits, on the branch of the signs."""
    return {Abs(s): signs[s] * s for s in _balanced(flow)}


def _prove(value: Any, flow: ReducedFlow, signs: Mapping[Symbol, int]) -> None:
    """Refuse a value that is not proved constant along the flow."""
    branch = _branch(flow, signs)
    drift = sum((diff(value, s) * flow.velocity[s].xreplace(branch) for s in flow.states), Integer(0))
    if not is_zero(drift):
        raise GradlineError(f"first integral: d/dt({value}) is not zero")


def _one_sign(flow: ReducedFlow, signs: Mapping[Symbol, int]) -> tuple[Assumption, ...]:
    """The branch that the integral holds on."""
    return tuple(
        Assumption(f"{s} {'>' if signs[s] > 0 else '<'} 0", (Gt if signs[s] > 0 else Lt)(s, 0, evaluate=False))
        for s in flow.states
        if s in _balanced(flow)
    )


@lru_cache(maxsize=128)
def _first_integral(flow: ReducedFlow, signs: tuple[tuple[Symbol, int], ...]) -> FirstIntegral:
    if not flow.task.has_plain_scale:
        return _with_scale(flow, signs)
    chosen = dict(signs)
    ratio = (flow.velocity[mu_QK] / flow.velocity[mu_OV]).xreplace(_branch(flow, chosen))
    constant, parts = separate(ratio, flow.states)
    scale_y, y = straighten(1 / parts[mu_QK], mu_QK, chosen[mu_QK])
    scale_x, x = straighten(parts[mu_OV], mu_OV, chosen[mu_OV])
    slope = factor(constant * scale_x / scale_y)
    value = y - slope * x
    _prove(value, flow, chosen)
    trace = (
        Step("separation", "d mu_QK/d mu_OV", (flow.velocity,), (constant, parts[mu_OV], parts[mu_QK])),
        Step("integration", "y", (1 / parts[mu_QK],), y),
        Step("integration", "x", (parts[mu_OV],), x),
        Step(
            "normal form",
            "d/dt(y - slope x)",
            (value,),
            Integer(0),
            "the derivative along the flow has normal form 0",
        ),
    )
    shown = FrozenMap({s.name: chosen[s] for s in flow.states})
    return FirstIntegral(x, y, slope, shown, flow.assumptions + _one_sign(flow, chosen), trace)


def first_integral(flow: ReducedFlow | GradientFlow, signs: Mapping[str, int] | None = None) -> FirstIntegral:
    """Find the first integral of a flow of two states by separation, and prove it.

    ``y(mu_QK) - slope x(mu_OV)`` is constant along the flow. The factor of ``y`` has coefficient 1 in front of
    its term without exponentials, that of ``x`` in front of its leading term. Of a `GradientFlow`, ``x`` belongs to
    its first state and ``y`` to its second.

    Parameters: ``flow``; ``signs``, the sign (1 or -1) of a state in a balanced circuit, or of any state of a
    `GradientFlow` whose logarithm occurs, 1 by default.

    Raises: `GradlineError` where the ratio of velocities does not separate, naming the factor that mixes the states,
    and where a factor has no primitive.

    >>> from theory.model import AttentionModel
    >>> from theory.flow import derive
    >>> from theory.task import TokenTask
    >>> first_integral(derive(AttentionModel(TokenTask()))).y
    m*exp(mu_QK)/n + mu_QK
    """
    if isinstance(flow, GradientFlow):
        return first_integral_of(flow, _signs(flow, signs))
    if not isinstance(flow, ReducedFlow):
        raise TypeError(f"first_integral({flow!r}): expected a ReducedFlow, such as derive(model), or a GradientFlow")
    return _first_integral(flow, tuple(_signs(flow, signs).items()))
