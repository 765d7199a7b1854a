"""Arithmetic modulo a prime with nested infinitesimals, for exact derivatives of vector fields at a point.

An element is an integer modulo ``p``, or a pair ``(a, b)`` that stands for ``a + eps b`` with ``eps^2 = 0``, whose
parts are elements one level down; an integer is a constant at any level. The ``eps`` part of ``f(x + eps v)`` is
the derivative of ``f`` along ``v``, and pairs of pairs give derivatives of derivatives.
"""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["Jet", "add", "inverse", "multiply", "negative", "power", "tangent"]

Jet: TypeAlias = "int | tuple[Jet, Jet]"


def add(a: Jet, b: Jet, p: int) -> Jet:
    """Return ``a + b``."""
    if isinstance(a, int):
        if isinstance(b, int):
            return (a + b) % p
        return (add(a, b[0], p), b[1]) if a else b
    if isinstance(b, int):
        return (add(a[0], b, p), a[1]) if b else a
    return add(a[0], b[0], p), add(a[1], b[1], p)


def multiply(a: Jet, b: Jet, p: int) -> Jet:
    """Return ``a b``.

    >>> multiply((2, 1), (3, 1), 101)
    (6, 5)
    """
    if isinstance(a, int):
        if isinstance(b, int):
            return a * b % p
        if a == 0:
            return 0
        return b if a == 1 else (multiply(a, b[0], p), multiply(a, b[1], p))
    if isinstance(b, int):
        return multiply(b, a, p)
    return multiply(a[0], b[0], p), add(multiply(a[0], b[1], p), multiply(a[1], b[0], p), p)


def negative(a: Jet, p: int) -> Jet:
    """Return ``-a``."""
    return -a % p if isinstance(a, int) else (negative(a[0], p), negative(a[1], p))


def inverse(a: Jet, p: int) -> Jet:
    """Return ``1/a``: ``1/(a + eps b) = 1/a - eps b/a^2``; ``ZeroDivisionError`` where ``a`` vanishes modulo ``p``."""
    if isinstance(a, int):
        if a % p == 0:
            raise ZeroDivisionError("no inverse of 0 modulo the prime")
        return pow(a, -1, p)
    first = inverse(a[0], p)
    return first, negative(multiply(a[1], multiply(first, first, p), p), p)


def power(a: Jet, exponent: int, p: int) -> Jet:
    """Return ``a**exponent`` for an integer exponent."""
    base = inverse(a, p) if exponent < 0 else a
    result: Jet = 1
    for bit in bin(abs(exponent))[2:]:
        result = multiply(result, result, p)
        if bit == "1":
            result = multiply(result, base, p)
    return result


def tangent(a: Jet) -> Jet:
    """Return the ``eps`` part."""
    return 0 if isinstance(a, int) else a[1]
