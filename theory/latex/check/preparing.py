"""Expressions of a paper in the terms of a setting: named quantities put in, derivatives worked out."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import Expr, Integer, Lt, diff
from sympy.core.function import AppliedUndef

from theory.errors import GradlineError
from theory.latex.check.stated import FUNCTION_DEFINITIONS, Statement
from theory.latex.names import SCALARS
from theory.latex.notation import Rate
from theory.latex.parser.vocabulary import MOVING
from theory.paper.settings import ALPHA
from theory.symbols import alpha, gamma, t

__all__ = ["BELOW_ONE", "prepared", "prepared_alpha", "speaks_of_no_loss"]

#: The attention mass is below 1 at finite values of the coordinates.
BELOW_ONE = Lt(alpha, 1, evaluate=False)
_ROUNDS = 4


def prepared(expr: Expr, statement: Statement) -> Expr:
    """An expression with the named quantities of a statement's setting put in and derivatives worked out."""
    for _ in range(_ROUNDS):
        before = expr
        expr = _functions(expr, statement).xreplace(dict(statement.definitions))
        expr = _rates(expr, statement)
        if expr == before:
            break
    return expr


def _functions(expr: Expr, statement: Statement) -> Expr:
    images = {}
    for node in expr.atoms(AppliedUndef):
        rule = FUNCTION_DEFINITIONS.get(node.func)
        if rule is not None and not (
            isinstance(statement.quantity, AppliedUndef) and node.func == statement.quantity.func
        ):
            images[node] = rule(node.args[0])
    return expr.xreplace(images) if images else expr


def _rates(expr: Expr, statement: Statement) -> Expr:
    """Derivatives of expressions by the chain rule; derivatives of single quantities stay."""
    images: dict[Any, Any] = {}
    for node in sorted(expr.atoms(Rate), key=sympy.default_sort_key):
        inner, variable = node.args
        if inner == variable:
            images[node] = Integer(1)
        elif t not in node.args and statement.quantity == Rate(variable, inner):
            images[node] = 1 / statement.quantity
        elif isinstance(inner, Rate) or inner.is_Symbol:
            continue
        elif inner.has(Rate) or not variable.is_Symbol:
            raise GradlineError(f"the derivative of {inner}: not supported; write it out")
        elif variable == t:
            images[node] = _total(inner, statement)
        else:
            images[node] = diff(inner, variable)
    return expr.xreplace(images) if images else expr


def _total(inner: Expr, statement: Statement) -> Expr:
    """The time derivative of an expression in what moves."""
    moving = [s for s in sorted(inner.free_symbols, key=str) if s.name in MOVING]
    if isinstance(statement.quantity, tuple):
        moving += [s for s in statement.quantity if s not in moving and s != t]
    if statement.fixed_attention:
        moving = [s for s in moving if s != alpha]
    return sympy.Add(*(diff(inner, s) * Rate(s, t) for s in moving), diff(inner, t))


def speaks_of_no_loss(statement: Statement) -> bool:
    """Whether the loss in an equation can only be that of the line: the statement has no loss of its own."""
    loss = SCALARS["L"]
    return bool(statement.quantity != loss and not getattr(statement.value, "free_symbols", frozenset()) & {loss})


def prepared_alpha(statement: Statement) -> Expr:
    """The attention on the line in the setting of a statement."""
    return ALPHA.xreplace({gamma: statement.definitions.get(gamma, gamma)})
