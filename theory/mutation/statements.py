"""The mutants of a claim: wrong versions of its formulas, its hypotheses and its derivation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from random import Random
from types import MappingProxyType
from typing import Any

from sympy import Expr, Gt, Integer, Lt, Ne, Symbol
from sympy.core.relational import Relational

from theory.mutation.formulas import Change, formula_changes
from theory.mutation.injections import INJECTIONS
from theory.mutation.word_changes import word_changes
from theory.registry import Claim, Obligation, Stated
from theory.symbols import M
from theory.words import Words

__all__ = ["Mutant", "changed_obligations", "derivation_mutants", "is_qualitative", "mutants"]

#: Subjects of claims that state a direction, an order or an update: their derivation is mutated too.
_QUALITATIVE = frozenset({"sharper", "monotone", "order", "optimizer", "adam", "drift", "rate", "limit", "shift"})
_ONE_CLASS = Symbol("M_1", integer=True, positive=True)


@dataclass(frozen=True)
class Mutant:
    """A wrong version of a claim.

    ``name`` is what was changed: a stated formula, ``"hypothesis"`` or ``"derivation"``; ``kind`` and
    ``description`` say how; ``changes`` maps names to changed formulas; ``hypothesis`` maps a relation to the
    one that stands for it (None: removed); ``injection`` names an error of the derivation.
    """

    claim: Claim
    name: str
    kind: str
    description: str
    changes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    hypothesis: tuple[Any, Any] | None = None
    injection: str | None = None

    @property
    def stated(self) -> Stated:
        """The formulas of the mutant."""
        return {**self.claim.stated, **self.changes}

    def obligations(self) -> tuple[Obligation, ...]:
        """What the mutant has to prove."""
        found = tuple(self.claim.obligations(self.stated))
        return found if self.hypothesis is None else tuple(_weakened(o, *self.hypothesis) for o in found)


def _weakened(obligation: Obligation, old: Any, new: Any) -> Obligation:
    if old == M:
        value, put = obligation.value, {M: new}
        if not isinstance(value, Expr):
            return obligation
        assumptions = tuple(a.xreplace(put) for a in obligation.assumptions)
        return replace(obligation, value=value.xreplace(put), assumptions=assumptions)
    kept = tuple(new if a == old else a for a in obligation.assumptions)
    return replace(obligation, assumptions=tuple(a for a in kept if a is not None))


def _changes(formula: Any) -> Iterator[Change]:
    if isinstance(formula, Words):
        yield from word_changes(formula)
    elif isinstance(formula, Relational):
        for side, other in ((0, 1), (1, 0)):
            for change in formula_changes(formula.args[side]):
                args = {side: change.formula, other: formula.args[other]}
                yield replace(change, formula=formula.func(args[0], args[1], evaluate=False))
    else:
        yield from formula_changes(formula)


def _statement_mutants(claim: Claim) -> Iterator[Mutant]:
    for name, formula in claim.stated.items():
        for change in _changes(formula):
            changes = MappingProxyType({name: change.formula})
            yield Mutant(claim, name, change.kind, change.description, changes)
    for (first, one), (second, two) in combinations(claim.stated.items(), 2):
        if one != two and isinstance(one, Words) == isinstance(two, Words):
            text = f"the formulas of {first} and {second} exchanged"
            yield Mutant(claim, first, "formulas exchanged", text, MappingProxyType({first: two, second: one}))
    names = list(claim.stated)
    if all(formula in (Integer(1), Integer(-1)) for formula in claim.stated.values()):
        for size in range(2, len(names) + 1):
            for chosen in combinations(names, size):
                flipped = MappingProxyType({name: -claim.stated[name] for name in chosen})
                yield Mutant(claim, chosen[0], "sign", f"the signs of {', '.join(chosen)}", flipped)


def _reversed(relation: Any) -> Any:
    opposite = {Gt: Lt, Lt: Gt}.get(type(relation))
    return opposite(*relation.args, evaluate=False) if opposite is not None else None


def _hypothesis_mutants(claim: Claim) -> Iterator[Mutant]:
    obligations = tuple(claim.obligations(claim.stated))
    for relation in dict.fromkeys(a for o in obligations for a in o.assumptions):
        text = f"{relation} removed"
        yield Mutant(claim, "hypothesis", "assumption removed", text, hypothesis=(relation, None))
        if _reversed(relation) is not None:
            text = f"{relation} -> {_reversed(relation)}"
            yield Mutant(claim, "hypothesis", "assumption reversed", text, hypothesis=(relation, _reversed(relation)))
        if isinstance(relation, Gt | Lt):
            other = Ne(*relation.args, evaluate=False)
            yield Mutant(
                claim, "hypothesis", "assumption weakened", f"{relation} -> {other}", hypothesis=(relation, other)
            )
    if any(isinstance(o.value, Expr) and o.value.has(M) for o in obligations):
        yield Mutant(claim, "hypothesis", "assumption removed", "M >= 2 -> M >= 1", hypothesis=(M, _ONE_CLASS))


def is_qualitative(claim: Claim) -> bool:
    """Whether a claim says a direction, an order or an update rather than a formula."""
    return claim.subject is not None and claim.subject[0] in _QUALITATIVE


def derivation_mutants(claim: Claim) -> tuple[Mutant, ...]:
    """The claim with each error of `INJECTIONS` in its derivation, for qualitative claims."""
    if not is_qualitative(claim):
        return ()
    return tuple(Mutant(claim, "derivation", i.kind, i.description, injection=i.name) for i in INJECTIONS)


def _spread(found: Sequence[Mutant], count: int, random: Random) -> list[Mutant]:
    """A choice that visits every kind of change and every formula in turn."""
    groups: dict[str, list[Mutant]] = {}
    for mutant in random.sample(list(found), len(found)):
        groups.setdefault(mutant.kind, []).append(mutant)
    chosen: list[Mutant] = []
    while len(chosen) < min(count, len(found)):
        for group in groups.values():
            if group and len(chosen) < count:
                used = [m.name for m in chosen]
                group.sort(key=lambda m: used.count(m.name))
                chosen.append(group.pop(0))
    return chosen


def mutants(claim: Claim, seed: int = 0, count: int | None = 40) -> tuple[Mutant, ...]:
    """Wrong versions of a claim: of its stated formulas and of its hypotheses.

    Parameters: ``claim``; ``seed`` of the choice; ``count``, how many changes of formulas to choose (None: all
    that exist). Hypotheses are all there.
    Returns: different mutants, the same ones for the same seed.

    >>> from theory.registry import find
    >>> [m.description for m in mutants(find("noise-correction"), count=2)]
    ['M*b/N + 1 -> M*b/(2*N) + 1', 'b/N -> 1/(N*b) in 1 + b/N', 'M >= 2 -> M >= 1']
    """
    found = list({tuple(m.stated.values()): m for m in reversed([*_statement_mutants(claim)])}.values())[::-1]
    if count is not None:
        found = _spread(found, count, Random(f"{seed} {claim.id}"))
    return (*found, *_hypothesis_mutants(claim))


def changed_obligations(
    mutant: Mutant, original: Mapping[str, Obligation]
) -> tuple[tuple[Obligation, Obligation | None], ...]:
    """The obligations of a mutant that differ from those of the claim, each beside the one it stands for."""
    return tuple((o, original.get(o.name)) for o in mutant.obligations() if original.get(o.name) != o)
