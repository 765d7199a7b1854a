"""Which claims the derivation of a claim uses, found from its steps and formulas.

A step belongs to the claim that its rule proves (`theory.latex.documents.steps.OWNERS`), or to the first claim that
states what the step found. A claim uses the owners of the steps that come before its own ones, the claims that its own
steps and the words of its proof refer to, and those that state, or found in a step, what its steps take; one claim that
has all that a step takes goes before several. A claim without a derivation uses the claims whose formulas stand in its
own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from sympy import Basic, Expr, preorder_traversal

from numerics.derivations import referred, step_latex
from theory.blocks import BlockMatrix
from theory.identities import prove_zero
from theory.latex.documents.statements import mentioned
from theory.latex.documents.steps import OWNERS
from theory.registry import Claim
from theory.symbols import STATES, SYMBOLS
from theory.trace import Step
from theory.words import Words

__all__ = ["reduced", "uses"]

_FEWEST_OPERATIONS = 4


@dataclass(frozen=True)
class _Formula:
    """A formula that a claim states or finds in a step; scalars also with the symbols replaced that a claim defines."""

    claim: str
    value: Any


@dataclass(frozen=True)
class _Known:
    """What claims state, and what their derivations found."""

    stated: tuple[_Formula, ...]
    found: tuple[_Formula, ...]

    def stating(self, value: Any) -> list[str]:
        """The claims that state a formula."""
        return [f.claim for f in self.stated if _equal(f.value, value)]

    def having(self, value: Any) -> list[str]:
        """The claims that state a formula or, if none does, those that found it."""
        return self.stating(value) or [f.claim for f in self.found if _equal(f.value, value)]


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
    formulas = _known(order)
    position = {c.id: i for i, c in enumerate(order)}
    found = {c.id: {u for u in _direct(c, formulas) if u in position and u != c.id} for c in order if c in claims}
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


def _known(claims: Sequence[Claim]) -> _Known:
    """What claims state and what their derivations found, as they are and with definitions put in, as of alpha."""
    symbols = {name: info.symbol for name, info in SYMBOLS.items() if info.symbol not in STATES}
    definitions = {
        symbols[name]: value
        for c in reversed(claims)
        for name, value in c.stated.items()
        if name in symbols and isinstance(value, Expr) and not value.has(symbols[name])
    }
    stated = (_Formula(c.id, value) for c in claims for value in c.stated.values())
    outputs = ((OWNERS.get(step.rule, c.id), step.output) for c in claims for step in c.trace())
    found = (_Formula(name, value) for name, output in outputs for value in _flat(output))
    return _Known(*(tuple(dict.fromkeys(g for f in some for g in _told(f, definitions))) for some in (stated, found)))


def _told(formula: _Formula, definitions: Mapping[Any, Any]) -> Iterator[_Formula]:
    """A formula as it is and with definitions put in; nothing for a few symbols, a relation or an empty sum."""
    value = formula.value
    if isinstance(value, Words):
        yield from () if value.is_zero() else (formula,)
    elif isinstance(value, Expr) and value.count_ops() >= _FEWEST_OPERATIONS:
        yield formula
        told = {s: v for s, v in definitions.items() if s in value.free_symbols}
        if told:
            yield _Formula(formula.claim, value.xreplace(told))


def _flat(value: Any) -> Iterator[Any]:
    """The formulas in what a step takes or finds."""
    if isinstance(value, Basic | Words):
        yield value
    elif isinstance(value, BlockMatrix):
        yield from (entry for row in value.blocks for block in row for entry in (block.same, block.ones))
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


def _direct(claim: Claim, known: _Known) -> Iterator[str]:
    yield from mentioned(claim)
    steps = tuple(dict.fromkeys(claim.trace()))
    if not steps:
        yield from _contained(claim, known)
        return
    found = [_owner(step, claim.id, known) for step in steps]
    own = [i for i, owner in enumerate(found) if owner == claim.id]
    last = own[-1] + 1 if own else len(steps)
    for step, owner in zip(steps[:last], found, strict=False):
        yield from (owner,) if owner is not None else ()
        yield from referred(step_latex(step)) if owner == claim.id else ()
        yield from _givers([known.having(given) for given in _flat(step.inputs)], claim.id)


def _givers(owners: Sequence[Sequence[str]], claim_id: str) -> list[str]:
    """Of the claims that have each input of a step one that has all, otherwise the first for each.

    >>> _givers([["a", "c"], ["b", "c"], []], "d"), _givers([["a"], ["b"]], "d"), _givers([["a", "d"]], "d")
    (['c'], ['a', 'b'], [])
    """
    others = [list(dict.fromkeys(every)) for every in owners if every and claim_id not in every]
    common = [name for name in (others[0] if others else ()) if all(name in every for every in others)]
    return common[:1] or list(dict.fromkeys(every[0] for every in others))


def _owner(step: Step, claim_id: str, known: _Known) -> str | None:
    if step.rule in OWNERS:
        return OWNERS[step.rule]
    owners = [name for value in _flat(step.output) for name in known.stating(value)]
    return claim_id if claim_id in owners else next(iter(owners), None)


def _contained(claim: Claim, known: _Known) -> Iterator[str]:
    """The claims whose formulas stand in those of a claim."""
    for value in claim.stated.values():
        if isinstance(value, Basic):
            parts = set(preorder_traversal(value))
            yield from (f.claim for f in known.stated if f.claim != claim.id and f.value in parts)
