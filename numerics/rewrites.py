"""Rewriting an expression into forms that neither overflow nor cancel: an ordered list of plain functions.

Each rewrite maps an expression to one of equal value; `apply` checks the value after each and names the culprit
if it changed. ``Positive`` proves that a coefficient is positive: a logarithm of it is taken only then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sympy import Add, Ei, Integer, LambertW, Mul, Pow, exp, expand_mul, log

from numerics.functions import expm1, log1p, logaddexp, scaled_ei, sigmoid, softplus, wrightomega

__all__ = ["REWRITES", "Positive", "Rewrite"]

Positive = Callable[[Any], bool]
Rewrite = Callable[[Any, Positive], Any]


def _everywhere(expr: Any, kinds: tuple[Any, ...], rule: Callable[[Any], Any]) -> Any:
    """Apply a rule to every node of some kinds, innermost first, each distinct node once."""
    memo: dict[Any, Any] = {}

    def visit(node: Any) -> Any:
        if not node.args:
            return node
        if node not in memo:
            args = [visit(a) for a in node.args]
            same = all(a is b for a, b in zip(args, node.args, strict=True))
            new = node if same else node.func(*args)
            memo[node] = rule(new) if isinstance(new, kinds) else new
        return memo[node]

    return visit(expr)


def _exponential_terms(expr: Any) -> tuple[dict[Any, Any], Any]:
    """``sum_i c_i e^(x_i) + rest``: the coefficients by exponent, and the rest."""
    groups: dict[Any, list[Any]] = {}
    rest = []
    for term in Add.make_args(expr):
        factors = Mul.make_args(term)
        exponentials = [f for f in factors if isinstance(f, exp)]
        if len(exponentials) == 1:
            others = Mul(*[f for f in factors if not isinstance(f, exp)])
            groups.setdefault(exponentials[0].args[0], []).append(others)
        else:
            rest.append(term)
    return {x: Add(*c) for x, c in groups.items()}, Add(*rest)


def _log_ratio(a: Any, b: Any) -> Any:
    """``log(a/b)`` as one logarithm."""
    if a == 1:
        return -log(b)
    return log(a / b)


def _two_exponentials(base: Any, positive: Positive) -> tuple[Any, Any, Any, Any] | None:
    """``base = s e^p (c1 e^x + c2)``, ``c1, c2 > 0`` as ``(x, c1, c2, p)``; None if it has no such form."""
    groups, rest = _exponential_terms(base)
    exponents = sorted(groups, key=lambda x: x.sort_key())
    if len(exponents) == 1 and rest != 0:
        x, c1, c2, pivot = exponents[0], groups[exponents[0]], rest, Integer(0)
    elif len(exponents) == 2 and rest == 0:
        pivot = exponents[0]
        x, c1, c2 = exponents[1] - pivot, groups[exponents[1]], groups[pivot]
    else:
        return None
    return (x, c1, c2, pivot) if positive(c1) and positive(c2) else None


def _share(exponent: Any, x: Any, k: int) -> int:
    """How many of ``k`` factors ``e^x`` to take out of ``e^exponent``: as many as leave the shortest rest."""

    def length(j: int) -> tuple[int, Any, int]:
        rest = expand_mul(exponent - j * x)
        size = 0 if rest == 0 else len(Add.make_args(rest)) + int(rest.could_extract_minus_sign())
        return size, abs(rest.as_coeff_Mul()[0]), j

    return min(range(k + 1), key=length)


def logistic_products(expr: Any, positive: Positive) -> Any:
    """``e^(jx)/(c1 e^x + c2)^k = (s(X)/c1)^j (s(-X)/c2)^(k-j)``, ``s`` the sigmoid, ``X = x + log(c1/c2)``.

    Reason: ``e^x`` overflows in numerator and denominator alike and leaves nan; the sigmoid is bounded and both of
    its tails are right to rounding, so ``1 - alpha`` survives where ``alpha`` rounds to 1.
    """

    def rule(product: Any) -> Any:
        factors = list(Mul.make_args(product))
        for index, factor in enumerate(factors):
            base, power = factor.as_base_exp()
            if not (isinstance(base, Add) and power.is_Integer and power < 0):
                continue
            form = _two_exponentials(base, positive)
            if form is None:
                continue
            x, c1, c2, pivot = form
            k = -int(power)
            others = factors[:index] + factors[index + 1 :]
            exponent = Add(*[f.args[0] for f in others if isinstance(f, exp)]) - k * pivot
            j = _share(exponent, x, k)
            gap = x + _log_ratio(c1, c2)
            logistic = (sigmoid(gap) / c1) ** j * (sigmoid(-gap) / c2) ** (k - j)
            remainder = exp(expand_mul(exponent - j * x))
            return rule(Mul(*[f for f in others if not isinstance(f, exp)]) * logistic * remainder)
        return product

    products = _everywhere(expr, (Mul,), rule)
    return _everywhere(products, (Pow,), rule)


def complements(expr: Any, positive: Positive) -> Any:
    """``u - u s(x) = u s(-x)``. Reason: the difference cancels where the sigmoid rounds to 1."""

    def rule(total: Any) -> Any:
        terms = list(total.args)
        for term in terms:
            for factor in Mul.make_args(term):
                whole = -term / factor if isinstance(factor, sigmoid) else None
                if whole is not None and whole in terms:
                    rest = [t for t in terms if t not in (term, whole)]
                    return Add(*rest, whole * sigmoid(-factor.args[0]))
        return total

    return _everywhere(expr, (Add,), rule)


def logarithms_of_powers(expr: Any, positive: Positive) -> Any:
    """``log(u^p) = p log(u)``, unless ``p`` is an even integer, where ``u`` may be negative.

    Reason: the power rounds the digits of a ``u`` close to 1 away, and may overflow.
    """

    def rule(node: Any) -> Any:
        base, power = node.args[0].as_base_exp()
        if not power.is_Rational or power == 1:
            return node
        if power.is_even and not positive(base):
            return node if power > 0 else -log(base**-power)
        return power * log(base)

    return _everywhere(expr, (log,), rule)


def logarithms_of_sums(expr: Any, positive: Positive) -> Any:
    """``log(c1 e^x + 1) = softplus(x + log c1)``; ``log(c1 e^x + c2)`` by `logaddexp`.

    Reason: the exponential overflows while its logarithm is harmless; for ``x -> -oo`` the sum rounds to ``c2``.
    """

    def rule(node: Any) -> Any:
        argument = node.args[0]
        if isinstance(argument, sigmoid):
            return -softplus(-argument.args[0])
        form = _two_exponentials(argument, positive) if isinstance(argument, Add) else None
        if form is None:
            return node
        x, c1, c2, pivot = form
        if c2 == 1:
            return pivot + softplus(x + log(c1))
        return pivot + logaddexp(x + log(c1), log(c2))

    return _everywhere(expr, (log,), rule)


def small_logarithms(expr: Any, positive: Positive) -> Any:
    """``log(1 + u) = log1p(u)``. Reason: ``1 + u`` rounds the digits of a small ``u`` away."""

    def rule(node: Any) -> Any:
        argument = node.args[0]
        if isinstance(argument, Add) and Integer(1) in argument.args:
            return log1p(argument - 1)
        return node

    return _everywhere(expr, (log,), rule)


def small_exponentials(expr: Any, positive: Positive) -> Any:
    """``c e^x - c = c expm1(x)``. Reason: the difference cancels at ``x = 0``."""

    def rule(total: Any) -> Any:
        terms = list(total.args)
        for term in terms:
            for factor in Mul.make_args(term):
                if isinstance(factor, exp) and -term / factor in terms:
                    scale = term / factor
                    rest = [t for t in terms if t not in (term, -scale)]
                    return Add(*rest, scale * expm1(factor.args[0]))
        return total

    return _everywhere(expr, (Add,), rule)


def lambert_of_exponentials(expr: Any, positive: Positive) -> Any:
    """``W_0(c e^x) = wrightomega(x + log c)``. Reason: ``e^x`` overflows while ``W_0`` of it is about ``x``."""

    def rule(node: Any) -> Any:
        if len(node.args) != 1:
            return node
        groups, rest = _exponential_terms(node.args[0])
        if len(groups) != 1 or rest != 0:
            return node
        ((x, c),) = groups.items()
        return wrightomega(x + log(c)) if positive(c) else node

    return _everywhere(expr, (LambertW,), rule)


def _denominators(product: Any) -> Any:
    """The sum of the powers to which a product is divided by its factors."""
    powers = [f.as_base_exp()[1] for f in Mul.make_args(product)]
    return -sum(p for p in powers if p.is_Rational and p < 0)


def lambert_quotients(expr: Any, positive: Positive) -> Any:
    """``W_0(c u)/u = c e^-W_0(c u)``. Reason: the quotient, which every derivative of ``W_0`` holds, is 0/0 at 0.

    For large ``u`` the exponential has ``W_0(u)`` roundings, at most 704.
    """

    def rule(product: Any) -> Any:
        for factor in product.args:
            lambert, power = factor.as_base_exp()
            if isinstance(lambert, LambertW) and len(lambert.args) == 1 and power.is_Integer and power > 0:
                rest = product / factor * lambert.args[0] ** power
                if _denominators(rest) < _denominators(product):
                    new = rest * exp(-power * lambert)
                    return rule(new) if isinstance(new, Mul) else new
        return product

    return _everywhere(expr, (Mul,), rule)


def scaled_exponential_integrals(expr: Any, positive: Positive) -> Any:
    """``e^-x Ei(x) = scaled_ei(x)``. Reason: one factor overflows where the other vanishes."""

    def rule(product: Any) -> Any:
        for integral in [f for f in product.args if isinstance(f, Ei)]:
            x = integral.args[0]
            exponent = Add(*[f.args[0] for f in product.args if isinstance(f, exp)])
            remainder = expand_mul(exponent + x)
            if remainder == 0 or len(Add.make_args(remainder)) < len(Add.make_args(exponent)):
                others = [f for f in product.args if f != integral and not isinstance(f, exp)]
                return Mul(*others) * exp(remainder) * scaled_ei(x)
        return product

    return _everywhere(expr, (Mul,), rule)


#: In this order: sums of exponentials first, before a constant in them is absorbed by another rewrite.
REWRITES: tuple[Rewrite, ...] = (
    logistic_products,
    complements,
    logarithms_of_powers,
    logarithms_of_sums,
    lambert_quotients,
    lambert_of_exponentials,
    scaled_exponential_integrals,
    small_exponentials,
    small_logarithms,
)
