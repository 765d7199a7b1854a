"""The value of an expression must survive rewriting and lowering: compared at 60 digits at points of its domain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import mpmath
from flint import arb
from sympy import Rational, Symbol

from numerics.functions import restore
from theory.balls import enclose
from theory.errors import GradlineError
from theory.symbols import LOWER_BOUNDS

__all__ = ["RewriteError", "points", "reference", "require_equal", "value_at"]

_DIGITS = 60
#: Values of at least 40 digits agree: twenty digits are left for cancellation in the comparison itself.
_TOLERANCE = mpmath.mpf(10) ** -40
#: Beyond the range of floating point the exponents themselves have lost digits.
_LARGEST = mpmath.mpf(10) ** 300
#: Bits of the first attempt (twice those of 60 digits) and of the last, and the radius that is good enough.
_BITS = (400, 2000)
_RADIUS = arb(2) ** -200
_WANTED, _TRIED = 3, 60
_SCALES = (Rational(1, 8), Rational(1, 2), Rational(2))


class RewriteError(GradlineError):
    """A rewrite changed the value of an expression; the message names the rewrite, the point and both values."""


def points(symbols: Sequence[Symbol], seed: int = 2608) -> Iterator[Mapping[Symbol, Any]]:
    """Rational points that respect the assumptions of the symbols, the same ones on every run.

    >>> from theory.symbols import M, mu_OV
    >>> [int(p[M]) >= 2 for p in points([M, mu_OV])][:3]
    [True, True, True]
    """
    random = Random(seed)
    for _ in range(_TRIED):
        scale = random.choice(_SCALES)
        yield {s: _draw(s, random, scale) for s in symbols}


def _draw(symbol: Symbol, random: Random, scale: Any) -> Any:
    if symbol.is_integer:
        low = LOWER_BOUNDS.get(symbol, 1 if symbol.is_positive else -9)
        return Rational(random.randint(low, low + 12))
    size = Rational(random.randint(1, 3000), 997) * scale
    return size if symbol.is_positive or random.random() < 0.5 else -size


def reference(expressions: Sequence[Any], symbols: Sequence[Symbol]) -> list[tuple[Mapping[Symbol, Any], list[Any]]]:
    """Points where all the expressions are real and finite, with their values.

    Raises: `RewriteError` if no such point is found.
    """
    found = []
    for point in points(symbols):
        values = [value_at(e, point) for e in expressions]
        if all(v is not None for v in values):
            found.append((point, values))
        if len(found) == (_WANTED if symbols else 1):
            break
    if not found:
        raise RewriteError(
            f"checking rewrites: no real finite value of {expressions} at {_TRIED} points; give its symbols assumptions"
        )
    return found


def value_at(expr: Any, point: Mapping[Symbol, Any]) -> Any:
    """The value at a point to 60 digits, stable functions by their definitions; None if not real and finite.

    By ball arithmetic, which knows how many digits it has; where too few are left, with more bits.
    """
    whole = restore(expr)
    for bits in _BITS:
        ball = enclose(whole, point, bits=bits)
        if ball.is_finite() and ball.rad() < _RADIUS * (1 + abs(ball.mid())):
            mantissa, exponent = ball.mid().man_exp()
            with mpmath.workdps(_DIGITS):
                value = mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))
                return value if abs(value) < _LARGEST else None
    return None


def require_equal(stage: str, expected: Sequence[Any], got: Sequence[Any], point: Mapping[Symbol, Any]) -> None:
    """Raise `RewriteError` naming the stage where values differ."""
    with mpmath.workdps(_DIGITS):
        for want, have in zip(expected, got, strict=True):
            if have is None or abs(have - want) > _TOLERANCE * (1 + abs(want)):
                where = ", ".join(f"{s} = {v}" for s, v in point.items())
                raise RewriteError(
                    f"{stage}: changed {mpmath.nstr(want, 15)} to {have and mpmath.nstr(have, 15)} at {where}; "
                    "the kernel would be wrong: report the expression"
                )
