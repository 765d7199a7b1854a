"""The published system in ball arithmetic at floating-point states, and how far a kernel is from it.

The error of a value is measured in units of its bound, ``8 + 4 |z| (1 + (1 - alpha) |gamma mu_QK|) + 2 |gamma mu_QK|``
eps with ``z = alpha mu_OV``: eight roundings and the conditioning of the two exponentials. Derivatives get four times
that, relative to the sum of absolute values of their terms.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

#: The whole grid of 40 000 states for each dtype takes some minutes.
WHOLE = "GRADLINE_LONG" in os.environ
#: b, K, eta_OV, eta_QK: they enter as factors.
SIZES = (3, 7, 2, 5)
OUTPUTS = ("d_mu_OV", "d_mu_QK", "loss", "attention")
BITS = 192


@dataclass(frozen=True)
class Grid:
    """States as arrays ``mu_OV, mu_QK, M, m, n, gamma``, exact values, their scales and the bound for each.

    ``values[j][i]`` is output ``j`` at state ``i``; ``slopes[s][j][i]`` its derivative by state coordinate ``s``,
    ``scales`` the sums of absolute values of the terms. Numbers too small for the dtype are 0 in ``scales``.
    """

    dtype: str
    points: tuple[Any, ...]
    values: Any
    slopes: Any
    scales: Any
    bound: Any


def states(dtype: str, whole: bool) -> Iterator[tuple[float, ...]]:
    """By ``z``, from 1e-300 (float32: 1e-37) to 1e6 and 0, and by ``mu_QK``, from -1e3 to 1e3, logarithmic.

    Left out are states that the dtype can't hold: where the attention or ``mu_OV = z/alpha`` is not a normal number.
    """
    smallest = -300 if dtype == "float64" else -37
    tiny, huge = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    sizes = [*np.logspace(smallest, -3, 14 if whole else 4), *np.logspace(-2, 6, 27 if whole else 9), 38.0, 88.0, 705.0]
    scores = np.logspace(-3, 3, 13 if whole else 5)
    classes = [2, 3, 20, 1000, 10**6, 10**9] if whole else [2, 20, 10**9]
    slots = [(5, 50, 1.0), (1, 1, 0.5), (50, 1, 2.0)] if whole else [(5, 50, 1.0), (1, 1, 0.5)]
    for z in [0.0, *sizes, *[-s for s in sizes]]:
        for q in [0.0, *scores, *[-s for s in scores]]:
            for m, n, g in slots:
                log_alpha = -float(np.logaddexp(0.0, np.log(n / m) - g * q))
                log_v = math.log(abs(z)) - log_alpha if z else math.log(tiny) + 1
                if log_alpha < math.log(2 * tiny) or not math.log(2 * tiny) < log_v < math.log(huge) - 40:
                    continue
                v = math.copysign(math.exp(log_v), z) if z else 0.0
                for M in classes:
                    yield v, float(q), M, m, n, g


def _number(x: float) -> Any:
    p, q = float(x).as_integer_ratio()
    return arb(fmpq(p, q))


def _exact(point: list[float]) -> tuple[list[Any], list[list[Any]], list[list[Any]], float]:
    """Values, derivatives by ``mu_OV`` and ``mu_QK``, sums of absolute values of their terms, bound."""
    v, q, M, m, n, g = (_number(p) for p in point)
    b, K, eta_v, eta_q = SIZES
    up = (g * q).exp()
    alpha, rest = m / (m + n / up), n / (m * up + n)  # neither cancels
    z, others = alpha * v, M - 1
    inverse = 1 / (z.exp() + others)  # balls have no largest number
    wrong = others * inverse  # (M - 1)/D
    right = 1 / (1 + others * (-z).exp())  # e^z/D
    slope = g * alpha * rest
    first, second = eta_v * alpha / b, eta_q * g * others * alpha * rest / (M * b * K)
    loss = (others * (-z).exp()).log1p()
    zero = arb(0)
    values = [first * inverse, second * v * inverse, loss, alpha]
    by_v = [
        [-first * alpha * inverse * right],
        [second * inverse, -second * inverse * z * right],
        [-alpha * wrong],
        [zero],
    ]
    by_q = [
        [first * g * rest * inverse, -first * inverse * right * v * slope],
        [t * g * second * v * inverse for t in (rest, -alpha, -right * v * alpha * rest)],
        [-v * slope * wrong],
        [slope],
    ]
    sums = [[sum(terms, zero) for terms in by] for by in (by_v, by_q)]
    scales = [[sum((abs(t) for t in terms), zero) for terms in by] for by in (by_v, by_q)]
    bound = 8 + 4 * abs(z) * (1 + rest * abs(g * q)) + 2 * abs(g * q)
    return values, sums, scales, float(bound)


@cache
def grid(dtype: str, whole: bool = WHOLE) -> Grid:
    """The states of a dtype with everything exact about them."""
    points = tuple(np.array(c, dtype) for c in zip(*states(dtype, whole), strict=True))
    saved, ctx.prec = ctx.prec, BITS
    try:
        rows = [_exact([float(c[i]) for c in points]) for i in range(len(points[0]))]
    finally:
        ctx.prec = saved
    values = [[r[0][j] for r in rows] for j in range(4)]
    slopes, scales = ([[[r[k][s][j] for r in rows] for j in range(4)] for s in range(2)] for k in (1, 2))
    return Grid(dtype, points, values, slopes, scales, np.array([r[3] for r in rows]))


def worst(found: Any, exact: list[Any], scales: list[Any], bound: Any, dtype: str) -> tuple[float, int]:
    """The largest error in units of ``bound`` eps, and where; numbers below the smallest normal one are exempt."""
    limits = np.finfo(dtype)
    saved, ctx.prec = ctx.prec, BITS
    largest, at = 0.0, 0
    try:
        for i, (value, right, scale) in enumerate(zip(np.asarray(found, float), exact, scales, strict=True)):
            size = float(scale.mid())
            if size < limits.tiny:
                error = 0.0 if abs(value) <= 2 * limits.tiny else np.inf
            elif size > limits.max:
                continue  # no number of the dtype
            elif not np.isfinite(value):
                error = np.inf
            else:
                error = float((abs(_number(value) - right) / scale).upper()) / (float(limits.eps) * bound[i])
            if not error <= largest:
                largest, at = error, i
    finally:
        ctx.prec = saved
    return largest, at
