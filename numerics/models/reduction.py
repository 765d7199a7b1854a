"""Reduction of a user's torch model by its symmetry, with the symmetry tested at random points.

Source: sections 3 and 13 of the theory, reduction by symmetry; the exact counterpart is `theory.models.reduce_model`.
"""

from __future__ import annotations

from sympy import Basic

from numerics.models.flow import NumericFlow
from numerics.models.symmetry import check_differentiable, check_invariant, signed_permutation
from numerics.models.torch_loss import TorchLoss
from theory.frozen import FrozenMap
from theory.models import GradientFlow, Model
from theory.models import reduce_model as reduce_exactly
from theory.models.reduction import entry_orbits, orbit_rates

__all__ = ["reduce_model"]


def reduce_model(model: Model, *, seed: int = 0) -> NumericFlow | GradientFlow:
    """Reduce gradient flow of a torch model to the orbits of its symmetry.

        dv/dt = -(eta / |O|) dL/dv     for the value v of each orbit O

    Parameters: ``model``, whose loss is a function of the blocks by name, tensors in double precision with the shapes
    of the blocks, to a scalar tensor; generators of its symmetry are permutations of indices, or functions from a
    dict of tensors to one; a SymPy loss goes to `theory.models.reduce_model`; ``seed`` of the random points.

    Returns: a `NumericFlow`; it goes to `numerics.simulate` and `numerics.check_on_line` like any other flow.
    Invariance holds at 6 random points to 1e-9 of ``1 + |L|``, in the loss and in its gradient; it is not proved.

    Raises: `SymmetryError` naming the generator and a point where the loss changes; ``TypeError`` for a loss that is
    no scalar; ``ValueError`` for shapes that don't fit together, a loss that is not differentiable at the random
    points, a symmetry of the wrong size, or unequal learning rates on an orbit.

    Source: sections 3 and 13 of the theory.

    >>> from theory.models import Block
    >>> model = Model([Block("w", 2)], lambda w: ((w.sum() - 1) ** 2) / 2, symmetry=[{"w": ([1, 0],)}])
    >>> flow = reduce_model(model)
    >>> flow.states, flow.velocity({"w_1": 0.0})
    ((w_1,), {'w_1': 1.0})
    """
    if not isinstance(model, Model):
        raise TypeError(f"model={model!r}: expected a theory.models.Model")
    if isinstance(model.loss, Basic):
        return reduce_exactly(model)
    from numerics.gradient_flow import one_thread

    symbols, loss = model.symbols, TorchLoss(model.blocks, model.loss)
    labels = [f"symmetry {k}" for k in range(len(model.symmetry))]
    moves = [signed_permutation(model.blocks, g, label) for g, label in zip(model.symmetry, labels, strict=True)]
    with one_thread():
        check_differentiable(loss, len(symbols), seed)
        for move, label in zip(moves, labels, strict=True):
            check_invariant(loss, move, label, seed)
    orbits = entry_orbits(len(symbols), moves)
    moving = [(o, eta) for o, eta in zip(orbits, orbit_rates(model, orbits), strict=True) if not o.vanishes]
    if not moving:
        raise ValueError("symmetry: it forces every entry to be 0; nothing is left that moves")
    states = tuple(symbols[o.positions[0]] for o, _ in moving)
    rates = set().union(*(eta.free_symbols for _, eta in moving))
    return NumericFlow(
        model=model,
        states=states,
        metric=FrozenMap({s: len(o.positions) / eta for s, (o, eta) in zip(states, moving, strict=True)}),
        orbits=FrozenMap(
            {
                s: tuple((symbols[i], sign) for i, sign in zip(o.positions, o.signs, strict=True))
                for s, (o, _) in zip(states, moving, strict=True)
            }
        ),
        parameters=tuple(sorted(rates, key=lambda s: str(s.name))),
        _orbits=tuple(o for o, _ in moving),
        _loss=loss,
    )
