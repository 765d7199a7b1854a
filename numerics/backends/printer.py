"""Printing a program, assignment by assignment: what all backends share.

A backend adds a `Dialect`: how each operation is called, which helpers that needs, how a constant becomes an operand.
"""

from __future__ import annotations

import keyword
import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from numerics.ir import Program, UnsupportedError

__all__ = [
    "LINE", "Body", "Dialect", "Signature", "called", "formulas", "identifiers", "needed", "python_number", "words",
]  # fmt: skip

LINE = 88
_WIDTH = 56
_SHORT = 40
_INFIX = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2)}
_WORDS = {
    "add": "total", "sub": "difference", "mul": "product", "div": "ratio", "neg": "negative", "exp": "exponential",
    "log": "logarithm", "log1p": "logarithm", "sqrt": "root", "pow": "power", "abs": "magnitude",
}  # fmt: skip


@dataclass(frozen=True)
class Signature:
    """What the source says: name, symbols, their parameter names, outputs, title, notes, shape of a matrix, the
    parameters that are usually one number for all states, and the equations in exact arithmetic.
    """

    name: str
    symbols: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    title: str
    notes: tuple[str, ...]
    shape: tuple[int, ...] | None
    single: bool
    uniform: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()

    def described(self, width: int) -> list[str]:
        """Title, equations, and a line for each argument."""
        lines = [self.title, ""]
        if self.formulas:
            for formula in self.formulas:
                lines += textwrap.wrap(formula, width, initial_indent="    ", subsequent_indent=" " * 8)
            lines += ["", "Evaluated in forms that neither overflow nor cancel.", ""]
        for symbol, parameter, note in zip(self.symbols, self.parameters, self.notes, strict=True):
            renamed = f" (the symbol {ascii(symbol)[1:-1]})" if symbol != parameter else ""
            text = f"{parameter}{renamed}: {note or 'real'}"
            lines += textwrap.wrap(text, width, subsequent_indent="    ", break_long_words=False)
        return lines


def python_number(value: Fraction | Decimal | None) -> tuple[str, int]:
    """Text and binding strength of a constant in Python."""
    if isinstance(value, Fraction):
        strength = 2 if value.denominator != 1 else 4
        return str(value).replace("/", " / "), 0 if value < 0 else strength
    number = float(value or 0)
    return repr(number), 0 if number < 0 else 4


@dataclass(frozen=True)
class Dialect:
    """A backend.

    ``calls``, operation -> function; ``helpers``, sources by name; ``reserved``, names it needs for itself;
    ``imports``, text in use -> statement; ``constant_operand``, how a constant (first) is printed beside another
    operand (second); ``number``, a constant and how strongly its text binds; ``assignment``, a variable and its value.
    """

    name: str
    calls: Mapping[str, str]
    helpers: Mapping[str, str]
    reserved: frozenset[str]
    imports: Mapping[str, str] = field(default_factory=dict)
    constant_operand: Callable[[str, str], str] = lambda text, other: text
    number: Callable[[Fraction | Decimal | None], tuple[str, int]] = python_number
    assignment: str = "{} = {}"


def identifiers(symbols: Iterable[str], reserved: frozenset[str]) -> tuple[str, ...]:
    """Names that are valid, distinct and free, in order: a keyword or library name gets an underscore behind it.

    >>> identifiers(["x", "lambda", "mu_{QK}"], frozenset({"x"}))
    ('x_', 'lambda_', 'mu_QK')
    """
    found: list[str] = []
    for symbol in symbols:
        plain = unicodedata.normalize("NFKC", symbol.replace("{", "").replace("}", ""))
        letters = "".join(c if f"_{c}".isidentifier() else "_" for c in plain)
        name = re.sub("__+", "_", letters).strip("_") or "x"
        name = name if name.isidentifier() else f"x{name}"
        while keyword.iskeyword(name) or name in reserved or name in found:
            name += "_"
        found.append(name)
    return tuple(found)


def words(text: str) -> frozenset[str]:
    """The words of a text, such as names that are taken."""
    return frozenset(text.split())


