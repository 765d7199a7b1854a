"""Enumeration and sampling of the token task against all sequences written out."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction

import pytest
import torch

from numerics.population import Population, enumerate_population, population_size, sample_batch
from numerics.sizes import Sizes
from theory.errors import GradlineError

TINY = [
    Sizes(2, 2, 2, 2, False, 2, 2, False, 1.0),
    Sizes(2, 2, 2, 2, False, 2, 2, True, 1.0),
    Sizes(3, 1, 1, 2, False, 1, 3, True, 1.0),
    Sizes(2, 3, 1, 1, True, 3, 2, False, 1.0),
]
# Probabilities are one division and one product away from exact: a few units of rounding of numbers below 1.
ROUNDING = 1e-15

Table = dict[tuple[int, tuple[int, ...], int], float]


def table(population: Population) -> Table:
    columns = (population.queries, population.counts, population.labels, population.probabilities)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {(q, tuple(map(int, counts)), y): p for q, counts, y, p in rows}


def all_sequences(sizes: Sizes) -> Table:
    """Every ordered sequence, one by one, with the probability of the definition."""
    found: dict[tuple[int, tuple[int, ...], int], Fraction] = defaultdict(Fraction)
    noise_tokens = range(sizes.informative_tokens, sizes.tokens)
    for y in range(sizes.classes):
        queries = [y * sizes.queries + k if sizes.per_class else k for k in range(sizes.queries)]
        own = range(y * sizes.block, (y + 1) * sizes.block)
        for q in queries:
            for informative in itertools.product(own, repeat=sizes.informative_slots):
                for noise in itertools.product(noise_tokens, repeat=sizes.noise_slots):
                    sequence = informative + noise
                    counts = tuple(sequence.count(token) for token in range(sizes.tokens))
                    found[q, counts, y] += Fraction(
                        1,
                        sizes.classes
                        * sizes.queries
                        * sizes.block**sizes.informative_slots
                        * sizes.noise_tokens**sizes.noise_slots,
                    )
    return {key: float(value) for key, value in found.items()}


def largest_difference(one: Table, other: Table) -> float:
    assert one.keys() == other.keys()
    return max(abs(one[key] - other[key]) for key in one)


@pytest.mark.parametrize("sizes", TINY)
def test_enumeration_is_every_sequence(sizes: Sizes) -> None:
    found = table(enumerate_population(sizes))
    assert largest_difference(found, all_sequences(sizes)) < ROUNDING
    assert len(found) == population_size(sizes)


def test_twin_equal_weights_of_multisets_are_wrong() -> None:
    found = table(enumerate_population(TINY[0]))
    equal = dict.fromkeys(found, 1 / len(found))
    assert largest_difference(equal, all_sequences(TINY[0])) > 1e-3


@pytest.mark.parametrize("sizes", [*TINY, Sizes(4, 3, 2, 3, False, 3, 3, True, 1.0)])
def test_probabilities_sum_to_one_and_counts_to_slots(sizes: Sizes) -> None:
    population = enumerate_population(sizes)
    rows = len(population.labels)
    # Rounding of a sum of positive terms: below half a unit per term.
    assert abs(population.probabilities.sum().item() - 1) < rows * 1.2e-16
    informative = population.counts[:, : sizes.informative_tokens].sum(dim=1)
    assert (informative == sizes.informative_slots).all()
    assert (population.counts.sum(dim=1) == sizes.informative_slots + sizes.noise_slots).all()
    assert len(table(population)) == rows


def test_large_population_is_refused_with_count_and_limit() -> None:
    large = Sizes(20, 50, 50, 1, True, 5, 50, False, 1.0)
    with pytest.raises(GradlineError, match=rf"{population_size(large)} .*1001 tokens.*limit of 5000000"):
        enumerate_population(large)
    with pytest.raises(GradlineError, match="limit of 10"):
        enumerate_population(TINY[0], limit=10)


def deviations(sizes: Sizes, population: Population, count: int) -> float:
    """Largest deviation of sampled frequencies from the population, in standard errors."""
    batch = sample_batch(sizes, count, torch.Generator().manual_seed(1))
    counts = torch.nn.functional.one_hot(batch.tokens, sizes.tokens).sum(dim=1)
    seen: dict[tuple[int, tuple[int, ...], int], int] = defaultdict(int)
    for q, row, y in zip(batch.queries.tolist(), counts.tolist(), batch.labels.tolist(), strict=True):
        seen[q, tuple(row), y] += 1
    expected = table(population)
    assert seen.keys() <= expected.keys()
    return max(abs(seen[key] / count - p) / (p * (1 - p) / count) ** 0.5 for key, p in expected.items())


@pytest.mark.parametrize("sizes", TINY)
def test_samples_follow_the_population(sizes: Sizes) -> None:
    # 5 standard errors: a chance below 1e-6 per row for fewer than 100 rows, and the seed is fixed.
    assert deviations(sizes, enumerate_population(sizes), 20_000) < 5


def test_twin_samples_do_not_follow_another_population() -> None:
    population = enumerate_population(TINY[0])
    rows = len(population.labels)
    flat = torch.full((rows,), 1 / rows, dtype=torch.float64)
    wrong = Population(population.queries, population.counts, population.labels, flat)
    assert deviations(TINY[0], wrong, 20_000) > 10


def test_samples_of_a_large_task() -> None:
    large = Sizes(20, 50, 50, 7, False, 5, 50, True, 1.0)
    batch = sample_batch(large, 100, torch.Generator().manual_seed(0))
    assert batch.tokens.shape == (100, 55)
    assert (batch.tokens[:, :5] // 50 == batch.labels[:, None]).all()
    assert (batch.tokens[:, 5:] >= 1000).all()
    assert (batch.tokens < 1007).all()
    assert (batch.queries // 50 == batch.labels).all()


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_bad_batch_size(size: int) -> None:
    with pytest.raises(ValueError, match=r"batch_size=.*at least 1"):
        sample_batch(TINY[0], size)
