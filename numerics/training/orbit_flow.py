"""Gradient flow of the orbit values for the paper's sequences under a fixed attention.

The population loss has no closed form here, so it is replaced by the mean over a fixed, seeded sample of sequences
and all their images under the symmetry: that mean is symmetric exactly, and at a symmetric point it is the mean over
the sample itself, with the classes renamed so that each sequence is of class 0. Orbit values move as

    dv/dt = -(eta/|O|) dL/dv,

those of a factorized circuit by `theory.sequences.gram_flow`, split into the part that is constant over classes
and the part that sums to zero over them.

Source: arXiv 2608.06776, Fig. 3; `theory.sequences`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from numerics.training.data import SequenceData
from theory.errors import GradlineError
from theory.orbits import IndexSet, Orbit, orbit_velocity
from theory.sequences import SequenceSymmetry, gram_flow

__all__ = ["OrbitRun", "SampledLoss", "orbit_matrix", "orbit_training_flow"]

Array = NDArray[np.float64]
#: Start of ``U U^T`` and ``V V^T``, times the identity: ``width`` entries of variance ``1/(3 width)`` in each row.
START = 1 / 3


def symmetry_of(data: SequenceData) -> SequenceSymmetry:
    """The index sets of the data."""
    return SequenceSymmetry(data.classes, data.common, data.block_weights)


def _members(data: SequenceData, index: IndexSet) -> list[tuple[int, int | None]]:
    """Tokens or outputs of a set, with their class if they have one."""
    classes = range(data.classes)
    if index.name == "last":
        return list(zip(data.last_tokens, classes, strict=True))
    if index.name == "target":
        return list(zip(data.targets, classes, strict=True))
    if index.name == "common":
        return [(t, None) for t in range(data.common) if t not in data.last_tokens]
    if index.name == "rest":
        return [(t, None) for t in range(data.vocabulary) if t not in data.targets]
    if index.name == "bias":
        return [(0, None)]
    weight = int(index.name.removeprefix("weight"))
    places = [j for j, own in enumerate(data.block_weights) if own == weight]
    return [(data.common + i * data.block + j, i) for i in classes for j in places]


def orbit_matrix(data: SequenceData, orbits: tuple[Orbit, ...], width: int | None = None) -> NDArray[np.int64]:
    """Return the orbit number of every entry of a matrix (vocabulary, ``width``), vocabulary columns by default.

    >>> data = SequenceData()
    >>> found = orbit_matrix(data, symmetry_of(data).orbits)
    >>> found.shape, found.max() + 1
    ((50, 50), np.int64(35))
    """
    found = np.full((data.vocabulary, data.vocabulary if width is None else width), -1)
    for number, orbit in enumerate(orbits):
        for row, own in _members(data, orbit.rows):
            for column, other in _members(data, orbit.columns):
                if orbit.relation == "all" or (own == other) == (orbit.relation == "same"):
                    found[row, column] = number
    return found


@dataclass(frozen=True, eq=False)
class SampledLoss:
    """Mean loss over a fixed sample of sequences as a function of the orbit values of ``W`` and the bias.

    Parameters: ``data``; ``alpha``, the attention on the tokens of a block; ``size`` and ``seed`` of the sample;
    ``bias``, whether there is one.

    Source: arXiv 2608.06776, Fig. 3.
    """

    data: SequenceData
    alpha: float
    size: int
    seed: int
    bias: bool

    @cached_property
    def orbits(self) -> tuple[Orbit, ...]:
        """The orbits whose values are the arguments, those of the bias last."""
        symmetry = symmetry_of(self.data)
        return symmetry.orbits + (symmetry.bias_orbits if self.bias else ())

    @cached_property
    def _counts(self) -> tuple[Array, Array]:
        """Normalized counts (size, T) within common tokens and within block tokens, of sequences of class 0."""
        labels = np.zeros(self.size, np.int64)
        counts = self.data.sample(labels, np.random.default_rng([self.seed, 3])).astype(np.float64)
        common = np.arange(self.data.vocabulary) < self.data.common
        own, other = np.where(common, 0.0, counts), np.where(common, counts, 0.0)
        return own / own.sum(1, keepdims=True), other / other.sum(1, keepdims=True)

    @cached_property
    def _compact(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows that differ (a target of each class, one of the rest) by tokens that occur, as orbit numbers; the first
        token of every group of columns that are equal in all rows.
        """
        orbits = tuple(o for o in self.orbits if o.columns.name != "bias")
        rest = next(t for t in range(self.data.vocabulary) if t not in self.data.targets)
        rows = orbit_matrix(self.data, orbits)[[*self.data.targets, rest]]
        occurring = self.data.probabilities()[0] > 0
        columns, groups = np.unique(rows[:, occurring], axis=1, return_inverse=True)
        groups = np.asarray(groups).ravel()
        if self.bias:
            wanted = orbit_matrix(self.data, self.orbits[len(orbits) :], 1)[[*self.data.targets, rest]]
            columns = np.hstack([columns, wanted + len(orbits)])
        return columns, groups

    @cached_property
    def _features(self) -> Array:
        """Attention-weighted counts (size, columns that differ), with a column of ones for the bias."""
        columns, groups = self._compact
        occurring = self.data.probabilities()[0] > 0
        own, other = self._counts
        weighted = (self.alpha * own + (1 - self.alpha) * other)[:, occurring]
        found = np.zeros((self.size, columns.shape[1]))
        for token, group in enumerate(groups):
            found[:, group] += weighted[:, token]
        if self.bias:
            found[:, -1] = 1.0
        return found

    def _probabilities(self, values: Array) -> tuple[Array, Array]:
        """Losses (size,) and probabilities (size, classes + 1), the last one of all other outputs together."""
        logits = self._features @ values[self._compact[0]].T
        logits[:, -1] += np.log(self.data.vocabulary - self.data.classes)
        logits -= logits.max(axis=1, keepdims=True)
        found = np.exp(logits)
        total = found.sum(axis=1)
        return np.log(total) - logits[:, 0], found / total[:, None]

    def losses(self, values: Array) -> Array:
        """Return the loss (size,) of every sequence."""
        return self._probabilities(values)[0]

    def derivative(self, values: Array) -> Array:
        """Return ``dL/dv`` of every orbit value."""
        slope = self._probabilities(values)[1]
        slope[:, 0] -= 1
        entries = slope.T @ self._features / self.size
        found: Array = np.bincount(self._compact[0].ravel(), entries.ravel(), len(self.orbits)).astype(np.float64)
        return found


