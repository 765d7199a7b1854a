"""The whitelist: every operation of the intermediate form, once, with its exact meaning.

A backend prints exactly these; what is not here is refused when the kernel is generated. ``evaluate`` is the meaning in
mpmath at any precision, used to check that lowering keeps the value; ``function`` is the SymPy function that lowers to
the operation of that name. ``sigmoid(x, decay)`` and ``softplus(x, decay)`` take ``decay(x) = e^-|x|`` with
them: one exponential serves ``s(x)``, ``s(-x) = sigmoid_minus(x, decay)``, ``log(1 + e^x)`` and ``log(1 + e^-x)``.

>>> OPERATIONS["sigmoid"].arity
2
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import mpmath
import sympy

from numerics import functions

__all__ = ["FUNCTIONS", "OPERATIONS", "Operation", "written"]


@dataclass(frozen=True)
class Operation:
    """An operation: number of operands, meaning, and the SymPy function it stands for (None: lowered by rule)."""

    name: str
    arity: int
    evaluate: Callable[..., Any]
    function: Any = None


def _sigmoid(x: Any, decay: Any) -> Any:
    return (decay if x < 0 else 1) / (1 + decay)


def _softplus(x: Any, decay: Any) -> Any:
    return max(x, 0) + mpmath.log1p(decay)


def _logaddexp(x: Any, y: Any) -> Any:
    return mpmath.log(mpmath.exp(x) + mpmath.exp(y))


def _scaled_ei(x: Any) -> Any:
    return mpmath.exp(-x) * mpmath.ei(x)


def _wrightomega(x: Any) -> Any:
    return mpmath.lambertw(mpmath.exp(x))


_ARITHMETIC = (
    Operation("neg", 1, lambda x: -x),
    Operation("add", 2, lambda x, y: x + y),
    Operation("sub", 2, lambda x, y: x - y),
    Operation("mul", 2, lambda x, y: x * y),
    Operation("div", 2, lambda x, y: x / y),
    Operation("pow", 2, lambda x, y: x**y),
    Operation("sqrt", 1, mpmath.sqrt),
    Operation("decay", 1, lambda x: mpmath.exp(-abs(x))),
    Operation("sigmoid_minus", 2, lambda x, decay: _sigmoid(-x, decay)),
    Operation("softplus_minus", 2, lambda x, decay: _softplus(-x, decay)),
)

_FUNCTIONS = (
    Operation("exp", 1, mpmath.exp, sympy.exp),
    Operation("expm1", 1, mpmath.expm1, functions.expm1),
    Operation("log", 1, mpmath.log, sympy.log),
    Operation("log1p", 1, mpmath.log1p, functions.log1p),
    Operation("sigmoid", 2, _sigmoid, functions.sigmoid),
    Operation("softplus", 2, _softplus, functions.softplus),
    Operation("logaddexp", 2, _logaddexp, functions.logaddexp),
    Operation("abs", 1, abs, sympy.Abs),
    Operation("sign", 1, mpmath.sign, sympy.sign),
    Operation("sin", 1, mpmath.sin, sympy.sin),
    Operation("cos", 1, mpmath.cos, sympy.cos),
    Operation("tan", 1, mpmath.tan, sympy.tan),
    Operation("atan", 1, mpmath.atan, sympy.atan),
    Operation("sinh", 1, mpmath.sinh, sympy.sinh),
    Operation("cosh", 1, mpmath.cosh, sympy.cosh),
    Operation("tanh", 1, mpmath.tanh, sympy.tanh),
    Operation("asinh", 1, mpmath.asinh, sympy.asinh),
    Operation("max", 2, max, sympy.Max),
    Operation("min", 2, min, sympy.Min),
    Operation("ei", 1, mpmath.ei, sympy.Ei),
    Operation("scaled_ei", 1, _scaled_ei, functions.scaled_ei),
    Operation("lambertw", 1, mpmath.lambertw, sympy.LambertW),
    Operation("wrightomega", 1, _wrightomega, functions.wrightomega),
)

#: name -> operation, the closed vocabulary.
OPERATIONS: Mapping[str, Operation] = MappingProxyType({o.name: o for o in (*_ARITHMETIC, *_FUNCTIONS)})

#: SymPy function -> name of the operation.
FUNCTIONS: Mapping[Any, str] = MappingProxyType({o.function: o.name for o in _FUNCTIONS})


def written(helpers: Collection[str], prefix: str = "") -> dict[str, str]:
    """Return the operations that helpers of a backend compute: name -> helper, whose names have a prefix.

    >>> written({"_sigmoid": "source", "_inputs": "source"}, "_")
    {'sigmoid': '_sigmoid'}
    """
    return {name: f"{prefix}{name}" for name in OPERATIONS if f"{prefix}{name}" in helpers}
