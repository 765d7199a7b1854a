"""Whether an equation of a paper says the leading behavior, or the limit, that a claim states."""

from __future__ import annotations

from typing import Any

from sympy import Expr, diff

from theory.identities import prove_zero
from theory.latex.check.findings import Result
from theory.latex.check.preparing import prepared
from theory.latex.check.stated import Statement
from theory.latex.names import SCALARS
from theory.latex.parser.vocabulary import MOVING
from theory.symbols import alpha, mu_OV, mu_QK, t

__all__ = ["compare_leading"]

_WRITTEN = {"~": "\\sim", "to": "\\to"}


def compare_leading(a: Expr, b: Expr, statement: Statement, given: tuple[Any, ...], relation: str) -> Result:
    """``left ~ right``: the ratio of the sides is that of the statement, either way round; a limit is to what rests.

    Parameters: ``a`` and ``b``, the prepared sides; ``statement``, an asymptotic one or a limit; ``relation``, ``"="``,
    ``"~"`` or ``"to"``. Returns: a `Result`.
    """
    quantity = statement.quantity
    if relation == "to" and (statement.relation != "to" or any(s.name in MOVING for s in b.free_symbols)):
        reason = "a limit that still moves" if statement.relation == "to" else "a limit, where the claim is about \\sim"
        return Result("undecided", statement, reason)
    value = prepared(statement.value, statement)
    best: Result | None = None
    for left, right in ((a, b),) if relation == "to" else ((a, b), (b, a)):
        if not left.has(*quantity.free_symbols):
            continue
        decision = prove_zero(left * value - right * quantity, given)
        if decision.answer == "equal" and relation != "=":
            return Result("exact", statement, decision.reason, decision.assumptions)
        if decision.answer == "equal":
            reason = f"an equality, where the claim is about leading behavior: write {_WRITTEN[statement.relation]}"
            return Result("undecided", statement, reason)
        if decision.answer == "different" and not _is_power(left * value / (right * quantity), given):
            return Result("undecided", statement, "another formula, and its leading behavior is not compared")
        if decision.answer == "different":
            residual = left * value / quantity - right
            best = best or Result("differs", statement, decision.reason, point=decision.witness, residual=residual)
    return best or Result("undecided", statement, f"{quantity} is on neither side")


def _is_power(ratio: Expr, given: tuple[Any, ...]) -> bool:
    """Whether a ratio is a product of powers of what moves: where it is not 1, the sides do not behave alike."""
    moving = [s for s in (t, mu_OV, mu_QK, alpha, SCALARS["L"]) if ratio.has(s)]
    for s in moving:
        order = s * diff(ratio, s) / ratio
        if any(prove_zero(diff(order, other), given).answer != "equal" for other in moving):
            return False
    return True
