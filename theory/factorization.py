"""Factorized circuits ``W = U V^T``: the product flow, balancedness, and the rescaled learning rate on the line.

With rate ``eta`` for both factors and ``G = dL/dW``, ``dW/dt = -eta (U U^T G + G V V^T)``, and ``U^T U - V^T
V`` is conserved. When ``E E^T E = sigma^2 E``, a factorized circuit on the line ``W = mu E`` moves as the
collapsed one with its rate multiplied by ``2 sigma |mu|`` (balanced) or ``sqrt(c^2 + 4 sigma^2 mu^2)``
(imbalance ``c``).

Source: arXiv 2608.06776, implicit rescaling; claims `product-flow`, `balancedness`, `balanced-root`,
`rescaling-balanced`, `rescaling-imbalanced`, `isometry-criterion`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sympy import Abs, Expr, Integer, Symbol, sqrt

from theory.errors import GradlineError
from theory.identities import is_zero
from theory.line import Direction
from theory.trace import Step, Trace
from theory.words import Rule, Words, gradient, matrix, rewrite

__all__ = ["Rescaling", "balance_trace", "factor_velocity", "product_flow", "product_trace", "rescaling", "root_trace"]

U, V = matrix("U"), matrix("V")
E, A, B, P = matrix("E"), matrix("A"), matrix("B"), matrix("P")
_eta = Symbol("eta", positive=True)
_sigma = Symbol("sigma", positive=True)
_mu = Symbol("mu", real=True)
_u, _v = Symbol("u", real=True), Symbol("v", real=True)


def word(text: str) -> tuple[tuple[str, bool], ...]:
    """Read a word such as ``"U^T U"``."""
    return tuple((letter.removesuffix("^T"), letter.endswith("^T")) for letter in text.split())


#: What gradient flow of the factors conserves.
IMBALANCE = U.T @ U - V.T @ V

#: Balanced factors: U^T U = V^T V.
BALANCED = (Rule(word("U^T U"), V.T @ V),)

#: The criterion: E E^T E = sigma^2 E.
ISOMETRY = (Rule(word("E E^T E"), _sigma**2 * E),)

#: The imbalanced start: A^T A = B^T B = P, a projection, so A P = A and B P = B (the norm of A P - A vanishes).
PROJECTION = (
    Rule(word("A^T A"), P),
    Rule(word("B^T B"), P),
    Rule(word("P P"), P),
    Rule(word("P^T"), P),
    Rule(word("A P"), A),
    Rule(word("B P"), B),
    Rule(word("P A^T"), A.T),
    Rule(word("P B^T"), B.T),
)


def factor_velocity(rate: Any = _eta) -> dict[str, Words]:
    """Gradient flow of both factors of ``W = U V^T``: ``dU/dt = -eta G V``, ``dV/dt = -eta G^T U``, any shapes."""
    product = U @ V.T
    return {name: (-rate) * gradient(product, "G", name) for name in ("U", "V")}


def product_flow(rate: Any = _eta) -> Words:
    """The flow of the product, ``dW/dt = -eta (U U^T G + G V V^T)``, for matrices of any shapes.

    >>> print(product_flow())
    (-eta) G V V^T + (-eta) U U^T G
    """
    return (U @ V.T).derivative(factor_velocity(rate))


def product_trace() -> Trace:
    """The steps to the flow of the product."""
    velocity = factor_velocity()
    chain = "L depends on the factors through W alone"
    return (
        *(Step("chain rule", f"d{name}/dt", (U @ V.T,), velocity[name], chain) for name in ("U", "V")),
        Step("product rule", "dW/dt", tuple(velocity.values()), product_flow()),
    )


def balance_trace() -> Trace:
    """The steps to the conservation of balancedness."""
    return (*product_trace()[:2], Step("product rule", "d(U^T U - V^T V)/dt", (IMBALANCE,), imbalance_velocity()))


def root_trace() -> Trace:
    """The squares of ``U U^T`` and ``V V^T`` for balanced factors: those of ``W W^T`` and ``W^T W``."""
    if not all(residual.is_zero() for residual in balanced_root_residuals()):
        raise GradlineError("balanced root: U U^T and V V^T are no roots of W W^T and W^T W")
    W = U @ V.T
    squares = (("(U U^T)^2", U @ U.T @ U @ U.T), ("W^T W", W.T @ W))
    return tuple(Step("rewriting", name, (s,), rewrite(s, BALANCED), "U^T U = V^T V") for name, s in squares)


def imbalance_velocity(rate: Any = _eta) -> Words:
    """The time derivative of ``U^T U - V^T V`` under the flow of the factors; no word is left."""
    return IMBALANCE.derivative(factor_velocity(rate))


def balanced_root_residuals() -> tuple[Words, Words]:
    """``(U U^T)^2 - W W^T`` and ``(V V^T)^2 - W^T W`` for balanced factors; both empty."""
    W = U @ V.T
    left = U @ U.T @ U @ U.T - W @ W.T
    right = V @ V.T @ V @ V.T - W.T @ W
    return rewrite(left, BALANCED), rewrite(right, BALANCED)


def _on_direction(flow: Words, left: Words, right: Words, rules: tuple[Rule, ...], target: Words) -> Any:
    """Put ``U U^T``, ``V V^T`` and ``G = E`` into the product flow and read off its coefficient along the
    target word.
    """
    total = Words.of({})
    for w, c in flow.terms.items():
        if w == word("U U^T G"):
            total = total + c * (left @ target)
        elif w == word("G V V^T"):
            total = total + c * (target @ right)
        else:
            raise GradlineError(f"product flow: unexpected word {w}; expected U U^T G and G V V^T")
    total = rewrite(total, rules)
    ((key, _),) = target.terms.items()
    if set(total.terms) != {key}:
        raise GradlineError(f"rescaling: {total} is not parallel to {target}")
    return total.terms[key] / target.terms[key]


@lru_cache(maxsize=1)
def _balanced_factor() -> tuple[Any, Trace]:
    """The factor for ``W = mu E``, balanced: ``U U^T = |mu| E E^T/sigma`` is the positive root of ``W W^T``,
    likewise ``V V^T``.
    """
    left, right = (Abs(_mu) / _sigma) * (E @ E.T), (Abs(_mu) / _sigma) * (E.T @ E)
    W = _mu * E
    for root, square in ((left, W @ W.T), (right, W.T @ W)):
        difference = rewrite(root @ root - square, ISOMETRY)
        if not difference.is_zero():
            raise GradlineError(f"balanced root: {difference} is left of root^2 - W W^T")
    value = _on_direction(product_flow(Integer(-1)), left, right, ISOMETRY, E)
    trace = (
        Step("square root", "U U^T", (W @ W.T, IMBALANCE), left, "the positive root is unique; E E^T E = sigma^2 E"),
        Step("product flow", "factor", (left, right, product_flow()), value, "coefficient of E in U U^T E + E V V^T"),
    )
    return value, trace


@lru_cache(maxsize=1)
def _imbalanced_factor() -> tuple[Any, Trace]:
    """The factor for ``U = u A``, ``V = v B``, ``A B^T = E/sigma``: the square of ``u^2 + v^2``, in ``c = u^2 -
    v^2`` and ``sigma mu = u v``.
    """
    target = A @ B.T
    value = _on_direction(product_flow(Integer(-1)), _u**2 * (A @ A.T), _v**2 * (B @ B.T), PROJECTION, target)
    c = Symbol("c", real=True)
    closed = sqrt(c**2 + 4 * _sigma**2 * _mu**2)
    residual = value**2 - (closed**2).xreplace({c: _u**2 - _v**2, _mu: _u * _v / _sigma})
    if not is_zero(residual):
        raise GradlineError(f"imbalanced factor: {residual} is left of (u^2 + v^2)^2 - c^2 - 4 sigma^2 mu^2")
    velocity = factor_velocity(Integer(-1))
    moved = velocity["U"].replace({"G": target, "V": B}), velocity["V"].replace({"G": target, "U": A})
    if rewrite(moved[0], PROJECTION).terms != A.terms or rewrite(moved[1], PROJECTION).terms != B.terms:
        raise GradlineError("imbalanced factor: the factors leave U = u A, V = v B")
    trace = (
        Step(
            "projection",
            "factor",
            (target, product_flow()),
            value,
            "U = u A, V = v B keeps its form; A^T A = B^T B = P",
        ),
        Step("elimination", "factor", (value, IMBALANCE), closed, "u^2 - v^2 = c, u v = sigma mu"),
    )
    return closed, trace


@dataclass(frozen=True)
class Rescaling:
    """The factor by which factorization multiplies a circuit's rate on the line, with its derivation."""

    factor: Any
    sigma: Any
    imbalance: Any
    trace: Trace


def rescaling(direction: Direction, coordinate: Expr, imbalance: Any = 0) -> Rescaling:
    """Return the rate factor of a factorized circuit on its line.

    ``2 sigma |mu|`` for balanced factors, ``sqrt(c^2 + 4 sigma^2 mu^2)`` for imbalance ``c``.

    Parameters: ``direction``; ``coordinate``, the symbol ``mu``; ``imbalance``, ``c`` in ``U^T U - V^T V = c P``.

    Raises: `NoLineError` when the direction has several non-zero singular values.
    """
    sigma = direction.sigma
    value, (first, *rest) = _balanced_factor() if imbalance == 0 else _imbalanced_factor()
    trace = (replace(first, inputs=(*first.inputs, direction.singular_values2)), *rest)
    images = {_sigma: sigma, _mu: coordinate, Symbol("c", real=True): imbalance}
    return Rescaling(value.xreplace(images), sigma, imbalance, trace)