@dataclass(frozen=True)
class OrbitRun:
    """The flow at every ``epoch`` (T,): ``loss`` (T,), its standard error over the sample ``error`` (T,), the
    difference ``quotient`` (T,) ``(L(alpha) - L(alpha + step))/step``, and the orbit ``values`` (T, orbits).
    """

    epoch: Array
    loss: Array
    error: Array
    quotient: Array
    values: Array


class _Parts:
    """Matrices that are constant on orbits, as their part constant over classes and their part of zero sum."""

    def __init__(self, loss: SampledLoss) -> None:
        symmetry = symmetry_of(loss.data)
        self.classes = loss.data.classes
        self.sets = symmetry.outputs, symmetry.tokens
        self.orbits = symmetry.orbits
        names = tuple([s.name for s in side] for side in self.sets)
        self.places = [(names[0].index(o.rows.name), names[1].index(o.columns.name)) for o in self.orbits]
        sizes = [np.array([float(s.count) * (self.classes if s.per_class else 1) for s in side]) for side in self.sets]
        self.roots = np.sqrt(np.outer(*sizes))
        self.labelled = tuple(np.array([s.per_class for s in side]) for side in self.sets)
        self.counts = np.sqrt(np.outer(*[np.array([float(s.count) for s in side]) for side in self.sets]))

    def split(self, values: Array) -> tuple[Array, Array]:
        """Return the two parts of the matrix with these orbit values, in orthonormal coordinates."""
        mean, gap = np.zeros(self.roots.shape), np.zeros(self.roots.shape)
        for value, orbit, place in zip(values, self.orbits, self.places, strict=True):
            share = {"all": 1.0, "same": 1 / self.classes, "other": 1 - 1 / self.classes}[orbit.relation]
            mean[place] += share * value
            gap[place] += {"all": 0.0, "same": value, "other": -value}[orbit.relation]
        return mean * self.roots, (gap * self.counts)[np.ix_(*self.labelled)]

    def join(self, constant: Array, zero_sum: Array) -> Array:
        """Return the orbit values of the matrix with these parts."""
        mean, gap = constant / self.roots, np.zeros(self.roots.shape)
        gap[np.ix_(*self.labelled)] = zero_sum / self.counts[np.ix_(*self.labelled)]
        shift = {"all": 0.0, "same": 1 - 1 / self.classes, "other": -1 / self.classes}
        return np.array([mean[p] + shift[o.relation] * gap[p] for o, p in zip(self.orbits, self.places, strict=True)])


