"""First integrals of any flow of two states, by separation; and why there is none."""

from __future__ import annotations

from typing import Any

import pytest
from sympy import Add, Rational, Symbol, atan, diff, exp, log, symbols, tanh

import theory
from theory.errors import GradlineError
from theory.identities import prove_zero
from theory.models import GradientFlow
from theory.primitives import rational_antiderivative

u, v = symbols("u v", real=True)
p, q, k = (Symbol(name, positive=True) for name in ("p", "q", "k"))

#: Flow and the integral by hand, up to a factor and a constant.
KNOWN: list[tuple[dict[Symbol, Any], Any]] = [
    ({u: v, v: k * u}, v**2 - k * u**2),
    # Lotka and Volterra
    ({p: p * (1 - q), q: q * (p - k)}, log(q) - q - p + k * log(p)),
    ({u: (1 + u**2) * v, v: k * u}, v**2 - k * log(1 + u**2)),
    ({u: 1 + u**2, v: k}, v - k * atan(u)),
    ({p: p * (2 - p), q: q}, log(q) - (log(p) - log(2 - p)) / 2),
    ({u: exp(v), v: exp(u)}, exp(v) - exp(u)),
    ({u: 1, v: tanh(u)}, v - log(exp(2 * u) + 1) + u),
    # one hidden unit and its sigmoid
    ({u: 1 / (1 + exp(-v)), v: u * exp(-v) / (1 + exp(-v)) ** 2}, u**2 / 2 - v - exp(v)),
]


def _drift(value: Any, flow: GradientFlow) -> str:
    return prove_zero(Add(*(diff(value, s).rewrite(exp) * w.rewrite(exp) for s, w in flow.velocity.items()))).answer


@pytest.mark.parametrize(("velocity", "by_hand"), KNOWN, ids=lambda x: str(x)[:30])
def test_known_integrals(velocity: dict[Symbol, Any], by_hand: Any) -> None:
    flow = GradientFlow(velocity)
    law = theory.first_integral(flow)
    assert _drift(by_hand, flow) == "equal"
    assert _drift(law.value, flow) == "equal"
    first, second = flow.states
    assert not law.x.has(second)
    assert not law.y.has(first)
    # both are constant along the flow: their gradients are parallel
    cross = diff(law.value, first) * diff(by_hand, second) - diff(law.value, second) * diff(by_hand, first)
    assert prove_zero(cross).answer == "equal"
    assert _drift(law.y - 2 * law.slope * law.x, flow) == "different", "the twin: twice the slope is no integral"


def test_what_logarithms_need_is_said() -> None:
    flow = GradientFlow({u: u, v: v * (1 - v)})
    law = theory.first_integral(flow)
    assert {str(a) for a in law.assumptions} >= {"u > 0"}
    assert "u < 0" in {str(a) for a in theory.first_integral(flow, {"u": -1}).assumptions}
    assert _drift(theory.first_integral(flow, {"u": -1}).value, flow) == "equal"


@pytest.mark.parametrize(
    ("velocity", "error", "message"),
    [
        ({u: v, v: 1 + u * v}, GradlineError, r"the factor u\*v \+ 1 mixes u and v; no separable form"),
        ({u: v, v: exp(u * v)}, GradlineError, r"exp\(u\*v\) mixes u and v"),
        ({u: log(v), v: u}, GradlineError, "not rational in exponentials, square roots and the states"),
        ({u: u**2 * exp(u), v: v}, GradlineError, r"no antiderivative of exp\(-u\)/u\*\*2 among the primitives"),
        ({u: v}, ValueError, "flow has 1 states, u; expected two"),
        ({u: 0, v: u}, ValueError, "u never moves"),
    ],
)
def test_no_integral(velocity: dict[Symbol, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        theory.first_integral(GradientFlow(velocity))


@pytest.mark.parametrize(
    "integrand",
    [
        1 / (u * (k - u)),
        (u + 1) / (u**2 + k),
        u**2 / (u - 1) ** 3,
        1 / (1 + exp(u)),
        exp(2 * u) / (1 + exp(u)) ** 2,
        exp(Rational(1, 2) * u) / (1 + exp(u)),
    ],
    ids=str,
)
def test_rational_antiderivatives(integrand: Any) -> None:
    found = rational_antiderivative(integrand, u)
    assert found is not None
    assert prove_zero(diff(found[0], u) - integrand).answer == "equal"
    assert prove_zero(diff(found[0], u) - 2 * integrand).answer == "different"


def test_no_rational_antiderivative() -> None:
    assert rational_antiderivative(1 / (u**3 + u + 1), u) is None
    assert rational_antiderivative(u / (1 + exp(u)), u) is None
    assert rational_antiderivative(1 / (exp(u) + exp(k * u)), u) is None
