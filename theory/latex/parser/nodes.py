"""A formula as it is written: the tree that the parser gives, each node with its place.

Products keep their order, quotients stay quotients; nothing is computed here (see `theory.latex.parser.evaluate`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from theory.latex.source.tokens import Place

__all__ = [
    "Branch",
    "Call",
    "Cases",
    "Constant",
    "Derivative",
    "Integrated",
    "Letter",
    "Name",
    "Node",
    "Norm",
    "Number",
    "Power",
    "Product",
    "Quotient",
    "Sum",
    "Transpose",
    "children",
    "with_children",
]


@dataclass(frozen=True, slots=True)
class Number:
    """A number; decimals are exact."""

    value: Fraction
    place: Place


@dataclass(frozen=True, slots=True)
class Constant:
    """``e``, ``pi`` or ``oo``."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Name:
    """A scalar of the symbol table, as it was written; ``start`` marks its value at time 0."""

    symbol: Any
    latex: str
    place: Place
    start: bool = False


@dataclass(frozen=True, slots=True)
class Letter:
    """A matrix of the symbol table."""

    letter: str
    latex: str
    place: Place


@dataclass(frozen=True, slots=True)
class Norm:
    """The Frobenius norm of a matrix of the symbol table; ``symbol`` is its square."""

    symbol: Any
    place: Place


@dataclass(frozen=True, slots=True)
class Sum:
    """Terms with signs 1 or -1."""

    terms: tuple[Node, ...]
    signs: tuple[int, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Product:
    """Factors from left to right."""

    factors: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Quotient:
    """A fraction."""

    top: Node
    bottom: Node
    place: Place


@dataclass(frozen=True, slots=True)
class Power:
    """A power; roots have the exponent ``1/n``."""

    base: Node
    exponent: Node
    place: Place


@dataclass(frozen=True, slots=True)
class Transpose:
    """A transposed matrix."""

    inner: Node
    place: Place


@dataclass(frozen=True, slots=True)
class Call:
    """A function of its arguments."""

    function: str
    arguments: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Derivative:
    """A derivative in a variable of the symbol table; ``partial`` where it is written with a curly d."""

    inner: Node
    variable: Name
    order: int
    partial: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Integrated:
    """A definite integral."""

    inner: Node
    variable: Name
    low: Node
    high: Node
    place: Place


@dataclass(frozen=True, slots=True)
class Branch:
    """One row of ``cases``: a value, and the relations under which it holds as (left, relation, right)."""

    value: Node
    conditions: tuple[tuple[Node, str, Node], ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Cases:
    """The rows of ``cases``."""

    branches: tuple[Branch, ...]
    place: Place


Node = (
    Number
    | Constant
    | Name
    | Letter
    | Norm
    | Sum
    | Product
    | Quotient
    | Power
    | Transpose
    | Call
    | Derivative
    | Integrated
    | Cases
)


def children(node: Node) -> tuple[Node, ...]:
    """The parts of a node, from left to right."""
    found: list[Any] = []
    for field in fields(node):
        value = getattr(node, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Node):
                found.append(item)
    return tuple(found)


def with_children(node: Any, parts: tuple[Node, ...]) -> Any:
    """The same node with other parts, in the order of `children`."""
    rest = iter(parts)
    changes: dict[str, Any] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, tuple) and any(isinstance(item, Node) for item in value):
            changes[field.name] = tuple(next(rest) for _ in value)
        elif isinstance(value, Node):
            changes[field.name] = next(rest)
    return replace(node, **changes)
