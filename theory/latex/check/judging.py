"""The verdict on one equation of a paper: the statement it matches, or the nearest it differs from, with values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context as Digits
from typing import Any, Literal

import sympy
from flint import arb, ctx
from sympy import Basic, Expr, Symbol
from sympy.core.function import AppliedUndef

from theory.balls import enclose
from theory.counterexamples import shrink
from theory.errors import GradlineError
from theory.frozen import FrozenMap
from theory.inputs import conditions
from theory.latex.check.comparison import compare_with
from theory.latex.check.context import Context, approach, as_condition, as_relation, context_of, special
from theory.latex.check.findings import Finding, Repair, Result, shown_quantity
from theory.latex.check.inequalities import judge_inequalities
from theory.latex.check.preparing import BELOW_ONE, prepared, prepared_alpha, speaks_of_no_loss
from theory.latex.check.repair import factor_of, repair
from theory.latex.check.stated import Statement, definition_statements
from theory.latex.names import SCALARS
from theory.latex.notation import Rate
from theory.latex.parser.equations import Chain, Condition, Parts
from theory.latex.parser.evaluate import evaluate
from theory.latex.parser.nodes import Cases, Name, Node
from theory.latex.parser.vocabulary import CONSTANT, FORMULA, Vocabulary
from theory.latex.source.tokens import LatexError
from theory.paper.settings import LOSS
from theory.symbols import STATES, alpha
from theory.witnesses import decimal_bounds, holds, points
from theory.words import Words

__all__ = ["judge"]

_DIGITS = 8


@dataclass(frozen=True)
class _Link:
    """Two neighboring sides of a chain, as trees and as values."""

    nodes: tuple[Node, Node]
    values: tuple[Any, Any]
    relation: str


def judge(parts: Parts, stated: Sequence[Statement], words: Vocabulary) -> Finding:
    """The verdict on an equation that is linked to a claim.

    Parameters: ``parts``, what it says; ``stated``, what the claim states; ``words``, the symbol table.
    Raises: `LatexError` for a part without a value.
    """
    if not parts.chains:
        return judge_inequalities([as_relation(c) for c in parts.conditions if c.relation != "to"], stated)
    if not all(chain.relations for chain in parts.chains):
        parts = replace(parts, chains=tuple(_completed(chain, stated) for chain in parts.chains))
    context, chains = context_of(parts, stated)
    kept = [s for s in stated if not (context.infinite and _is_finite(s))]
    statements = [s for s in (special(s, context) for s in kept) if s is not None]
    if context.moments and (not statements or any(_has_rate(chain) for chain in chains)):
        held = ", ".join(map(str, context.moments))
        return Finding("undecided", reason=f"where {held} has a value the claim says nothing about this")
    found = [_judge_chain(chain, given, statements, context, words) for chain, given in _unfolded(chains)]
    for worst in ("differs", "undecided"):
        failed = [f for f in found if f.status == worst]
        if failed:
            return failed[0]
    status: Literal["match", "enclosed"] = "enclosed" if any(f.status == "enclosed" for f in found) else "match"
    settings = tuple(dict.fromkeys(s for f in found for s in f.settings))
    assumptions = tuple(dict.fromkeys(a for f in found for a in f.assumptions))
    names = tuple(dict.fromkeys(f.statement for f in found))
    return Finding(status, ", ".join(names), settings, assumptions, found[0].reason)


def _completed(chain: Chain, stated: Sequence[Statement]) -> Chain:
    """A formula that stands alone as an equation, where the claim states one that does."""
    if not any(s.quantity == FORMULA for s in stated):
        raise LatexError(chain.place, f"{chain.latex[0][:40]}: an expression that is no equation")
    left = Name(FORMULA, FORMULA.name, chain.place)
    return Chain((left, *chain.sides), ("=",), chain.place, (FORMULA.name, *chain.latex))


def _has_rate(chain: Chain) -> bool:
    values = (evaluate(side) for side in chain.sides if not isinstance(side, Cases))
    return any(isinstance(value, Expr) and value.has(Rate) for value in values)


def _is_finite(statement: Statement) -> bool:
    return statement.setting != "" and "oo" not in statement.setting


def _unfolded(chains: Sequence[Chain]) -> Iterator[tuple[Chain, tuple[Basic, ...]]]:
    """Each branch of ``cases`` as a chain of its own, with its conditions."""
    for chain in chains:
        at = next((i for i, side in enumerate(chain.sides) if isinstance(side, Cases)), None)
        if at is None:
            yield chain, ()
            continue
        cases = chain.sides[at]
        if not isinstance(cases, Cases):
            raise TypeError("expected cases")
        for branch in cases.branches:
            sides = (*chain.sides[:at], branch.value, *chain.sides[at + 1 :])
            given = tuple(as_condition(Condition(a, r, b, branch.place)) for a, r, b in branch.conditions)
            for rest, more in _unfolded([replace(chain, sides=sides)]):
                yield rest, (*given, *more)


def _judge_chain(
    chain: Chain, given: tuple[Basic, ...], stated: Sequence[Statement], context: Context, words: Vocabulary
) -> Finding:
    links = _links(chain)
    relations = (*context.given, *given)
    stated = [s for s in stated if _can_hold((*s.given, *relations))]
    if "to" in chain.relations:
        stated = [s for s in stated if s.relation == "to"] or stated
    elsewhere = [s for s in stated if s.limits and not set(context.limits) <= set(s.limits)]
    stated = [s for s in stated if s not in elsewhere]
    if elsewhere and not stated:
        return Finding("undecided", elsewhere[0].name, reason=f"the claim is about {approach(elsewhere[0].limits[0])}")
    results = [(s, _combined(links, s, relations)) for s in stated]
    matched = [(s, r) for s, (r, _) in results if r.matches]
    if matched:
        return _match(matched, context, relations)
    named = [d for s in _by_setting(stated) for d in definition_statements(s)]
    for definition in named:
        result, _ = _combined(links, special(definition, context) or definition, relations)
        if result.matches:
            return _match([(definition, result)], context, relations)
    defined = [d for d in named if _defines(links[0].values[0], d.quantity)]
    if defined and not any(_is_relevant(links[:1], s) for s in stated if s.quantity == links[0].values[0]):
        results = [(d, _combined(links, special(d, context) or d, relations)) for d in defined]
    if "~" in chain.relations:
        results = [(s, found) for s, found in results if s.relation in ("~", "to")] or results
    return _no_match(links, results, relations, words)


def _defines(left: Any, quantity: Any) -> bool:
    """Whether the left side of an equation is a named quantity, or a named function of a symbol."""
    if isinstance(quantity, AppliedUndef) and isinstance(left, AppliedUndef):
        return left.func == quantity.func and left.args[0].is_Symbol and left.args[0] not in STATES
    return bool(left == quantity)


def _can_hold(relations: tuple[Basic, ...]) -> bool:
    """Whether relations hold at some point."""
    given = conditions(relations)
    names = set().union(*(c.expr.free_symbols for c in given)) if given else set()
    return not given or next(points(sorted(names, key=str), given, 1), None) is not None


def _by_setting(stated: Sequence[Statement]) -> list[Statement]:
    found: dict[str, Statement] = {}
    for statement in stated:
        found.setdefault(statement.setting, statement)
    return list(found.values())


def _links(chain: Chain) -> tuple[_Link, ...]:
    values = [evaluate(side) for side in chain.sides]
    return tuple(
        _Link((chain.sides[i], chain.sides[i + 1]), (values[i], values[i + 1]), relation)
        for i, relation in enumerate(chain.relations)
    )


def _combined(links: Sequence[_Link], statement: Statement, given: tuple[Basic, ...]) -> tuple[Result, _Link]:
    """All links of a chain against one statement: the worst of them, but a match may stand beside identities."""
    results: list[tuple[Result, _Link]] = []
    for link in links:
        result = compare_with(*link.values, statement, given, link.relation)
        results.append((result, link))
        if result.answer == "differs":
            return result, link
    undecided = [pair for pair in results if pair[0].answer in ("undecided", "undefined")]
    if undecided:
        return undecided[0]
    matching = [pair for pair in results if pair[0].matches]
    if not matching:
        return results[0]
    enclosed = [pair for pair in matching if pair[0].answer == "enclosed"]
    return (enclosed or matching)[0]


def _match(found: Sequence[tuple[Statement, Result]], context: Context, given: tuple[Basic, ...]) -> Finding:
    first, result = found[0]
    same = [(s, r) for s, r in found if s.name == first.name]
    settings = tuple(dict.fromkeys(s.setting for s, _ in same if s.setting))
    needed = [*_needed(first.given, given)]
    needed += [approach(limit) for limit in first.limits[:1]]
    needed += [*first.notes, *result.assumptions, *(f"{k} = {v}" for k, v in context.put.items())]
    status: Literal["match", "enclosed"] = "match" if result.answer == "exact" else "enclosed"
    return Finding(status, first.name, settings, tuple(dict.fromkeys(needed)), result.reason)


def _needed(*relations: Sequence[Basic]) -> tuple[str, ...]:
    """Relations as they are shown, each once."""
    found = (r for some in relations for r in some)
    return tuple(dict.fromkeys(f"{r.lhs} != {r.rhs}" if isinstance(r, sympy.Ne) else str(r) for r in found))


# ---- what differs ----------------------------------------------------------------------------------------------


def _relevant(links: Sequence[_Link], statement: Statement) -> bool:
    """Whether an equation speaks of the quantity of a statement."""
    if isinstance(statement.value, Words):
        return any(isinstance(v, Words) for link in links for v in link.values)
    quantities = statement.quantity if isinstance(statement.quantity, tuple) else (statement.quantity,)
    values = [prepared(v, statement) for link in links for v in link.values if isinstance(v, Expr)]
    return any(v.has(q) for v in values for q in quantities if q is not None)


def _no_match(
    links: tuple[_Link, ...],
    results: Sequence[tuple[Statement, tuple[Result, _Link]]],
    given: tuple[Basic, ...],
    words: Vocabulary,
) -> Finding:
    relevant = [(s, found) for s, found in results if _is_relevant(links, s)]
    chosen = relevant or list(results)
    chosen = [pair for pair in chosen if pair[1][0].answer != "undefined"] or chosen
    if not chosen:
        return Finding("undecided", reason="the claim states nothing for this setting")
    open_ = [(s, r) for s, (r, _) in chosen if r.answer in ("undecided", "identity", "undefined")]
    if open_:
        statement, result = open_[0]
        return Finding("undecided", statement.name, reason=result.reason)
    statement, (result, link) = chosen[0]
    reason = "" if relevant else f"it does not contain {shown_quantity(statement.quantity)}, which the claim is about"
    candidates = [s for s, _ in chosen]
    fixed = _repaired(link, candidates, given, words) if relevant else None
    factor, near = _factor(link, candidates) if fixed is None and relevant else ("", None)
    near = near if fixed is None else fixed.statement
    statement, (result, link) = next((pair for pair in chosen if pair[0] is near), chosen[0])
    point = _simple_point(result, given)
    return Finding(
        "differs",
        statement.name,
        (statement.setting,) if statement.setting else (),
        _needed(statement.given, given),
        reason or (result.reason if not point else ""),
        FrozenMap({str(s): str(v) for s, v in point.items()}),
        FrozenMap(_values(link, statement, point)),
        fixed,
        factor,
    )


def _is_relevant(links: Sequence[_Link], statement: Statement) -> bool:
    try:
        return _relevant(links, statement)
    except (GradlineError, ValueError, TypeError):
        return False


def _repaired(
    link: _Link, statements: Sequence[Statement], given: tuple[Basic, ...], words: Vocabulary
) -> Repair | None:
    if any(isinstance(v, Words) for v in link.values):
        return None
    return repair(link.nodes, statements, given, words, link.relation)


def _factor(link: _Link, statements: Sequence[Statement]) -> tuple[str, Statement | None]:
    if any(isinstance(v, Words) for v in link.values):
        return "", None
    found = [(factor, s) for s in statements if (factor := factor_of(*link.values, s))]
    return min(found, key=lambda pair: len(pair[0]), default=("", None))


def _simple_point(result: Result, given: tuple[Basic, ...]) -> dict[Symbol, Any]:
    """The point where an equation fails, as simple as it gets."""
    residual = result.residual
    if residual is None or not result.point:
        return {}
    relations = conditions((*result.statement.given, *given, BELOW_ONE))
    relations = tuple(c for c in relations if c.expr.free_symbols <= set(result.point))
    if not set(residual.free_symbols) <= set(result.point):
        residual = residual.xreplace({alpha: prepared_alpha(result.statement)})

    def fails(point: Mapping[Symbol, Any]) -> bool:
        if not all(holds(c, dict(point)) for c in relations):
            return False
        try:
            ball = enclose(residual, {s: point[s] for s in residual.free_symbols}, 128)
        except (GradlineError, ValueError, KeyError):
            return False
        return bool(ball.is_finite() and not ball.contains(0))

    known = dict(result.point)
    return shrink(known, fails) if fails(known) else known


def _values(link: _Link, statement: Statement, point: Mapping[Symbol, Any]) -> dict[str, str]:
    """Both sides of the paper's equation and the quantity, where the claim holds."""
    if not point or statement.kind != "equation" or any(isinstance(v, Words) for v in link.values):
        return {}
    found: dict[str, str] = {}
    value = prepared(statement.value, statement)
    put = {statement.quantity: value}
    sides = [("left", link.values[0]), ("right", link.values[1])]
    for name, side in (*sides, (shown_quantity(statement.quantity), statement.quantity)):
        expr = prepared(side, statement).xreplace(put) if name in ("left", "right") else value
        if speaks_of_no_loss(statement):
            expr = expr.xreplace({SCALARS["L"]: LOSS})
        if not expr.free_symbols <= set(point):
            expr = expr.xreplace({alpha: prepared_alpha(statement)})
        text = _decimal(expr, point)
        if text:
            found[name] = text
    return found


def _decimal(expr: Any, point: Mapping[Symbol, Any]) -> str:
    if not expr.free_symbols <= set(point) or expr.has(CONSTANT):
        return ""
    try:
        ball = enclose(expr, {s: point[s] for s in expr.free_symbols}, 192)
    except (GradlineError, ValueError):
        return ""
    if not ball.is_finite():
        return ""
    if ball.contains(0) and abs(ball) < arb(2) ** -100:
        return "0"
    with ctx.workprec(192):
        low, high = decimal_bounds(ball)
    short = Digits(prec=_DIGITS).create_decimal(low)
    return str(short) if short == Digits(prec=_DIGITS).create_decimal(high) else f"[{low}, {high}]"
