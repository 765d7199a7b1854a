"""The value of a formula that was read: a SymPy expression, or `Words` where it holds matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import sympy
from sympy import Abs, Ei, Function, Integer, Integral, LambertW, Max, Min, Rational, S, log, nan, oo, zoo
from sympy import sign as sign_of

from theory.latex.notation import Rate
from theory.latex.parser.nodes import (
    Call,
    Constant,
    Derivative,
    Integrated,
    Letter,
    Name,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    Transpose,
)
from theory.latex.parser.vocabulary import CONSTANT, next_step, start_symbol
from theory.latex.printer import MatrixForm, MatrixRoot
from theory.latex.source.tokens import LatexError
from theory.words import Words, matrix

__all__ = ["NAMED", "evaluate", "form_read", "matrix_root"]

_LARGEST_EXPONENT = 1000

#: Functions of the theory by name; they stand for their definitions.
NAMED: dict[str, Any] = {name: Function(name, real=True) for name in ("Phi", "Psi")}

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": sympy.exp,
    "log": log,
    "Ei": Ei,
    "LambertW": LambertW,
    "LambertW_-1": lambda x: LambertW(x, -1),
    "Abs": Abs,
    "sign": sign_of,
    "max": Max,
    "min": Min,
    **{name: getattr(sympy, name) for name in ("sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan")},
    **{name: getattr(sympy, name) for name in ("sinh", "cosh", "tanh", "coth", "sech", "csch")},
    **{name: getattr(sympy, name) for name in ("asinh", "acosh", "atanh", "erf")},
    **NAMED,
}
_CONSTANTS = {"e": S.Exp1, "pi": S.Pi, "oo": oo}


def evaluate(node: Node) -> Any:
    r"""The value of a formula.

    Returns: a SymPy expression, or `Words` for matrices; derivatives are `Rate`.
    Raises: `LatexError` at the place of what has no value: a division by 0, a product of matrices in a function.

    >>> from theory.latex.parser.formula import parse
    >>> evaluate(parse(r"\tfrac12 \mu_{QK}^2"))
    mu_QK**2/2
    """
    rule = _RULES.get(type(node))
    if rule is None:
        raise LatexError(node.place, "cases inside an expression are not understood")
    value = rule(node)
    if not isinstance(value, Words) and value.has(nan, zoo):
        raise LatexError(node.place, "this has no finite value")
    if not isinstance(value, Words) and value.is_extended_real is False:
        raise LatexError(node.place, "this is not real")
    return value


def _scalar(node: Node, what: str) -> Any:
    value = evaluate(node)
    if isinstance(value, Words):
        raise LatexError(node.place, f"a matrix as {what}")
    return value


def _name(node: Name) -> Any:
    return start_symbol(node.symbol) if node.start else node.symbol


def _letter(node: Letter) -> Words:
    return Words.of({(): Integer(1)}) if node.letter == "I" else matrix(node.letter)


def _sum(node: Sum) -> Any:
    values = [(s, evaluate(t)) for s, t in zip(node.signs, node.terms, strict=True)]
    kinds = {isinstance(v, Words) for _, v in values}
    if len(kinds) > 1:
        if any(v not in (0, CONSTANT) for _, v in values if not isinstance(v, Words)):
            raise LatexError(node.place, "a sum of a matrix and a scalar")
        values = [(s, matrix(CONSTANT.name) if v == CONSTANT else v) for s, v in values if v != 0]
    if True in kinds:
        return reduce(lambda total, item: total + item[0] * item[1], values, Words.of({}))
    return sympy.Add(*(sympy.Mul(s, *_factors(t)) for s, t in zip(node.signs, node.terms, strict=True)))


def _product(node: Product) -> Any:
    scalars: list[Any] = []
    words: Words | None = None
    for factor in node.factors:
        value = evaluate(factor)
        if isinstance(value, Words):
            words = value if words is None else words @ value
        else:
            scalars += _factors(factor)
    scalar = sympy.Mul(*scalars)
    return scalar if words is None else scalar * words


def _factors(node: Node) -> list[Any]:
    """The factors of a scalar, all of its product together: a number would go into a sum beside it alone."""
    if isinstance(node, Product):
        return [f for factor in node.factors for f in _factors(factor)]
    if isinstance(node, Quotient):
        evaluate(node)
        return [*_factors(node.top), *(1 / f for f in _factors(node.bottom))]
    return [evaluate(node)]


def _quotient(node: Quotient) -> Any:
    top, bottom = evaluate(node.top), _scalar(node.bottom, "denominator")
    if bottom == 0:
        raise LatexError(node.bottom.place, "a division by 0")
    if isinstance(top, Words):
        return (1 / bottom) * top
    return sympy.Mul(*_factors(node.top), *(1 / f for f in _factors(node.bottom)))


def _power(node: Power) -> Any:
    base, exponent = evaluate(node.base), _scalar(node.exponent, "exponent")
    if isinstance(base, Words):
        if exponent == Rational(1, 2):
            return _root(base, node)
        if not (exponent.is_Integer and 1 <= exponent <= 9):
            raise LatexError(node.place, "a matrix to a power other than a small whole number")
        return reduce(lambda a, b: a @ b, [base] * int(exponent))
    if base.is_Rational and exponent.is_Rational and abs(exponent) > _LARGEST_EXPONENT:
        raise LatexError(node.place, f"a number to a power beyond {_LARGEST_EXPONENT}")
    if base == 0 and not exponent.is_positive:
        raise LatexError(node.place, "0 to a power that is not positive")
    return base**exponent


def _root(square: Words, node: Node) -> Words:
    """The positive semidefinite root of a product ``A A^T``."""
    try:
        return matrix_root(square)
    except ValueError as error:
        raise LatexError(node.place, str(error)) from None


def form_read(value: Any) -> Any:
    """What the parser reads for a side that is printed: matrices after a step, their rates and roots are letters.

    >>> print(form_read(MatrixForm("W", "next")))
    W^+
    """
    if isinstance(value, MatrixForm):
        return matrix(f"d{value.letter}/dt" if value.kind == "rate" else next_step(value.letter))
    return matrix_root(value.square) if isinstance(value, MatrixRoot) else value


def matrix_root(square: Words) -> Words:
    """The positive semidefinite square root of ``A A^T``, as a letter of its own.

    Raises: ``ValueError`` for another matrix.

    >>> print(matrix_root(matrix("W") @ matrix("W").T))
    (W W^T)^(1/2)
    """
    word, scale = next(iter(square.terms.items()), ((), 0))
    half = word[: len(word) // 2]
    if not half or len(square.terms) > 1 or scale != 1 or Words.of({half: 1}) @ Words.of({half: 1}).T != square:
        raise ValueError(f"the root of a matrix {square} that is not written as A A^T")
    return matrix(f"({square})^(1/2)")


def _transpose(node: Transpose) -> Any:
    inner = evaluate(node.inner)
    if not isinstance(inner, Words):
        raise LatexError(node.place, "the transpose of a scalar")
    return inner.T


def _call(node: Call) -> Any:
    arguments = [_scalar(a, f"argument of {node.function}") for a in node.arguments]
    if arguments[0] == 0 and node.function in ("log", "Ei"):
        raise LatexError(node.place, f"{node.function} of 0")
    return _FUNCTIONS[node.function](*arguments)


def _derivative(node: Derivative) -> Any:
    value = evaluate(node.inner)
    if isinstance(value, Words):
        if node.order != 1:
            raise LatexError(node.place, "a higher derivative of matrices")
        letters = {name for word in value.terms for name, _ in word}
        return value.derivative({name: matrix(f"d{name}/d{node.variable.symbol}") for name in letters - {"1"}})
    for _ in range(node.order):
        value = Rate(value, node.variable.symbol)
    return value


def _integrated(node: Integrated) -> Any:
    variable = node.variable.symbol
    inner, low, high = (_scalar(part, "part of an integral") for part in (node.inner, node.low, node.high))
    if variable in low.free_symbols | high.free_symbols:
        raise LatexError(node.place, f"the variable of integration {node.variable.latex} is also in the limits")
    return Integral(inner, (variable, low, high))


_RULES: dict[type, Callable[[Any], Any]] = {
    Number: lambda node: Rational(node.value.numerator, node.value.denominator),
    Constant: lambda node: _CONSTANTS[node.name],
    Name: _name,
    Letter: _letter,
    Norm: lambda node: sympy.sqrt(node.symbol),
    Sum: _sum,
    Product: _product,
    Quotient: _quotient,
    Power: _power,
    Transpose: _transpose,
    Call: _call,
    Derivative: _derivative,
    Integrated: _integrated,
}
