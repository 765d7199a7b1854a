"""The symmetry of the paper's sequences, and the flow of a factorized circuit in terms of its products.

Sequences name their class by one token of a block, by the last token and by the target. Permuting the classes, the
tokens of equal weight, and the outputs that are no target leaves the loss invariant, so a matrix from tokens to outputs
keeps one value on each orbit of `theory.orbits.set_orbits`.

Of a factorized circuit ``W = U V^T`` the factors have a gauge, but ``W``, ``A = U U^T`` and ``B = V V^T`` do not:

    dW/dt = -eta (A G + G B),   dA/dt = -eta (G W^T + W G^T),   dB/dt = -eta (G^T W + W^T G).

Source: arXiv 2608.06776, data of Figs. 2 and 3; claim `product-flow`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Integer, Symbol

from theory.errors import GradlineError
from theory.factorization import factor_velocity, product_flow
from theory.orbits import IndexSet, Orbit, set_orbits
from theory.words import Rule, Words, matrix, rewrite

__all__ = ["SequenceSymmetry", "gram_flow"]

_eta = Symbol("eta", positive=True)


@dataclass(frozen=True)
class SequenceSymmetry:
    """Index sets of outputs and tokens that the symmetry permutes.

    Tokens: one last token for each class, common tokens, and the tokens of a block by their weight. Outputs: one
    target for each class, and the rest. The common tokens that are no last token are exchangeable as inputs, even
    where they are targets as outputs.

    Parameters: ``classes``; ``common``, the common tokens in all, last tokens and targets among them;
    ``block_weights`` of the tokens of a class, in any order.

    Source: arXiv 2608.06776, data of Figs. 2 and 3.

    >>> symmetry = SequenceSymmetry(4, 10, (1, 1, 2))
    >>> [(s.name, s.count) for s in symmetry.tokens]
    [('last', 1), ('common', 6), ('weight1', 2), ('weight2', 1)]
    >>> len(symmetry.orbits), sum(o.size for o in symmetry.orbits) == 22 * 22
    (11, True)
    """

    classes: int
    common: int
    block_weights: tuple[int, ...]

    @property
    def tokens(self) -> tuple[IndexSet, ...]:
        """Columns of the output-value matrix."""
        weights = sorted(Counter(self.block_weights).items())
        blocks = (IndexSet(f"weight{weight}", Integer(count), True) for weight, count in weights)
        others = IndexSet("common", Integer(self.common - self.classes), False)
        return IndexSet("last", Integer(1), True), others, *blocks

    @property
    def outputs(self) -> tuple[IndexSet, ...]:
        """Rows of the output-value matrix, as many as there are tokens."""
        vocabulary = self.common + self.classes * len(self.block_weights)
        return IndexSet("target", Integer(1), True), IndexSet("rest", Integer(vocabulary - self.classes), False)

    @property
    def orbits(self) -> tuple[Orbit, ...]:
        """Orbits of the output-value matrix."""
        return set_orbits("OV", self.outputs, self.tokens, self.classes)

    @property
    def bias_orbits(self) -> tuple[Orbit, ...]:
        """Orbits of a bias of the outputs."""
        return set_orbits("OV", self.outputs, (IndexSet("bias", Integer(1), False),), self.classes)


def _letters(*names: str) -> tuple[tuple[str, bool], ...]:
    return tuple((name.removesuffix("^T"), name.endswith("^T")) for name in names)


#: Products of the factors, named.
_NAMES = (
    Rule(_letters("U", "V^T"), matrix("W")),
    Rule(_letters("V", "U^T"), matrix("W").T),
    Rule(_letters("U", "U^T"), matrix("A")),
    Rule(_letters("V", "V^T"), matrix("B")),
)


def gram_flow(rate: Any = _eta) -> Mapping[str, Words]:
    """Return the flow of ``W = U V^T``, ``A = U U^T`` and ``B = V V^T``, closed in these and ``G = dL/dW``.

    It follows from ``dU/dt = -eta G V`` and ``dV/dt = -eta G^T U`` for matrices of any shapes.

    Parameters: ``rate`` of both factors.

    Raises: `GradlineError` if a factor were left.

    Source: arXiv 2608.06776; claim `product-flow`.

    >>> print(gram_flow()["W"])
    (-eta) A G + (-eta) G B
    >>> print(gram_flow()["A"])
    (-eta) G W^T + (-eta) W G^T
    """
    factors = factor_velocity(rate)
    U, V = matrix("U"), matrix("V")
    flows = {"W": product_flow(rate), "A": (U @ U.T).derivative(factors), "B": (V @ V.T).derivative(factors)}
    found = {name: rewrite(flow, _NAMES) for name, flow in flows.items()}
    _closed(tuple(found.values()))
    return found


def _closed(flows: Sequence[Words]) -> None:
    left = sorted({name for flow in flows for word in flow.terms for name, _ in word} & {"U", "V"})
    if left:
        raise GradlineError(f"flow of the products: {', '.join(left)} is left over; expected W, A, B and G only")
