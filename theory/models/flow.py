"""A gradient flow of any states: what a user's model reduces to, or what a user writes down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Add, Expr, Symbol, diff

from theory.flow import Velocity
from theory.frozen import FrozenMap
from theory.inputs import check_names, exact
from theory.trace import Assumption, Trace

__all__ = ["GradientFlow"]


@dataclass(frozen=True)
class GradientFlow:
    """A flow with named states, with the attributes of `ReducedFlow` that others build on.

    Parameters: ``velocity``, time derivatives by state; ``loss``, an expression or None where the flow has none;
    ``metric``, the ``g_i`` of ``dx_i/dt = -(1/g_i) dL/dx_i``, empty for a flow given by its velocity; ``orbits``, for
    each state the entries it stands for, with signs; ``assumptions``; ``trace``; ``name``.

    Raises: ``TypeError`` for velocities that are not given by symbol, ``ValueError`` for none.

    >>> from sympy.abc import u, v
    >>> GradientFlow({u: v, v: u}).states
    (u, v)
    """

    velocity: Mapping[Symbol, Any]
    loss: Any = None
    metric: Mapping[Symbol, Any] = FrozenMap({})
    orbits: Mapping[Symbol, Any] = FrozenMap({})
    assumptions: tuple[Assumption, ...] = ()
    trace: Trace = ()
    name: str = "flow"

    def __post_init__(self) -> None:
        if not isinstance(self.velocity, Mapping) or not all(isinstance(s, Symbol) for s in self.velocity):
            raise TypeError("velocity: expected a mapping from state symbols to expressions")
        if not self.velocity:
            raise ValueError("velocity: expected at least one state")
        object.__setattr__(self, "velocity", Velocity({s: exact(v) for s, v in self.velocity.items()}))
        object.__setattr__(self, "metric", FrozenMap(self.metric))
        object.__setattr__(self, "orbits", FrozenMap(self.orbits))
        if self.loss is not None:
            object.__setattr__(self, "loss", exact(self.loss))
        check_names([*self.velocity, *self.velocity.values(), *([] if self.loss is None else [self.loss])])

    @property
    def states(self) -> tuple[Symbol, ...]:
        """What moves, in the order given."""
        return tuple(self.velocity)

    @property
    def parameters(self) -> tuple[Symbol, ...]:
        """What does not move, by name."""
        expressions: list[Expr] = [*self.velocity.values(), *([] if self.loss is None else [self.loss])]
        found = set().union(*(e.free_symbols for e in expressions)) - set(self.states)
        return tuple(sorted(found, key=lambda s: str(s.name)))

    def along(self, expr: Any) -> Expr:
        """Return the derivative of an expression along the flow, ``sum_i (d expr/dx_i) dx_i/dt``."""
        value = exact(expr)
        check_names([value, *self.velocity])
        return Add(*(diff(value, s) * v for s, v in self.velocity.items() if value.has(s)))
