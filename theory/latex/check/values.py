"""Values of a formula at a point, by ball arithmetic on its tree: looked at before anything is proved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flint import arb, ctx, fmpq

from theory.balls import enclose
from theory.errors import GradlineError
from theory.latex.check.preparing import prepared, prepared_alpha, speaks_of_no_loss
from theory.latex.check.stated import Statement
from theory.latex.names import SCALARS
from theory.latex.notation import Rate
from theory.latex.parser.nodes import (
    Call,
    Constant,
    Derivative,
    Name,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
)
from theory.latex.parser.vocabulary import start_symbol
from theory.paper.settings import LOSS
from theory.symbols import alpha, gamma, m, mu_QK, n
from theory.witnesses import Point

__all__ = ["NoValueError", "Values", "values_at"]

BITS = 128
Values = Mapping[Any, Any]


class NoValueError(Exception):
    """A formula without a value at a point, or with parts that have none here."""


def values_at(point: Point, statement: Statement) -> Values | None:
    """What every symbol is worth at a point where the statement holds; None where that is not known.

    Parameters: ``point``, values of the symbols that are free; ``statement``, an equation.
    Returns: symbols and `Rate` -> ball.
    """
    known = dict(point)
    found: dict[Any, Any] = {}
    if not statement.fixed_attention and mu_QK in known:
        known.pop(alpha, None)
    try:
        with ctx.workprec(BITS):
            found = {s: arb(fmpq(int(v.p), int(v.q))) for s, v in known.items()}
            if alpha not in known:
                found[alpha] = _ball(prepared_alpha(statement), known, found)
            quantity = statement.quantity
            found[quantity] = _ball(prepared(statement.value, statement), known, found)
            for symbol, meaning in statement.definitions.items():
                found[symbol] = _ball(prepared(meaning, statement), known, found)
            if speaks_of_no_loss(statement) and LOSS.free_symbols <= set(found):
                found[SCALARS["L"]] = _ball(LOSS, known, found)
    except (NoValueError, GradlineError, ValueError):
        return None
    return found


def _ball(expr: Any, known: Mapping[Any, Any], found: Mapping[Any, Any]) -> Any:
    """The value of a SymPy expression whose symbols are known as rationals, or as balls."""
    missing = [s for s in expr.free_symbols if s not in known]
    if not missing:
        ball = enclose(expr, {s: known[s] for s in expr.free_symbols}, BITS)
    elif all(s in found for s in missing):
        exact = {s: _rational(found[s]) for s in missing}
        ball = enclose(expr, {s: known.get(s, exact.get(s)) for s in expr.free_symbols}, BITS)
        ball = ball + arb(0, 2.0**-90) * (1 + abs(ball))
    else:
        raise NoValueError
    if not ball.is_finite():
        raise NoValueError
    return ball


def _rational(ball: Any) -> Any:
    import sympy

    mantissa, exponent = (int(x) for x in ball.mid().man_exp())
    return sympy.Rational(mantissa) * sympy.Rational(2) ** exponent


def value_of(node: Node, values: Values) -> Any:
    """The value of a formula where every symbol has one.

    Raises: `NoValueError`.
    """
    rule = _RULES.get(type(node))
    if rule is None:
        raise NoValueError
    ball = rule(node, values)
    if not ball.is_finite():
        raise NoValueError
    return ball


def _lookup(key: Any, values: Values) -> Any:
    if key not in values:
        raise NoValueError
    return values[key]


def _name(node: Name, values: Values) -> Any:
    return _lookup(start_symbol(node.symbol) if node.start else node.symbol, values)


def _sum(node: Sum, values: Values) -> Any:
    total = arb(0)
    for sign, term in zip(node.signs, node.terms, strict=True):
        total += sign * value_of(term, values)
    return total


def _product(node: Product, values: Values) -> Any:
    total = arb(1)
    for factor in node.factors:
        total *= value_of(factor, values)
    return total


def _power(node: Power, values: Values) -> Any:
    base, exponent = value_of(node.base, values), value_of(node.exponent, values)
    whole = exponent.unique_fmpz() if exponent.is_exact() else None
    if whole is not None and exponent == arb(whole) and abs(int(whole)) < 1000:
        return base ** int(whole)
    if not base > 0:
        raise NoValueError
    return (exponent * base.log()).exp()


def _call(node: Call, values: Values) -> Any:
    arguments = [value_of(a, values) for a in node.arguments]
    rule = _FUNCTIONS.get(node.function)
    if rule is None:
        raise NoValueError
    return rule(values, *arguments)


def _derivative(node: Derivative, values: Values) -> Any:
    if not isinstance(node.inner, Name) or node.inner.start or node.order != 1:
        raise NoValueError
    return _lookup(Rate(node.inner.symbol, node.variable.symbol), values)


def _phi(values: Values, q: Any) -> Any:
    g = _lookup(gamma, values)
    return _lookup(m, values) / (_lookup(n, values) * g) * (g * q).exp() + q


def _psi(values: Values, q: Any) -> Any:
    g = _lookup(gamma, values)
    return _lookup(m, values) / _lookup(n, values) * (g * q).ei() + q.log()


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": lambda _, x: x.exp(),
    "log": lambda _, x: x.log(),
    "Ei": lambda _, x: x.ei(),
    "LambertW": lambda _, x: x.lambertw(),
    "Abs": lambda _, x: abs(x),
    "sign": lambda _, x: x.sgn(),
    "sinh": lambda _, x: x.sinh(),
    "cosh": lambda _, x: x.cosh(),
    "tanh": lambda _, x: x.tanh(),
    "asinh": lambda _, x: x.asinh(),
    "Phi": _phi,
    "Psi": _psi,
}
_RULES: dict[type, Callable[[Any, Values], Any]] = {
    Number: lambda node, _: arb(fmpq(node.value.numerator, node.value.denominator)),
    Constant: lambda node, _: {"e": arb.const_e, "pi": arb.pi}.get(node.name, lambda: arb("nan"))(),
    Name: _name,
    Norm: lambda node, values: _lookup(node.symbol, values).sqrt(),
    Sum: _sum,
    Product: _product,
    Quotient: lambda node, values: value_of(node.top, values) / value_of(node.bottom, values),
    Power: _power,
    Call: _call,
    Derivative: _derivative,
}
