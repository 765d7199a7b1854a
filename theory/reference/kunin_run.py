"""The explicit neuron and its runs. Source: arXiv 2406.06158."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import Add, Integer, Matrix, Rational, Symbol

from theory.models import Block, GradientFlow, Model, reduce_model
from theory.models.trial import Comparison, Trial
from theory.registry import Stated

eta_a, eta_w = Symbol("eta_a", positive=True), Symbol("eta_w", positive=True)
delta, k = Symbol("delta", real=True), Symbol("k", positive=True)
#: ``beta`` entry by entry, ``n2 = |beta|^2``, ``w2 = |w|^2``, ``g = X^T X beta - X^T y`` and ``h = beta.g``.
a, beta, g, h = (Symbol(name, real=True) for name in ("a", "beta", "g", "h"))
n2, w2 = Symbol("n2", positive=True), Symbol("w2", positive=True)


def full_model(gram: Any, moment: Any, rates: tuple[Any, Any]) -> tuple[GradientFlow, list[dict[Symbol, Any]]]:
    """``L = beta^T S beta/2 - beta^T m``, ``S = X^T X``, ``m = X^T y``; for each entry the symbols above."""
    neuron, weights = Block("a", 1, rates[0]), Block("w", (2,), rates[1])
    (scale,) = neuron.symbols
    product = scale * weights.array
    loss = (product.T * gram * product)[0, 0] / 2 - (product.T * moment)[0, 0]
    flow = reduce_model(Model((neuron, weights), loss))
    slope = gram * product - moment
    common = {
        n2: Add(*(e**2 for e in product)),
        w2: Add(*(e**2 for e in weights.array)),
        h: (product.T * slope)[0, 0],
        a: scale,
    }
    return flow, [{beta: product[i], g: slope[i], **common} for i in range(2)]


def filled(stated: Stated, entry: dict[Symbol, Any], rates: dict[Symbol, Any]) -> tuple[Any, Any]:
    conserved = stated["conserved"].xreplace(rates).xreplace(entry)
    root = stated["k"].xreplace(rates).xreplace({delta: conserved, **entry})
    return conserved, stated["rate"].xreplace({k: root, delta: conserved, **entry})


def trials() -> list[Trial]:
    rates = (Rational(1, 2), Integer(2))
    gram, moment = Matrix([[2, Rational(1, 2)], [Rational(1, 2), 1]]), Matrix([1, -1])
    flow, entries = full_model(gram, moment, rates)
    start = dict(zip(flow.states, [Rational(4, 5), Rational(1, 2), Rational(1, 4)], strict=True))
    values = dict(zip((eta_a, eta_w), rates, strict=True))

    def compare(stated: Stated) -> Iterator[Comparison]:
        for i, entry in enumerate(entries):
            conserved, rate = filled(stated, entry, values)
            yield Comparison("delta", conserved, conserved.xreplace(start))
            yield Comparison(f"dbeta_{i + 1}/dt", flow.along(entry[beta]), rate)

    return [Trial("two inputs", flow, start, 2, compare)]
