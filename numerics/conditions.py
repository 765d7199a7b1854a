"""Parameters, start and end of a simulation, checked: each wrong input gets one line that says what was expected.

Source: assumptions of the reduced flow, arXiv 2608.06776.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numerics.sizes import check_choice, check_names, finite_number
from theory.flow import ReducedFlow, derive
from theory.line import COORDINATES
from theory.model import AttentionModel
from theory.symbols import LOWER_BOUNDS, SYMBOLS

__all__ = ["TIMES", "Stop", "TimeName", "as_flow", "read_parameters", "read_start", "read_stop", "read_times"]

TimeName = Literal["t", "tau", "log"]
TIMES: tuple[TimeName, ...] = get_args(TimeName)

Array = NDArray[np.float64]


def as_flow(flow: ReducedFlow | AttentionModel) -> ReducedFlow:
    """Return a reduced flow, derived if a model is given."""
    if isinstance(flow, AttentionModel):
        return derive(flow)
    if not isinstance(flow, ReducedFlow):
        raise TypeError(f"flow={flow!r}: expected a ReducedFlow (theory.derive) or an AttentionModel")
    return flow


def _by_name(what: str, given: Any, allowed: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{what}={given!r}: expected a mapping from {', '.join(allowed)} to numbers")
    fixed = [n for n in map(str, given) if n not in allowed and n in SYMBOLS]
    if fixed:
        near = get_close_matches(fixed[0], allowed, 1, 0.0)[0]
        raise ValueError(
            f"a value too many, {fixed[0]!r} in {what}: this flow has {', '.join(allowed)} only "
            f"(the rest is fixed by the task and the model, or does not occur); nearest: {near!r}"
        )
    named = check_names(what, given, allowed)
    if len(named) < len(given):
        twice = next(n for n in named if sum(str(k) == n for k in given) > 1)
        raise ValueError(f"{what}: {twice} is given twice, as a name and as a symbol; expected once")
    return named


def _parameter(flow: ReducedFlow, symbol: Any, value: Any) -> float:
    name = symbol.name
    if symbol.is_integer:
        least = 2 if symbol == flow.task.classes else LOWER_BOUNDS.get(symbol, 1)
        wanted = f"expected an integer of at least {least}"
        try:
            number = finite_number(name, value)
        except ValueError:
            hint = "; for infinitely many noise tokens use TokenTask(noise=oo)" if symbol == flow.task.noise else ""
            raise ValueError(f"{name}={value}: {wanted}{hint}") from None
        if number != math.floor(number) or number < least:
            raise ValueError(f"{name}={value}: {wanted}")
        return number
    number = finite_number(name, value, positive=bool(symbol.is_positive))
    if number == 0 and symbol.is_nonzero:
        raise ValueError(f"{name}=0: expected a number other than 0; for a balanced circuit leave the imbalance out")
    return number


def read_parameters(flow: ReducedFlow, given: Mapping[Any, Any]) -> dict[str, float]:
    """Return a value for each parameter of a flow, by name and in call order.

    Parameters: ``flow``; ``given``, name or symbol -> number, exactly the names of ``flow.parameters``.

    Raises: ``ValueError`` or ``TypeError`` naming the missing, superfluous or impossible value.
    """
    names = tuple(s.name for s in flow.parameters)
    named = _by_name("parameters", given, names)
    for symbol in flow.parameters:
        if symbol.name not in named:
            meaning = f" ({SYMBOLS[symbol.name].meaning})" if symbol.name in SYMBOLS else ""
            raise ValueError(f"no value for {symbol.name}{meaning}; this flow needs {', '.join(names)}")
    return {s.name: _parameter(flow, s, named[s.name]) for s in flow.parameters}


def read_start(flow: ReducedFlow, given: Mapping[Any, Any] | None) -> dict[str, float]:
    """Return the start of each coordinate by name: 0 unless given, required and nonzero where the circuit is balanced.

    Raises: ``ValueError`` or ``TypeError`` naming the coordinate.
    """
    names = tuple(s.name for s in flow.states)
    named = _by_name("start", {} if given is None else given, names)
    start = {name: finite_number(f"start {name}", named.get(name, 0)) for name in names}
    for circuit, coordinate in COORDINATES.items():
        name = coordinate.name
        if start[name] == 0 and flow.model.is_balanced(circuit):
            said = f"start {name}=0" if name in named else f"no start for {name}"
            raise ValueError(
                f"{said}: the {circuit} circuit is factorized and balanced, {name} = 0 is stationary; "
                "expected a number other than 0"
            )
    return start


@dataclass(frozen=True)
class Stop:
    """The end of a run: a loss to reach, a time (in ``t``) not to pass, or both."""

    loss: float | None
    time: float | None


def read_stop(until_loss: Any, until_time: Any, unit: float) -> Stop:
    """Return the end of a run; ``unit`` is the value of ``t`` for one unit of the given time.

    Raises: ``ValueError`` where neither is given, or one is not a finite number above 0.
    """
    if until_loss is None and until_time is None:
        raise ValueError("no end of the run: expected until_loss, until_time or both")
    loss = None if until_loss is None else finite_number("until_loss", until_loss, positive=True)
    time = None if until_time is None else finite_number("until_time", until_time, positive=True) * unit
    if time is not None and not math.isfinite(time):
        raise ValueError(f"until_time={until_time}: expected a time that is finite in t as well")
    return Stop(loss, time)


def read_times(times: ArrayLike | None, unit: float) -> Array | None:
    """Return the output grid in ``t``: finite, from 0 on, sorted; ``None`` stays.

    Raises: ``ValueError`` or ``TypeError`` otherwise.
    """
    if times is None:
        return None
    try:
        grid = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"times={times!r}: expected a sequence of numbers") from None
    if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all():
        raise ValueError(f"times of shape {grid.shape}: expected a sequence of finite numbers")
    if grid.min() < 0 or (np.diff(grid) < 0).any():
        raise ValueError("times: expected numbers of at least 0 in increasing order")
    return grid * unit


def read_time_name(time: str) -> TimeName:
    """Return the name of a time variable, or raise a ``ValueError`` with the nearest one."""
    return check_choice("time", time, TIMES)  # type: ignore[return-value]
