"""The line: directions of the two circuits, their norms and singular values, and the flow of the coordinates.

The linear conservation laws leave the orbit flow of each circuit a single direction ``E``, scaled so that the
coordinate is the contrast the loss sees: ``W[same] - W[other] = mu_OV`` and ``W[informative] - W[noise] =
mu_QK``. From a point on the lines the flow stays there when the orbit velocities are parallel to the
directions, which is proved here, not assumed.

Source: arXiv 2608.06776, reduced dynamics; claims `gradient-parallel`, `flow-collapsed`, `isometry-criterion`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sympy import Dummy, Integer, Symbol, cancel, exp, factor, oo, sqrt
from sympy.polys.domains import QQ
from sympy.polys.matrices import DomainMatrix

from theory.attention import RATES, OrbitFlow, orbit_flow
from theory.blocks import Block, BlockMatrix
from theory.errors import NoLineError
from theory.frozen import FrozenMap
from theory.identities import is_zero
from theory.orbits import Circuit, LinearLaw, Orbit, linear_laws
from theory.positivity import sign
from theory.substitution import substitute
from theory.symbols import alpha, mu_OV, mu_QK
from theory.task import TokenTask
from theory.trace import Step, Trace

__all__ = ["COORDINATES", "Direction", "Isometry", "Line", "collapsed_line"]

COORDINATES: Mapping[Circuit, Symbol] = FrozenMap({"OV": mu_OV, "QK": mu_QK})


@dataclass(frozen=True)
class Isometry:
    """Whether ``E E^T E = sigma^2 E``, decided for all sizes: one distinct non-zero singular value.

    ``residual`` is ``E E^T E - sigma^2 E`` with the first squared singular value as ``sigma^2``; where it is
    not zero, ``gap`` is a difference of two squared singular values whose sign is proved. ``holds`` is None
    where it depends on the sizes.
    """

    holds: bool | None
    residual: BlockMatrix
    gap: Any = None


@dataclass(frozen=True)
class Direction:
    """The direction ``E`` of one circuit.

    ``values`` maps each orbit symbol to the entry of ``E`` there; ``matrix`` is ``E`` as a block matrix over
    the columns that move; ``norm2`` is its squared Frobenius norm; ``singular_values2`` are pairs (square,
    multiplicity); ``rank`` is their number.
    """

    circuit: Circuit
    values: Mapping[Symbol, Any]
    matrix: BlockMatrix
    norm2: Any
    singular_values2: tuple[tuple[Any, Any], ...]
    rank: Any
    isometry: Isometry

    @property
    def sigma(self) -> Any:
        """The one non-zero singular value; `NoLineError` when there are several."""
        if self.isometry.holds is None:
            raise NoLineError(
                f"the direction of the {self.circuit} circuit has E E^T E = sigma^2 E for some sizes only: it needs "
                + " = ".join(f"{value}" for value, _ in self.singular_values2)
                + "; give concrete sizes"
            )
        if not self.isometry.holds:
            raise NoLineError(
                f"the direction of the {self.circuit} circuit fails E E^T E = sigma^2 E: its squared singular values "
                + " and ".join(f"{value} ({times} times)" for value, times in self.singular_values2)
                + " differ"
            )
        return sqrt(self.singular_values2[0][0])


@dataclass(frozen=True)
class Line:
    """Both directions and the collapsed flow on them.

    ``gradient`` maps a circuit to ``g`` with ``dL/dW = g E`` on the line, in terms of ``alpha`` and the coordinates.
    """

    task: TokenTask
    laws: Mapping[Circuit, tuple[LinearLaw, ...]]
    directions: Mapping[Circuit, Direction]
    attention: Any
    loss: Any
    gradient: Mapping[Circuit, Any]
    trace: Trace


def _contrast(found: tuple[Orbit, ...]) -> dict[Symbol, int]:
    """The combination of orbit values that the loss depends on, equal to the coordinate on the line."""
    by_name = {(o.columns.name, o.relation): o for o in found}
    plus = by_name.get(("informative", "same")) or by_name[("informative", "all")]
    minus = by_name[("informative", "other")] if plus.circuit == "OV" else by_name[("noise", "all")]
    return {plus.symbol: 1, minus.symbol: -1}


def _direction_values(found: tuple[Orbit, ...], laws: tuple[LinearLaw, ...]) -> dict[Symbol, Any]:
    """The only direction that every law annihilates, scaled to unit contrast."""
    states = [o.symbol for o in found]
    entries = [[law.coefficients.get(s, Integer(0)) for s in states] for law in laws]
    symbols = sorted(set().union(*(e.free_symbols for row in entries for e in row)), key=lambda s: s.name)
    domain = QQ.frac_field(*symbols) if symbols else QQ
    matrix = DomainMatrix([[domain.from_sympy(e) for e in r] for r in entries], (len(laws), len(states)), domain)
    basis = matrix.nullspace().to_Matrix().tolist()
    if len(basis) != 1:
        raise NoLineError(
            f"the {found[0].circuit} orbit values move in {len(basis)} dimensions: {len(laws)} "
            "linear conservation laws "
            f"for {len(states)} orbits leave no single direction"
        )
    (row,) = basis
    values = dict(zip(states, row, strict=True))
    scale = sum((weight * values[s] for s, weight in _contrast(found).items()), Integer(0))
    return {s: factor(cancel(v / scale)) for s, v in values.items()}


def _matrix(task: TokenTask, found: tuple[Orbit, ...], values: Mapping[Symbol, Any]) -> BlockMatrix:
    """Assemble the block matrix of a direction; zero embeddings have no columns."""
    columns = tuple(dict.fromkeys(o.columns for o in found if o.columns.count is not oo))
    blocks = []
    for column in columns:
        entry = {o.relation: values[o.symbol] for o in found if o.columns == column}
        if "all" in entry:
            blocks.append(Block(Integer(0), entry["all"]))
        else:
            blocks.append(Block(factor(entry["same"] - entry["other"]), entry["other"]))
    return BlockMatrix(task.classes, (found[0].rows,), columns, (tuple(blocks),))


def _isometry(matrix: BlockMatrix, values2: tuple[tuple[Any, Any], ...]) -> Isometry:
    """Decide the criterion for all sizes: the residual vanishes, or two singular values differ by a proved sign."""
    first = values2[0][0]
    residual = (matrix @ matrix.T @ matrix) - first * matrix
    if residual.is_zero():
        return Isometry(True, residual)
    for value, times in values2:
        gap = factor(first - value)
        if sign(gap) in (1, -1) and sign(times) == 1:
            return Isometry(False, residual, gap)
    return Isometry(None, residual)


def _direction(task: TokenTask, circuit: Circuit, found: tuple[Orbit, ...], laws: tuple[LinearLaw, ...]) -> Direction:
    values = _direction_values(found, laws)
    matrix = _matrix(task, found, values)
    values2 = matrix.singular_values2()
    rank = factor(sum((times for _, times in values2), Integer(0)))
    isometry = _isometry(matrix, values2)
    return Direction(circuit, FrozenMap(values), matrix, matrix.frobenius2(), values2, rank, isometry)


def tidy_exponents(expression: Any) -> Any:
    """Cancel inside every exponential."""
    return expression.xreplace({e: exp(cancel(e.exp)) for e in expression.atoms(exp)})


def _on_line(flow: OrbitFlow, directions: Mapping[Circuit, Direction]) -> dict[Symbol, Any]:
    return {s: COORDINATES[c] * v for c, d in directions.items() for s, v in d.values.items()}


def _present(expression: Any) -> Any:
    """Factor a velocity in ``alpha``, the coordinates and ``exp(alpha mu_OV)``; other exponentials must have gone."""
    atoms = {e: Dummy() for e in expression.atoms(exp)}
    back = {v: k for k, v in atoms.items()}
    factored = factor(cancel(expression.xreplace(atoms)))
    below = [f for f in factored.as_ordered_factors() if f.as_base_exp()[0] == alpha - 1]
    for f in below:
        power = f.as_base_exp()[1]
        factored = factored / f * (-1) ** power * (1 - alpha) ** power
    return factored.xreplace(back)


@lru_cache(maxsize=64)
def collapsed_line(task: TokenTask) -> Line:
    """Derive the line of a task: laws, directions, and the gradient on the line, with a proof that it is parallel.

    The derivation is for symbolic sizes and score scale; those of the task are then put in exactly.

    Raises: `NoLineError` when the laws leave more than one direction, or the velocities on it are not parallel to it.

    >>> line = collapsed_line(TokenTask(noise=float("inf")))
    >>> line.directions["OV"].norm2, line.directions["QK"].norm2
    (b*(M - 1), K*M*b)
    """
    return substitute(_derive_line(task.generic), task.images)


@lru_cache(maxsize=4)
def _derive_line(task: TokenTask) -> Line:
    """The line for symbolic sizes and score scale."""
    flow = orbit_flow(task)
    moving = [alpha, *flow.velocity]
    laws: dict[Circuit, tuple[LinearLaw, ...]] = {}
    directions: dict[Circuit, Direction] = {}
    trace = list(flow.trace)
    for circuit, found in flow.orbits.items():
        states = [o.symbol for o in found]
        laws[circuit] = linear_laws(circuit, states, [flow.velocity[s] for s in states], moving)
        directions[circuit] = _direction(task, circuit, found, laws[circuit])
        trace += [
            Step(
                "null space",
                f"laws of {circuit}",
                tuple(states),
                tuple(law.expression for law in laws[circuit]),
            ),
            Step(
                "reduction",
                f"E_{circuit}",
                tuple(law.expression for law in laws[circuit]),
                tuple(directions[circuit].values.items()),
                "the one direction that the laws leave, scaled to unit contrast",
            ),
        ]
    point = _on_line(flow, directions)
    gradient: dict[Circuit, Any] = {}
    for circuit, found in flow.orbits.items():
        speeds = {o.symbol: _present(tidy_exponents(flow.velocity[o.symbol].xreplace(point))) for o in found}
        speed = sum((weight * speeds[s] for s, weight in _contrast(found).items()), Integer(0))
        for symbol, v in speeds.items():
            if not is_zero(v - directions[circuit].values[symbol] * speed):
                raise NoLineError(f"the gradient leaves the line: velocity of {symbol} is not parallel to E_{circuit}")
        gradient[circuit] = _present(-speed / RATES[circuit])
        trace.append(
            Step(
                "parallel",
                f"g_{circuit}",
                tuple(speeds.items()),
                gradient[circuit],
                "dL/dW = g E on the line",
            )
        )
    attention = tidy_exponents(flow.attention.xreplace(point))
    loss = tidy_exponents(flow.loss.xreplace(point))
    return Line(
        task,
        FrozenMap(laws),
        FrozenMap(directions),
        attention,
        loss,
        FrozenMap(gradient),
        tuple(trace),
    )
