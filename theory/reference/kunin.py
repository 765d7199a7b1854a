"""One hidden linear neuron, ``beta = a w``: how relative rates and scales steer the direction of learning.

Source: arXiv 2406.06158.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import Add, Integer, Matrix, Rational, Symbol, sqrt

from theory.models import Block, GradientFlow, Model, reduce_model
from theory.models.trial import Comparison, Trial
from theory.reference.common import reference_claim
from theory.registry import Claim, Obligation, Stated

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


def _filled(stated: Stated, entry: dict[Symbol, Any], rates: dict[Symbol, Any]) -> tuple[Any, Any]:
    conserved = stated["conserved"].xreplace(rates).xreplace(entry)
    root = stated["k"].xreplace(rates).xreplace({delta: conserved, **entry})
    return conserved, stated["rate"].xreplace({k: root, delta: conserved, **entry})


def _obligations(stated: Stated) -> Iterator[Obligation]:
    gram = Matrix(2, 2, [Symbol(f"S_{i}{j}", real=True) for i, j in ("11", "12", "12", "22")])
    moment = Matrix([Symbol("m_1", real=True), Symbol("m_2", real=True)])
    flow, entries = full_model(gram, moment, (eta_a, eta_w))
    for i, entry in enumerate(entries):
        conserved, rate = _filled(stated, entry, {})
        yield Obligation(f"dbeta_{i + 1}/dt", flow.along(entry[beta]) - rate)
        if i == 0:
            yield Obligation("d delta/dt", flow.along(conserved))


def _trials() -> list[Trial]:
    rates = (Rational(1, 2), Integer(2))
    gram, moment = Matrix([[2, Rational(1, 2)], [Rational(1, 2), 1]]), Matrix([1, -1])
    flow, entries = full_model(gram, moment, rates)
    start = dict(zip(flow.states, [Rational(4, 5), Rational(1, 2), Rational(1, 4)], strict=True))
    values = dict(zip((eta_a, eta_w), rates, strict=True))

    def compare(stated: Stated) -> Iterator[Comparison]:
        for i, entry in enumerate(entries):
            conserved, rate = _filled(stated, entry, values)
            yield Comparison("delta", conserved, conserved.xreplace(start))
            yield Comparison(f"dbeta_{i + 1}/dt", flow.along(entry[beta]), rate)

    return [Trial("two inputs", flow, start, 2, compare)]


def claims() -> tuple[Claim, ...]:
    """`kunin-single-neuron`."""
    stated = {
        "conserved": eta_w * a**2 - eta_a * w2,
        "k": sqrt(delta**2 + 4 * eta_a * eta_w * n2),
        "rate": -(k + delta) / 2 * g - (k - delta) / 2 * beta * h / n2,
    }
    text = (
        "delta = eta_w a^2 - eta_a |w|^2 is conserved, dbeta/dt = -[(k+delta)/2 I + (k-delta)/2 beta beta^T/|beta|^2] "
        "(X^T X beta - X^T y), k = sqrt(delta^2 + 4 eta_a eta_w |beta|^2); shown with two inputs"
    )
    return (
        reference_claim(
            "kunin-single-neuron",
            "A single neuron",
            text,
            stated,
            _obligations,
            "arXiv 2406.06158",
            ("beta is not 0",),
            _trials,
        ),
    )