class Body:
    """Decides which values become variables and prints the rest in place."""

    def __init__(self, program: Program, dialect: Dialect, parameters: Sequence[str], taken: frozenset[str]) -> None:
        self.program = program
        self.dialect = dialect
        self.argument = dict(zip(program.arguments, parameters, strict=True))
        self.uses = Counter(i for v in program.values for i in v.operands)
        self.uses.update(program.outputs)
        self.lines: list[str] = []
        self.texts: list[tuple[str, int]] = []
        self.taken = {*taken, *parameters, *program.names.values(), *dialect.reserved}

    def print(self) -> list[str]:
        for index, value in enumerate(self.program.values):
            if value.op == "arg":
                self.texts.append((self.argument[str(value.argument)], 4))
                continue
            if value.op == "const":
                self.texts.append(self.dialect.number(value.constant))
                continue
            known = self.program.names.get(index)
            if known is None and self.uses[index] > 1:
                known = self._fresh(_WORDS.get(value.op, value.op))
            text = self._fitted(value.op, value.operands, known)
            self.texts.append(text if known is None else self._assign(known, text))
        return self.lines

    def named(self, index: int, output: str) -> str:
        """The text of a result, a variable if it is long."""
        text = self.texts[index]
        if len(text[0]) > _SHORT:
            self.texts[index] = self._assign(self._fresh(output if output.isidentifier() else "result", ""), text)
        return self.texts[index][0]

    def _assign(self, variable: str, text: tuple[str, int]) -> tuple[str, int]:
        self.lines.append(self.dialect.assignment.format(variable, text[0]))
        return variable, 4

    def _fitted(self, op: str, operands: Sequence[int], name: str | None) -> tuple[str, int]:
        """The text of an operation; its longest operands become variables until it fits on a line."""
        room = _WIDTH if name is None else LINE - 4 - len(self.dialect.assignment.format(name, ""))
        text = self._expression(op, operands)
        while len(text[0]) > room:
            long = max(operands, key=lambda i: len(self.texts[i][0]))
            if self.texts[long][0].isidentifier():
                break
            word = _WORDS.get(self.program.values[long].op, self.program.values[long].op)
            self.texts[long] = self._assign(self._fresh(word), self.texts[long])
            text = self._expression(op, operands)
        return text

    def _fresh(self, word: str, suffix: str = "_1") -> str:
        number = 1
        while f"{word}{suffix}" in self.taken:
            number += 1
            suffix = f"_{number}"
        self.taken.add(f"{word}{suffix}")
        return f"{word}{suffix}"

    def _expression(self, op: str, operands: Sequence[int]) -> tuple[str, int]:
        texts = [self.texts[i] for i in operands]
        if op == "neg":
            return f"-{_wrap(texts[0], 2)}", 0
        if op in _INFIX:
            sign, strength = _INFIX[op]
            left = _wrap(texts[0], strength)
            right = _wrap(texts[1], strength + (op != "add"))
            return f"{left} {sign} {right}", strength
        if op not in self.dialect.calls:
            offered = ", ".join(sorted(self.dialect.calls))
            raise UnsupportedError(f"printing: the {self.dialect.name} backend has no {op}; it has {offered}")
        plain = [t[0] for t in texts]
        constants = [self.program.values[i].op == "const" for i in operands]
        if any(constants) and not all(constants):
            other = plain[constants.index(False)]
            plain = [self.dialect.constant_operand(t, other) if c else t for t, c in zip(plain, constants, strict=True)]
        return f"{self.dialect.calls[op]}({', '.join(plain)})", 4


def formulas(
    program: Program, dialect: Dialect, signature: Signature, taken: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """The assignments of a program and the texts of its outputs; variables avoid the names that are taken."""
    body = Body(program, dialect, signature.parameters, frozenset({signature.name, *taken}))
    lines = body.print()
    return lines, [body.named(i, output) for i, output in zip(program.outputs, signature.outputs, strict=True)]


def called(program: Program, dialect: Dialect) -> list[str]:
    """The functions that a program calls, sorted."""
    return sorted({dialect.calls[v.op] for v in program.values if v.op in dialect.calls})


def _wrap(text: tuple[str, int], least: int) -> str:
    return text[0] if text[1] >= least else f"({text[0]})"


def needed(names: Iterable[str], helpers: Mapping[str, str]) -> list[str]:
    """Sources of the helpers by these names and of those they call, the called ones first."""
    found: list[str] = []

    def need(name: str) -> None:
        source = helpers.get(name)
        if source is None or source in found:
            return
        for other in helpers:
            if other != name and re.search(rf"(?<!\w){re.escape(other)}\b", source):
                need(other)
        found.append(source)

    for name in names:
        need(name)
    return found
