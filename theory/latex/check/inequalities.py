"""The verdict on inequalities of a paper: whether each says what a claim states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Basic, Dummy, Expr, cancel, diff

from theory.balls import enclose
from theory.errors import GradlineError
from theory.frozen import FrozenMap
from theory.identities import prove_zero
from theory.inputs import conditions
from theory.latex.check.findings import Finding, Result, shown_quantity
from theory.latex.check.preparing import BELOW_ONE, prepared
from theory.latex.check.stated import Statement
from theory.latex.notation import Rate
from theory.positivity import sign
from theory.witnesses import points

__all__ = ["judge_inequalities"]

_POINTS = 40


def judge_inequalities(relations: Sequence[Basic], stated: Sequence[Statement]) -> Finding:
    r"""The verdict on inequalities that stand without an equation.

    The first one is a statement, and so is each that speaks of a derivative; others are what the paper assumes.
    ``p > 0`` says the same as ``v > 0`` where ``p / v`` is proved positive.

    Parameters: ``relations``, SymPy inequalities; ``stated``, what the claim states. Returns: a `Finding`.

    >>> from sympy import Gt, Lt
    >>> from theory.latex.check.stated import statements
    >>> from theory.latex.names import SCALARS
    >>> from theory.registry import find
    >>> from theory.symbols import t
    >>> loss, stated = Rate(SCALARS["L"], t), statements(find("attention-monotone"))
    >>> [judge_inequalities([relation(loss, 0)], stated).status for relation in (Lt, Gt)]
    ['match', 'differs']
    """
    said = [r for at, r in enumerate(relations) if at == 0 or r.has(Rate)]
    given = tuple(r for r in relations if r not in said)
    kept = [s for s in stated if s.kind in ("sign", "inequality")]
    if not kept:
        return Finding("undecided", reason="an inequality, and the claim states none")
    found = [_judged(r, kept, given) for r in said]
    for worst in ("differs", "undecided"):
        for finding in found:
            if finding.status == worst:
                return finding
    names = dict.fromkeys(f.statement for f in found)
    assumptions = dict.fromkeys(a for f in found for a in f.assumptions)
    return Finding("match", ", ".join(names), (), tuple(assumptions), found[0].reason)


def _judged(relation: Basic, stated: Sequence[Statement], given: tuple[Basic, ...]) -> Finding:
    """One inequality against the statement it says, or the one that it contradicts."""
    results = [_compare(relation, s, (*s.given, *given)) for s in stated]
    for answer in ("exact", "differs"):
        result = next((r for r in results if r.answer == answer), None)
        if result is not None:
            needed = tuple(map(str, (*result.statement.given, *given)))
            name, point = result.statement.name, FrozenMap({str(s): str(v) for s, v in result.point.items()})
            if answer == "exact":
                return Finding("match", name, (), needed, result.reason)
            return Finding("differs", name, (), needed, result.reason, point)
    return Finding("undecided", reason=results[0].reason)


def _compare(relation: Any, statement: Statement, given: tuple[Basic, ...]) -> Result:
    """``p > 0`` or ``p >= 0`` of the paper against ``v > 0`` of the claim."""
    if relation.rel_op == "!=":
        return Result("undecided", statement, "an inequation, where the claim is an inequality")
    try:
        p = prepared(relation.gts - relation.lts, statement)
        return _ratio(p, relation.rel_op in (">", "<"), statement, given)
    except (GradlineError, ValueError, TypeError) as error:
        return Result("undecided", statement, " ".join(str(error).split()))


def _ratio(p: Expr, strict: bool, statement: Statement, given: tuple[Basic, ...]) -> Result:
    value, symbol = prepared(statement.value, statement), None
    if statement.kind == "sign":
        symbol = Dummy("q", real=True)
        p = p.xreplace({statement.quantity: symbol})
        value = value * symbol
        if not p.has(symbol):
            return Result("undecided", statement, f"it does not contain {shown_quantity(statement.quantity)}")
    if p.has(Rate):
        return Result("undecided", statement, "it contains a derivative, about which the claim says nothing")
    unit = _unit(p, value)
    way = None if symbol is not None and unit.has(symbol) else sign(unit, (*given, BELOW_ONE))
    if way == -1:
        found = _point(p, value, given) if symbol is None else {}
        return Result("differs", statement, "the other direction", point=FrozenMap(found or {}))
    if way == 1 and strict:
        return Result("exact", statement, "the same sign")
    if way == 1 and statement.kind == "sign":
        return Result("exact", statement, "weaker than the claim, which excludes equality")
    if way == 1:
        return Result("undecided", statement, "with equality, which the claim excludes")
    witness = _point(p, value, given) if symbol is None else None
    if witness is not None:
        return Result("differs", statement, "one holds where the other fails", point=FrozenMap(witness))
    return Result("undecided", statement, f"{unit} is not proved to have one sign")


def _unit(p: Expr, value: Expr) -> Expr:
    """``p / value``, as a ratio of slopes where the two are proportional: roots in it do not cancel by themselves."""
    for s in sorted(value.free_symbols, key=str):
        slope = diff(value, s)
        unit = cancel(diff(p, s) / slope) if slope != 0 else p
        if not unit.has(s) and prove_zero(p - unit * value).answer == "equal":
            return unit
    return cancel(p / value)


def _point(p: Expr, value: Expr, given: tuple[Basic, ...]) -> dict[Any, Any] | None:
    """A point where two values are proved to have opposite signs."""
    relations = conditions(given)
    names = p.free_symbols.union(value.free_symbols, *(c.expr.free_symbols for c in relations))
    for point in points(sorted(names, key=str), relations, _POINTS):
        balls = [enclose(expr, {s: point[s] for s in expr.free_symbols}, 128) for expr in (p, value)]
        if all(ball.is_finite() and not ball.contains(0) for ball in balls) and (balls[0] > 0) != (balls[1] > 0):
            return dict(point)
    return None
