"""Orbits of the task's symmetry on the entries of the two circuits, their sizes, and the flow of their values.

Permuting classes, tokens inside a block, noise tokens and query tokens leaves the population loss invariant. Gradient
flow therefore keeps parameters constant on the orbits of that group, and the value ``v`` of an orbit ``O`` flows as

    dv/dt = -(eta / |O|) dL/dv,

because ``dL/dv`` sums ``|O|`` equal entries of the gradient.

Source: arXiv 2608.06776, reduction by symmetry; claims `gradient-parallel` and `shift-conservation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sympy import Dummy, Integer, Symbol, exp, factor, oo
from sympy.polys.domains import QQ
from sympy.polys.matrices import DomainMatrix
from sympy.polys.polytools import Poly, cancel, lcm

from theory.frozen import FrozenMap
from theory.task import TokenTask

__all__ = [
    "Circuit",
    "IndexSet",
    "LinearLaw",
    "Orbit",
    "circuit_sets",
    "linear_laws",
    "orbit_velocity",
    "orbits",
    "set_orbits",
]

Circuit = Literal["OV", "QK"]
Relation = Literal["same", "other", "all"]


@dataclass(frozen=True)
class IndexSet:
    """Tokens or outputs of one type: ``count`` of them for each class, or ``count`` in all."""

    name: str
    count: Any
    per_class: bool


@dataclass(frozen=True)
class Orbit:
    """Entries of a circuit that the symmetry permutes among themselves.

    ``relation`` says how the class of the row and of the column relate: the same class, another one, or
    ``"all"`` where one of the two has no class. ``size`` is the number of entries; a ``frozen`` orbit belongs
    to tokens with zero embedding (``oo`` of them) and never moves.
    """

    circuit: Circuit
    rows: IndexSet
    columns: IndexSet
    relation: Relation
    size: Any
    symbol: Symbol

    @property
    def frozen(self) -> bool:
        """Whether the entries never move."""
        return self.columns.count is oo


def circuit_sets(task: TokenTask, circuit: Circuit) -> tuple[IndexSet, tuple[IndexSet, ...]]:
    """Return the row set and the column sets of a circuit's matrix.

    ``W_OV`` has a row for each class, ``W_QK`` one for each query token; both have a column for each
    informative and each noise token.
    """
    columns = (IndexSet("informative", task.block, True), IndexSet("noise", task.noise, False))
    if circuit == "OV":
        return IndexSet("outputs", Integer(1), True), columns
    return IndexSet("queries", task.queries, task.query_kind == "per_class"), columns


def _relations(rows: IndexSet, columns: IndexSet, classes: Any) -> list[tuple[Relation, Any]]:
    """Orbits of the pairs of two sets, with their sizes."""
    pairs = rows.count * columns.count
    if rows.per_class and columns.per_class:
        return [("same", classes * pairs), ("other", classes * (classes - 1) * pairs)]
    return [("all", pairs * (classes if rows.per_class or columns.per_class else 1))]


def set_orbits(
    circuit: Circuit, rows: Sequence[IndexSet], columns: Sequence[IndexSet], classes: Any
) -> tuple[Orbit, ...]:
    """Return the orbits of a matrix between any index sets, under permutations of classes and inside each set.

    Rows and columns belong to different sets, or to none that the symmetry ties together.

    >>> rows = (IndexSet("label", 1, True), IndexSet("rest", 46, False))
    >>> [(o.symbol.name, o.size) for o in set_orbits("OV", rows, (IndexSet("common", 6, False),), 4)]
    [('W_OV_label_common_all', 24), ('W_OV_rest_common_all', 276)]
    """
    return tuple(
        Orbit(circuit, row, column, kind, size, Symbol(f"W_{circuit}_{row.name}_{column.name}_{kind}", real=True))
        for row in rows
        for column in columns
        for kind, size in _relations(row, column, classes)
    )


def orbits(task: TokenTask, circuit: Circuit) -> tuple[Orbit, ...]:
    """Return the orbits of one circuit with their sizes.

    A pair of sets that both carry a class splits into pairs of the same class, ``M k l`` of them, and of different
    classes, ``M (M-1) k l``; any other pair of sets is one orbit.

    >>> [(o.symbol.name, o.size) for o in orbits(TokenTask(), "OV")]
    [('W_OV_same', M*b), ('W_OV_other', M*b*(M - 1)), ('W_OV_noise', M*N)]
    """
    if circuit not in get_args(Circuit):
        raise ValueError(f"circuit={circuit!r}: expected 'OV' or 'QK'")
    rows, columns = circuit_sets(task, circuit)
    found = []
    for column in columns:
        for relation, size in _relations(rows, column, task.classes):
            label = column.name if relation == "all" else relation
            symbol = Symbol(f"W_{circuit}_{label}", real=True)
            found.append(Orbit(circuit, rows, column, relation, size, symbol))
    return tuple(found)


def orbit_velocity(orbit: Orbit, rate: Any, loss_derivative: Any) -> Any:
    """Return ``dv/dt = -(eta/|O|) dL/dv`` of an orbit value, 0 for a frozen orbit."""
    return Integer(0) if orbit.frozen else -rate * loss_derivative / orbit.size


@dataclass(frozen=True)
class LinearLaw:
    """``sum_i coefficients[v_i] v_i`` is constant along the flow."""

    circuit: Circuit
    coefficients: Mapping[Symbol, Any]

    @property
    def expression(self) -> Any:
        """The conserved expression."""
        return sum((c * v for v, c in self.coefficients.items()), Integer(0))


def _coefficient_rows(velocities: Sequence[Any], states: Sequence[Symbol]) -> tuple[list[list[Any]], list[Symbol]]:
    """Write each velocity over one common denominator as a row of coefficients in the moving quantities."""
    atoms = {e: Dummy() for v in velocities for e in v.atoms(exp)}
    fractions = [cancel(v.xreplace(atoms)).as_numer_denom() for v in velocities]
    denominator = Integer(1)
    for _, d in fractions:
        denominator = lcm(denominator, d)
    cleared = [n * cancel(denominator / d) for n, d in fractions]
    # the last generator occurs nowhere: constants are polynomials too
    moving = [*states, *atoms.values(), Dummy()]
    symbols = sorted(set().union(*(c.free_symbols for c in cleared)) - set(moving), key=lambda s: s.name)
    polys = [Poly(c, *moving, domain=QQ.frac_field(*symbols) if symbols else QQ) for c in cleared]
    # the order of the rows does not matter: the null space has one reduced echelon form
    monomials = set().union(*(p.monoms() for p in polys))
    return [[p.coeff_monomial(monomial) for p in polys] for monomial in monomials], symbols


def linear_laws(
    circuit: Circuit, states: Sequence[Symbol], velocities: Sequence[Any], moving: Sequence[Symbol]
) -> tuple[LinearLaw, ...]:
    """Find all linear combinations of orbit values that the flow conserves.

    Each velocity is a polynomial in the ``moving`` symbols and in exponentials over a common denominator; a combination
    ``sum c_i v_i`` is conserved when ``sum c_i dv_i/dt`` vanishes coefficient by coefficient, so the laws are
    the null space of the coefficient matrix, over the rational functions of sizes and rates. Exponentials count
    as independent, so that each law found is one.

    Parameters: ``states``, the orbit values; ``velocities``, their time derivatives, in the same order; ``moving``,
    every symbol that changes in time.

    Denominators may be written in any way, factored or not.

    Returns: a basis of the laws, the first non-zero coefficient of each scaled to 1 or to a polynomial in the sizes.
    """
    rows, symbols = _coefficient_rows(velocities, moving)
    domain = QQ.frac_field(*symbols) if symbols else QQ
    matrix = DomainMatrix([[domain.from_sympy(c) for c in row] for row in rows], (len(rows), len(states)), domain)
    basis = matrix.nullspace().rref()[0].to_Matrix().tolist()
    laws = []
    for vector in basis:
        denominator = Integer(1)
        for entry in vector:
            denominator = lcm(denominator, cancel(entry).as_numer_denom()[1])
        cleared = [factor(entry * denominator) for entry in vector]
        laws.append(LinearLaw(circuit, FrozenMap({s: c for s, c in zip(states, cleared, strict=True) if c != 0})))
    return tuple(laws)
