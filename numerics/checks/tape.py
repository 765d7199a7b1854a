"""Derivatives in ball arithmetic: a tape of elementary operations, differentiated backwards.

Every value is a ball that encloses the exact one, so a gradient is enclosed as well. Nothing here knows the
theory, SymPy or torch. Source: Arb's ball arithmetic, by way of python-flint; the chain rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

__all__ = ["BITS", "Node", "ball", "constant", "gradient", "precision", "total"]

#: Working precision of the checks in ball arithmetic.
BITS = 256

Ball = Any


@contextmanager
def precision(bits: int = BITS) -> Iterator[None]:
    """Work with this precision inside the block."""
    saved = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = saved


def ball(value: Any) -> Ball:
    """Enclose a rational number, or return a ball as it is."""
    if isinstance(value, arb):
        return value
    number = value if isinstance(value, Fraction | int) else Fraction(int(value.p), int(value.q))
    return arb(fmpq(number.numerator, number.denominator))


class Node:
    """A value of the tape with its derivatives by the values it was made of."""

    __slots__ = ("parents", "value")

    def __init__(self, value: Ball, parents: tuple[tuple[Node, Ball], ...] = ()) -> None:
        self.value = value
        self.parents = parents

    def __add__(self, other: Node) -> Node:
        return Node(self.value + other.value, ((self, 1), (other, 1)))

    def __sub__(self, other: Node) -> Node:
        return Node(self.value - other.value, ((self, 1), (other, -1)))

    def __mul__(self, other: Node) -> Node:
        return Node(self.value * other.value, ((self, other.value), (other, self.value)))

    def __truediv__(self, other: Node) -> Node:
        quotient = self.value / other.value
        return Node(quotient, ((self, 1 / other.value), (other, -quotient / other.value)))

    def scaled(self, factor: Ball) -> Node:
        """This value times a constant."""
        return Node(self.value * factor, ((self, factor),))

    def exp(self) -> Node:
        """The exponential."""
        value = self.value.exp()
        return Node(value, ((self, value),))

    def log(self) -> Node:
        """The logarithm."""
        return Node(self.value.log(), ((self, 1 / self.value),))


def constant(value: Any) -> Node:
    """A value with no derivative."""
    return Node(ball(value))


def total(nodes: Iterable[Node]) -> Node:
    """The sum of values, 0 for none."""
    parts = tuple(nodes)
    return Node(sum((p.value for p in parts), arb(0)), tuple((p, 1) for p in parts))


def _order(end: Node) -> list[Node]:
    """Every node after the ones it was made of."""
    found: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(end, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            found.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((parent, False) for parent, _ in node.parents)
    return found


def gradient(end: Node, leaves: Sequence[Node]) -> list[Ball]:
    """Enclose the derivatives of a value by the leaves it was made of.

    >>> x, y = constant(3), constant(Fraction(1, 2))
    >>> [float(d) for d in gradient(x * y + y, [x, y])]
    [0.5, 4.0]
    """
    slopes: dict[int, Ball] = {id(end): arb(1)}
    for node in reversed(_order(end)):
        slope = slopes.get(id(node))
        if slope is not None:
            for parent, partial in node.parents:
                known = slopes.get(id(parent))
                slopes[id(parent)] = slope * partial if known is None else known + slope * partial
    return [slopes.get(id(leaf), arb(0)) for leaf in leaves]
