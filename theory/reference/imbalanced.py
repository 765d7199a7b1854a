"""A product of two vectors from any start.

Source: Tarmoun, Franca, Haeffele and Vidal 2021.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import Add, Integer, Rational, Symbol, sqrt

from theory.models import Block, GradientFlow, Model, reduce_model
from theory.models.trial import Comparison, Trial
from theory.reference.common import reference_claim
from theory.registry import Claim, Obligation, Stated

SIZES = (1, 2, 3)
c, x, y = Symbol("c", nonnegative=True), Symbol("x", real=True), Symbol("y", real=True)
#: ``p = |u|^2 + |v|^2``
p = Symbol("p", nonnegative=True)


def full_model(size: int, target: Any = y) -> tuple[GradientFlow, dict[Symbol, Any]]:
    """``L = (u.v - y)^2/2`` with all entries trained; and ``x, p`` in the entries."""
    u, v = Block("u", (size,)), Block("v", (size,))
    product = (u.array.T * v.array)[0, 0]
    flow = reduce_model(Model((u, v), (product - target) ** 2 / 2))
    return flow, {x: product, p: Add(*(e**2 for e in (*u.symbols, *v.symbols)))}


def _obligations(stated: Stated) -> Iterator[Obligation]:
    for size in SIZES:
        flow, entries = full_model(size)
        conserved = stated["conserved"].xreplace(entries)
        yield Obligation(f"d/dt of the conserved value, size {size}", flow.along(conserved))
        rate = stated["rate"].xreplace({c: conserved, **entries})
        yield Obligation(f"dx/dt, size {size}", flow.along(entries[x]) - rate)


def _trials() -> list[Trial]:
    flow, entries = full_model(2, Integer(2))
    start = dict(zip(flow.states, [Rational(1, 2), -1, Rational(3, 10), Rational(1, 5)], strict=True))

    def compare(stated: Stated) -> Iterator[Comparison]:
        conserved = stated["conserved"].xreplace(entries)
        first = conserved.xreplace(start)
        yield Comparison("conserved", conserved, first)
        yield Comparison("dx/dt", flow.along(entries[x]), stated["rate"].xreplace({c: first, y: Integer(2), **entries}))

    return [Trial("vectors of two entries", flow, start, 3, compare)]


def claims() -> tuple[Claim, ...]:
    """`imbalanced-product`."""
    stated = {"conserved": p**2 - 4 * x**2, "rate": (y - x) * sqrt(c + 4 * x**2)}
    text = "(|u|^2 + |v|^2)^2 - 4 x^2 = c is conserved and dx/dt = (y - x) sqrt(c + 4 x^2), x = u.v; sizes 1 to 3"
    source = "Tarmoun et al., ICML 2021"
    return (
        reference_claim(
            "imbalanced-product", "A product with imbalance", text, stated, _obligations, source, (), _trials
        ),
    )
