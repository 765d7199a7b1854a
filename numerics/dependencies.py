"""Which claims the derivation of a claim uses, found from its steps and formulas.

A step belongs to the claim that its rule proves (`theory.latex.documents.steps.OWNERS`), or to the first claim that
states what the step found. A claim uses the owners of the steps that come before its own ones, and the claims that its
own steps refer to or take a formula from. A claim without a derivation uses the claims whose formulas stand in its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from sympy import Basic, Expr, preorder_traversal

from numerics.derivations import referred, step_latex
from theory.identities import prove_zero
from theory.latex.documents.steps import OWNERS
from theory.registry import Claim
from theory.symbols import STATES, SYMBOLS
from theory.trace import Step
from theory.words import Words

__all__ = ["reduced", "uses"]

_FEWEST_OPERATIONS = 4


@dataclass(frozen=True)
class _Formula:
    """A stated formula, with its claim; scalars also with the symbols replaced that a claim defines."""

    claim: str
    value: Any


def uses(claims: Sequence[Claim], known: Sequence[Claim] = ()) -> dict[str, tuple[str, ...]]:
    """The claims that each claim uses directly, by id.

    Parameters: ``claims``; ``known``, further claims that may be used.
    Returns: for each id of ``claims`` the ids used, in the order of ``known`` and then ``claims``, without those that
    are reached through others.

    >>> from theory.registry import find
    >>> names = ["attention-mass", "loss-on-line", "gradient-parallel", "flow-collapsed"]
    >>> uses([find(name) for name in names])["flow-collapsed"]
    ('gradient-parallel',)
    """
    order = list({c.id: c for c in (*known, *claims)}.values())
    stated = tuple(_stated(order))
    position = {c.id: i for i, c in enumerate(order)}
    found = {c.id: {u for u in _direct(c, stated) if u in position and u != c.id} for c in order if c in claims}
    acyclic = {name: {u for u in used if not _reaches(found, u, name, position)} for name, used in found.items()}
    kept = reduced(acyclic)
    return {c.id: tuple(sorted(kept[c.id], key=position.__getitem__)) for c in claims}


def reduced(edges: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """An acyclic graph without the edges that follow from longer ways.

    >>> sorted(reduced({"c": {"a", "b"}, "b": {"a"}})["c"])
    ['b']
    """
    known = {name: set(targets) for name, targets in edges.items()}

    @cache
    def behind(name: str) -> frozenset[str]:
        return frozenset(known.get(name, ())).union(*(behind(other) for other in known.get(name, ())))

    return {
        name: {t for t in targets if not any(t in behind(other) for other in targets if other != t)}
        for name, targets in known.items()
    }


def _reaches(edges: Mapping[str, set[str]], start: str, goal: str, position: Mapping[str, int]) -> bool:
    """Whether two claims use each other, in which case the later one uses the earlier one only."""
    if position[start] < position[goal]:
        return False
    waiting, seen = [start], {start}
    while waiting:
        for other in edges.get(waiting.pop(), ()):
            if other == goal:
                return True
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return False


def _stated(claims: Iterable[Claim]) -> Iterator[_Formula]:
    """The formulas that are more than a few symbols; also with the definitions of symbols, such as alpha, put in."""
    everything = list(claims)
    symbols = {name: info.symbol for name, info in SYMBOLS.items() if info.symbol not in STATES}
    definitions = {
        symbols[name]: value
        for c in reversed(everything)
        for name, value in c.stated.items()
        if name in symbols and isinstance(value, Expr) and not value.has(symbols[name])
    }
    for claim in everything:
        for value in claim.stated.values():
            if isinstance(value, Words):
                yield _Formula(claim.id, value)
            elif isinstance(value, Expr) and value.count_ops() >= _FEWEST_OPERATIONS:
                yield _Formula(claim.id, value)
                told = {s: v for s, v in definitions.items() if s in value.free_symbols}
                if told:
                    yield _Formula(claim.id, value.xreplace(told))


def _flat(value: Any) -> Iterator[Any]:
    """The formulas in what a step takes or finds."""
    if isinstance(value, Basic | Words):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _flat(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _flat(part)


@lru_cache(maxsize=65536)
def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, Words) or isinstance(right, Words):
        return type(left) is type(right) and left == right
    if left == right:
        return True
    if left.free_symbols != right.free_symbols or left.is_Relational or left.is_Symbol:
        return False
    return bool(prove_zero(left - right).answer == "equal")


def _owners(values: Iterable[Any], stated: Sequence[_Formula]) -> Iterator[str]:
    """For each value the claims that state it."""
    for value in values:
        yield from (f.claim for f in stated if _equal(f.value, value))


def _direct(claim: Claim, stated: Sequence[_Formula]) -> Iterator[str]:
    steps = tuple(dict.fromkeys(claim.trace()))
    if not steps:
        yield from _contained(claim, stated)
        return
    found = [_owner(step, claim.id, stated) for step in steps]
    own = [i for i, owner in enumerate(found) if owner == claim.id]
    last = own[-1] + 1 if own else len(steps)
    for step, owner in zip(steps[:last], found, strict=False):
        yield from (owner,) if owner is not None else ()
        yield from referred(step_latex(step)) if owner == claim.id else ()
        for given in _flat(step.inputs):
            if not isinstance(given, Words):
                yield from _first(_owners([given], stated), claim.id)


def _first(owners: Iterable[str], claim_id: str) -> list[str]:
    """The claim itself if it states the formula, otherwise the first that does."""
    every = list(dict.fromkeys(owners))
    return [claim_id] if claim_id in every else every[:1]


def _owner(step: Step, claim_id: str, stated: Sequence[_Formula]) -> str | None:
    if step.rule in OWNERS:
        return OWNERS[step.rule]
    return next(iter(_first(_owners(_flat(step.output), stated), claim_id)), None)


def _contained(claim: Claim, stated: Sequence[_Formula]) -> Iterator[str]:
    """The claims whose formulas stand in those of a claim."""
    for value in claim.stated.values():
        if isinstance(value, Basic):
            parts = set(preorder_traversal(value))
            yield from (f.claim for f in stated if f.claim != claim.id and f.value in parts)
