"""The algebra of block matrices with symbolic sizes, spanned by identity and all-ones blocks.

A block between index sets that both carry a class is ``(s I_M + t J_M) (x) J``, with ``I_M`` the identity and
``J_M`` the all-ones matrix over classes and ``J`` all ones inside a pair of classes; any other block is ``t
J``. Products, transposes and spectra of such matrices stay closed form in the sizes, because the space splits
into vectors constant over classes and vectors that sum to zero over classes (multiplicity ``M - 1``).

Source: arXiv 2608.06776, directions of the two circuits; claim `isometry-criterion`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from sympy import Integer, Matrix, factor

from theory.orbits import IndexSet

__all__ = ["Block", "BlockMatrix"]


@dataclass(frozen=True)
class Block:
    """Coefficients of ``I_M (x) J`` (``same``) and of ``J_M (x) J`` or ``J`` (``ones``)."""

    same: Any
    ones: Any


@dataclass(frozen=True)
class BlockMatrix:
    """A matrix of blocks over row and column index sets, for a symbolic number of ``classes``."""

    classes: Any
    rows: tuple[IndexSet, ...]
    columns: tuple[IndexSet, ...]
    blocks: tuple[tuple[Block, ...], ...]

    def __post_init__(self) -> None:
        for index, row in zip(self.rows, self.blocks, strict=True):
            for column, block in zip(self.columns, row, strict=True):
                if block.same != 0 and not (index.per_class and column.per_class):
                    raise ValueError(
                        f"block {index.name} x {column.name}: an identity over classes needs classes on both sides"
                    )

    @property
    def T(self) -> BlockMatrix:
        """The transpose."""
        return BlockMatrix(self.classes, self.columns, self.rows, tuple(zip(*self.blocks, strict=True)))

    def _size(self, index: IndexSet) -> Any:
        return index.count * (self.classes if index.per_class else 1)

    def __matmul__(self, other: BlockMatrix) -> BlockMatrix:
        """The product; the inner index sets must be the same."""
        if self.columns != other.rows:
            raise ValueError(f"product of blocks: columns {self.columns} do not match rows {other.rows}")
        blocks = []
        for row in self.blocks:
            line = []
            for column in zip(*other.blocks, strict=True):
                same = ones = Integer(0)
                for inner, x, y in zip(self.columns, row, column, strict=True):
                    repeats = self.classes if inner.per_class else 1
                    same += inner.count * x.same * y.same
                    ones += inner.count * (x.same * y.ones + x.ones * y.same + repeats * x.ones * y.ones)
                line.append(Block(factor(same), factor(ones)))
            blocks.append(tuple(line))
        return BlockMatrix(self.classes, self.rows, other.columns, tuple(blocks))

    def map(self, function: Any) -> BlockMatrix:
        """Apply a function to each coefficient."""
        blocks = tuple(tuple(Block(function(x.same), function(x.ones)) for x in row) for row in self.blocks)
        return BlockMatrix(self.classes, self.rows, self.columns, blocks)

    def __rmul__(self, scalar: Any) -> BlockMatrix:
        return self.map(lambda c: factor(scalar * c))

    def __sub__(self, other: BlockMatrix) -> BlockMatrix:
        if (self.rows, self.columns) != (other.rows, other.columns):
            raise ValueError("difference of blocks: index sets do not match")
        return BlockMatrix(
            self.classes,
            self.rows,
            self.columns,
            tuple(
                tuple(Block(factor(x.same - y.same), factor(x.ones - y.ones)) for x, y in zip(r, s, strict=True))
                for r, s in zip(self.blocks, other.blocks, strict=True)
            ),
        )

    def coefficients(self) -> tuple[Any, ...]:
        """The coefficients of all blocks; the matrix vanishes for all sizes iff they do."""
        return tuple(c for row in self.blocks for x in row for c in (x.same, x.ones))

    def is_zero(self) -> bool:
        """Whether every coefficient is the zero rational function; exact."""
        return all(factor(c) == 0 for c in self.coefficients())

    def frobenius2(self) -> Any:
        """The squared Frobenius norm ``tr(A A^T)``."""
        gram = self @ self.T
        total = Integer(0)
        for i, index in enumerate(self.rows):
            total += self._size(index) * (gram.blocks[i][i].same + gram.blocks[i][i].ones)
        return factor(total)

    def _quotients(self) -> list[tuple[Matrix, Any]]:
        """Matrices of a square block matrix on class-constant and on class-zero-sum vectors, with multiplicities."""
        constant = Matrix(
            len(self.rows),
            len(self.rows),
            lambda i, j: (
                self.rows[j].count
                * (self.blocks[i][j].same + (self.classes if self.rows[j].per_class else 1) * self.blocks[i][j].ones)
            ),
        )
        labelled = [i for i, index in enumerate(self.rows) if index.per_class]
        parts = [(constant, Integer(1))]
        if labelled:
            zero_sum = Matrix(
                len(labelled),
                len(labelled),
                [self.rows[j].count * self.blocks[i][j].same for i, j in product(labelled, labelled)],
            )
            parts.append((zero_sum, self.classes - 1))
        return parts

    def singular_values2(self) -> tuple[tuple[Any, Any], ...]:
        """The squares of the non-zero singular values with their multiplicities, in closed form.

        Values that are equal as functions of the sizes are merged; zeros are left out.
        """
        gram = self @ self.T if len(self.rows) <= len(self.columns) else self.T @ self
        found: dict[Any, Any] = {}
        for part, multiplicity in gram._quotients():
            values = {part[0, 0]: 1} if part.shape == (1, 1) else part.eigenvals()
            for value, times in values.items():
                square = factor(value)
                if square != 0:
                    found[square] = found.get(square, Integer(0)) + times * multiplicity
        return tuple(found.items())

    def explicit(self) -> Matrix:
        """The matrix written out; the number of classes and every count must be integers."""
        sides = []
        for indices in (self.rows, self.columns):
            side = []
            for position, index in enumerate(indices):
                for label in range(int(self.classes)) if index.per_class else (None,):
                    side += [(position, label)] * int(index.count)
            sides.append(side)

        def entry(i: int, j: int) -> Any:
            (r, x), (c, y) = sides[0][i], sides[1][j]
            block = self.blocks[r][c]
            return block.ones + (block.same if x is not None and x == y else 0)

        return Matrix(len(sides[0]), len(sides[1]), entry)
