"""The explicit model and its runs. Source: arXiv 2501.16265."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import Add, Integer, Rational, Symbol, exp, eye, sqrt

from theory.models import Block, GradientFlow, Model, reduce_model
from theory.models.trial import Comparison, Trial, time
from theory.registry import Stated

D, N = Symbol("D", integer=True, positive=True), Symbol("N", integer=True, positive=True)
sigma, tau, w0, w = (Symbol(name, positive=True) for name in ("sigma", "tau", "w_0", "w"))
a = Symbol("a", positive=True)
growth = exp(2 * sqrt(D) * time / tau)


def second_moment() -> Any:
    """``E[S^2]`` of ``S = (1/N) sum x x^T`` over N white Gaussian inputs in D dimensions, as a multiple of ``I``.

    Of the ``N^2`` pairs of inputs ``N (N-1)`` are independent and give ``I``; ``N`` are equal and give ``E[|x|^2 x
    x^T]``, on the diagonal ``E[x_i^4] + sum_(j != i) E[x_i^2] E[x_j^2]`` with the fourth moment 3.
    """
    equal = 3 + (D - 1)
    return (N * (N - 1) + N * equal) / N**2


def full_model(size: int, moment: Any, rate: Any) -> tuple[GradientFlow, Any, Symbol]:
    """``E|beta - v U S beta|^2/2 = (D - 2 v tr U + moment v^2 tr(U^T U))/2`` for a task vector ``beta ~ N(0, I)``."""
    value, merged = Block("v", 1, rate), Block("U", (size, size), rate)
    (v,), u = value.symbols, merged.array
    loss = (size - 2 * v * u.trace() + moment * v**2 * Add(*(e**2 for e in u))) / 2
    return reduce_model(Model((value, merged), loss)), u, v


def starting(size: int, value: Any) -> list[Any]:
    """Balanced and aligned: ``v = w``, ``U = w I/sqrt(D)``."""
    return [value, *(value * eye(size) / sqrt(Integer(size)))]


def trials() -> list[Trial]:
    size, context, first = 2, 5, Rational(1, 4)
    moment = second_moment().xreplace({D: Integer(size), N: Integer(context)})
    flow, u, v = full_model(size, moment, Rational(1, 2))

    def compare(stated: Stated) -> Iterator[Comparison]:
        sizes = {D: Integer(size), N: Integer(context)}
        known = {a: stated["a"].xreplace(sizes), tau: Integer(2), w0: first, **sizes}
        for i in range(size):
            yield Comparison(f"(vU)[{i}, {i}]", v * u[i, i], stated["solution"].xreplace(known))

    return [Trial("D = 2, N = 5", flow, dict(zip(flow.states, starting(size, first), strict=True)), 6, compare)]
