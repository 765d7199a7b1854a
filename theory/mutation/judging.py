"""What becomes of a mutant: refuted, equivalent to the original, proved itself, or a survivor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sympy import Dummy, Expr, Integer

from theory.counterexamples import Counterexample, counterexample, lost_value
from theory.errors import GradlineError
from theory.identities import prove_zero
from theory.mutation.injections import injected
from theory.mutation.statements import Mutant, changed_obligations
from theory.registry import Claim, Obligation, Outcome, decide
from theory.symbols import mu_OV, mu_QK, t

__all__ = ["Answer", "Judgement", "judge", "judge_derived", "named_obligations", "touches"]

Answer = Literal["refuted", "equivalent", "proved", "survivor"]
Pairs = tuple[tuple[Obligation, Obligation | None], ...]


@dataclass(frozen=True)
class Judgement:
    """The answer for a mutant with its reason; refuted mutants have a point, and a counterexample where one exists.

    ``answer`` is ``"refuted"``, ``"equivalent"`` (equal to the original by its normal form), ``"proved"`` (a
    true variant) or ``"survivor"``.
    """

    mutant: Mutant
    answer: Answer
    reason: str
    outcome: Outcome | None = None
    point: Mapping[Any, Any] | None = None

    def counterexample(self) -> Counterexample | None:
        """The counterexample in its simplest form, of a refuted obligation."""
        if self.outcome is None:
            return None
        claim = self.mutant.claim.with_stated(**self.mutant.changes)
        return counterexample(claim, self.outcome)


def _equivalent(mutant: Mutant) -> bool:
    """Whether every changed formula is equal to the original one, with the same domain."""
    if not mutant.changes:
        return False
    for name, changed in mutant.changes.items():
        original = mutant.claim.stated[name]
        if not (isinstance(changed, Expr) and isinstance(original, Expr)):
            return False
        try:
            equal = prove_zero(original - changed).answer == "equal"
        except (GradlineError, ValueError, TypeError):
            return False
        if not equal or lost_value(original, changed) is not None:
            return False
    return True


def _undefined(mutant: Mutant, pairs: Pairs, original: Mapping[str, Obligation]) -> tuple[str, Any] | None:
    """A point where the original has a value and the mutant has none, under the assumptions of what it is used for."""
    for name, changed in mutant.changes.items():
        formula = mutant.claim.stated[name]
        if isinstance(changed, Expr) and isinstance(formula, Expr):
            for assumptions in _uses(mutant.claim, name, original):
                point = lost_value(formula, changed, assumptions)
                if point is not None:
                    return name, point
    # where a formula has no value itself (a pole at t = 0), an obligation in which it cancels says nothing
    formulas = [f for name in mutant.changes if isinstance(f := mutant.claim.stated[name], Expr)]
    for new, old in pairs:
        if old is None or not (isinstance(new.value, Expr) and isinstance(old.value, Expr)):
            continue
        before = Integer(0) if mutant.hypothesis is not None else old.value
        point = lost_value(before, new.value, new.assumptions, formulas)
        if point is not None:
            return new.name, point
    return None


def _uses(claim: Claim, name: str, original: Mapping[str, Obligation]) -> tuple[tuple[Any, ...], ...]:
    """The assumptions under which a formula is used: those of the obligations that change with it."""
    probe = claim.stated[name] * (3 + t**2 + mu_OV**2 + mu_QK**2) + 1
    moved = claim.obligations({**claim.stated, name: probe})
    return tuple(dict.fromkeys(o.assumptions for o in moved if o != original.get(o.name)))


def _decide(obligation: Obligation) -> Outcome:
    try:
        return decide(obligation)
    except (GradlineError, ValueError, TypeError) as error:
        return Outcome(obligation, "undecided", str(error))


def judge(mutant: Mutant, original: Mapping[str, Obligation] | None = None, *, equivalence: bool = True) -> Judgement:
    """Decide what becomes of a mutant, by exact means only.

    The mutant is equivalent when its formulas have the normal form of the original ones; refuted when an
    obligation is, or when it has no real value where the original has one; proved when all its obligations are.

    Parameters: ``mutant``; ``original``, the obligations of the claim by name, if they are at hand; ``equivalence``,
    whether one normal form of the formulas is enough (False: the obligations have to be proved all the same).
    Returns: a `Judgement`.

    >>> from theory.mutation.statements import mutants
    >>> from theory.registry import find
    >>> [judge(m).answer for m in mutants(find("attention-sensitivity"), count=3)]
    ['refuted', 'refuted', 'refuted', 'proved']
    """
    if equivalence and _equivalent(mutant):
        return Judgement(mutant, "equivalent", "the formulas have one normal form")
    if mutant.injection is not None:
        with injected(mutant.injection):
            judged = judge_derived(mutant)
        if judged is not None:
            return judged
    if original is None:
        original = named_obligations(mutant.claim)
    pairs = changed_obligations(mutant, original)
    judged = _by_obligations(mutant, pairs)
    if judged.answer == "refuted":
        return judged
    lost = _undefined(mutant, pairs, original)
    return judged if lost is None else Judgement(mutant, "refuted", f"{lost[0]} has no real value", None, lost[1])


def named_obligations(claim: Claim) -> dict[str, Obligation]:
    """The obligations of a claim by name."""
    return {o.name: o for o in claim.obligations(claim.stated)}


def touches(found: Mapping[str, Obligation], original: Mapping[str, Obligation]) -> bool:
    """Whether an error in the derivation changes what a claim has to prove.

    Parameters: ``found`` and ``original``, the obligations of the wrong and of the right derivation by name.
    Returns: a truth value; auxiliary obligations in dummies of their own don't count.
    """
    return any(
        o != original.get(name) and not (isinstance(o.value, Expr) and o.value.has(Dummy)) for name, o in found.items()
    )


def judge_derived(mutant: Mutant, original: Mapping[str, Obligation] | None = None) -> Judgement | None:
    """Confront a mutant with what the derivation says now, inside of `injected` blocks.

    Parameters: ``mutant``; ``original``, the obligations of the right derivation by name.
    Returns: a `Judgement`, or None if the error changes none of the original obligations. A derivation that stops
    with an error refutes.
    """
    try:
        found = {o.name: o for o in mutant.obligations()}
    except GradlineError as error:
        return Judgement(mutant, "refuted", f"the derivation refuses: {error}")
    if original is not None and not touches(found, original):
        return None
    return _by_obligations(mutant, tuple((o, None) for o in found.values()))


def _by_obligations(mutant: Mutant, pairs: Pairs) -> Judgement:
    open_ones: list[Outcome] = []
    for new, _ in pairs:
        outcome = _decide(new)
        if outcome.answer == "refuted":
            point = outcome.decision.witness if outcome.decision is not None else None
            return Judgement(mutant, "refuted", outcome.obligation.name, outcome, point)
        if outcome.answer == "undecided":
            open_ones.append(outcome)
    if open_ones:
        text = "; ".join(f"{o.obligation.name} ({o.how})" for o in open_ones[:3])
        return Judgement(mutant, "survivor", f"undecided: {text}")
    return Judgement(mutant, "proved", f"{len(pairs)} changed obligations are proved")
