"""Reduction of a user's model by its symmetry: from entries to orbits.

If the loss is invariant under a group of signed permutations of the entries, gradient flow keeps parameters constant on
its orbits, and the value ``v`` of an orbit ``O`` flows as

    dv/dt = -(eta / |O|) dL/dv,        metric |O| / eta.

The same law holds for the built-in model, see :mod:`theory.orbits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Basic, Expr, Integer, Symbol, diff

from theory.errors import GradlineError
from theory.frozen import FrozenMap
from theory.identities import compare
from theory.inputs import check_names, exact
from theory.models.blocks import Block, Generator, SignedPermutation, as_permutation, check_blocks
from theory.models.flow import GradientFlow
from theory.trace import Assumption, Step

__all__ = ["EntryOrbit", "Model", "SymmetryError", "entry_orbits", "orbit_rates", "reduce_model"]

#: Operations in a loss that the exact engine takes: a test of one generator at this size takes about a minute.
MOST_OPERATIONS = 5000


class SymmetryError(ValueError):
    """A symmetry that the loss does not have; the message names the generator and a point where it fails."""


@dataclass(frozen=True)
class EntryOrbit:
    """Entries that a symmetry permutes: their positions and signs; ``vanishes`` where it forces them to be 0."""

    positions: tuple[int, ...]
    signs: tuple[int, ...]
    vanishes: bool = False


@dataclass(frozen=True)
class Model:
    """A model of a user: trained blocks, a loss and, if it has one, its symmetry.

    Parameters: ``blocks``, the trained arrays; ``loss``, a SymPy expression in their entries (``Block.array``) and
    in symbols of its own, or a function of torch tensors by name (see `numerics.reduce_model`); ``symmetry``,
    generators as `as_permutation` reads them; ``assumptions``, SymPy relations on the other symbols; ``name``.

    Raises: ``TypeError`` or ``ValueError`` for wrong blocks or a loss that is no scalar.

    >>> w = Block("w", (2,))
    >>> Model([w], (w.array.T * w.array)[0], symmetry=[{"w": ([1, 0],)}]).name
    'model'
    """

    blocks: tuple[Block, ...]
    loss: Any
    symmetry: tuple[Generator, ...] = ()
    assumptions: tuple[Basic, ...] = ()
    name: str = "model"

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", check_blocks(self.blocks))
        if isinstance(self.symmetry, Mapping) or callable(self.symmetry):
            raise TypeError("symmetry: one generator alone; expected a sequence of them, such as [generator]")
        object.__setattr__(self, "symmetry", tuple(self.symmetry))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        if not callable(self.loss) or isinstance(self.loss, Basic):
            if getattr(self.loss, "shape", None) is not None:
                raise TypeError(
                    f"loss: a matrix of shape {self.loss.shape}; expected a scalar, such as its entry [0, 0]"
                )
            object.__setattr__(self, "loss", exact(self.loss))
            check_names([self.loss, *self.symbols, *(exact(b.rate) for b in self.blocks)])

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """All entries, block by block."""
        return tuple(s for block in self.blocks for s in block.symbols)


def entry_orbits(size: int, permutations: Iterable[SignedPermutation]) -> tuple[EntryOrbit, ...]:
    """Return the orbits of signed permutations on ``size`` entries, each led by its first entry.

    >>> [o.positions for o in entry_orbits(3, [((1, 1), (0, 1), (2, 1))])]
    [(0, 1), (2,)]
    """
    moves = [*permutations]
    label: list[tuple[int, int] | None] = [None] * size
    members: list[list[int]] = []
    vanishing: list[bool] = []
    for first in range(size):
        if label[first] is not None:
            continue
        label[first] = (len(members), 1)
        members.append([first])
        vanishing.append(False)
        todo = [first]
        while todo:
            entry = todo.pop()
            orbit, sign = label[entry] or (0, 1)
            for move in moves:
                image, factor = move[entry]
                known = label[image]
                if known is None:
                    label[image] = (orbit, sign * factor)
                    members[orbit].append(image)
                    todo.append(image)
                elif known[1] != sign * factor:
                    vanishing[orbit] = True
    found = []
    for positions, vanishes in zip(members, vanishing, strict=True):
        ordered = tuple(sorted(positions))
        found.append(EntryOrbit(ordered, tuple((label[i] or (0, 1))[1] for i in ordered), vanishes))
    return tuple(found)


def _check_invariance(model: Model, move: SignedPermutation, label: str) -> None:
    symbols = model.symbols
    moved = model.loss.xreplace({s: sign * symbols[i] for s, (i, sign) in zip(symbols, move, strict=True)})
    decision = compare(model.loss, moved, model.assumptions)
    if decision.answer == "different":
        point = ", ".join(f"{s}={v}" for s, v in (decision.witness or {}).items())
        raise SymmetryError(f"{label}: the loss is not invariant; it differs at {point or 'almost every point'}")
    if decision.answer == "undecided":
        raise GradlineError(f"{label}: invariance of the loss is undecided; give assumptions or a simpler form")


def orbit_rates(model: Model, orbits: Sequence[EntryOrbit]) -> list[Expr]:
    """Return the learning rate of each orbit.

    Raises: ``ValueError`` where an orbit has more than one.
    """
    rate = [exact(block.rate) for block in model.blocks for _ in block.symbols]
    found = []
    for orbit in orbits:
        different = {rate[i] for i in orbit.positions}
        if len(different) > 1:
            shown = ", ".join(sorted(map(str, different)))
            name = model.symbols[orbit.positions[0]]
            raise ValueError(f"the orbit of {name} has learning rates {shown}; expected one rate on each orbit")
        found.append(rate[orbit.positions[0]])
    return found


def reduce_model(model: Model) -> GradientFlow:
    """Reduce gradient flow of a model to the orbits of its symmetry.

        dv/dt = -(eta / |O|) dL/dv     for the value v of each orbit O

    Parameters: ``model`` with a SymPy loss; without symmetry each entry is an orbit.

    Returns: a `GradientFlow` whose states are the first entries of the orbits, with metric ``|O|/eta``.

    Raises: `SymmetryError` for a symmetry that the loss does not have; ``TypeError`` for a torch loss;
    ``ValueError`` for unequal rates on an orbit; `GradlineError` where invariance is undecided, or where the loss is
    too large for the exact engine.

    Source: sections 3 and 13 of the theory, reduction by symmetry.

    >>> w = Block("w", (2,))
    >>> a, b = w.symbols
    >>> flow = reduce_model(Model([w], (a + b - 1) ** 2 / 2, symmetry=[{"w": ([1, 0],)}]))
    >>> flow.velocity
    Velocity({w_1: 1 - 2*w_1})
    """
    if not isinstance(model, Model):
        raise TypeError(f"model={model!r}: expected a theory.models.Model")
    if not isinstance(model.loss, Basic):
        raise TypeError("loss: a function of tensors; expected a SymPy expression here, use numerics.reduce_model")
    operations = int(model.loss.count_ops())
    if model.symmetry and operations > MOST_OPERATIONS:
        raise GradlineError(
            f"{model.name}: its loss has {operations} operations, the exact engine can do {MOST_OPERATIONS}; take "
            "smaller sizes, or a torch loss with numerics.reduce_model"
        )
    symbols = model.symbols
    moves = [as_permutation(model.blocks, g, f"symmetry {k}") for k, g in enumerate(model.symmetry)]
    for k, move in enumerate(moves):
        _check_invariance(model, move, f"symmetry {k}")
    orbits = entry_orbits(len(symbols), moves)
    values: dict[Symbol, Any] = {}
    for orbit in orbits:
        leader = Integer(0) if orbit.vanishes else symbols[orbit.positions[0]]
        values |= {symbols[i]: sign * leader for i, sign in zip(orbit.positions, orbit.signs, strict=True)}
    loss = model.loss.xreplace(values)
    moving = [(o, eta) for o, eta in zip(orbits, orbit_rates(model, orbits), strict=True) if not o.vanishes]
    states = [symbols[o.positions[0]] for o, _ in moving]
    velocity, metric, members, sizes = {}, {}, {}, {}
    for state, (orbit, eta) in zip(states, moving, strict=True):
        sizes[state] = len(orbit.positions)
        slope = -eta * diff(loss, state) / sizes[state]
        velocity[state] = slope.expand() if loss.is_polynomial(*states) else slope
        metric[state] = sizes[state] / eta
        members[state] = tuple((symbols[i], sign) for i, sign in zip(orbit.positions, orbit.signs, strict=True))
    return GradientFlow(
        velocity=velocity,
        loss=loss,
        metric=metric,
        orbits=members,
        assumptions=(
            *(Assumption(str(a), a) for a in model.assumptions),
            Assumption("the start is constant on the orbits of the symmetry"),
        ),
        trace=(
            Step("orbits", "sizes", (model.name,), FrozenMap(sizes), "the loss is invariant under each generator"),
            Step("reduction", "loss", (model.loss,), loss, "entries of one orbit have one value"),
            Step(
                "gradient", "velocity", (loss,), FrozenMap(velocity), "an orbit value moves by eta/|O| times the slope"
            ),
        ),
        name=model.name,
    )
