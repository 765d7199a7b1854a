"""Random expressions over the whole vocabulary of the printer, for the round trip, and the styles to print them in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import pytest
from sympy import (
    Abs,
    Add,
    Expr,
    I,
    Integer,
    Integral,
    Mul,
    Pow,
    Rational,
    Symbol,
    exp,
    log,
    nan,
    oo,
    preorder_traversal,
    sqrt,
    zoo,
)

from theory.latex import Notation, Rate
from theory.latex.names import SCALARS
from theory.latex.printer.expressions import FUNCTIONS
from theory.symbols import t

_SYMBOLS = tuple(SCALARS.values())
#: Symbols that a derivative can be taken of and by.
_PLAIN = tuple(s for s in _SYMBOLS if not s.name.startswith("norm2"))
_FUNCTIONS = (*FUNCTIONS, exp, exp, exp, log, log, sqrt, sqrt, Abs)
_EXPONENTS = (2, 2, 3, -1, -1, -2, Rational(1, 2), Rational(-1, 2), Rational(3, 2), Rational(1, 3), Rational(-2, 3))
_BOUND = (Symbol("s", real=True), Symbol("x", real=True))


def _number(random: Random) -> Any:
    return Rational(random.choice((-12, -3, -1, 1, 2, 5, 10)), random.choice((1, 1, 2, 3, 7)))


def _leaf(random: Random) -> Any:
    if random.random() < 0.15:
        return _number(random)
    if random.random() < 0.05:
        return Rate(random.choice(_PLAIN), random.choice((t, t, random.choice(_PLAIN))))
    return random.choice(_SYMBOLS)


def _integral(random: Random, depth: int) -> Any:
    bound = random.choice(_BOUND)
    inside = _build(random, depth - 1) * random.choice((bound, exp(bound), 1))
    return Integral(inside, (bound, random.choice((Integer(0), _leaf(random))), _leaf(random)))


def _build(random: Random, depth: int) -> Any:
    if depth == 0:
        return _leaf(random)
    kind = random.random()
    if kind < 0.35:
        return Mul(*(_build(random, depth - 1) for _ in range(random.randint(2, 4))))
    if kind < 0.65:
        return Add(*(_build(random, depth - 1) for _ in range(random.randint(2, 4))))
    if kind < 0.8:
        return random.choice(_FUNCTIONS)(_build(random, depth - 1))
    if kind < 0.9:
        exponent = random.choice(_EXPONENTS) if random.random() < 0.85 else _build(random, 1)
        return Pow(_build(random, depth - 1), exponent)
    if kind < 0.93:
        return _integral(random, depth)
    if kind < 0.95:
        return Rate(_build(random, depth - 1), t)
    return _leaf(random)


def random_expression(seed: int) -> Expr:
    """The expression of a seed: real, finite, without floats."""
    random = Random(seed)
    while True:
        try:
            found = _build(random, random.randint(0, 4))
        except (ValueError, TypeError):  # SymPy refuses some integrals and powers
            continue
        if found.count_ops() < 60 and _is_plain(found):
            return found


def _is_plain(value: Any) -> bool:
    """Whether every part is finite and real, and no integral holds another or its own variable in a limit."""
    if value.has(zoo, nan, oo, -oo, I):
        return False
    for part in preorder_traversal(value):
        if getattr(part, "is_extended_real", None) is False:
            return False
        if isinstance(part, Rate) and part.args[0].is_Symbol and part.args[0] not in _PLAIN:
            return False
        if isinstance(part, Integral) and not _is_plain_integral(part):
            return False
    return True


def _is_plain_integral(value: Integral) -> bool:
    if len(value.limits) != 1:  # SymPy joins an integral of an integral
        return False
    variable, low, high = value.limits[0]
    return not value.function.has(Integral) and variable not in low.free_symbols | high.free_symbols


@pytest.fixture(scope="session", name="random_expression")
def _random_expression() -> Callable[[int], Expr]:
    return random_expression


def _styles() -> tuple[Notation, ...]:
    own = {"mu_QK": r"\muQK", "mu_OV": r"\muOV", "M": "C", "c": r"\mathsf{c}", "gamma": r"\tau", "tau": r"\theta"}
    choices = product(("fraction", "dot"), ("log", "ln"), ("power", "exp"), ("upright", "italic"))
    return tuple(
        Notation(derivative=a, log=b, exponential=c, differential=d, names=own if i % 3 == 2 else {})
        for i, (a, b, c, d) in enumerate(choices)
    )


@pytest.fixture(scope="session", name="styles")
def _all_styles() -> tuple[Notation, ...]:
    """Every combination of the styles, some with an author's own names."""
    return _styles()
