"""Conservation laws of a given flow among the combinations of given functions.

For functions ``g_1, g_2, ...`` of the states the combination ``sum_k c_k g_k`` is conserved if ``sum_k c_k dg_k/dt``
vanishes. Its normal form is linear in the ``c_k``; over independent atoms it vanishes coefficient by coefficient, so
the laws are a null space over the rational functions of the constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Add, Basic, Dummy, Expr, Integer, Mul, Pow, Symbol, diff, factor, lcm
from sympy.polys.domains import QQ
from sympy.polys.matrices import DomainMatrix

from theory.errors import GradlineError
from theory.flow import ReducedFlow
from theory.identities import Decision, prove_zero
from theory.inputs import check_names, exact
from theory.models.flow import GradientFlow
from theory.normal_form import convert

__all__ = ["Law", "laws_in_basis"]


@dataclass(frozen=True)
class Law:
    """``expression`` is constant along the flow; ``decision`` is the proof that its derivative vanishes."""

    expression: Expr
    decision: Decision


def laws_in_basis(
    flow: ReducedFlow | GradientFlow | Mapping[Symbol, Any], basis: Sequence[Any], assumptions: Sequence[Basic] = ()
) -> tuple[Law, ...]:
    """Find all conserved combinations of given functions, with coefficients that depend on the constants.

        sum_k c_k dg_k/dt = 0

    Parameters: ``flow``, a `ReducedFlow`, a `GradientFlow` such as `reduce_model` returns, or velocities by state;
    ``basis``, the functions ``g_k`` of states and constants (polynomials, exponentials, logarithms, ``Ei`` ...);
    ``assumptions`` on the symbols, beside those of the flow.

    Returns: a basis of the laws, each proved by the normal form; functions that are constant themselves are left
    out. Raises: ``TypeError`` or ``ValueError`` for wrong input.

    Source: sections 6 and 13 of the theory.

    >>> from sympy.abc import u, v
    >>> [law.expression for law in laws_in_basis({u: v, v: u}, [u**2, u * v, v**2])]
    [u**2 - v**2]
    """
    velocity = _velocity(flow)
    known = _assumptions(flow, assumptions)
    functions = _independent(_functions(basis, velocity), list(velocity), known)
    if not functions:
        return ()
    rates = [Add(*(diff(g, x) * v for x, v in velocity.items() if g.has(x))) for g in functions]
    rows, names = _equations(rates, list(velocity), known)
    found = []
    for vector in _null_space(rows, names, len(functions)):
        law = Add(*(c * g for c, g in zip(vector, functions, strict=True)))
        decision = prove_zero(Add(*(c * r for c, r in zip(vector, rates, strict=True))), known)
        if decision.answer != "equal":
            raise GradlineError(f"{law}: its derivative was not proved zero ({decision.answer}); give assumptions")
        found.append(Law(law, decision))
    return tuple(found)


def _velocity(flow: ReducedFlow | GradientFlow | Mapping[Symbol, Any]) -> dict[Symbol, Expr]:
    if isinstance(flow, ReducedFlow | GradientFlow):
        return {x: flow.velocity[x] for x in flow.states}
    if not isinstance(flow, Mapping) or not flow or not all(isinstance(x, Symbol) for x in flow):
        raise TypeError(
            "flow: expected a ReducedFlow, a GradientFlow or a mapping from state symbols to velocities "
            "(a torch model has no formulas to search)"
        )
    return {x: exact(v) for x, v in flow.items()}


def _functions(basis: Sequence[Any], velocity: Mapping[Symbol, Expr]) -> list[Expr]:
    """The functions that depend on a state, each once."""
    if isinstance(basis, Basic | str):
        raise TypeError(f"basis: {basis}: expected a sequence of functions, such as [{basis}]")
    functions = [exact(g) for g in basis]
    check_names([*functions, *velocity, *velocity.values()])
    return [*dict.fromkeys(g for g in functions if any(g.has(x) for x in velocity))]


def _assumptions(flow: Any, given: Sequence[Basic]) -> tuple[Basic, ...]:
    """What the user gives and, for a user's flow, the relations it came with."""
    own = flow.assumptions if isinstance(flow, GradientFlow) else ()
    return (*given, *(a.relation for a in own if a.relation is not None))


def _independent(functions: list[Expr], states: Sequence[Symbol], assumptions: Sequence[Basic]) -> list[Expr]:
    """The first functions of which no combination is constant: their gradients are independent."""
    steps = {x: Dummy(f"d{x.name}", real=True) for x in states}
    slopes = [Add(*(step * diff(g, x) for x, step in steps.items() if g.has(x))) for g in functions]
    rows, names = _equations(slopes, [*states, *steps.values()], assumptions)
    return [functions[k] for k in _matrix(rows, names, len(functions)).rref()[1]] if rows else []


def _equations(
    rates: Sequence[Expr], states: Sequence[Symbol], assumptions: Sequence[Basic]
) -> tuple[list[list[Expr]], dict[Symbol, Expr]]:
    """One row of coefficients of each rate in a combination of them for each monomial in what moves."""
    unknowns = [Dummy(f"c{k}", real=True) for k in range(len(rates))]
    total = Add(*(c * r for c, r in zip(unknowns, rates, strict=True)))
    converter, fraction = convert(total, assumptions)
    tower = converter.tower
    position = {atom.expr: i for i, atom in enumerate(tower.atoms)}
    index = [position.get(c, -1) for c in unknowns]
    moving = {i for i, atom in enumerate(tower.atoms) if atom.expr.free_symbols & set(states)}
    still = {i: Dummy(f"k{i}") for i in range(len(tower.atoms)) if i not in moving and i not in index}
    collected: dict[tuple[int, ...], list[list[Expr]]] = {}
    for exponents, coefficient in tower.terms(fraction.num):
        key = tuple(e if i in moving else 0 for i, e in enumerate(exponents))
        constant = Mul(Integer(coefficient), *(Pow(still[i], e) for i, e in enumerate(exponents) if e and i in still))
        for k, i in enumerate(index):
            if i >= 0 and exponents[i]:
                collected.setdefault(key, [[] for _ in unknowns])[k].append(constant)
    rows = [[Add(*terms) for terms in row] for row in collected.values()]
    used = set().union(*(e.free_symbols for row in rows for e in row))
    return rows, {name: tower.atoms[i].expr for i, name in still.items() if name in used}


def _matrix(rows: Sequence[Sequence[Expr]], names: Mapping[Symbol, Expr], width: int) -> DomainMatrix:
    domain = QQ.frac_field(*names) if names else QQ
    entries = [[domain.from_sympy(c) for c in row] for row in rows]
    return DomainMatrix(entries, (len(rows), width), domain)


def _null_space(rows: Sequence[Sequence[Expr]], names: Mapping[Symbol, Expr], width: int) -> list[list[Expr]]:
    basis = _matrix(rows, names, width).nullspace().rref()[0].to_Matrix().tolist()
    return [[c.xreplace(dict(names)) for c in _cleared(vector)] for vector in basis]


def _cleared(vector: Sequence[Expr]) -> list[Expr]:
    """Multiply by the common denominator, so that coefficients are polynomials."""
    denominator: Any = Integer(1)
    for entry in vector:
        denominator = lcm(denominator, entry.as_numer_denom()[1])
    return [factor(entry * denominator) for entry in vector]
