"""Reading numbers and names from the command line, by hand: no text of a user is ever evaluated."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

__all__ = ["choice", "integer", "pairs", "positive", "rational", "real", "root"]

#: An integer, a decimal with a short exponent, or a fraction.
_NUMBER = re.compile(r"[+-]?(\d+/\d+|(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?)", re.ASCII | re.IGNORECASE)
_LONGEST = 60
#: sqrt(50), 2*sqrt(50) or 1/sqrt(50)
_ROOT = re.compile(r"(?:(?P<factor>[^*()]+?)\s*(?P<operator>[*/])\s*)?sqrt\((?P<radicand>[^()]+)\)")


def _refuse(option: str, text: str, wanted: str) -> ValueError:
    shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
    return ValueError(f"{option}={shown}: expected {wanted}")


def rational(option: str, text: str, wanted: str = "a number such as 0.125 or 1/8") -> Fraction:
    """Read a number exactly.

    >>> rational("--score-scale", "0.125")
    Fraction(1, 8)
    >>> rational("--score-scale", "sqrt(50)")
    Traceback (most recent call last):
    ...
    ValueError: --score-scale=sqrt(50): expected a number such as 0.125 or 1/8
    """
    stripped = text.strip()
    if len(stripped) > _LONGEST or not _NUMBER.fullmatch(stripped):
        raise _refuse(option, text, wanted)
    try:
        return Fraction(stripped)
    except ZeroDivisionError:
        raise _refuse(option, text, wanted) from None


def root(option: str, text: str, wanted: str) -> Any:
    """Read ``sqrt(a)``, ``b*sqrt(a)`` or ``b/sqrt(a)`` exactly, ``a`` and ``b`` numbers above 0.

    >>> root("--score-scale", "1/sqrt(50)", "a number")
    sqrt(2)/10
    """
    from sympy import Rational, sqrt

    match = _ROOT.fullmatch(text.strip())
    if match is None:
        raise _refuse(option, text, wanted)
    factor = rational(option, match["factor"] or "1", wanted)
    radicand = rational(option, match["radicand"], wanted)
    if factor <= 0 or radicand <= 0:
        raise _refuse(option, text, wanted)
    value = sqrt(Rational(radicand))
    return Rational(factor) / value if match["operator"] == "/" else Rational(factor) * value


def integer(option: str, text: str, least: int, wanted: str | None = None) -> int:
    """Read an integer of at least ``least``; ``1e6`` is one.

    >>> integer("--classes", "1", 2)
    Traceback (most recent call last):
    ...
    ValueError: --classes=1: expected an integer of at least 2
    """
    expected = wanted or f"an integer of at least {least}"
    number = rational(option, text, expected)
    if number.denominator != 1 or number < least:
        raise _refuse(option, text, expected)
    return int(number)


def real(option: str, text: str, wanted: str = "a number such as 0.1 or -1/8") -> float:
    """Read a number that double precision can hold."""
    exact = rational(option, text, wanted)
    try:
        number = float(exact)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or (exact != 0 and number == 0):
        raise _refuse(option, text, f"{wanted}, within double precision")
    return number


def positive(option: str, text: str) -> float:
    """Read a number above 0.

    >>> positive("--eta-ov", "-1")
    Traceback (most recent call last):
    ...
    ValueError: --eta-ov=-1: expected a number above 0 such as 0.1 or 1/8
    """
    wanted = "a number above 0 such as 0.1 or 1/8"
    number = real(option, text, wanted)
    if number <= 0:
        raise _refuse(option, text, wanted)
    return number


def choice(option: str, text: str, choices: Collection[str]) -> str:
    """Read one of several names.

    >>> choice("--time", "taw", ("t", "tau", "log"))
    Traceback (most recent call last):
    ...
    ValueError: --time=taw: expected one of t, tau, log; did you mean tau?
    """
    if text in choices:
        return text
    near = get_close_matches(text, choices, 1, 0.0)[0]
    raise _refuse(option, text, f"one of {', '.join(choices)}; did you mean {near}?")


def pairs(option: str, text: str) -> dict[str, float]:
    """Read ``name=number,name=number``.

    >>> pairs("--start", "mu_OV=0.1,mu_QK=-1/2")
    {'mu_OV': 0.1, 'mu_QK': -0.5}
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise _refuse(option, text, "names and numbers such as mu_OV=0.1,mu_QK=0.1")
        if name in found:
            raise _refuse(option, text, f"{name} once; it is given twice")
        found[name] = real(f"{option} {name}", value)
    return found
