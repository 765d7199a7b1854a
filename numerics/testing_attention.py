"""Cases of the built-in model for `numerics.testing.check_on_line`: draw what is a symbol in its task, run, compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sympy import Symbol

from numerics.gradient_flow import Objective
from numerics.kernels import Kernel, compile_kernel
from numerics.predictions import confront, extreme_curvatures, observe, witness
from numerics.testing_models import Difference
from theory.flow import ReducedFlow
from theory.model import AttentionModel

__all__ = ["AttentionCases"]

Case = Mapping[str, float]

_FIELDS = ("classes", "block", "queries", "noise", "informative_slots", "noise_slots", "score_scale")
_ENTRIES = 1_500
#: A bound above this proves nothing.
_VACUOUS = 1e-3
#: Rounding of velocities, sums of at most 1500 terms in double precision, relative to the largest of them.
_ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class AttentionCases:
    """An attention model, symbols among its sizes, and a predicted flow."""

    model: AttentionModel
    flow: ReducedFlow

    @cached_property
    def kernel(self) -> Kernel:
        """The velocities of the flow."""
        return compile_kernel(self.flow, outputs=["d_mu_OV", "d_mu_QK"])

    def strategy(self) -> Any:
        """Sizes that are symbols, rates, and a start on the line."""
        from hypothesis import strategies as st

        from numerics.strategies import rates, starts, tasks

        task = self.model.task
        noise: Any = "finite" if task.noise_is_finite else "infinite"
        open_ = [f for f in _FIELDS if isinstance(getattr(task, f), Symbol)]

        def named(drawn: Any) -> dict[str, Any]:
            found, rate, start = drawn
            return {getattr(task, f).name: getattr(found, f) for f in open_} | rate | start

        sizes = tasks(query_kind=task.query_kind, noise=noise, max_entries=_ENTRIES)
        return st.tuples(sizes, rates(), starts(self.model)).map(named)

    def differences(self, case: Case, run: bool = True) -> list[Difference]:
        """What differs at the start, then along a run in about the time in which output-value moves by 1."""
        given: dict[str, Any] = {f: case[getattr(self.model.task, f).name] for f in self._open()}
        task = replace(self.model.task, **given)
        model = replace(self.model, task=task)
        rates = {name: float(case[name]) for name in ("eta_OV", "eta_QK")}
        start = {name: float(case[name]) for name in ("mu_OV", "mu_QK")}
        objective = Objective(witness(model, start), rates)
        values = {s.name: float(case[s.name]) for s in self.flow.parameters}
        found = _at_start(self.kernel, objective, [*start.values(), *values.values()])
        if found or not run:
            return found
        values = {name: value for name, value in values.items() if name not in rates}
        slots = float((task.informative_slots + task.noise_slots) / task.informative_slots)
        natural = float(task.classes * task.block) * slots / rates["eta_OV"]
        pace = max(-extreme_curvatures(objective, objective.start)[0], 1e-9)
        seen = observe(model, rates, start, np.linspace(0, min(natural, 2 / pace), 4))
        if max(seen.budget_OV[-1], seen.budget_QK[-1]) > _VACUOUS:
            return []
        compared = confront(self.flow, values, seen)
        for name, gap in compared.found.items():
            bound = compared.bound[name]
            at = int(np.argmax(gap / bound))
            if not gap[at] <= bound[at]:
                what = name if name.startswith("distance") else f"{name} minus its prediction"
                found.append(Difference(f"{what} at t={seen.run.t[at]:.4g}", float(gap[at]), 0.0, float(bound[at])))
        return found

    def _open(self) -> list[str]:
        return [f for f in _FIELDS if isinstance(getattr(self.model.task, f), Symbol)]


def _at_start(kernel: Kernel, objective: Objective, arguments: list[float]) -> list[Difference]:
    """The velocity of each effective matrix, ``dW/dt`` or ``dU/dt V^T + U dV/dt^T``, against ``E dmu/dt``."""
    net = objective.net
    state, speed = (
        objective.split(torch.from_numpy(x)) for x in (objective.start, objective.velocity(0, objective.start))
    )
    predicted = dict(zip(("OV", "QK"), kernel(*arguments), strict=True))
    directions = {"OV": net.directions().E_OV, "QK": net.directions().E_QK}
    found = []
    for circuit, E in directions.items():
        if net.kinds[circuit] == "collapsed":
            actual = (speed[f"W_{circuit}"] * net.embedding).numpy()
        else:
            (U, V), (dU, dV) = ((x[f"U_{circuit}"], x[f"V_{circuit}"]) for x in (state, speed))
            actual = ((dU @ V.T + U @ dV.T) * net.embedding).numpy()
        expected = float(predicted[circuit]) * E
        bound = _ROUNDING * (1 + float(np.abs(actual).max()))
        at = np.unravel_index(int(np.abs(actual - expected).argmax()), E.shape)
        if not abs(actual[at] - expected[at]) <= bound:
            what = f"dW_{circuit}[{int(at[0])}, {int(at[1])}]/dt at the start"
            found.append(Difference(what, float(actual[at]), float(expected[at]), bound))
    return found
