"""Proofs of the sign of an expression."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Basic, Expr

from theory.algebra import OutsideDomainError
from theory.normal_form import convert

__all__ = ["nonzero", "sign"]


def sign(expr: Expr, assumptions: Iterable[Basic] = ()) -> int | None:
    """Prove the sign of an expression on its whole domain.

    ``sign = 1`` if ``expr > 0``, ``-1`` if ``expr < 0``, ``0`` if ``expr = 0`` everywhere, ``None`` if not proved.
    Each factor is moved to the lower bounds of its symbols (``M = 2 + M'``); coefficients of one sign are a proof.

    Parameters: ``expr``, a real scalar expression; ``assumptions``, SymPy inequalities that may be used.
    Returns: 1, 0, -1 or None.
    Raises: ValueError or TypeError for input that is no exact real scalar, GradlineError for what has no normal form.
    Source: arXiv 2608.06776, setting (``M >= 2``; rates and ``gamma`` positive).

    >>> from sympy import exp
    >>> from theory.symbols import M, mu_OV
    >>> sign(M - 1), sign((M - 1) * exp(mu_OV) + M - 2), sign(mu_OV), sign(mu_OV, [mu_OV > 0])
    (1, 1, None, 1)
    """
    try:
        converter, value = convert(expr, assumptions)
    except OutsideDomainError:
        return None
    if converter.left_out:
        return None
    proof = converter.atoms.signs.of_fraction(value)
    if proof is None or not proof.strict:
        return None
    return proof.direction


def nonzero(expr: Expr, assumptions: Iterable[Basic] = ()) -> bool:
    """Prove that an expression vanishes nowhere on its domain.

    ``expr != 0`` wherever it is defined: each factor of its numerator has a proved sign or is assumed not to vanish.

    Parameters: ``expr``, a real scalar expression; ``assumptions``, SymPy inequalities that may be used.
    Returns: whether that was proved.
    Raises: ValueError or TypeError for input that is no exact real scalar, GradlineError for what has no normal form.
    Source: :func:`sign`.

    >>> from sympy import Ne
    >>> from theory.symbols import M, b, mu_OV
    >>> nonzero((M - 1) * b), nonzero(mu_OV * b), nonzero(mu_OV * b, [Ne(mu_OV, 0)])
    (True, False, True)
    """
    try:
        converter, value = convert(expr, assumptions)
    except OutsideDomainError:
        return False
    if converter.left_out or value.num.is_zero():
        return False
    factors = converter.tower.factors(value)[2]
    return all(converter.atoms.signs.nonzero(poly) for poly, power in factors if power > 0)
