"""Balance through an activation: what each hidden unit of ``U sigma(V^T)`` conserves.

Source: arXiv 2210.17216.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import Add, Matrix, Rational, Symbol, exp, sinh, tanh

from theory.models import Block, Model, reduce_model
from theory.models.trial import Comparison, Trial
from theory.reference.common import along_potential, reference_claim
from theory.registry import Claim, Obligation, Stated

x = Symbol("x", real=True)
ACTIVATIONS = {"linear": x, "tanh": tanh(x), "sigmoid": 1 / (1 + exp(-x))}


def _activation(stated: Stated) -> Iterator[Obligation]:
    """One hidden unit, two inputs, two outputs; units don't meet in ``U sigma(V^T)``, nor in their laws."""
    u, v = Block("u", (2,)), Block("v", (2,))
    for name, activation in ACTIVATIONS.items():
        law = Add(*(e**2 for e in u.symbols)) / 2 - Add(*(stated[name].xreplace({x: e}) for e in v.symbols))
        for i, out in enumerate(u.symbols):
            for j, weight in enumerate(v.symbols):
                potential = out * activation.xreplace({x: weight})
                yield Obligation(
                    f"d/dt, {name}, entry {i}, {j}", along_potential(law, potential, [*u.symbols, *v.symbols])
                )


def _activation_trial() -> list[Trial]:
    u, v = Block("U", (2, 2)), Block("V", (2, 2))
    target = Matrix([[1, 0], [-1, Rational(1, 2)]])
    found = []
    for name in ("tanh", "sigmoid"):
        output = u.array * v.array.T.applyfunc(lambda e, name=name: ACTIVATIONS[name].xreplace({x: e}))
        flow = reduce_model(Model((u, v), Add(*(e**2 for e in output - target)) / 2))
        values = [Rational(k, 10) for k in (5, -3, 2, 7, 4, -6, 1, 3)]
        start = dict(zip(flow.states, values, strict=True))

        def compare(stated: Stated, name: str = name, start: Any = start) -> Iterator[Comparison]:
            for j in range(2):
                inner = Add(*(stated[name].xreplace({x: e}) for e in v.array[:, j]))
                law = Add(*(e**2 for e in u.array[:, j])) / 2 - inner
                yield Comparison(f"unit {j + 1}", law, law.xreplace(start))

        found.append(Trial(name, flow, start, 2, compare))
    return found


def claims() -> tuple[Claim, ...]:
    """`activation-balance`."""
    stated = {"linear": x**2 / 2, "tanh": sinh(x) ** 2 / 2, "sigmoid": x + exp(x)}
    title = "Balance through an activation"
    text = "U sigma(V^T), identity data: |u_j|^2/2 - sum_i int^(v_ij) sigma/sigma' is conserved for each hidden unit"
    source = "arXiv 2210.17216"
    return (reference_claim("activation-balance", title, text, stated, _activation, source, (), _activation_trial),)
