"""Rows drawn by size: the same wherever they are, and right on average."""

from __future__ import annotations

import numpy as np
import pytest

from sabal.core.arrays import top_k
from sabal.pools.sampling import priorities, priority_sample, uniform_numbers


def sample(sizes, count, seed):
    keys = priorities(sizes, 0, seed)
    best = top_k(keys, min(count + 1, sizes.size))
    return priority_sample(best, keys[best], count, seed)


def test_numbers_depend_on_the_row_and_the_seed_alone():
    rows = np.arange(1_000)
    whole = uniform_numbers(rows, 7)
    np.testing.assert_array_equal(whole[300:400], uniform_numbers(rows[300:400], 7))
    assert not np.any(whole == uniform_numbers(rows, 8))
    assert whole.min() > 0
    assert whole.max() < 1


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_numbers_are_uniform_and_unrelated(seed):
    numbers = uniform_numbers(np.arange(200_000), seed)
    counts, _ = np.histogram(numbers, bins=50, range=(0, 1))
    assert np.all(np.abs(counts - 4_000) < 5 * np.sqrt(4_000))
    for lag in (1, 2, 64):
        assert abs(np.corrcoef(numbers[:-lag], numbers[lag:])[0, 1]) < 0.012
    other = uniform_numbers(np.arange(200_000), seed ^ 1)
    assert abs(np.corrcoef(numbers, other)[0, 1]) < 0.012


def test_numbers_are_those_of_splitmix64():
    """The first outputs for the seed 0, as published with the generator."""
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    expected = [((each >> 11) + 0.5) / 2**53 for each in published]
    np.testing.assert_array_equal(uniform_numbers(np.arange(4), 0), expected)


def test_sums_over_any_rows_are_right_on_average():
    sizes = np.random.default_rng(0).random(300) ** 4
    part = np.arange(300) % 3 == 0
    sums = []
    for seed in range(600):
        found = sample(sizes, 40, seed)
        assert found.rows.size == 40
        assert np.all(np.diff(found.rows) > 0)
        sums.append([found.sizes.sum(), found.sizes[part[found.rows]].sum()])
    error = np.std(sums, axis=0) / np.sqrt(len(sums))
    expected = [sizes.sum(), sizes[part].sum()]
    assert np.all(np.abs(np.mean(sums, axis=0) - expected) < 4 * error + 1e-9)


def test_a_pool_no_larger_than_the_sample_is_taken_whole():
    sizes = np.random.default_rng(1).random(30)
    found = sample(sizes, 30, 0)
    np.testing.assert_array_equal(found.rows, np.arange(30))
    np.testing.assert_allclose(found.sizes, sizes)


def test_rows_of_no_size_come_last():
    sizes = np.zeros(50)
    sizes[[3, 30]] = 1.0
    found = sample(sizes, 5, 0)
    assert {3, 30} <= set(found.rows.tolist())
    assert found.sizes.sum() == pytest.approx(2.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_rows_of_a_whole_pool_are_its_largest_rows(seed):
    sizes = np.random.default_rng(seed).integers(0, 8, size=60) / 7.0
    drawn = sample(sizes, 100, seed)
    for count, minimum in ((1, 1), (10, 3), (10, 25), (60, 1)):
        cut = np.sort(sizes)[::-1][max(count, minimum) - 1]
        np.testing.assert_array_equal(drawn.largest(count, minimum), sizes >= cut - 1e-12)


def test_the_largest_rows_of_a_sample_are_those_of_the_pool():
    sizes = np.random.default_rng(0).random(50_000) ** 3
    drawn = sample(sizes, 4_000, 1)
    for share in (0.02, 0.1, 0.5):
        cut = np.quantile(sizes, 1 - share)
        lowest = drawn.own_sizes[drawn.largest(share * sizes.size, 1)].min()
        assert np.mean(sizes >= lowest) == pytest.approx(np.mean(sizes >= cut), rel=0.1)


def test_equal_rows_are_all_among_the_largest():
    drawn = sample(np.full(5_000, 0.3), 700, 0)
    assert drawn.largest(10, 1).all()
