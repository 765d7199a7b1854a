"""First integrals of the reduced flow: the curve becomes a straight line in suitable coordinates.

When ``d mu_QK / d mu_OV`` splits into a factor in each coordinate, ``Y(mu_QK) d mu_QK = slope X(mu_OV) d
mu_OV``, and with the antiderivatives ``y`` and ``x`` the combination ``y - slope x`` is constant along the
flow.

Source: arXiv 2608.06776, conserved quantities; claims `integral-caco`, `integral-cafo`, `integral-faco`,
`integral-fafo`, `integral-imbalanced-ov`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sympy import (
    Abs,
    Dummy,
    Ei,
    Gt,
    Integer,
    Integral,
    Lt,
    Pow,
    Symbol,
    asinh,
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
from sympy.polys.polytools import Poly, together

from theory.errors import GradlineError
from theory.flow import ReducedFlow, derive
from theory.frozen import FrozenMap
from theory.identities import is_zero
from theory.line import COORDINATES
from theory.symbols import mu_OV, mu_QK
from theory.task import GENERIC_SCALE
from theory.trace import Assumption, Step, Trace

__all__ = ["FirstIntegral", "antiderivative", "first_integral"]


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


def _signs(flow: ReducedFlow, signs: Mapping[Any, int] | None) -> dict[Symbol, int]:
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


@dataclass(frozen=True)
class _Atoms:
    """Generators for the transcendental parts of a ratio: which state each depends on, and how to go back."""

    forward: dict[Any, Any]
    backward: dict[Symbol, Any]
    owner: dict[Symbol, Symbol]

    def back(self, expression: Any) -> Any:
        return expression.xreplace(self.backward)


def _atoms(ratio: Any, flow: ReducedFlow) -> _Atoms:
    """Name every exponential and square root; refuse one that mixes the states."""
    found = _Atoms({}, {}, {s: s for s in flow.states})
    names: dict[Any, Symbol] = {}
    roots = {p for p in ratio.atoms(Pow) if not p.exp.is_Integer and (2 * p.exp).is_Integer}
    for atom in sorted(ratio.atoms(exp) | roots, key=str):
        base = atom if isinstance(atom, exp) else sqrt(atom.base)
        states = [s for s in flow.states if atom.has(s)]
        if len(states) > 1:
            raise GradlineError(
                f"first integral, separation: {atom} mixes {states[0]} and {states[1]}; no separable form"
            )
        name = names.setdefault(base, Dummy(f"a{len(names)}", positive=True))
        found.forward[atom] = name if isinstance(atom, exp) else name ** (2 * atom.exp)
        found.backward[name] = base
        if states:
            found.owner[name] = states[0]
    return found


def _separate(ratio: Any, flow: ReducedFlow) -> tuple[Any, dict[Symbol, Any]]:
    """Split a ratio into a constant and one factor for each state.

    The ratio is factored into irreducible polynomials over the generators; each must depend on one state only.
    """
    atoms = _atoms(ratio, flow)
    named = ratio.xreplace(atoms.forward)
    moving = [g for g in named.free_symbols if g in atoms.owner]
    if not named.is_rational_function(*moving):
        raise GradlineError(
            f"first integral, separation: {ratio} is not rational in exponentials, square roots and the states; "
            "no separable form"
        )
    numerator, denominator = cancel(together(named)).as_numer_denom()
    constant: Any = Integer(1)
    parts: dict[Symbol, Any] = {s: Integer(1) for s in flow.states}
    for polynomial, direction in ((numerator, 1), (denominator, -1)):
        content, factors = factor_list(polynomial) if polynomial.free_symbols else (polynomial, [])
        constant *= content**direction
        for base, power in factors:
            states = sorted({atoms.owner[g] for g in base.free_symbols if g in atoms.owner}, key=lambda s: s.name)
            if len(states) > 1:
                raise GradlineError(
                    f"first integral, separation: the factor {atoms.back(base)} "
                    f"mixes {states[0]} and {states[1]}; no separable form"
                )
            piece = atoms.back(base ** (power * direction))
            if states:
                parts[states[0]] *= piece
            else:
                constant *= piece
    return constant, parts


def _normalize(part: Any, state: Symbol) -> tuple[Any, Any]:
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


def antiderivative(term: Any, state: Symbol, positive: int) -> Any:
    """Antiderivative of one term, from the primitives of the theory; an unevaluated integral from 0 otherwise."""
    coefficient, rest = term.as_independent(state, as_Add=False)
    rate = Dummy("rate")
    for e in rest.atoms(exp):
        rate = e.args[0] / state
    table = {
        Integer(1): state,
        state: state**2 / 2,
        1 / state: log(positive * state),
    }
    if rest.has(exp) and not rate.has(state):
        table |= {exp(rate * state): exp(rate * state) / rate, exp(rate * state) / state: Ei(rate * state)}
    if rest in table:
        return coefficient * table[rest]
    root = _quadratic_root(rest, state)
    if root is not None:
        base, power = root
        slope2, level = base.coeff(state, 2), base.coeff(state, 0)
        if power == 1:
            return coefficient * sqrt(base) / slope2
        return coefficient * asinh(sqrt(slope2) * state / sqrt(level)) / sqrt(slope2)
    at_origin = rest.xreplace({state: Integer(0)})
    if at_origin.has(zoo, nan, oo, -oo):
        raise GradlineError(
            f"first integral, integration: no antiderivative of {rest} among the primitives of the theory"
        )
    s = Symbol("s", real=True)
    return coefficient * Integral(rest.xreplace({state: s}), (s, 0, state))


def _quadratic_root(rest: Any, state: Symbol) -> tuple[Any, int] | None:
    """Recognize ``1/sqrt(p + q state^2)`` (0) and ``state/sqrt(p + q state^2)`` (1) with positive ``p`` and ``q``."""
    for power in (0, 1):
        square = (state**power / rest) ** 2
        if not square.is_polynomial(state) or rest * sqrt(square) != state**power:
            continue
        poly = Poly(square, state)
        if poly.degree() == 2 and poly.nth(1) == 0 and poly.nth(2).is_positive and poly.nth(0).is_positive:
            return square.expand(), power
    return None


def _straighten(part: Any, state: Symbol, positive: int) -> tuple[Any, Any]:
    """Return the scale of a factor and the antiderivative of the scaled factor."""
    scale, scaled = _normalize(part, state)
    terms = scaled.as_ordered_terms()
    return scale, sum((antiderivative(term, state, positive) for term in terms), Integer(0))


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
    constant, parts = _separate(ratio, flow)
    scale_y, y = _straighten(1 / parts[mu_QK], mu_QK, chosen[mu_QK])
    scale_x, x = _straighten(parts[mu_OV], mu_OV, chosen[mu_OV])
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


def first_integral(flow: ReducedFlow, signs: Mapping[str, int] | None = None) -> FirstIntegral:
    """Find the first integral of a reduced flow by separation, and prove it.

    ``y(mu_QK) - slope x(mu_OV)`` is constant along the flow. The factor of ``y`` has coefficient 1 in front of
    its term without exponentials, that of ``x`` in front of its leading term.

    Parameters: ``flow``; ``signs``, the sign (1 or -1) of a state in a balanced circuit, 1 by default.

    Raises: `GradlineError` where the ratio of velocities does not separate, naming the factor that mixes the states.

    >>> from theory.model import AttentionModel
    >>> from theory.flow import derive
    >>> from theory.task import TokenTask
    >>> first_integral(derive(AttentionModel(TokenTask()))).y
    m*exp(mu_QK)/n + mu_QK
    """
    if not isinstance(flow, ReducedFlow):
        raise TypeError(f"first_integral({flow!r}): expected a ReducedFlow, such as derive(model)")
    return _first_integral(flow, tuple(_signs(flow, signs).items()))
