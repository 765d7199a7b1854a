"""The balance of two factors under weight decay: it decays at a rate of its own.

Source: arXiv 2506.06194.
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Add, Matrix, Rational, Symbol, diff, exp

from theory.models import Block, GradientFlow
from theory.models.trial import Comparison, Trial, time
from theory.reference.common import reference_claim
from theory.registry import Claim, Obligation, Stated
from theory.words import gradient, matrix

U, V, G = matrix("U"), matrix("V"), matrix("G")
eta, decay = Symbol("eta", positive=True), Symbol("lambda", positive=True)


def _weight_decay(stated: Stated) -> Iterator[Obligation]:
    product = U @ V.T
    velocity = {name: (-eta) * (gradient(product, "G", name) + decay * letter) for name, letter in (("U", U), ("V", V))}
    balance = U.T @ U - V.T @ V
    rate = stated["rate"]
    yield Obligation("d/dt of the balance", balance.derivative(velocity) + rate * balance)


def _trials() -> list[Trial]:
    """Factors of two columns, ``L = |U V^T - T|^2/2``, with decay on every entry."""
    u, v = Block("U", (2, 2)), Block("V", (2, 2))
    target = Matrix([[1, 0], [Rational(1, 2), -1]])
    loss = Add(*(e**2 for e in u.array * v.array.T - target)) / 2
    known = {eta: Rational(3, 4), decay: Rational(2, 5)}
    entries = (*u.symbols, *v.symbols)
    flow = GradientFlow({e: -known[eta] * (diff(loss, e) + known[decay] * e) for e in entries}, name="weight decay")
    start = dict(zip(entries, [Rational(k, 10) for k in (8, -3, 2, 6, 4, -7, 1, 5)], strict=True))
    balance = u.array.T * u.array - v.array.T * v.array

    def compare(stated: Stated) -> Iterator[Comparison]:
        shrunk = exp(-stated["rate"].xreplace(known) * time)
        for i, j in ((0, 0), (0, 1), (1, 1)):
            yield Comparison(f"balance[{i}, {j}]", balance[i, j], balance[i, j].xreplace(start) * shrunk)

    return [Trial("two factors", flow, start, 2, compare)]


def claims() -> tuple[Claim, ...]:
    """`weight-decay-balance`."""
    stated, title = {"rate": 2 * eta * decay}, "Balance under weight decay"
    text = "dP/dt = -eta (dL/dP + lambda P): U^T U - V^T V scales as e^(-2 eta lambda t)"
    source = "arXiv 2506.06194"
    return (reference_claim("weight-decay-balance", title, text, stated, _weight_decay, source, (), _trials),)
