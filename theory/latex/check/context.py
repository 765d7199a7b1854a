r"""What a paper says beside an equation: conditions, limits, values of parameters, of states and at the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
from sympy import Basic, Symbol, oo

from theory.frozen import FrozenMap
from theory.latex.check.stated import Statement
from theory.latex.notation import Rate
from theory.latex.parser.equations import Chain, Condition, Parts
from theory.latex.parser.evaluate import evaluate
from theory.latex.parser.nodes import Cases
from theory.latex.parser.vocabulary import start_symbol
from theory.latex.source.tokens import LatexError
from theory.symbols import PARAMETERS, STATES, N, alpha, t
from theory.words import Words

__all__ = ["Context", "approach", "as_condition", "as_relation", "context_of", "special"]

_RELATIONS = {"<": sympy.Lt, "<=": sympy.Le, ">": sympy.Gt, ">=": sympy.Ge, "!=": sympy.Ne}
_MOVING = frozenset((*STATES, alpha, t))
_STARTS = frozenset(start_symbol(s) for s in STATES)


@dataclass(frozen=True)
class Context:
    """``given``, relations; ``put``, values of symbols; ``infinite``, whether N is; ``limits``, what tends to what."""

    given: tuple[Basic, ...] = ()
    put: Mapping[Symbol, Any] = field(default_factory=lambda: FrozenMap({}))
    infinite: bool = False
    limits: tuple[tuple[Any, Any], ...] = ()

    @property
    def moments(self) -> tuple[Symbol, ...]:
        """What moves in time and is held at a value."""
        return tuple(s for s in self.put if s in _MOVING)


def context_of(parts: Parts, stated: Sequence[Statement]) -> tuple[Context, list[Chain]]:
    r"""Conditions beside the equations, and the equations: ``\gamma = 1``, ``N = \infty``, ``\mu_{QK}(0) = 0``.

    What a claim is about is never a condition. Where nothing else is left, all are equations.
    """
    relations = (as_condition(c) for c in parts.conditions if c.relation != "to")
    given = tuple(r for r in relations if not (r.has(oo) and r.doit() is sympy.true))  # such as N < oo
    limits = tuple((evaluate(c.left), evaluate(c.right)) for c in parts.conditions if c.relation == "to")
    about = {q for s in stated for q in (s.quantity if isinstance(s.quantity, tuple) else (s.quantity,))}
    put: dict[Symbol, Any] = {}
    chains: list[Chain] = []
    for chain in parts.chains:
        values = _fixed(chain)
        if values is None or set(values) & about:
            chains.append(chain)
        else:
            put |= values
    if not chains:
        chains, put = list(parts.chains), {}
    infinite = put.get(N) == oo or (N, oo) in limits
    if put.get(N) == oo:
        del put[N]
    return Context(given, FrozenMap(put), infinite, tuple(x for x in limits if x != (N, oo))), chains


def as_relation(condition: Condition) -> Basic:
    """An inequality of a paper as a SymPy relation."""
    left, right = evaluate(condition.left), evaluate(condition.right)
    if isinstance(left, Words) or isinstance(right, Words):
        raise LatexError(condition.place, "an inequality of matrices")
    found: Basic = _RELATIONS[condition.relation](left, right, evaluate=False)
    return found


def as_condition(condition: Condition) -> Basic:
    """An inequality beside an equation, which must be one of states and parameters."""
    found = as_relation(condition)
    if found.has(Rate):
        raise LatexError(condition.place, "a derivative in a condition beside an equation is not understood")
    return found


def approach(limit: tuple[Any, Any]) -> str:
    """A limit in words."""
    return f"{limit[0]} -> {limit[1]}"


def _fixed(chain: Chain) -> dict[Symbol, Any] | None:
    """The symbols that a chain gives one value, a number or a parameter."""
    if any(isinstance(side, Cases) for side in chain.sides) or set(chain.relations) != {"="}:
        return None
    *names, value = (evaluate(side) for side in chain.sides)
    if isinstance(value, Words) or not (value.is_number or value in PARAMETERS):
        return None
    known = all(name in PARAMETERS or name in _MOVING or name in _STARTS for name in names)
    return dict.fromkeys(names, value) if known else None


def special(statement: Statement, context: Context) -> Statement | None:
    """A statement with the values put in; None where it does not say what holds at such a moment."""
    if not context.put or isinstance(statement.value, Words):
        return statement
    if context.moments and not _is_pointwise(statement, context.moments):
        return None
    put = dict(context.put)
    names = {k: v.xreplace(put) for k, v in statement.definitions.items()} | put
    return replace(statement, value=statement.value.xreplace(put), definitions=FrozenMap(names))


def _is_pointwise(statement: Statement, moments: Sequence[Symbol]) -> bool:
    """Whether a statement is an equation of states alone, so that it may be looked at where some have a value."""
    if statement.kind != "equation" or isinstance(statement.quantity, Rate) or statement.value.has(Rate):
        return False
    return t not in moments or statement.value.has(t)
