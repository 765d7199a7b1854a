"""The intermediate form of a kernel: ordered arguments and a list of assignments, each value assigned once.

    SymPy expressions --rewrites--> stable SymPy expressions --lower--> Program --printer of a backend--> source

Equal subexpressions are one value. Floats begin here: a constant is a fraction, or 60 decimal digits if it is
irrational; printers round it once.

Source: arXiv 2608.06776, reduced dynamics, as derived by `theory.flow`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sympy import Add, Basic, Integer, Mul, Pow, Symbol, default_sort_key, exp

from numerics.backends.table import FUNCTIONS, OPERATIONS
from numerics.functions import restore, sigmoid
from theory.errors import GradlineError

__all__ = ["Program", "UnsupportedError", "Value", "lower"]

_LARGEST_POWER = 64
_EXACT = 2**53
_READABLE = 10**6  # larger denominators are those of floats: 0.1, not 3602879701896397/36028797018963968
_DIGITS = 60


class UnsupportedError(GradlineError):
    """An expression holds something that no kernel can compute; the message names it and its place."""


@dataclass(frozen=True)
class Value:
    """One assignment: an operation on earlier values, an argument (``op = "arg"``) or a constant (``op = "const"``)."""

    op: str
    operands: tuple[int, ...] = ()
    constant: Fraction | Decimal | None = None
    argument: str | None = None


@dataclass(frozen=True)
class Program:
    """Arguments in call order, values in order of evaluation, their known names, and those that are returned."""

    arguments: tuple[str, ...]
    values: tuple[Value, ...]
    names: Mapping[int, str]
    outputs: tuple[int, ...]

    def evaluate(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """The outputs in mpmath at its working precision: the meaning of the program.

        >>> from sympy.abc import x
        >>> lower([x**2 + 1], [x]).evaluate({"x": 3})
        (mpf('10.0'),)
        """
        import mpmath

        done: list[Any] = []
        for value in self.values:
            if value.op == "arg":
                done.append(mpmath.mpmathify(arguments[str(value.argument)]))
            elif value.op == "const":
                c = value.constant
                done.append(mpmath.mpf(c.numerator) / c.denominator if isinstance(c, Fraction) else mpmath.mpf(str(c)))
            else:
                done.append(OPERATIONS[value.op].evaluate(*[done[i] for i in value.operands]))
        return tuple(done[i] for i in self.outputs)


class _Builder:
    """Lowers expressions into one list of values, each distinct value once."""

    def __init__(self, arguments: Sequence[Symbol], uniform: Sequence[Symbol]) -> None:
        self.arguments = {s: s.name for s in arguments}
        self.uniform = frozenset(uniform)
        self.values: list[Value] = []
        self._index: dict[Value, int] = {}
        self._memo: dict[Any, int] = {}
        self._decays: dict[Any, int] = {}
        self._place: list[Any] = []

    def emit(self, op: str, *operands: int) -> int:
        return self._add(Value(op, operands))

    def _add(self, value: Value) -> int:
        if value not in self._index:
            self._index[value] = len(self.values)
            self.values.append(value)
        return self._index[value]

    def constant(self, number: Fraction | Decimal) -> int:
        return self._add(Value("const", (), number))

    def lower(self, expr: Any) -> int:
        """The value of an expression."""
        if expr not in self._memo:
            self._place.append(expr)
            self._memo[expr] = self._lower(expr)
            self._place.pop()
        return self._memo[expr]

    def _lower(self, expr: Any) -> int:
        if isinstance(expr, Symbol):
            return self._argument(expr)
        if expr.is_Rational or (not expr.free_symbols and expr.is_number):
            return self._number(expr)
        if isinstance(expr, Add):
            return self._sum(expr)
        if isinstance(expr, exp):
            return self.emit("exp", self.lower(expr.args[0]))
        if isinstance(expr, Mul):
            return self._product(expr)
        if isinstance(expr, Pow):
            return self._power(expr.base, expr.exp)
        name = FUNCTIONS.get(expr.func)
        if name is None or (name == "lambertw" and len(expr.args) != 1):
            raise self.refuse(expr)
        return self._call(name, expr)

    def refuse(self, expr: Any, why: str = "no backend can print") -> UnsupportedError:
        """The error for an expression, with the way down to it."""
        name = expr.func.__name__ if expr.args and not expr.is_number else str(expr)
        way = " > ".join(_short(e) for e in self._place)
        return UnsupportedError(f"lowering: {why} {name}, in {way}; rewrite the expression without it before compiling")

    def _argument(self, symbol: Symbol) -> int:
        if symbol not in self.arguments:
            raise self.refuse(symbol, "no argument is given for")
        return self._add(Value("arg", (), None, self.arguments[symbol]))

    def _number(self, number: Any) -> int:
        if number.is_Rational:
            exact = Fraction(int(number.p), int(number.q))
            if abs(exact.numerator) <= _EXACT and exact.denominator <= _READABLE:
                return self.constant(exact)
        value = restore(number).evalf(_DIGITS)
        if not (value.is_Float or value.is_Rational) or not value.is_finite:
            raise self.refuse(number, "not a finite real number:")
        decimal = Decimal(str(value.evalf(_DIGITS)))
        nearest = float(decimal)
        if math.isinf(nearest) or (nearest == 0 and value != 0):
            raise self.refuse(number, "outside the range of floating-point numbers:")
        return self.constant(decimal)

    def _rank(self, expr: Any) -> tuple[int, Any]:
        symbols = expr.free_symbols
        return (0 if not symbols else 1 if symbols <= self.uniform else 2), default_sort_key(expr)

    def _sum(self, expr: Any) -> int:
        terms = sorted(expr.args, key=lambda e: (e.could_extract_minus_sign(), e.is_number, self._rank(e)))
        total = self.lower(terms[0])
        for term in terms[1:]:
            if term.could_extract_minus_sign():
                total = self.emit("sub", total, self.lower(-term))
            else:
                total = self.emit("add", total, self.lower(term))
        return total

    def _product(self, expr: Any) -> int:
        """Constants and parameters first, bounded factors last: then no intermediate is smaller than the result.

        A quotient of parameters before others is one number for all states, and no division for each.
        """
        coefficient, rest = expr.as_coeff_Mul(rational=True)
        if coefficient < 0:
            return self.emit("neg", self.lower(-coefficient * rest))
        factors = sorted(Mul.make_args(rest), key=self._rank)
        shared = [f for f in factors if self._rank(f)[0] < 2]
        if len(shared) < len(factors) and {_divides(f) for f in shared if f.free_symbols} == {True, False}:
            head = self._factors(coefficient, shared, [])
            return self._factors(Integer(1), factors[len(shared) :], [head])
        return self._factors(coefficient, factors, [])

    def _factors(self, coefficient: Any, factors: Sequence[Any], above: list[int]) -> int:
        """The product of a positive rational, factors and values."""
        bounded, below = [], []
        for factor in factors:
            base, power = factor.as_base_exp() if isinstance(factor, Pow) else (factor, Integer(1))
            if _divides(factor):
                below.append(self._power(base, -power))
            elif isinstance(base, sigmoid):
                bounded.append(self.lower(factor))
            else:
                above.append(self.lower(factor))
        if coefficient.q > _READABLE:
            above.insert(0, self._number(coefficient))
            coefficient = Integer(1)
        if coefficient.p != 1:
            above.insert(0, self._number(Integer(coefficient.p)))
        if coefficient.q != 1:
            below.insert(0, self._number(Integer(coefficient.q)))
        head = self._chain(above or bounded)
        if below:
            head = self.emit("div", self.constant(Fraction(1)) if head is None else head, self._chain(below) or 0)
        for factor in bounded if above else ():
            head = factor if head is None else self.emit("mul", head, factor)
        return 0 if head is None else head

    def _chain(self, factors: Sequence[int]) -> int | None:
        total = None
        for factor in factors:
            total = factor if total is None else self.emit("mul", total, factor)
        return total

    def _power(self, base: Any, power: Any) -> int:
        if not base.free_symbols and not power.free_symbols:
            return self._number(base**power)
        if power.could_extract_minus_sign():
            return self.emit("div", self.constant(Fraction(1)), self._power(base, -power))
        if power.is_Integer and int(power) <= _LARGEST_POWER:
            return self._multiplied(self.lower(base), int(power))
        if power.is_Rational and power.q == 2 and power.p <= _LARGEST_POWER:
            root = self.emit("sqrt", self.lower(base))
            whole = int(power.p) // 2
            return self.emit("mul", self._multiplied(self.lower(base), whole), root) if whole else root
        return self.emit("pow", self.lower(base), self.lower(power))

    def _multiplied(self, base: int, power: int) -> int:
        if power == 1:
            return base
        half = self._multiplied(base, power // 2)
        square = self.emit("mul", half, half)
        return self.emit("mul", square, base) if power % 2 else square

    def _call(self, name: str, expr: Any) -> int:
        if name in {"max", "min"}:
            first, *others = sorted(expr.args, key=self._rank)
            total = self.lower(first)
            for other in others:
                total = self.emit(name, total, self.lower(other))
            return total
        if name in {"sigmoid", "softplus"}:
            return self._logistic(name, expr.args[0])
        return self.emit(name, *[self.lower(a) for a in expr.args])

    def _logistic(self, name: str, argument: Any) -> int:
        """Both signs of an argument share ``exp(-|argument|)``, and the side on which its derivative is taken at 0."""
        if -argument in self._decays:
            return self.emit(f"{name}_minus", self._memo[-argument], self._decays[-argument])
        value = self.lower(argument)
        decay = self._decays.setdefault(argument, self.emit("decay", value))
        return self.emit(name, value, decay)


def _divides(factor: Any) -> bool:
    """Whether a product is divided by this factor."""
    return isinstance(factor, Pow) and not isinstance(factor, exp) and bool(factor.exp.could_extract_minus_sign())


def _short(expr: Basic, limit: int = 60) -> str:
    text = str(expr)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _in_use(builder: _Builder, names: Mapping[int, str], outputs: Sequence[int]) -> tuple[Any, Any, Any]:
    """Values that the outputs need, renumbered in order."""
    needed: set[int] = set()
    stack = list(outputs)
    while stack:
        i = stack.pop()
        if i not in needed:
            needed.add(i)
            stack += builder.values[i].operands
    order = {old: new for new, old in enumerate(sorted(needed))}
    values = tuple(
        Value(v.op, tuple(order[i] for i in v.operands), v.constant, v.argument)
        for v in (builder.values[i] for i in sorted(needed))
    )
    return values, {order[i]: n for i, n in names.items() if i in order}, tuple(order[i] for i in outputs)


def lower(
    expressions: Sequence[Any],
    arguments: Sequence[Symbol],
    names: Mapping[Any, str] | None = None,
    uniform: Sequence[Symbol] = (),
) -> Program:
    """Lower rewritten expressions to a program.

    Parameters: ``expressions``, the outputs; ``arguments``, symbols in call order; ``names``, known names of
    subexpressions; ``uniform``, arguments that are usually scalars (they are combined first).
    Returns: a `Program`. Raises: `UnsupportedError` naming what no backend prints and where it stands.

    >>> from sympy.abc import x
    >>> [v.op for v in lower([x**3 - 1], [x]).values]
    ['arg', 'mul', 'mul', 'const', 'sub']
    """
    builder = _Builder(arguments, uniform)
    outputs = [builder.lower(e) for e in expressions]
    known = {builder.lower(e): name for e, name in (names or {}).items() if not (e.is_Symbol or e.is_number)}
    values, kept, returned = _in_use(builder, known, outputs)
    return Program(tuple(s.name for s in arguments), values, kept, returned)
