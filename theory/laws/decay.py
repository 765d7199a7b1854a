"""How a conservation law decays under weight decay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sympy import Add, Expr, Integer, Poly, Symbol, cancel, diff

from theory.inputs import check_names, exact

__all__ = ["decay_drift", "decay_rate"]


def decay_drift(
    law: Any, parameters: Sequence[Symbol], weight_decay: Any, rates: Mapping[Symbol, Any] | None = None
) -> Expr:
    """Return how a law moves under weight decay, ``dh/dt = -lambda sum_i eta_i theta_i dh/dtheta_i``.

    Parameters: as for `decay_rate`; the law need not be a polynomial.

    Returns: the derivative, in the units of ``eta lambda h``. Raises: ``ValueError`` for two symbols of one name.

    Source: arXiv 2506.06194.

    >>> from sympy.abc import u, v, w
    >>> decay_drift(u**2 - v, [u, v], w)
    -w*(2*u**2 - v)
    """
    expr, decay, given = exact(law), exact(weight_decay), rates or {}
    check_names([expr, decay, *parameters, *given])
    terms = (exact(given.get(x, Integer(1))) * x * diff(expr, x) for x in parameters if expr.has(x))
    return -decay * Add(*terms)


def decay_rate(
    law: Any, parameters: Sequence[Symbol], weight_decay: Any, rates: Mapping[Symbol, Any] | None = None
) -> Expr | None:
    """Return ``k`` with ``h(t) = h(0) e^(-k t)`` for a polynomial law under weight decay, or None.

        dtheta_i/dt = -eta_i (dL/dtheta_i + lambda theta_i),     dh/dt = -lambda sum_i eta_i theta_i dh/dtheta_i

    A homogeneous law of degree ``d`` with one learning rate has ``k = d eta lambda``; where terms decay at different
    rates there is no such ``k``.

    Parameters: ``law``, a polynomial ``h`` conserved without decay; ``parameters``; ``weight_decay``, ``lambda``;
    ``rates``, the ``eta_i``, 1 where not named.

    Returns: the decay rate in the units of ``eta lambda``. Raises: ``ValueError`` for a law that is no polynomial.

    Source: arXiv 2506.06194; section 12 of the theory, `weight-decay-balance`.

    >>> from sympy.abc import u, v, w
    >>> decay_rate(u**2 - v**2, [u, v], w)
    2*w
    """
    expr = exact(law)
    if not expr.is_polynomial(*parameters):
        raise ValueError(f"law {expr}: expected a polynomial in the parameters")
    top, bottom = (Poly(e, *parameters) for e in (-decay_drift(expr, parameters, weight_decay, rates), expr))
    if bottom.is_zero or bottom.is_ground:
        return None
    rate = cancel(top.coeff_monomial(bottom.monoms()[0]) / bottom.coeffs()[0])
    return rate if (top - rate * bottom).as_expr().expand() == 0 else None
