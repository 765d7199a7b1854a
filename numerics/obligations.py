"""How obligations were decided, as plain data: what certificates hold and what travels between processes."""

from __future__ import annotations

from typing import Any

from theory.registry import Outcome
from theory.serialize import write

__all__ = ["obligation_entry", "outcome_entry"]


def outcome_entry(outcome: Outcome) -> dict[str, Any]:
    """How an obligation was decided, as plain data."""
    decision = outcome.decision
    counterexample = None
    if decision is not None and decision.witness:
        counterexample = {
            "point": {str(symbol): str(value) for symbol, value in decision.witness.items()},
            "enclosure": list(decision.enclosure or ()),
        }
    return {
        "answer": outcome.answer,
        "how": outcome.how,
        "reason": decision.reason if decision is not None else "",
        "relied_on": list(decision.assumptions) if decision is not None else [],
        "counterexample": counterexample,
    }


def obligation_entry(outcome: Outcome) -> dict[str, Any]:
    """An obligation and how it was decided, as plain data.

    Raises: `GradlineError` for an expression that can't be written.
    """
    obligation, dummies = outcome.obligation, dict[Any, int]()
    return {
        "name": obligation.name,
        "relation": obligation.relation,
        "srepr": write(obligation.value, dummies),
        "assumptions": [write(a, dummies) for a in obligation.assumptions],
        "decisive": obligation.decisive,
        "hypotheses": [write(rule, dummies) for rule in obligation.hypotheses],
        **outcome_entry(outcome),
    }
