"""Antiderivatives that the theory knows: powers, exponentials, roots, and rational functions with their logarithms.

An antiderivative that is returned is proved later, as part of a first integral; here it is found.
"""

from __future__ import annotations

from typing import Any

from sympy import Dummy, Ei, Integer, Integral, Mul, Pow, Symbol, apart, asinh, atan, exp, lcm, log, nan, oo, sqrt, zoo
from sympy.polys.polytools import Poly, factor_list, together

from theory.errors import GradlineError

__all__ = ["antiderivative", "quadratic_root", "rational_antiderivative"]

_NO_VALUE = (zoo, nan, oo, -oo)


def antiderivative(term: Any, state: Symbol, positive: int) -> Any:
    """Antiderivative of one term, from the primitives of the theory; an unevaluated integral from 0 otherwise.

    Parameters: ``term``; ``state``; ``positive``, the sign of the state, 1 or -1.

    Raises: `GradlineError` naming an integrand without a primitive that has no value at 0 either.

    >>> x = Symbol("x", real=True)
    >>> antiderivative(3 / x, x, 1)
    3*log(x)
    """
    coefficient, rest = term.as_independent(state, as_Add=False)
    rate = Dummy("rate")
    for e in rest.atoms(exp):
        rate = e.args[0] / state
    table = {
        Integer(1): state,
        state: state**2 / 2,
        1 / state: log(positive * state),
    }
    if rest.has(exp) and not rate.has(state):
        table |= {exp(rate * state): exp(rate * state) / rate, exp(rate * state) / state: Ei(rate * state)}
    if rest in table:
        return coefficient * table[rest]
    root = quadratic_root(rest, state)
    if root is not None:
        base, power = root
        slope2, level = base.coeff(state, 2), base.coeff(state, 0)
        if power == 1:
            return coefficient * sqrt(base) / slope2
        return coefficient * asinh(sqrt(slope2) * state / sqrt(level)) / sqrt(slope2)
    at_origin = rest.xreplace({state: Integer(0)})
    if at_origin.has(*_NO_VALUE):
        raise GradlineError(
            f"first integral, integration: no antiderivative of {rest} among the primitives of the theory"
        )
    s = Symbol("s", real=True)
    return coefficient * Integral(rest.xreplace({state: s}), (s, 0, state))


def quadratic_root(rest: Any, state: Symbol) -> tuple[Any, int] | None:
    """Recognize ``1/sqrt(p + q state^2)`` (0) and ``state/sqrt(p + q state^2)`` (1) with positive ``p`` and ``q``."""
    for power in (0, 1):
        square = (state**power / rest) ** 2
        if not square.is_polynomial(state) or rest * sqrt(square) != state**power:
            continue
        poly = Poly(square, state)
        if poly.degree() == 2 and poly.nth(1) == 0 and poly.nth(2).is_positive and poly.nth(0).is_positive:
            return square.expand(), power
    return None


def rational_antiderivative(integrand: Any, state: Symbol) -> tuple[Any, tuple[Any, ...]] | None:
    """Antiderivative of a rational function of a state, or of one exponential of it, by partial fractions.

    Returns: the antiderivative and the factors whose logarithms are in it, taken to be positive; None where the
    integrand is of another form or a factor of its denominator has a degree above 2.

    >>> x = Symbol("x", real=True)
    >>> rational_antiderivative(1 / (x * (2 - x)), x)
    (log(x)/2 - log(2 - x)/2, (2 - x, x))
    """
    if integrand.is_rational_function(state):
        return _of_rational(integrand, state)
    exponents = {e.args[0] / state for e in integrand.atoms(exp) if e.has(state)}
    if not exponents or any(r.has(state) for r in exponents):
        return None
    one = min(exponents, key=str)
    ratios = {r: r / one for r in exponents}
    if not all(ratio.is_Rational for ratio in ratios.values()):
        return None
    unit = one / lcm([int(ratio.q) for ratio in ratios.values()])
    ratios = {r: r / unit for r in exponents}
    power = Symbol("E", positive=True)
    named = integrand.xreplace({exp(r * state): power**k for r, k in ratios.items()})
    if named.has(state) or not named.is_rational_function(power):
        return None
    found = _of_rational(named / (unit * power), power)
    if found is None:
        return None
    back = {power: exp(unit * state)}
    value = found[0].xreplace({log(power): unit * state}).xreplace(back)
    return value, tuple(f.xreplace(back) for f in found[1] if f != power)


def _of_rational(integrand: Any, state: Symbol) -> tuple[Any, tuple[Any, ...]] | None:
    numerator, denominator = together(integrand).as_numer_denom()
    pieces = factor_list(denominator)[1] if denominator.has(state) else []
    if any(base.has(state) and Poly(base, state).degree() > 2 for base, _ in pieces):
        return None
    total: Any = Integer(0)
    factors: list[Any] = []
    for term in apart(numerator / denominator, state).as_ordered_terms():
        found = _of_fraction(together(term), state)
        if found is None:
            return None
        total += found[0]
        factors += [f for f in found[1] if f not in factors]
    return total, tuple(factors)


def _of_fraction(term: Any, state: Symbol) -> tuple[Any, tuple[Any, ...]] | None:
    """One partial fraction: a power, ``c/(p + q x)^k`` or ``(a x + b)/(p + q x^2)`` with positive ``p q``."""
    numerator, denominator = term.as_numer_denom()
    if not denominator.has(state):
        return Poly(term, state).integrate(state).as_expr(), ()
    constant, pieces = factor_list(denominator)
    moving = [(base, power) for base, power in pieces if base.has(state)]
    if len(moving) != 1:
        return None
    base, power = moving[0]
    scale = constant * Mul(*(Pow(b, k) for b, k in pieces if not b.has(state)))
    degree = Poly(base, state).degree()
    lead = Poly(base, state).LC()
    if degree == 1 and not numerator.has(state):
        if power > 1:
            return numerator / scale * base ** (1 - power) / ((1 - power) * lead), ()
        # a factor such as x - s says s - x > 0 just as well: the logarithm takes the one that starts positive at 0
        if Poly(base, state).nth(0).could_extract_minus_sign():
            return numerator / (scale * lead) * log(-base), (-base,)
        return numerator / (scale * lead) * log(base), (base,)
    if degree == 2 and power == 1:
        return _of_quadratic(Poly(numerator, state), Poly(base, state), scale)
    return None


def _of_quadratic(numerator: Any, base: Any, scale: Any) -> tuple[Any, tuple[Any, ...]] | None:
    state = base.gen
    if base.nth(1) != 0 or numerator.degree() > 1:
        return None
    level, slope = base.nth(0), base.nth(2)
    linear, constant = numerator.nth(1), numerator.nth(0)
    total: Any = Integer(0)
    factors: tuple[Any, ...] = ()
    if linear != 0:
        inside = -base.as_expr() if level.could_extract_minus_sign() else base.as_expr()
        total, factors = linear / (2 * slope * scale) * log(inside), (inside,)
    if constant != 0:
        if not (level * slope).is_positive:
            return None
        total += constant / (scale * sqrt(level * slope)) * atan(sqrt(slope / level) * state)
    return total, factors
