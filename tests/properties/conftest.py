"""What the property tests share: wrong formulas, and a search that must find where they fail."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, settings
from sympy import Integer

from numerics.strategies import Experiment
from theory.flow import ReducedFlow, Velocity
from theory.model import AttentionModel
from theory.symbols import M, N, b, eta_OV, eta_QK, mu_OV, mu_QK
from theory.task import TokenTask


@pytest.fixture(scope="session")
def counterexample() -> Callable[..., Any]:
    """Search for an example on which a wrong formula fails: ``NoSuchExample`` where it passes for all of them."""
    options = settings(
        max_examples=40,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    def search(strategy: Any, fails: Callable[[Any], bool]) -> Any:
        return find(strategy, fails, settings=options, random=Random(1))

    return search


@dataclass(frozen=True)
class Wrong:
    """A wrong flow: its name, what it multiplies each velocity by, and where it really differs."""

    name: str
    factors: Callable[[TokenTask], dict[Any, Any]]
    applies: Callable[[Experiment], bool] = lambda _: True
    noise: str = "any"

    def flow(self, flow: ReducedFlow) -> ReducedFlow:
        """The flow with the wrong formula in both of its forms."""
        changes: dict[str, Any] = {}
        for form in ("velocity", "compact"):
            given = getattr(flow, form)
            if self.name == "rates swapped":
                changes[form] = Velocity({s: given[s].xreplace({eta_OV: eta_QK, eta_QK: eta_OV}) for s in given})
            else:
                factors = self.factors(flow.task)
                changes[form] = Velocity({s: given[s] * factors.get(s, Integer(1)) for s in given})
        return replace(flow, **changes)


def _seen(task: TokenTask) -> Any:
    return task.classes * task.block if task.query_kind == "shared" else task.block


WRONG = (
    Wrong("factor 2 in query-key", lambda _: {mu_QK: Integer(2)}),
    Wrong("factor 2 in output-value", lambda _: {mu_OV: Integer(2)}),
    Wrong("b for b^2", lambda _: {mu_QK: b}, lambda e: e.model.task.block > 1),
    Wrong("rates swapped", lambda _: {}, lambda e: e.rates["eta_OV"] != e.rates["eta_QK"]),
    Wrong("M for M-1", lambda _: {mu_QK: M / (M - 1)}),
    Wrong("noise correction dropped", lambda task: {mu_QK: N / (_seen(task) + N)}, noise="finite"),
)


@pytest.fixture(params=WRONG, ids=lambda wrong: wrong.name)
def wrong(request: pytest.FixtureRequest) -> Wrong:
    """Each wrong formula in turn."""
    found: Wrong = request.param
    return found


@pytest.fixture(scope="session", autouse=True)
def warm() -> None:
    """Import and derive once, so that no example pays for it."""
    from numerics.predictions import confront, general_flow, observe

    model = AttentionModel(TokenTask(2, 1, 1, 1, 1, 1))
    seen = observe(model, {"eta_OV": 1, "eta_QK": 1}, {"mu_OV": 0.5, "mu_QK": 0.5}, [0.0, 0.1])
    assert confront(*general_flow(model), seen).holds
    assert "torch" in sys.modules
