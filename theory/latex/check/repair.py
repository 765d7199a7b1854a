"""The smallest change that makes an equation of a paper right: a sign, a symbol, a number, an exponent, a factor.

Every single change of the formula's tree is tried by its value at two points first; what passes is proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from flint import ctx
from sympy import Basic, Mul, Pow, Rational, Symbol, cancel, diff

from theory.errors import GradlineError
from theory.identities import normal_form
from theory.inputs import conditions
from theory.latex.check.comparison import compare_with
from theory.latex.check.findings import Repair
from theory.latex.check.preparing import prepared
from theory.latex.check.stated import Statement
from theory.latex.check.values import BITS, NoValueError, Values, value_of, values_at
from theory.latex.names import SCALARS
from theory.latex.notation import Rate
from theory.latex.parser.evaluate import evaluate
from theory.latex.parser.nodes import (
    Call,
    Derivative,
    Integrated,
    Name,
    Node,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    children,
    with_children,
)
from theory.latex.parser.vocabulary import FORMULA, MOVING, Vocabulary
from theory.latex.source.tokens import LatexError, Place
from theory.mutation.formulas import MIXED_UP
from theory.symbols import K, M, N, alpha, b, gamma, mu_OV, mu_QK, t
from theory.witnesses import points

__all__ = ["factor_of", "repair", "tables_of", "vanishes"]

_POINTS = 2
_MOST_PROOFS = 4
#: Each change is tried on the whole formula, so the work grows with the square of its size.
_MOST_NODES = 200
_SWAPS: dict[Symbol, tuple[Symbol, ...]] = {
    **{symbol: (other,) for symbol, other in MIXED_UP.items()},
    b: (K, M, N),
    K: (b, M, N),
    N: (b, K, M),
    M: (b, K, N),
    **{SCALARS[a]: (SCALARS[b],) for a, b in (("sigma_OV", "sigma_QK"), ("sigma_QK", "sigma_OV"))},
}


@dataclass(frozen=True)
class _Edit:
    """A changed tree with the change in words."""

    node: Node
    text: str
    place: Place
    rank: int


def repair(
    sides: Sequence[Node],
    statements: Sequence[Statement],
    given: Sequence[Basic],
    words: Vocabulary,
    relation: str = "=",
) -> Repair | None:
    """Search one change of an equation that makes it match one of the statements.

    Parameters: ``sides``, the left and the right side as trees; ``statements``, equations; ``given``, what the paper
    assumes; ``words``, for the names in messages; ``relation``, ``"="`` or ``"~"``.
    Returns: the simplest change found, or None; none is searched in a formula of more than 200 parts.
    """
    if sum(map(_size, sides)) > _MOST_NODES:
        return None
    tables = [(s, tables_of(s, given, sides)) for s in statements if s.kind == "equation" and s.relation == relation]
    tables = [(s, found) for s, found in tables if found]
    used = {name.symbol for side in sides for name in _names(side)} - {FORMULA}
    edits = sorted(_edits(sides, used, words), key=lambda e: e.rank)
    proofs = 0
    for edit, left, right in ((e, *_put(sides, e)) for e in edits):
        for statement, found in tables:
            if not all(vanishes(left, right, values) for values in found):
                continue
            proofs += 1
            if proofs > _MOST_PROOFS:
                return None
            if _proved(left, right, statement, given, relation):
                return Repair(edit.text, edit.place, statement)
    return None


def tables_of(statement: Statement, given: Sequence[Basic], sides: Sequence[Node]) -> list[Values]:
    """Values of all symbols at points where a statement holds."""
    free = set(prepared(statement.value, statement).free_symbols) | {alpha, mu_OV, mu_QK, *_SWAPS, gamma}
    for side in sides:
        free |= {name.symbol for name in _names(side)}
    for meaning in statement.definitions.values():
        free |= set(getattr(meaning, "free_symbols", ()))
    free -= {statement.quantity, *statement.definitions}
    relations = tuple(c for c in conditions((*statement.given, *given)) if c.expr.free_symbols <= free)
    found: list[Values] = []
    for point in points(sorted(free, key=str), relations, 8):
        values = values_at(point, statement)
        if values is not None:
            found.append(values)
        if len(found) == _POINTS:
            break
    return found


def _size(node: Node) -> int:
    return 1 + sum(map(_size, children(node)))


def _names(node: Node) -> Iterator[Name]:
    if isinstance(node, Name):
        yield node
    for part in children(node):
        yield from _names(part)


def vanishes(left: Node, right: Node, values: Values) -> bool:
    """Whether both sides have one value, as far as can be seen."""
    try:
        with ctx.workprec(BITS):
            return bool((value_of(left, values) - value_of(right, values)).contains(0))
    except (NoValueError, ZeroDivisionError, ValueError):
        return False


def _proved(left: Node, right: Node, statement: Statement, given: Sequence[Basic], relation: str) -> bool:
    try:
        return compare_with(evaluate(left), evaluate(right), statement, given, relation).matches
    except (LatexError, GradlineError):
        return False


# ---- changes ---------------------------------------------------------------------------------------------------


def _put(sides: Sequence[Node], edit: _Edit) -> tuple[Node, Node]:
    pair = edit.node
    if not isinstance(pair, Product):
        raise TypeError("an edit holds both sides")
    return pair.factors[0], pair.factors[1]


def _edits(sides: Sequence[Node], used: set[Symbol], words: Vocabulary) -> Iterator[_Edit]:
    """Every change of the equation; both sides travel as a product of two."""
    yield from _changes(Product(tuple(sides), sides[0].place), used, words, top=True)


def _changes(node: Node, used: set[Symbol], words: Vocabulary, top: bool = False) -> Iterator[_Edit]:
    if not top:
        yield from _local(node, used, words)
    if isinstance(node, Derivative | Integrated):
        return
    parts = children(node)
    for position, part in enumerate(parts):
        for edit in _changes(part, used, words):
            changed = (*parts[:position], edit.node, *parts[position + 1 :])
            yield replace(edit, node=with_children(node, changed))


def _local(node: Node, used: set[Symbol], words: Vocabulary) -> Iterator[_Edit]:
    """Changes of one node."""
    if isinstance(node, Sum):
        yield from _signs(node)
    elif isinstance(node, Name):
        if node.symbol == FORMULA:
            return
        yield from _symbols(node, used, words)
        yield from _numbers_at(node)
    elif isinstance(node, Number):
        for value in (node.value + 1, node.value - 1, 2 * node.value, node.value / 2, -node.value):
            yield _Edit(Number(value, node.place), f"{value} in place of {node.value}", node.place, 1)
    elif isinstance(node, Power):
        yield from _exponents(node)
    elif isinstance(node, Quotient):
        turned = replace(node, top=node.bottom, bottom=node.top)
        yield _Edit(turned, "the fraction upside down", node.place, 4)
    elif isinstance(node, Call):
        yield from _functions(node)
    elif isinstance(node, Derivative) and isinstance(node.inner, Name):
        for edit in _symbols(node.inner, used, words):
            yield replace(edit, node=replace(node, inner=edit.node))
    if isinstance(node, Name | Call | Power | Quotient | Product | Derivative):
        yield from _factors(node, used, words)
    if isinstance(node, Quotient | Product | Name | Call | Derivative):
        yield _Edit(_negative(node), "the other sign", node.place, 2)


def _numbers_at(node: Name) -> Iterator[_Edit]:
    """A name with an exponent, without it, or beside a 1."""
    place, one = node.place, Number(Fraction(1), node.place)
    yield _Edit(Call("Abs", (node,), place), f"|{node.latex}| in place of {node.latex}", place, 1)
    yield _Edit(_squared(node), f"{node.latex} squared", place, 3)
    half = Quotient(one, Number(Fraction(2), place), place)
    yield _Edit(Power(node, half, place), f"the square root of {node.latex}", place, 4)
    yield _Edit(one, f"no {node.latex}", place, 3)
    yield from _one_beside(node, node.latex)
    yield _Edit(Sum((one, node), (1, -1), place), f"1 - {node.latex} in place of {node.latex}", place, 2)


def _one_beside(node: Node, name: str) -> Iterator[_Edit]:
    """One more or one less than a part."""
    one = Number(Fraction(1), node.place)
    for sign in (-1, 1):
        text = f"{name} {'+' if sign > 0 else '-'} 1 in place of {name}"
        yield _Edit(Sum((node, one), (1, sign), node.place), text, node.place, 2)


def _exponents(node: Power) -> Iterator[_Edit]:
    yield _Edit(node.base, "no exponent", node.place, 2)
    yield from _one_beside(node, "this power")
    if not isinstance(node.exponent, Number):
        yield _Edit(replace(node, exponent=_negative(node.exponent)), "the other sign in the exponent", node.place, 0)


def _signs(node: Sum) -> Iterator[_Edit]:
    for position, term in enumerate(node.terms):
        signs = tuple(-s if i == position else s for i, s in enumerate(node.signs))
        mark = "+" if signs[position] > 0 else "-"
        yield _Edit(replace(node, signs=signs), f"{mark} in place of {'-' if mark == '+' else '+'}", term.place, 0)
    one = Number(Fraction(1), node.place)
    for sign in (1, -1):
        longer = Sum((*node.terms, one), (*node.signs, sign), node.place)
        yield _Edit(longer, f"a term {'+' if sign > 0 else '-'} 1 more", node.place, 2)
    for position, term in enumerate(node.terms):
        if len(node.terms) > 1:
            rest = tuple(t for i, t in enumerate(node.terms) if i != position)
            signs = tuple(s for i, s in enumerate(node.signs) if i != position)
            yield _Edit(Sum(rest, signs, node.place), "without this term", term.place, 3)
            if len(rest) == 1 and signs == (-1,):
                yield _Edit(rest[0], "without this term and with the other sign", term.place, 3)


def _symbols(node: Name, used: set[Symbol], words: Vocabulary) -> Iterator[_Edit]:
    near = _SWAPS.get(node.symbol, ())
    others = sorted((s for s in used if s != node.symbol and s not in near), key=str)
    for rank, found in ((1, near), (2, tuple(others))):
        for other in found:
            latex = words.latex.get(other, other.name)
            yield _Edit(replace(node, symbol=other, latex=latex), f"{latex} in place of {node.latex}", node.place, rank)


def _functions(node: Call) -> Iterator[_Edit]:
    (argument, *rest) = node.arguments
    if rest:
        return
    yield from _one_beside(node, "this value")
    yield _Edit(replace(node, arguments=(_negative(argument),)), "the other sign in the argument", argument.place, 1)
    for name in ("exp", "log", "Ei"):
        if name != node.function:
            yield _Edit(replace(node, function=name), f"{name} in place of {node.function}", node.place, 4)


def _factors(node: Node, used: set[Symbol], words: Vocabulary) -> Iterator[_Edit]:
    """A factor too much or too little."""
    place = node.place
    if isinstance(node, Product) and len(node.factors) > 1:
        for position, factor in enumerate(node.factors):
            rest = tuple(f for i, f in enumerate(node.factors) if i != position)
            yield _Edit(Product(rest, place), "without this factor", factor.place, 3)
    two = Number(Fraction(2), place)
    yield _Edit(_times(two, node), "a factor 2", place, 3)
    yield _Edit(Quotient(node, two, place), "a factor 1/2", place, 3)
    for symbol in sorted({*used, *_SWAPS, gamma}, key=str):
        latex = words.latex.get(symbol, symbol.name)
        name = Name(symbol, latex, place)
        rank = 4 if symbol in used else 5
        yield _Edit(_times(name, node), f"a factor {latex}", place, rank)
        yield _Edit(Quotient(node, name, place), f"a factor 1/{latex}", place, rank)
    one = Number(Fraction(1), place)
    latex = words.latex.get(alpha, alpha.name)
    unread = Sum((one, Name(alpha, latex, place)), (1, -1), place)
    yield _Edit(_times(unread, node), f"a factor 1 - {latex}", place, 5)
    latex = words.latex.get(M, M.name)
    others = Sum((Name(M, latex, place), one), (1, -1), place)
    yield _Edit(_times(others, node), f"a factor {latex} - 1", place, 5)
    yield _Edit(Quotient(node, others, place), f"a factor 1/({latex} - 1)", place, 5)


def _negative(node: Node) -> Node:
    if isinstance(node, Sum) and len(node.terms) == 1:
        return node.terms[0] if node.signs[0] < 0 else Sum(node.terms, (-1,), node.place)
    return Sum((node,), (-1,), node.place)


def _times(factor: Node, node: Node) -> Node:
    return Product((factor, node), node.place)


def _squared(node: Node) -> Node:
    return Power(node, Number(Fraction(2), node.place), node.place)


# ---- a factor of the whole -------------------------------------------------------------------------------------


def factor_of(left: Any, right: Any, statement: Statement) -> str | None:
    """What the right side must be multiplied by, where that is a product of powers of symbols and a number.

    For an equation that is linear in the quantity of the statement; for a first integral, what the terms in
    ``mu_OV`` must be multiplied by.
    """
    try:
        ratio = _ratio(prepared(left, statement) - prepared(right, statement), statement)
        if ratio is None:
            return None
        found = normal_form(ratio).to_expr()
    except (GradlineError, ValueError, TypeError):
        return None
    if not _is_simple(found):
        return None
    return f"{found} for the terms in {statement.quantity[1]}" if statement.kind == "constant" else str(found)


def _ratio(p: Any, statement: Statement) -> Any:
    value = prepared(statement.value, statement)
    if statement.kind == "equation" and statement.relation == "=":
        symbol = Symbol("_q", real=True)
        p = p.xreplace({statement.quantity: symbol})
        slope = diff(p, symbol)
        if slope == 0 or slope.has(symbol):
            return None
        own = -(p.xreplace({symbol: Rational(0)})) / slope
        return None if own == 0 else value / own
    if statement.kind == "constant" and len(statement.quantity) == 2:
        first, second = statement.quantity
        if p.has(Rate):
            opened = {Rate(s, t): Symbol(f"_{s}", real=True) for s in (first, second)}
            own = [diff(p.xreplace(opened), symbol) for symbol in opened.values()]
        else:
            own = [diff(p, s) for s in (first, second)]
        parts = [*own, diff(value, first), diff(value, second)]
        if 0 in parts:
            return None
        return cancel(parts[0] * parts[3] / (parts[1] * parts[2]))
    return None


def _is_simple(expr: Any) -> bool:
    """Whether an expression is a number times a few powers of symbols or of M - 1."""
    factors = Mul.make_args(expr)
    if len(factors) > 4 or expr == 1:
        return False
    for factor in factors:
        base = factor.base if isinstance(factor, Pow) else factor
        small = base.is_Symbol or base.is_Rational or (base.is_Add and len(base.args) == 2 and base.free_symbols <= {M})
        if not small:
            return False
    return not any(s.name in MOVING and s != alpha for s in expr.free_symbols) or len(factors) <= 2
