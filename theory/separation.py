"""Flows of two states whose ratio separates: first integral and straightened coordinates.

    dx_2/dx_1 = c X(x_1) Y(x_2)    gives    y - slope x = constant,   y' = 1/Y,   x' = X

Source: section 6 of the theory, for any flow of two states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import (
    Add,
    Dummy,
    Gt,
    Integer,
    Integral,
    Lt,
    Pow,
    Symbol,
    cancel,
    diff,
    exp,
    factor,
    factor_list,
    log,
    nan,
    oo,
    sqrt,
    zoo,
)
from sympy.functions.elementary.hyperbolic import HyperbolicFunction
from sympy.polys.polytools import Poly, together

from theory.errors import GradlineError
from theory.frozen import FrozenMap
from theory.identities import is_zero
from theory.models.flow import GradientFlow
from theory.primitives import antiderivative, rational_antiderivative
from theory.trace import Assumption, Step, Trace

__all__ = ["FirstIntegral", "exponential_form", "first_integral_of", "normalize", "separate", "straighten"]


@dataclass(frozen=True)
class FirstIntegral:
    """``value = y - slope x`` is constant along the flow; in the plane of ``x`` and ``y`` every trajectory is a
    straight line.

    ``signs`` are those of the coordinates for which it holds: a balanced circuit keeps its sign.
    """

    x: Any
    y: Any
    slope: Any
    signs: Mapping[str, int]
    assumptions: tuple[Assumption, ...]
    trace: Trace

    @property
    def value(self) -> Any:
        """The constant of the flow, ``y - slope x``."""
        return self.y - self.slope * self.x


@dataclass(frozen=True)
class _Atoms:
    """Generators for the transcendental parts of a ratio: which state each depends on, and how to go back."""

    forward: dict[Any, Any]
    backward: dict[Symbol, Any]
    owner: dict[Symbol, Symbol]

    def back(self, expression: Any) -> Any:
        return expression.xreplace(self.backward)


def _atoms(ratio: Any, states: Sequence[Symbol]) -> _Atoms:
    """Name every exponential and square root; refuse one that mixes the states."""
    found = _Atoms({}, {}, {s: s for s in states})
    names: dict[Any, Symbol] = {}
    roots = {p for p in ratio.atoms(Pow) if not p.exp.is_Integer and (2 * p.exp).is_Integer}
    for atom in sorted(ratio.atoms(exp) | roots, key=str):
        base = atom if isinstance(atom, exp) else sqrt(atom.base)
        mixed = [s for s in states if atom.has(s)]
        if len(mixed) > 1:
            raise GradlineError(
                f"first integral, separation: {atom} mixes {mixed[0]} and {mixed[1]}; no separable form"
            )
        name = names.setdefault(base, Dummy(f"a{len(names)}", positive=True))
        found.forward[atom] = name if isinstance(atom, exp) else name ** (2 * atom.exp)
        found.backward[name] = base
        if mixed:
            found.owner[name] = mixed[0]
    return found


def separate(ratio: Any, states: Sequence[Symbol]) -> tuple[Any, dict[Symbol, Any]]:
    """Split a ratio into a constant and one factor for each state.

    The ratio is factored into irreducible polynomials over the generators; each must depend on one state only.
    """
    atoms = _atoms(ratio, states)
    named = ratio.xreplace(atoms.forward)
    moving = [g for g in named.free_symbols if g in atoms.owner]
    if not named.is_rational_function(*moving):
        raise GradlineError(
            f"first integral, separation: {ratio} is not rational in exponentials, square roots and the states; "
            "no separable form"
        )
    numerator, denominator = cancel(together(named)).as_numer_denom()
    constant: Any = Integer(1)
    parts: dict[Symbol, Any] = {s: Integer(1) for s in states}
    for polynomial, direction in ((numerator, 1), (denominator, -1)):
        content, factors = factor_list(polynomial) if polynomial.free_symbols else (polynomial, [])
        constant *= content**direction
        for base, power in factors:
            mixed = sorted({atoms.owner[g] for g in base.free_symbols if g in atoms.owner}, key=lambda s: s.name)
            if len(mixed) > 1:
                raise GradlineError(
                    f"first integral, separation: the factor {atoms.back(base)} "
                    f"mixes {mixed[0]} and {mixed[1]}; no separable form"
                )
            piece = atoms.back(base ** (power * direction))
            if mixed:
                parts[mixed[0]] *= piece
            else:
                constant *= piece
    return constant, parts


def normalize(part: Any, state: Symbol) -> tuple[Any, Any]:
    """Scale a factor so that its term without exponentials has leading coefficient 1; returns (scale, scaled
    factor).
    """
    at_zero: dict[Any, Any] = {e: Integer(0) for e in part.atoms(exp)}
    at_zero |= {p: Integer(1) for p in part.atoms(Pow) if p.has(state) and not p.exp.is_Integer}
    without = part.xreplace(at_zero)
    if without == 0 or without.has(zoo, nan, oo, -oo):
        return Integer(1), part.expand()
    numerator, denominator = together(without).as_numer_denom()
    scale: Any = Integer(1)
    for polynomial, direction in ((numerator, 1), (denominator, -1)):
        lead = Poly(polynomial, state).LC() if polynomial.has(state) else polynomial
        scale *= lead**direction
    return scale, (part / scale).expand()


def straighten(part: Any, state: Symbol, positive: int) -> tuple[Any, Any]:
    """Return the scale of a factor and the antiderivative of the scaled factor, term by term."""
    scale, scaled = normalize(part, state)
    terms = scaled.as_ordered_terms()
    return scale, sum((antiderivative(term, state, positive) for term in terms), Integer(0))


def _primitive(part: Any, state: Symbol, positive: int) -> tuple[Any, Any, tuple[Any, ...]]:
    """As `straighten`, by partial fractions where the table has no primitive; and the factors taken to be positive."""
    refused: GradlineError | None = None
    try:
        scale, value = straighten(part, state, positive)
    except GradlineError as error:
        refused, scale, value = error, Integer(1), Integral(part, state)
    if not value.has(Integral):
        return scale, value, ()
    found = rational_antiderivative(together(part), state)
    if found is not None:
        return Integer(1), found[0], found[1]
    if refused is not None:
        raise refused
    return scale, value, ()


def _needed(states: Sequence[Symbol], signs: Mapping[Symbol, int], value: Any) -> tuple[Assumption, ...]:
    """The signs that the logarithms of states need."""
    needed = [s for s in states if value.atoms(log) & {log(s), log(-s)} and s.is_positive is None]
    return tuple(
        Assumption(f"{s} {'>' if signs[s] > 0 else '<'} 0", (Gt if signs[s] > 0 else Lt)(s, 0, evaluate=False))
        for s in needed
    )


def positive(factors: Sequence[Any], states: Sequence[Symbol]) -> tuple[Assumption, ...]:
    """What is taken to be positive, other than states themselves, as assumptions."""
    open_ = [f for f in factors if f.is_positive is None and f not in states]
    return tuple(Assumption(f"{f} > 0", Gt(f, 0, evaluate=False)) for f in open_)


def _proof(flow: GradientFlow, velocity: Mapping[Symbol, Any], value: Any) -> None:
    if not is_zero(Add(*(diff(value, s) * velocity[s] for s in flow.states))):
        raise GradlineError(f"first integral: d/dt({value}) is not zero")


def first_integral_of(flow: GradientFlow, signs: Mapping[Symbol, int]) -> FirstIntegral:
    """Find the first integral of a flow of two states by separation, and prove it.

        y(second state) - slope x(first state) is constant along the flow

    Parameters: ``flow``; ``signs`` of the states, 1 or -1.

    Returns: a `FirstIntegral`; what its logarithms and roots need is among its ``assumptions``.

    Raises: `GradlineError` naming the factor that mixes the states, or the integrand without a primitive;
    ``ValueError`` for another number of states or one that never moves.

    >>> from sympy import symbols
    >>> u, v = symbols("u v", real=True)
    >>> first_integral_of(GradientFlow({u: v, v: u}), {u: 1, v: 1}).value
    -u**2/2 + v**2/2
    """
    if len(flow.states) != 2:
        names = ", ".join(s.name for s in flow.states)
        raise ValueError(f"first integral: {flow.name} has {len(flow.states)} states, {names}; expected two")
    first, second = flow.states
    velocity = {s: exponential_form(flow.velocity[s]) for s in flow.states}
    still = next((s for s, v in velocity.items() if v == 0), None)
    if still is not None:
        raise ValueError(f"first integral: {still} never moves, it is constant itself; expected two states that move")
    constant, parts = separate(velocity[second] / velocity[first], flow.states)
    scale_y, y, of_y = _primitive(1 / parts[second], second, signs[second])
    scale_x, x, of_x = _primitive(parts[first], first, signs[first])
    slope = factor(constant * scale_x / scale_y)
    value = y - slope * x
    _proof(flow, velocity, value)
    needed = (*_needed(flow.states, signs, value), *positive((*of_y, *of_x), flow.states))
    trace = (
        Step("separation", f"d {second}/d {first}", (flow.velocity,), (constant, parts[first], parts[second])),
        Step("integration", "y", (1 / parts[second],), y),
        Step("integration", "x", (parts[first],), x),
        Step("normal form", "d/dt(y - slope x)", (value,), Integer(0), "the derivative along the flow is 0"),
    )
    shown = FrozenMap({s.name: signs[s] for s in flow.states})
    return FirstIntegral(x, y, slope, shown, (*flow.assumptions, *needed), trace)


def exponential_form(expr: Any) -> Any:
    """Hyperbolic functions written as exponentials."""
    return expr.xreplace({h: h.rewrite(exp) for h in expr.atoms(HyperbolicFunction)})
