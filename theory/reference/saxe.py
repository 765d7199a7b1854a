"""A two-layer linear net, mode by mode: white inputs, aligned and balanced start.

Source: arXiv 1312.6120.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sympy import Add, Integer, Matrix, Rational, Symbol, diag, diff, exp

from theory.models import Block, GradientFlow, Model, reduce_model
from theory.models.trial import Comparison, Trial, time
from theory.reference.common import reference_claim
from theory.registry import Claim, Obligation, Stated

s, tau, u, u0 = (Symbol(name, positive=True) for name in ("s", "tau", "u", "u_0"))
_growth = exp(2 * s * time / tau)


def full_model(targets: Sequence[Any], rate: Any) -> tuple[GradientFlow, Any, Any]:
    """``L = |diag(targets) - B A|^2/2`` with every entry of both layers trained."""
    size = len(targets)
    first, second = Block("A", (size, size), rate), Block("B", (size, size), rate)
    residual = diag(*targets) - second.array * first.array
    return reduce_model(Model((first, second), Add(*(e**2 for e in residual)) / 2)), first.array, second.array


def _aligned(flow: GradientFlow, modes: Sequence[Any]) -> dict[Symbol, Any]:
    """Both layers ``diag(modes)``."""
    return dict(zip(flow.states, [*diag(*modes), *diag(*modes)], strict=True))


def _obligations(stated: Stated) -> Iterator[Obligation]:
    targets, modes = (Matrix(2, 1, lambda i, _, n=n: Symbol(f"{n}_{i + 1}", positive=True)) for n in ("s", "w"))
    flow, first, second = full_model(list(targets), 1 / tau)
    line = _aligned(flow, list(modes))
    product = second * first
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        derived = flow.along(product[i, j]).xreplace(line)
        mode = {s: targets[i], u: modes[i] ** 2}
        yield Obligation(f"d(BA)[{i}, {j}]/dt", derived - (stated["rate"].xreplace(mode) if i == j else 0))
    solution = stated["solution"]
    yield Obligation("du/dt", diff(solution, time) - stated["rate"].xreplace({u: solution}))
    yield Obligation("u(0)", solution.xreplace({time: Integer(0)}) - u0)


def _trials() -> list[Trial]:
    targets, modes = [Integer(3), Rational(1, 2)], [Rational(1, 4), Rational(1, 3)]
    flow, first, second = full_model(targets, Rational(1, 2))

    def compare(stated: Stated) -> Iterator[Comparison]:
        for i in range(2):
            mode = {s: targets[i], tau: Integer(2), u0: modes[i] ** 2}
            yield Comparison(f"mode {i + 1}", (second * first)[i, i], stated["solution"].xreplace(mode))

    return [Trial("two modes", flow, _aligned(flow, modes), 4, compare)]


def claims() -> tuple[Claim, ...]:
    """`saxe-mode`."""
    stated = {"rate": 2 * u * (s - u) / tau, "solution": s * _growth / (_growth - 1 + s / u0)}
    text = "each mode of the product grows as tau du/dt = 2u(s - u), so u is a logistic curve from u_0 to s"
    assumptions = ("inputs are white", "the start is aligned with the modes and balanced", "u_0 > 0, s > 0")
    return (
        reference_claim(
            "saxe-mode", "Modes of a linear net", text, stated, _obligations, "arXiv 1312.6120", assumptions, _trials
        ),
    )
