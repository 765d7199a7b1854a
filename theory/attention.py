"""The forward pass on orbit values: attention mass, cross-entropy, and its derivatives.

A sequence of class ``y`` holds ``m`` informative slots with one score and ``n`` noise slots with another. With weights
that are constant on orbits every sequence has the same attention, the same logits and the same loss.

Source: arXiv 2608.06776, model; claims `attention-mass`, `loss-on-line`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sympy import Dummy, Integer, Poly, Symbol, cancel, diff, exp, factor, log

from theory.frozen import FrozenMap
from theory.orbits import Circuit, Orbit, orbit_velocity, orbits
from theory.symbols import alpha, eta_OV, eta_QK
from theory.task import TokenTask
from theory.trace import Step, Trace

__all__ = ["RATES", "OrbitFlow", "orbit_flow"]

RATES: Mapping[Circuit, Symbol] = FrozenMap({"OV": eta_OV, "QK": eta_QK})


@dataclass(frozen=True)
class OrbitFlow:
    """The gradient flow of the collapsed model on orbit values.

    ``attention`` is the mass on the informative slots in orbit values; ``loss`` and ``velocity`` are in orbit
    values and the symbol ``alpha`` that stands for it. ``velocity`` maps the symbol of an orbit to its time
    derivative (rates included).
    """

    task: TokenTask
    orbits: Mapping[Circuit, tuple[Orbit, ...]]
    attention: Any
    loss: Any
    velocity: Mapping[Symbol, Any]
    trace: Trace


def _value(found: tuple[Orbit, ...], column: str, relation: str) -> Any:
    """Return the value of the entry whose column is of this type and whose classes relate so; 0 for zero embeddings."""
    for orbit in found:
        if orbit.columns.name == column and orbit.relation in (relation, "all"):
            return Integer(0) if orbit.frozen else orbit.symbol
    raise KeyError((column, relation))


def _attention(task: TokenTask, found: tuple[Orbit, ...]) -> Any:
    """Softmax mass of the informative slots; scores are taken relative to those of the noise slots (softmax is
    shift invariant).
    """
    gap = _value(found, "informative", "same") - _value(found, "noise", "same")
    weight = task.informative_slots * exp(task.score_scale * gap)
    return weight / (weight + task.noise_slots)


def _margin(found: tuple[Orbit, ...]) -> Any:
    """Logit of the label minus the logit of another class, from the attention-weighted token counts."""
    logits = {
        relation: alpha * _value(found, "informative", relation) + (1 - alpha) * _value(found, "noise", relation)
        for relation in ("same", "other")
    }
    return (logits["same"] - logits["other"]).expand().collect(alpha)


def attention_derivative(attention: Any, value: Symbol) -> Any:
    """Return ``d alpha/d value`` as a rational function of ``alpha``.

    The attention is a Moebius transform of its exponential, so the exponential is eliminated by inverting that
    transform.
    """
    (exponential,) = attention.atoms(exp)
    weight = Dummy("e")
    moebius = attention.xreplace({exponential: weight})
    numerator, denominator = moebius.as_numer_denom()
    line = Poly(alpha * denominator - numerator, weight)
    inverse = -line.coeff_monomial(1) / line.coeff_monomial(weight)
    slope = diff(moebius, weight) * weight * diff(exponential.args[0], value)
    return factor(cancel(slope.xreplace({weight: inverse})))


def _rational_in_exponential(expression: Any) -> Any:
    """Bring an expression with a single ``exp(-z)`` over one denominator in ``exp(z)`` and factor it."""
    exponentials = expression.atoms(exp)
    positive = Dummy("e", positive=True)
    forward: dict[Any, Any] = {}
    (z,) = {-e.args[0] if e.args[0].could_extract_minus_sign() else e.args[0] for e in exponentials} or {Integer(0)}
    for e in exponentials:
        forward[e] = positive if e.args[0] == z else 1 / positive
    return factor(cancel(expression.xreplace(forward))).xreplace({positive: exp(z)})


@lru_cache(maxsize=64)
def orbit_flow(task: TokenTask) -> OrbitFlow:
    """Derive loss and gradient flow on orbit values from the forward pass.

    ``L = log sum_c exp(z_c - z_y)``, and ``dv/dt = -(eta/|O|) dL/dv`` for each orbit, with the chain rule
    through the attention.

    >>> flow = orbit_flow(TokenTask())
    >>> flow.loss
    log((M - 1)*exp(-alpha*(-W_OV_other + W_OV_same)) + 1)
    """
    found: dict[Circuit, tuple[Orbit, ...]] = {"OV": orbits(task, "OV"), "QK": orbits(task, "QK")}
    attention = _attention(task, found["QK"])
    margin = _margin(found["OV"])
    loss = log(1 + (task.classes - 1) * exp(-margin))
    by_attention = _rational_in_exponential(diff(loss, alpha))
    velocity: dict[Symbol, Any] = {}
    for orbit in found["OV"]:
        velocity[orbit.symbol] = orbit_velocity(orbit, eta_OV, _rational_in_exponential(diff(loss, orbit.symbol)))
    for orbit in found["QK"]:
        through = attention_derivative(attention, orbit.symbol) if not orbit.frozen else Integer(0)
        velocity[orbit.symbol] = orbit_velocity(orbit, eta_QK, by_attention * through)
    trace = (
        Step(
            "symmetry",
            "orbits",
            (task,),
            tuple(o.symbol for k in found.values() for o in k),
            "the loss is invariant",
        ),
        Step("softmax", "alpha", (), attention, "slots of one type share a score"),
        Step("cross-entropy", "L", (attention, margin), loss, "log of the sum over classes of exp(z_c - z_y)"),
        Step("gradient flow", "velocity", (loss,), tuple(velocity.items()), "-(eta/|orbit|) dL/d(value)"),
    )
    return OrbitFlow(task, FrozenMap(found), attention, loss, FrozenMap(velocity), trace)
