"""Rational expressions as straight-line programs that run over any of the rings of :mod:`theory.laws.jets`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flint import nmod
from sympy import Add, Expr, Integer, Mul, Pow, Rational, Symbol, cse, numbered_symbols
from sympy.ntheory import factorint, sqrt_mod

from theory.errors import GradlineError
from theory.laws import jets
from theory.laws.jets import Jet

__all__ = ["OutsideRationalError", "Program", "compile_program"]


class OutsideRationalError(GradlineError):
    """An expression that is not rational in its arguments."""


@dataclass(frozen=True)
class Program:
    """Steps ``(operation, operands)``; a negative operand ``-1 - i`` is argument ``i``, another one an earlier step."""

    steps: tuple[tuple[str, tuple[int, ...], tuple[int, int]], ...]
    outputs: tuple[int, ...]

    def run(self, arguments: Sequence[Jet], p: int) -> list[Jet]:
        """Return the values of the outputs modulo ``p``; ``ZeroDivisionError`` at a pole."""
        if all(type(a) is int for a in arguments):
            return self._run_integers(arguments, p)
        values: list[Jet] = []

        def at(index: int) -> Jet:
            return arguments[-1 - index] if index < 0 else values[index]

        for operation, operands, (top, bottom) in self.steps:
            if operation == "constant":
                values.append(top * pow(bottom, -1, p) % p)
            elif operation == "root":
                values.append(_root(top, p) * pow(_root(bottom, p), -1, p) % p)
            elif operation == "power":
                values.append(jets.power(at(operands[0]), top, p))
            else:
                combine = jets.add if operation == "sum" else jets.multiply
                total = at(operands[0])
                for operand in operands[1:]:
                    total = combine(total, at(operand), p)
                values.append(total)
        return [at(index) for index in self.outputs]

    def _run_integers(self, arguments: Sequence[Any], p: int) -> list[Jet]:
        """The same for integers, where nothing needs to be looked at; arguments stand at the end, from the last."""
        count = len(self.steps)
        values = [0] * count + [a % p for a in reversed(arguments)]
        for i, (operation, operands, (top, bottom)) in enumerate(self.steps):
            if operation == "product":
                total = values[operands[0]]
                for operand in operands[1:]:
                    total = total * values[operand] % p
            elif operation == "sum":
                total = sum([values[operand] for operand in operands]) % p
            elif operation == "power":
                base = values[operands[0]]
                if top < 0 and not base:
                    raise ZeroDivisionError("no inverse of 0 modulo the prime")
                # flint inverts several times faster than pow
                total = pow(base, top, p) if top >= 0 else pow(int(1 / nmod(base, p)), -top, p)
            elif operation == "root":
                total = _root(top, p) * pow(_root(bottom, p), -1, p) % p
            else:
                total = top % p if bottom == 1 else top * pow(bottom, -1, p) % p
            values[i] = total
        return [values[index] for index in self.outputs]


def _root(value: int, p: int) -> int:
    """A root modulo ``p``, prime by prime, so that the root of a product is the product of the roots."""
    total = 1
    for prime, exponent in factorint(value).items():
        found = sqrt_mod(prime, p)
        if found is None:
            raise OutsideRationalError(
                f"sqrt({prime}) does not exist modulo the prime {p}; put a symbol in its place, or square it away"
            )
        total = total * pow(int(found), exponent, p) % p
    return total


def compile_program(expressions: Sequence[Expr], arguments: Sequence[Symbol]) -> Program:
    """Compile rational expressions of the arguments, common subexpressions once.

    Square roots of rational numbers count as constants.

    Raises: `OutsideRationalError` for another root, a function or an unknown symbol.

    >>> from sympy.abc import x, y
    >>> compile_program([x / (x + y), (x + y) ** 2], [x, y]).run([1, 1], 101)
    [51, 4]
    """
    known: dict[Any, int] = {symbol: -1 - position for position, symbol in enumerate(arguments)}
    steps: list[tuple[str, tuple[int, ...], tuple[int, int]]] = []

    def step(operation: str, operands: tuple[int, ...] = (), number: tuple[int, int] = (0, 1)) -> int:
        steps.append((operation, operands, number))
        return len(steps) - 1

    def visit(expr: Any) -> int:
        if expr not in known:
            known[expr] = _compile(expr)
        return known[expr]

    def _compile(expr: Any) -> int:
        if isinstance(expr, Rational):
            return step("constant", (), (int(expr.p), int(expr.q)))
        if isinstance(expr, Pow) and isinstance(expr.base, Rational) and expr.exp.is_Rational and expr.exp.q == 2:
            return step("power", (step("root", (), (int(expr.base.p), int(expr.base.q))),), (int(expr.exp.p), 1))
        if isinstance(expr, Add | Mul):
            return step("sum" if isinstance(expr, Add) else "product", tuple(visit(a) for a in expr.args))
        if isinstance(expr, Pow) and isinstance(expr.exp, Integer):
            return step("power", (visit(expr.base),), (int(expr.exp), 1))
        raise OutsideRationalError(
            f"{expr} is not rational in the parameters and their exponentials; expected polynomials, quotients, exp, "
            "tanh, erf (another constant: put a symbol in its place)"
        )

    shared, reduced = cse(list(expressions), symbols=numbered_symbols("_cse"), order="none")
    for symbol, value in shared:
        known[symbol] = visit(value)
    outputs = tuple(visit(e) for e in reduced)
    return Program(tuple(steps), outputs)
