"""Conservation laws of the literature: value and softmax, activation balance, balances under weight decay.

Sources: setting of arXiv 2603.06248 (value-softmax, laws derived here); arXiv 2210.17216; arXiv 2506.06194.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sympy import Add, Expr, Matrix, Rational, Symbol, cosh, diff, exp, sinh, tanh

from theory.models import Block, Model, reduce_model
from theory.models.trial import Comparison, Trial
from theory.reference.common import reference_claim
from theory.registry import Claim, Obligation, Stated
from theory.words import gradient, matrix

U, V, W, G = matrix("U"), matrix("V"), matrix("W"), matrix("G")
eta, decay = Symbol("eta", positive=True), Symbol("lambda", positive=True)
x, q, first, second, third = (Symbol(name, real=True) for name in ("x", "q", "a_1", "a_2", "a_3"))
ACTIVATIONS = {"linear": x, "tanh": tanh(x), "sigmoid": 1 / (1 + exp(-x))}


def _along(law: Expr, potential: Expr, entries: Sequence[Symbol]) -> Expr:
    """The derivative of a law along the gradient of a potential."""
    return Add(*(diff(law, e) * diff(potential, e) for e in entries))


def _softmax(scores: Sequence[Any]) -> list[Any]:
    total = Add(*(exp(s) for s in scores))
    return [exp(s) / total for s in scores]


def _value_softmax(stated: Stated) -> Iterator[Obligation]:
    values = [Symbol(f"v_{i}", real=True) for i in range(1, 4)]
    for count, name in ((2, "sum of two"), (3, "sum of three"), (2, "two slots")):
        scores = [first, second, third][:count]
        mixed = Add(*(p * v for p, v in zip(_softmax(scores), values, strict=False)))
        law = stated[name].xreplace({q: (values[0] - values[1]) ** 2})
        yield Obligation(f"d/dt, {name}", _along(law, mixed, [*scores, *values[:count]]))


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


def _activation(stated: Stated) -> Iterator[Obligation]:
    """One hidden unit, two inputs, two outputs; units don't meet in ``U sigma(V^T)``, nor in their laws."""
    u, v = Block("u", (2,)), Block("v", (2,))
    for name, activation in ACTIVATIONS.items():
        law = Add(*(e**2 for e in u.symbols)) / 2 - Add(*(stated[name].xreplace({x: e}) for e in v.symbols))
        for i, out in enumerate(u.symbols):
            for j, weight in enumerate(v.symbols):
                potential = out * activation.xreplace({x: weight})
                yield Obligation(f"d/dt, {name}, entry {i}, {j}", _along(law, potential, [*u.symbols, *v.symbols]))


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


def _weight_decay(stated: Stated) -> Iterator[Obligation]:
    product = U @ V.T
    velocity = {name: (-eta) * (gradient(product, "G", name) + decay * letter) for name, letter in (("U", U), ("V", V))}
    balance = U.T @ U - V.T @ V
    rate = stated["rate"]
    yield Obligation("d/dt of the balance", balance.derivative(velocity) + rate * balance)


def claims() -> tuple[Claim, ...]:
    """`value-softmax`, `activation-balance`, `weight-decay-balance`."""
    softmax = {
        "sum of two": first + second,
        "sum of three": first + second + third,
        "two slots": cosh(first - second) - q / 2,
    }
    balances = {"linear": x**2 / 2, "tanh": sinh(x) ** 2 / 2, "sigmoid": x + exp(x)}
    return (
        reference_claim(
            "value-softmax",
            "Value and softmax",
            "L(V softmax(a)): sum a_i is conserved, and with two slots cosh(a_1 - a_2) - |v_1 - v_2|^2/2",
            softmax,
            _value_softmax,
            "setting of arXiv 2603.06248",
            (),
            _softmax_trial,
        ),
        reference_claim(
            "activation-balance",
            "Balance through an activation",
            "U sigma(V^T), identity data: |u_j|^2/2 - sum_i int^(v_ij) sigma/sigma' is conserved for each hidden unit",
            balances,
            _activation,
            "arXiv 2210.17216",
            (),
            _activation_trial,
        ),
        reference_claim(
            "weight-decay-balance",
            "Balance under weight decay",
            "dP/dt = -eta (dL/dP + lambda P): U^T U - V^T V scales as e^(-2 eta lambda t)",
            {"rate": 2 * eta * decay},
            _weight_decay,
            "arXiv 2506.06194",
        ),
    )
