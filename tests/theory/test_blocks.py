"""The block algebra against explicit matrices with random sizes and coefficients."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from sympy import Integer, Matrix, Rational, Symbol, ones, sqrt

from theory.blocks import Block, BlockMatrix
from theory.orbits import IndexSet
from theory.symbols import M, b

SEEDS = range(12)
# Entries are rationals below 10 in matrices of at most 30 rows: double precision keeps squares of singular values to
# 1e-12 of the largest, and none of the exact ones is that small without being zero.
SINGULAR_TOLERANCE = 1e-9


def random_set(draw: random.Random, name: str) -> IndexSet:
    return IndexSet(name, Integer(draw.randint(1, 3)), draw.random() < 0.6)


def random_blocks(
    draw: random.Random, classes: Any, rows: tuple[IndexSet, ...], columns: tuple[IndexSet, ...]
) -> BlockMatrix:
    def block(row: IndexSet, column: IndexSet) -> Block:
        same = Rational(draw.randint(-6, 6), draw.randint(1, 4)) if row.per_class and column.per_class else Integer(0)
        return Block(same, Rational(draw.randint(-6, 6), draw.randint(1, 4)))

    return BlockMatrix(classes, rows, columns, tuple(tuple(block(r, c) for c in columns) for r in rows))


def random_sets(draw: random.Random, prefix: str, number: int) -> tuple[IndexSet, ...]:
    return tuple(random_set(draw, f"{prefix}{i}") for i in range(number))


@pytest.mark.parametrize("seed", SEEDS)
def test_algebra_against_explicit_matrices(seed: int) -> None:
    draw = random.Random(seed)
    classes = Integer(draw.randint(2, 4))
    rows, inner, columns = (random_sets(draw, p, draw.randint(1, 3)) for p in "ric")
    left, other = (random_blocks(draw, classes, rows, inner) for _ in range(2))
    right = random_blocks(draw, classes, inner, columns)
    assert (left @ right).explicit() == left.explicit() * right.explicit()
    assert left.T.explicit() == left.explicit().T
    assert (left.T.T - left).is_zero()
    assert (left - other).explicit() == left.explicit() - other.explicit()
    assert (Rational(3, 7) * left).explicit() == Rational(3, 7) * left.explicit()
    assert left.frobenius2() == sum(x**2 for x in left.explicit())
    assert (left - left).is_zero()
    assert left.is_zero() == (left.explicit() == 0 * left.explicit())
    assert (left @ left.T @ left).explicit() == left.explicit() * left.explicit().T * left.explicit()


@pytest.mark.parametrize("seed", range(20))
def test_singular_values_against_svd(seed: int) -> None:
    draw = random.Random(100 + seed)
    classes = Integer(draw.randint(2, 4))
    rows, columns = random_sets(draw, "r", draw.randint(1, 2)), random_sets(draw, "c", draw.randint(1, 3))
    matrix = random_blocks(draw, classes, rows, columns)
    closed = sorted(float(v) for v, times in matrix.singular_values2() for _ in range(int(times)))
    dense = np.array(matrix.explicit().tolist(), dtype=float)
    numeric = np.sort(np.linalg.svd(dense, compute_uv=False) ** 2)
    scale = max(1.0, float(numeric[-1]))
    numeric = numeric[numeric > SINGULAR_TOLERANCE * scale]
    assert len(closed) == len(numeric)
    assert np.allclose(closed, numeric, rtol=0, atol=SINGULAR_TOLERANCE * scale)


def test_svd_comparison_sees_a_wrong_multiplicity() -> None:
    """Twin: centering over four classes has rank three; the count of classes is wrong by one."""
    classes = IndexSet("outputs", Integer(1), True)
    centering = BlockMatrix(Integer(4), (classes,), (classes,), ((Block(Integer(1), Rational(-1, 4)),),))
    assert centering.singular_values2() == ((Integer(1), Integer(3)),)
    assert np.linalg.matrix_rank(np.array(centering.explicit().tolist(), dtype=float)) == 3
    shifted = BlockMatrix(Integer(4), (classes,), (classes,), ((Block(Integer(1), Rational(-1, 3)),),))
    assert dict(shifted.singular_values2()) == {Integer(1): Integer(3), Rational(1, 9): Integer(1)}


def test_equal_singular_values_are_merged_and_zeros_left_out() -> None:
    index = IndexSet("tokens", b, True)
    identity = BlockMatrix(M, (index,), (index,), ((Block(Integer(1), Integer(0)),),))
    assert identity.singular_values2() == ((b**2, M),)
    assert identity.frobenius2() == M * b**2
    zero = BlockMatrix(M, (index,), (index,), ((Block(Integer(0), Integer(0)),),))
    assert zero.singular_values2() == ()
    assert zero.is_zero()
    assert not identity.is_zero()


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("count", [1, 4])
def test_symbolic_results_specialize(classes: int, count: int) -> None:
    """What is derived for symbolic sizes holds when the sizes are put in."""
    labelled, plain = IndexSet("labelled", b, True), IndexSet("plain", Integer(2), False)
    x, y, z = (Symbol(name, real=True) for name in "xyz")
    symbolic = BlockMatrix(M, (labelled,), (labelled, plain), ((Block(x, y), Block(Integer(0), z)),))
    values = {M: Integer(classes), b: Integer(count), x: Rational(2, 3), y: Rational(-1, 5), z: Rational(3, 2)}

    def put(matrix: BlockMatrix) -> BlockMatrix:
        def sets(indices: tuple[IndexSet, ...]) -> tuple[IndexSet, ...]:
            return tuple(IndexSet(i.name, i.count.xreplace(values), i.per_class) for i in indices)

        filled = matrix.map(lambda c: c.xreplace(values))
        return BlockMatrix(Integer(classes), sets(matrix.rows), sets(matrix.columns), filled.blocks)

    concrete = put(symbolic)
    gram = symbolic @ symbolic.T
    assert put(gram).explicit() == concrete.explicit() * concrete.explicit().T
    assert symbolic.frobenius2().xreplace(values) == concrete.frobenius2()
    spectrum: Counter[Any] = Counter()
    for value, times in symbolic.singular_values2():
        spectrum[value.xreplace(values)] += int(times.xreplace(values))
    assert spectrum == Counter({v: int(times) for v, times in concrete.singular_values2()})


def test_two_row_sets_with_irrational_spectrum() -> None:
    first, second = IndexSet("a", Integer(1), False), IndexSet("b", Integer(1), False)
    one = Block(Integer(0), Integer(1))
    matrix = BlockMatrix(
        Integer(3),
        (first, second),
        (first, second),
        ((one, one), (one, Block(Integer(0), Integer(0)))),
    )
    assert matrix.explicit() == Matrix([[1, 1], [1, 0]])
    golden = ((1 + sqrt(5)) / 2) ** 2
    values = [v for v, _ in matrix.singular_values2()]
    assert sorted(float(v) for v in values) == pytest.approx([1 / float(golden), float(golden)], abs=1e-12)


def test_mismatched_sets_are_refused() -> None:
    one, two = IndexSet("a", Integer(1), True), IndexSet("b", Integer(1), True)
    a = BlockMatrix(M, (one,), (two,), ((Block(Integer(1), Integer(0)),),))
    with pytest.raises(ValueError, match="product of blocks"):
        a @ a
    with pytest.raises(ValueError, match="difference of blocks"):
        a - a.T
    assert (a @ a.T).rows == (one,)


def test_all_ones_block_is_all_ones() -> None:
    rows, columns = IndexSet("r", Integer(2), True), IndexSet("c", Integer(3), False)
    matrix = BlockMatrix(Integer(2), (rows,), (columns,), ((Block(Integer(0), Integer(1)),),))
    assert matrix.explicit() == ones(4, 3)
    assert matrix.singular_values2() == ((Integer(12), Integer(1)),)
