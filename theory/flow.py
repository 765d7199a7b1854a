"""The reduced gradient flow of the two coordinates, for any task and parameterization.

    d mu_OV/dt = -eta_OV g_OV f_OV,    d mu_QK/dt = -eta_QK g_QK f_QK,    dL/dW = g E on the line,

with ``f = 1`` for a collapsed circuit and the rescaling of `theory.factorization` for a factorized one.

Source: arXiv 2608.06776, reduced dynamics; claims `flow-collapsed`, `flow-published`, `flow-cafo`, `flow-faco`,
`flow-fafo`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sympy import Ge, Gt, Integer, Ne, Symbol

from theory.attention import RATES
from theory.errors import NoLineError
from theory.factorization import rescaling
from theory.frozen import FrozenMap
from theory.line import COORDINATES, Line, collapsed_line
from theory.model import AttentionModel
from theory.orbits import Circuit
from theory.symbols import LOWER_BOUNDS, PARAMETERS, STATES, alpha, eta_OV, eta_QK
from theory.task import TokenTask
from theory.trace import Assumption, Step, Trace

__all__ = ["ReducedFlow", "Velocity", "derive"]


class Velocity(FrozenMap):
    """Time derivatives by state; a state is named by its symbol or by its name."""


@dataclass(frozen=True)
class ReducedFlow:
    """The flow of ``(mu_OV, mu_QK)``.

    ``states``, the two coordinates; ``velocity``, their time derivatives in states and parameters only;
    ``loss``, the population cross-entropy; ``attention``, the mass on informative slots; ``compact``, the
    velocities in terms of ``alpha`` as well, for which ``attention`` is the definition; ``parameters``, the
    free parameters in call order; ``definitions``, named quantities (``r``, ``kappa``, ``sigma_OV``,
    ``norm2_QK``, ...); ``assumptions`` and ``trace`` of the derivation.
    """

    model: AttentionModel
    line: Line
    states: tuple[Symbol, ...]
    parameters: tuple[Symbol, ...]
    velocity: Velocity
    compact: Velocity
    loss: Any
    attention: Any
    definitions: Mapping[str, Any]
    assumptions: tuple[Assumption, ...]
    trace: Trace

    def __hash__(self) -> int:
        return hash(self.model)

    @property
    def task(self) -> TokenTask:
        """The task of the model."""
        return self.model.task


def _order(symbols: set[Symbol]) -> tuple[Symbol, ...]:
    known = [p for p in PARAMETERS if p in symbols]
    return (*known, *sorted(symbols - set(known), key=lambda s: s.name))


def _assumptions(model: AttentionModel, parameters: tuple[Symbol, ...]) -> tuple[Assumption, ...]:
    found = []
    for symbol in parameters:
        if symbol.is_integer:
            least = LOWER_BOUNDS.get(symbol, 1) if symbol != model.task.classes else 2
            found.append(Assumption(f"{symbol} is an integer >= {least}", Ge(symbol, least, evaluate=False)))
        elif symbol.is_positive:
            found.append(Assumption(f"{symbol} > 0", Gt(symbol, 0, evaluate=False)))
        else:
            found.append(Assumption(f"{symbol} is real and not 0", Ne(symbol, 0, evaluate=False)))
    if model.task.noise_is_finite:
        found.append(Assumption("noise tokens are finite in number: their parameters move"))
    else:
        found.append(Assumption("N = oo: noise tokens have zero embedding, their parameters never move"))
    found.append(Assumption("the start is on the line: W_OV = mu_OV E_OV, W_QK = mu_QK E_QK"))
    for circuit, coordinate in COORDINATES.items():
        if model.form(circuit) == "collapsed":
            continue
        rank = collapsed_line(model.task).directions[circuit].rank
        width = model.width_qk if circuit == "QK" else model.width_ov
        given = "" if width is None else f" {width}"
        found.append(Assumption(f"{circuit}: the inner width{given} is at least the rank {rank}"))
        if model.is_balanced(circuit):
            text = f"{circuit}: U^T U = V^T V (balanced), so {coordinate} = 0 is stationary and the start is not 0"
            found.append(Assumption(text, Ne(coordinate, 0, evaluate=False)))
        else:
            found.append(
                Assumption(f"{circuit}: U^T U - V^T V = {model.imbalance(circuit)} P, P the projection of rank {rank}")
            )
    return tuple(found)


def _definitions(model: AttentionModel, line: Line) -> dict[str, Any]:
    norms = {c: line.directions[c].norm2 for c in COORDINATES}
    named = {
        "alpha": line.attention,
        "r": eta_QK / eta_OV,
        "norm2_OV": norms["OV"],
        "norm2_QK": norms["QK"],
        "kappa": (eta_QK / norms["QK"]) / (eta_OV / norms["OV"]),
    }
    for circuit in COORDINATES:
        if line.directions[circuit].isometry.holds:
            named[f"sigma_{circuit}"] = line.directions[circuit].sigma
    return named


def _factor(model: AttentionModel, line: Line, circuit: Circuit) -> tuple[Any, Trace]:
    """The rate factor of a circuit and the steps that lead to it."""
    if model.form(circuit) == "collapsed":
        return Integer(1), ()
    try:
        scaled = rescaling(line.directions[circuit], COORDINATES[circuit], model.imbalance(circuit))
    except NoLineError as error:
        kind = model.task.query_kind
        raise NoLineError(
            f"{model.parameterization} with query_kind='{kind}' and {model.task.noise} noise tokens: {error}; "
            f"a factorized circuit then leaves the line. Use a collapsed {circuit} circuit, shared queries or noise=oo"
        ) from None
    return scaled.factor, scaled.trace


@lru_cache(maxsize=128)
def derive(model: AttentionModel) -> ReducedFlow:
    """Derive the reduced gradient flow of a model.

    Parameters: ``model``. Returns: a `ReducedFlow`; concrete sizes are substituted exactly, rates stay symbols.

    Raises: `NoLineError` naming the criterion where the flow of the model does not stay on a line.

    >>> flow = derive(AttentionModel(TokenTask(noise=float("inf"))))
    >>> flow.compact["mu_OV"]
    alpha*eta_OV/(b*(M + exp(alpha*mu_OV) - 1))
    """
    if not isinstance(model, AttentionModel):
        raise TypeError(f"derive({model!r}): expected an AttentionModel, such as AttentionModel(task)")
    line = collapsed_line(model.task)
    compact: dict[Symbol, Any] = {}
    trace = list(line.trace)
    for circuit, coordinate in COORDINATES.items():
        scale, steps = _factor(model, line, circuit)
        compact[coordinate] = -RATES[circuit] * line.gradient[circuit] * scale
        trace += [*steps, Step("flow", f"d{coordinate}/dt", (line.gradient[circuit], scale), compact[coordinate])]
    full = {s: v.xreplace({alpha: line.attention}) for s, v in compact.items()}
    loss = line.loss.xreplace({alpha: line.attention})
    symbols = set().union(*(v.free_symbols for v in full.values())) | loss.free_symbols
    parameters = _order(symbols - set(STATES))
    return ReducedFlow(
        model=model,
        line=line,
        states=STATES,
        parameters=parameters,
        velocity=Velocity(full),
        compact=Velocity(compact),
        loss=loss,
        attention=line.attention,
        definitions=FrozenMap(_definitions(model, line)),
        assumptions=_assumptions(model, parameters),
        trace=tuple(trace),
    )
