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
from theory.symbols import LOWER_BOUNDS, STATES, SYMBOLS
from theory.task import TokenTask

__all__ = [
    "AGREEMENT", "METHOD_NAMES", "TIMES", "RunOptions", "Stop", "TimeName", "as_flow", "check_end", "read_arrays",
    "read_parameters", "read_start", "read_stop", "read_times",
]  # fmt: skip

TimeName = Literal["t", "tau", "log"]
TIMES: tuple[TimeName, ...] = get_args(TimeName)

Array = NDArray[np.float64]

METHOD_NAMES = "DOP853", "LSODA"
#: Largest `error_estimate` a trajectory is returned with, as a multiple of ``rtol``.
AGREEMENT = 100.0


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


def _parameter(task: TokenTask, symbol: Any, value: Any) -> float:
    name = symbol.name
    if symbol.is_integer:
        least = 2 if symbol == task.classes else LOWER_BOUNDS.get(symbol, 1)
        wanted = f"expected an integer of at least {least}"
        try:
            number = finite_number(name, value)
        except ValueError:
            hint = "; for infinitely many noise tokens use TokenTask(noise=oo)" if symbol == task.noise else ""
            raise ValueError(f"{name}={value}: {wanted}{hint}") from None
        if number != math.floor(number) or number < least:
            raise ValueError(f"{name}={value}: {wanted}")
        return number
    number = finite_number(name, value, positive=bool(symbol.is_positive))
    if number == 0 and symbol.is_nonzero:
        raise ValueError(f"{name}=0: expected a number other than 0; for a balanced circuit leave the imbalance out")
    return number


def _missing(symbols: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    for symbol in symbols:
        if symbol.name not in named:
            meaning = f" ({SYMBOLS[symbol.name].meaning})" if symbol.name in SYMBOLS else ""
            wanted = ", ".join(s.name for s in symbols)
            raise ValueError(f"no value for {symbol.name}{meaning}; this flow needs {wanted}")


def read_parameters(flow: ReducedFlow, given: Mapping[Any, Any]) -> dict[str, float]:
    """Return a value for each parameter of a flow, by name and in call order.

    Parameters: ``flow``; ``given``, name or symbol -> number, exactly the names of ``flow.parameters``.

    Raises: ``ValueError`` or ``TypeError`` naming the missing, superfluous or impossible value.
    """
    names = tuple(s.name for s in flow.parameters)
    named = _by_name("parameters", given, names)
    _missing(flow.parameters, named)
    return {s.name: _parameter(flow.task, s, named[s.name]) for s in flow.parameters}


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


def read_arrays(
    model: AttentionModel, symbols: tuple[Any, ...], parameters: Any, start: Any
) -> tuple[tuple[int, ...], dict[str, Array], dict[str, Array]] | None:
    """Parameters and starts of all runs at once, arrays (runs,), and the shape of the runs.

    Parameters: ``symbols``, the parameters of the flow. Returns: None where a run at a time would be refused, by
    `read_parameters` or `read_start`: these say why.
    """
    named = _by_name("parameters", parameters, tuple(s.name for s in symbols))
    begin = _by_name("start", {} if start is None else start, tuple(s.name for s in STATES))
    _missing(symbols, named)
    found: dict[str, Any] = {}
    for symbol in symbols:
        value = named[symbol.name]
        found[symbol.name] = (
            _column(model.task, symbol, value) if np.ndim(value) else _parameter(model.task, symbol, value)
        )
    for circuit, coordinate in COORDINATES.items():
        value = begin.get(coordinate.name, 0)
        column = _column(model.task, coordinate, value) if np.ndim(value) else finite_number(coordinate.name, value)
        found[coordinate.name] = column
        if model.is_balanced(circuit) and (column is None or not np.all(column)):
            return None
    if any(value is None for value in found.values()):
        return None
    try:
        shape = np.broadcast_shapes(*(np.shape(value) for value in found.values()))
    except ValueError:
        return None
    wide = {name: np.broadcast_to(np.asarray(v, np.float64), shape).ravel() for name, v in found.items()}
    states = tuple(s.name for s in STATES)
    return shape, {s.name: wide[s.name] for s in symbols}, {name: wide[name] for name in states}


def _column(task: TokenTask, symbol: Any, values: Any) -> Array | None:
    """An array of values of a parameter or a coordinate; None if one of them is refused."""
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
        return None
    numbers = numbers.astype(np.float64)
    if symbol in STATES:
        return numbers
    if symbol.is_integer:
        least = 2 if symbol == task.classes else LOWER_BOUNDS.get(symbol, 1)
        return numbers if bool(((numbers >= least) & (numbers == np.floor(numbers))).all()) else None
    good = numbers > 0 if symbol.is_positive else numbers != 0 if symbol.is_nonzero else np.isfinite(numbers)
    return numbers if bool(good.all()) else None


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


def check_end(times: Array | None, end: float) -> None:
    """Raise a ``ValueError`` where an output grid goes beyond the end of its run."""
    if times is not None and times[-1] > end:
        raise ValueError(f"times: {times[-1]:.6g} (in t) lies beyond the end of the run, t={end:.6g}")


@dataclass(frozen=True)
class RunOptions:
    """What all runs of a batch share, checked when made: ends, output grid, tolerances, method.

    ``until_time`` and ``times`` are in the unit of ``time``.
    """

    until_loss: Any
    until_time: Any
    time: TimeName
    times: Any
    rtol: float
    atol: float | None
    method: str
    max_steps: int

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        read_time_name(self.time)
        check_choice("method", self.method, METHOD_NAMES)
        set_(self, "rtol", finite_number("rtol", self.rtol, positive=True))
        if not 1e-11 <= self.rtol <= 1e-3:
            raise ValueError(f"rtol={self.rtol}: expected a tolerance from 1e-11 to 1e-3")
        if self.atol is not None:
            set_(self, "atol", finite_number("atol", self.atol, positive=True))
        set_(self, "max_steps", int(finite_number("max_steps", self.max_steps, positive=True)))

    @property
    def agreement(self) -> float:
        """Largest deviation of two integrations of a trajectory that is returned."""
        return AGREEMENT * self.rtol

    def unit(self, parameters: Mapping[str, Any]) -> Any:
        """The value of ``t`` for one unit of the given times."""
        if self.time != "tau":
            return 1.0
        slower = np.minimum(parameters["eta_OV"], parameters["eta_QK"])
        return 1 / (slower if np.ndim(slower) else float(slower))

    def stop(self, unit: float) -> Stop:
        """The end of a run, in ``t``."""
        return read_stop(self.until_loss, self.until_time, unit)

    def times_in(self, unit: float) -> Array | None:
        """The output grid of a run, in ``t``."""
        return read_times(self.times, unit)
