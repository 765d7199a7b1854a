"""The next-token task: classes, informative and noise tokens, slots, queries.

Class ``y`` (uniform on ``M`` classes) owns ``b`` informative tokens; ``N`` noise tokens are shared. A sequence has
``m`` informative slots, uniform on the block of ``y``, and ``n`` noise slots, uniform on the noise tokens. A query
token is seen and not attended: one of ``K`` shared by all classes, or one of the ``K`` that class ``y`` owns.

Source: arXiv 2608.06776, data model (a reconstruction that gives the published equations).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from typing import Any, Literal, get_args

from sympy import Basic, Expr, Float, Integer, Rational, Symbol, oo

from theory import symbols

__all__ = ["GENERIC_SCALE", "QueryKind", "TokenTask", "exact_number", "refuse_moving"]

QueryKind = Literal["shared", "per_class"]

#: Stands for a score scale such as 1/sqrt(d) during a derivation.
GENERIC_SCALE = Symbol("score_scale", positive=True)

_SIZES = {
    "classes": ("M", 2),
    "block": ("b", 1),
    "queries": ("K", 1),
    "noise": ("N", 1),
    "informative_slots": ("m", 1),
    "noise_slots": ("n", 1),
}


def check_symbols(name: str, value: Any) -> None:
    """Refuse a symbol that shares the name of one of `theory.symbols` and is another symbol to SymPy."""
    for symbol in value.free_symbols:
        known = symbols.SYMBOLS.get(symbol.name)
        if known is not None and known.symbol != symbol:
            raise ValueError(
                f"{name}={value}: this symbol {symbol.name} has other assumptions than theory.symbols.{symbol.name}; "
                f"use `from theory.symbols import {symbol.name}`"
            )


def exact_number(name: str, value: Any) -> Any:
    """Return a number or symbol as an exact SymPy expression.

    Parameters: ``name``, for messages; ``value``, an int, float, fraction, decimal or SymPy expression. A float
    becomes the rational that its shortest decimal form names (``0.1`` is ``1/10``).

    Raises: ``TypeError`` for other types, ``ValueError`` for NaN and infinities.

    >>> exact_number("score_scale", 0.1)
    1/10
    """
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal, Basic)):
        raise TypeError(f"{name}={value!r}: expected a number or a SymPy symbol")
    if isinstance(value, Basic) and not isinstance(value, Float):
        if not isinstance(value, Expr) or value.has(oo, -oo) or value.is_finite is False or value.has(Float):
            raise ValueError(f"{name}={value}: expected an exact finite number or a symbol")
        check_symbols(name, value)
        return value
    try:
        return Rational(str(value))
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r}: expected a finite number") from None


def refuse_moving(name: str, value: Any) -> None:
    """Refuse a parameter made of what moves in time: the states, the attention, the time itself, or an orbit value.

    >>> refuse_moving("eta_OV", symbols.mu_OV)
    Traceback (most recent call last):
    ...
    ValueError: eta_OV=mu_OV: mu_OV changes in time; expected a constant number or parameter
    """
    moving = {*symbols.STATES, symbols.alpha, symbols.t}
    for symbol in sorted(value.free_symbols, key=lambda s: str(s.name)):
        if symbol in moving or symbol.name.startswith(("W_OV_", "W_QK_")):
            raise ValueError(f"{name}={value}: {symbol} changes in time; expected a constant number or parameter")


def _size(name: str, value: Any) -> Any:
    letter, least = _SIZES[name]
    wanted = f"expected an integer of at least {least}, or a positive integer symbol such as theory.symbols.{letter}"
    if isinstance(value, (bool, str)):
        raise TypeError(f"{name}={value!r}: {wanted}")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(f"{name}={value!r}: {wanted}")
    number = exact_number(name, value)
    if isinstance(number, Rational):
        if not isinstance(number, Integer) or number < least:
            raise ValueError(f"{name}={value}: {wanted}")
    elif not isinstance(number, Symbol) or not (number.is_integer and number.is_positive):
        raise ValueError(f"{name}={value}: {wanted}")
    return number


def _is_infinite(value: Any) -> bool:
    return value is oo or (isinstance(value, float) and value == math.inf)


@dataclass(frozen=True)
class TokenTask:
    """The token task, with integer or symbolic sizes.

    Parameters (all dimensionless): ``classes`` M >= 2; ``block`` b >= 1; ``queries`` K >= 1; ``noise`` N >= 1 or ``oo``
    (noise tokens with zero embedding); ``informative_slots`` m >= 1; ``noise_slots`` n >= 1; ``query_kind``
    ``"shared"`` or ``"per_class"``; ``score_scale`` gamma > 0, the factor of the scores. What is not given stays
    the symbol of that name, and the score scale 1.

    Raises: ``ValueError`` or ``TypeError`` naming the field and what it expects.

    >>> TokenTask(classes=3, block=2, noise=float("inf")).noise
    oo
    >>> TokenTask(classes=1)
    Traceback (most recent call last):
    ...
    ValueError: classes=1: expected an integer of at least 2, or a positive integer symbol such as theory.symbols.M
    """

    classes: Any = symbols.M
    block: Any = symbols.b
    queries: Any = symbols.K
    noise: Any = symbols.N
    informative_slots: Any = symbols.m
    noise_slots: Any = symbols.n
    query_kind: QueryKind = "shared"
    score_scale: Any = 1

    def __post_init__(self) -> None:
        for name in _SIZES:
            value = getattr(self, name)
            if name == "noise" and _is_infinite(value):
                object.__setattr__(self, name, oo)
            else:
                object.__setattr__(self, name, _size(name, value))
        kinds = get_args(QueryKind)
        if self.query_kind not in kinds:
            near = get_close_matches(str(self.query_kind), kinds, 1, 0.3) or [kinds[0]]
            raise ValueError(
                f"query_kind={self.query_kind!r}: expected 'shared' or 'per_class'; did you mean {near[0]!r}?"
            )
        scale = exact_number("score_scale", self.score_scale)
        refuse_moving("score_scale", scale)
        if not scale.is_positive:
            raise ValueError(f"score_scale={self.score_scale}: expected a number above 0 or a positive symbol")
        object.__setattr__(self, "score_scale", scale)

    @property
    def noise_is_finite(self) -> bool:
        """Whether noise tokens have parameters that move; a symbolic number of noise tokens is finite."""
        return self.noise is not oo

    @property
    def generic(self) -> TokenTask:
        """The task of this query kind with finite or infinite noise, every size and the score scale a symbol."""
        noise = symbols.N if self.noise_is_finite else oo
        return TokenTask(noise=noise, query_kind=self.query_kind, score_scale=symbols.gamma)

    @property
    def images(self) -> dict[Symbol, Any]:
        """What to put for the symbols of `generic` to get this task."""
        values = {getattr(symbols, letter): getattr(self, name) for name, (letter, _) in _SIZES.items()}
        return values | {symbols.gamma: self.score_scale}

    @property
    def generic_scale(self) -> TokenTask:
        """The same task with a plain symbol as score scale, for steps that need polynomials in it."""
        return replace(self, score_scale=GENERIC_SCALE)

    @property
    def has_plain_scale(self) -> bool:
        """Whether the score scale is a rational number or a symbol."""
        return bool(self.score_scale.is_Rational or self.score_scale.is_Symbol)

    @property
    def free_symbols(self) -> frozenset[Symbol]:
        """The symbols among the sizes and the score scale."""
        values = (getattr(self, f.name) for f in fields(self) if f.name != "query_kind")
        return frozenset(s for v in values for s in v.free_symbols)
