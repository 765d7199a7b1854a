"""Cases of a user's model for `numerics.testing.check_on_line`: draw sizes, rates and a start, run, compare."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Symbol

from numerics.models.flow import NumericFlow
from numerics.models.full import Line, full_problem, simulate_full
from numerics.models.simulation import simulate_flow
from numerics.sizes import check_names
from theory.errors import GradlineError
from theory.inputs import exact
from theory.models import GradientFlow, Model

__all__ = ["Difference", "UserCases"]

Array = NDArray[np.float64]
Case = Mapping[str, float]

#: Rounding of velocities and losses of small models, sums of at most 10^4 terms in double precision, relative to the
#: largest of them.
_ROUNDING = 1e-10
#: Errors of both runs, each measured by a second integration: ten times their sum, and the growth of rounding in a run
#: in which entries move by about 1.
_TIMES, _FLOOR = 10.0, 1e-8
_RTOL = 1e-8
_REACH, _LONGEST = 1.0, 20.0


@dataclass(frozen=True)
class Difference:
    """Where the full model and the prediction differ by more than ``bound``."""

    what: str
    found: float
    predicted: float
    bound: float

    def __str__(self) -> str:
        return f"{self.what}: the full model has {self.found:.9g}, predicted {self.predicted:.9g}"


@dataclass(frozen=True, eq=False)
class UserCases:
    """A family of models with a predicted flow.

    ``model``, a `Model` or a function of sizes to one; ``flow``, a flow or a function of sizes to one; ``line``, the
    directions of each state by block, or a function of sizes to them, None for the orbits of the flow; ``sizes``, a
    strategy of them by name; ``ranges``, of parameters; ``starts``, the range of the states.
    """

    model: Model | Callable[..., Model]
    flow: Any
    line: Any
    sizes: Any
    ranges: Mapping[str, tuple[float, float]]
    starts: tuple[float, float]

    @cached_property
    def smallest(self) -> dict[str, int]:
        """The smallest sizes."""
        return smallest_sizes(self.sizes)

    def at_sizes(self, case: Case) -> tuple[Model, GradientFlow | NumericFlow]:
        """The model and the flow for the sizes of a case."""
        sizes = {name: int(case[name]) for name in self.smallest}
        model = self.model if isinstance(self.model, Model) else self.model(**sizes)
        flow = self.flow
        if not isinstance(flow, (GradientFlow, NumericFlow)):
            flow = flow(**sizes)
        if not isinstance(model, Model) or not isinstance(flow, (GradientFlow, NumericFlow)):
            raise TypeError(
                f"check_on_line: got {type(model).__name__} and {type(flow).__name__}; expected a Model and a "
                "GradientFlow or what numerics.reduce_model returns"
            )
        return model, flow

    def names(self) -> tuple[dict[str, Symbol], dict[str, Symbol]]:
        """Parameters other than sizes, and states, at the smallest sizes."""
        model, flow = self.at_sizes(self.smallest)
        found = {s.name: s for s in flow.parameters}
        found |= {s.name: s for block in model.blocks for s in exact(block.rate).free_symbols}
        if isinstance(model.loss, Expr):
            found |= {s.name: s for s in model.loss.free_symbols - set(model.symbols)}
        parameters = {n: s for n, s in sorted(found.items()) if n not in self.smallest}
        return parameters, {s.name: s for s in flow.states}

    def strategy(self) -> Any:
        """Sizes first, then parameters, then the start: each shrinks to its least or roundest value."""
        from hypothesis import strategies as st

        from numerics.strategies import decimals

        parameters, states = self.names()
        check_names("parameters", self.ranges, tuple(parameters) or ("",))
        drawn: dict[str, Any] = {}
        for name in parameters:
            drawn[name] = decimals(*self.ranges[name]) if name in self.ranges else st.sampled_from((1.0, 2.0, 0.5, 3.0))
        for name, state in states.items():
            low, high = self.starts
            drawn[name] = decimals(max(low, 0.1), max(high, 0.1)) if state.is_positive else decimals(low, high)
        return st.tuples(self.sizes, st.fixed_dictionaries(drawn)).map(lambda found: {**found[0], **found[1]})

    def differences(self, case: Case, run: bool = True) -> list[Difference]:
        """What differs in a case: velocities and loss at the start, then coordinates, loss and distance along a run."""
        model, flow = self.at_sizes(case)
        states = tuple(flow.states)
        directions = self.line
        if callable(directions) and not isinstance(directions, Mapping):
            directions = directions(**{name: int(case[name]) for name in self.smallest})
        if directions is None and not flow.orbits:
            raise ValueError("line: the flow has no orbits; expected the directions of its states by block")
        line = (
            Line.of_orbits(model, flow.orbits) if directions is None else Line.of_directions(model, states, directions)
        )
        values = np.array([float(case[s.name]) for s in states])
        known = {s.name: float(case[s.name]) for s in flow.parameters}
        start = line.matrix @ values
        names = [s.name for s in model.symbols]
        problem = full_problem(model, dict(case), start)
        speed = problem.field(start)
        predicted, loss = _at_start(flow, values, known)
        found = _entries(names, speed, line.matrix @ predicted, "d{}/dt at the start")
        if loss is not None and problem.loss is not None:
            found += _entries(["loss"], np.array([problem.loss(start)]), np.array([loss]), "{} at the start")
        if found or not run or not speed.any():
            return found
        end = min(_REACH / float(np.abs(speed).max()), _LONGEST)
        return _along(model, flow, line, (values, known, dict(case)), end)


def _at_start(flow: Any, values: Array, known: Mapping[str, float]) -> tuple[Array, float | None]:
    """The predicted velocities and loss."""
    if isinstance(flow, NumericFlow):
        return np.array(list(flow.velocity(values, known).values())), flow.loss(values)
    from numerics.kernels import compile_kernel

    found = [float(x) for x in compile_kernel(flow)(*values, *known.values())]
    count = len(flow.states)
    return np.array(found[:count]), (None if flow.loss is None else found[count])


def _entries(names: list[str], found: Array, predicted: Array, what: str) -> list[Difference]:
    bound = _ROUNDING * (1 + float(np.abs(found).max()))
    wrong = ~(np.abs(found - predicted) <= bound)
    return [
        Difference(what.format(names[i]), float(found[i]), float(predicted[i]), bound) for i in np.flatnonzero(wrong)
    ]


def _along(
    model: Model, flow: Any, line: Line, point: tuple[Array, dict[str, float], dict[str, float]], end: float
) -> list[Difference]:
    """The run of the full model against the predicted one at a third, two thirds and the end."""
    values, known, case = point
    times = np.array([0.0, end / 3, 2 * end / 3, end])
    full = simulate_full(model, case, line.matrix @ values, times=times, rtol=_RTOL)
    begin = dict(zip((s.name for s in flow.states), values.tolist(), strict=True))
    try:
        run = simulate_flow(flow, known, begin, until_time=end, times=times, rtol=_RTOL)
    except GradlineError as error:
        return [Difference(f"the predicted flow can't be integrated ({error})", end, 0.0, 0.0)]
    bound = _TIMES * (full.error_estimate + run.error_estimate) + _FLOOR
    actual = line.coordinates(full.entries)
    rows = [(s.name, actual[:, i], run.values[s.name]) for i, s in enumerate(flow.states)]
    rows.append(("distance from the line", line.distance(full.entries), np.zeros(len(times))))
    if run.loss is not None:
        rows.append(("loss", full.loss, run.loss))
    found = []
    for name, one, other in rows:
        for i, time in enumerate(times):
            limit = bound * (1 + abs(float(one[i])))
            if not abs(one[i] - other[i]) <= limit:
                found.append(Difference(f"{name} at t={time:.4g}", float(one[i]), float(other[i]), limit))
                break
    return found


def smallest_sizes(strategy: Any) -> dict[str, int]:
    """The sizes that a strategy shrinks to; ``TypeError`` where it draws something else."""
    from hypothesis import find, settings

    found = find(strategy, lambda _: True, settings=settings(database=None), random=Random(0))
    if not isinstance(found, Mapping) or not all(isinstance(k, str) and type(v) is int for k, v in found.items()):
        raise TypeError(f"sizes: the strategy draws {found!r}; expected integers by name, see strategies.sizes")
    return dict(found)


def drawn_sizes(given: Any, needed: Sequence[str]) -> Any:
    """The strategy of the sizes that a function needs, from ranges by name or a strategy.

    Raises: ``ValueError`` for a size without a range.
    """
    from hypothesis import strategies as st

    from numerics.strategies import sizes

    if isinstance(given, st.SearchStrategy):
        strategy, names = given, list(smallest_sizes(given))
    else:
        ranges = {str(name): bounds for name, bounds in dict(given or {}).items()}
        strategy, names = (sizes(**ranges) if ranges else st.just({})), list(ranges)
    missing = [name for name in needed if name not in names]
    if missing:
        raise ValueError(f"sizes: none for {missing[0]}; expected a range for each of {', '.join(needed)}")
    return strategy


def size_names(function: Any) -> tuple[str, ...]:
    """The names of the sizes that a function needs: its arguments without a default."""
    empty = inspect.Parameter.empty
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    given = inspect.signature(function).parameters.values()
    return tuple(p.name for p in given if p.default is empty and p.kind in named)