def _collapsed(loss: SampledLoss, rate: float) -> tuple[Any, Array, Any]:
    weights = np.array([float(orbit_velocity(o, rate, 1)) for o in loss.orbits])
    return lambda t, v: weights * loss.derivative(v), np.zeros(len(loss.orbits)), lambda v: v


def _factorized(loss: SampledLoss, rate: float) -> tuple[Any, Array, Any]:
    parts = _Parts(loss)
    sizes = np.array([float(o.size) for o in loss.orbits])
    words = {name: [(float(c), word) for word, c in flow.terms.items()] for name, flow in gram_flow(1).items()}
    shapes = [parts.roots.shape, tuple(int(side.sum()) for side in parts.labelled)]
    starts = [
        m
        for rows, columns in shapes
        for m in (np.zeros((rows, columns)), START * np.eye(rows), START * np.eye(columns))
    ]
    ends = np.cumsum([m.size for m in starts])

    def unpack(state: Array) -> list[Array]:
        return [s.reshape(m.shape) for s, m in zip(np.split(state, ends[:-1]), starts, strict=True)]

    def observe(state: Array) -> Array:
        found = unpack(state)
        return parts.join(found[0], found[3])

    def velocity(t: float, state: Array) -> Array:
        found = unpack(state)
        G = parts.split(loss.derivative(parts.join(found[0], found[3])) / sizes)
        moved = []
        for part in (0, 1):
            letters = dict(zip("WAB", found[3 * part : 3 * part + 3], strict=True)) | {"G": G[part]}
            moved += [_evaluate(words[name], letters) for name in "WAB"]
        return rate * np.concatenate([m.ravel() for m in moved])

    return velocity, np.concatenate([m.ravel() for m in starts]), observe


def _evaluate(words: list[tuple[float, Any]], letters: dict[str, Array]) -> Array:
    total: Any = 0.0
    for coefficient, word in words:
        product: Any = coefficient
        for name, transposed in word:
            factor = letters[name].T if transposed else letters[name]
            product = product * factor if isinstance(product, float) else product @ factor
        total = total + product
    return np.asarray(total)


def orbit_training_flow(
    loss: SampledLoss,
    ov: Literal["collapsed", "factorized"],
    epochs: Any,
    *,
    rate: float = 0.01,
    steps: int = 250,
    step: float = 0.005,
    rtol: float = 1e-6,
) -> OrbitRun:
    """Integrate the flow of orbit values for as long as training takes, ``epochs`` of ``steps`` steps of size ``rate``.

    Collapsed circuits start from zero. Factorized ones start from ``U U^T = V V^T = I/3`` and ``W = 0``: the means over
    PyTorch's initialization, an approximation of any one start.

    Parameters: ``loss``; ``ov``; ``epochs`` (T,), increasing, where the flow is wanted; ``rate`` and ``steps`` of
    training; ``step`` of the difference quotient; ``rtol`` of the integration.

    Returns: `OrbitRun`.

    Raises: ``ValueError`` for a factorized circuit with a bias or ``epochs`` that don't increase; `GradlineError` if
    the integration fails.

    Source: arXiv 2608.06776, Fig. 3.

    >>> small = SampledLoss(SequenceData(swapped=True), 0.4, size=50, seed=0, bias=True)
    >>> run = orbit_training_flow(small, "collapsed", [0.0, 20.0])
    >>> bool(run.loss[0] == np.log(50)), bool(run.loss[1] < 1.5)
    (True, True)
    """
    from scipy.integrate import solve_ivp

    if ov == "factorized" and loss.bias:
        raise ValueError("ov='factorized': expected a loss without bias, as in the paper")
    at = np.asarray(epochs, dtype=np.float64)
    if at.ndim != 1 or at.size == 0 or at[0] < 0 or (np.diff(at) <= 0).any():
        raise ValueError(f"epochs={epochs!r}: expected increasing numbers of at least 0")
    velocity, start, observe = (_collapsed if ov == "collapsed" else _factorized)(loss, rate * steps)
    found = solve_ivp(velocity, (0.0, float(at[-1])), start, method="RK45", t_eval=at, rtol=rtol, atol=rtol * 1e-2)
    if not found.success:
        raise GradlineError(f"orbit flow, integration: {found.message}; raise rtol, now {rtol}, or end earlier")
    values = np.array([observe(state) for state in found.y.T])
    own = np.array([loss.losses(v) for v in values])
    beside = replace(loss, alpha=loss.alpha + step)
    moved = np.array([beside.losses(v).mean() for v in values])
    mean = own.mean(1)
    return OrbitRun(at, mean, own.std(1) / np.sqrt(loss.size), (mean - moved) / step, values)
