"""One hidden linear neuron, ``beta = a w``: how relative rates and scales steer the direction of learning.

Source: arXiv 2406.06158.
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Matrix, Symbol, sqrt

from theory.reference.common import reference_claim
from theory.reference.kunin_run import a, beta, delta, eta_a, eta_w, filled, full_model, g, h, k, n2, trials, w2
from theory.registry import Claim, Obligation, Stated


def _obligations(stated: Stated) -> Iterator[Obligation]:
    gram = Matrix(2, 2, [Symbol(f"S_{i}{j}", real=True) for i, j in ("11", "12", "12", "22")])
    moment = Matrix([Symbol("m_1", real=True), Symbol("m_2", real=True)])
    flow, entries = full_model(gram, moment, (eta_a, eta_w))
    for i, entry in enumerate(entries):
        conserved, rate = filled(stated, entry, {})
        yield Obligation(f"dbeta_{i + 1}/dt", flow.along(entry[beta]) - rate)
        if i == 0:
            yield Obligation("d delta/dt", flow.along(conserved))


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
            trials,
        ),
    )
