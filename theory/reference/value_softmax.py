"""Value and softmax: linear laws of the scores, and one that joins scores and values.

Source: setting of arXiv 2603.06248, laws derived here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sympy import Add, Rational, Symbol, cosh, exp

from theory.models import Block, Model, reduce_model
from theory.models.trial import Comparison, Trial
from theory.reference.common import along_potential, reference_claim
from theory.registry import Claim, Obligation, Stated

q, first, second, third = (Symbol(name, real=True) for name in ("q", "a_1", "a_2", "a_3"))


def _softmax(scores: Sequence[Any]) -> list[Any]:
    total = Add(*(exp(s) for s in scores))
    return [exp(s) / total for s in scores]


def _value_softmax(stated: Stated) -> Iterator[Obligation]:
    values = [Symbol(f"v_{i}", real=True) for i in range(1, 4)]
    for count, name in ((2, "sum of two"), (3, "sum of three"), (2, "two slots")):
        scores = [first, second, third][:count]
        mixed = Add(*(p * v for p, v in zip(_softmax(scores), values, strict=False)))
        law = stated[name].xreplace({q: (values[0] - values[1]) ** 2})
        yield Obligation(f"d/dt, {name}", along_potential(law, mixed, [*scores, *values[:count]]))


def _softmax_trial() -> list[Trial]:
    v, a = Block("v", (2,)), Block("a", (2,))
    mixed = Add(*(p * e for p, e in zip(_softmax(a.symbols), v.symbols, strict=True)))
    flow = reduce_model(Model((v, a), (mixed - 1) ** 2 / 2))
    start = dict(zip(flow.states, [Rational(1, 2), -1, Rational(1, 5), Rational(-2, 5)], strict=True))

    def compare(stated: Stated) -> Iterator[Comparison]:
        names = {q: (v.symbols[0] - v.symbols[1]) ** 2, first: a.symbols[0], second: a.symbols[1]}
        for name in ("sum of two", "two slots"):
            law = stated[name].xreplace(names)
            yield Comparison(name, law, law.xreplace(start))

    return [Trial("two slots", flow, start, 3, compare)]


def claims() -> tuple[Claim, ...]:
    """`value-softmax`."""
    stated = {
        "sum of two": first + second,
        "sum of three": first + second + third,
        "two slots": cosh(first - second) - q / 2,
    }
    text = "L(V softmax(a)): sum a_i is conserved, and with two slots cosh(a_1 - a_2) - |v_1 - v_2|^2/2"
    source = "setting of arXiv 2603.06248"
    return (
        reference_claim("value-softmax", "Value and softmax", text, stated, _value_softmax, source, (), _softmax_trial),
    )
