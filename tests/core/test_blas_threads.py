"""Work in threads, each with one thread of BLAS."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import sabal
from sabal.core import arrays
from sabal.core.threads import in_threads
from sabal.strategies import greedy_cover
from sabal.strategies.greedy_cover import Kernel, WholeRows


def blas_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.mark.parametrize("count", [1, 2])
def test_every_piece_is_done_with_one_thread_of_blas(count):
    seen, inside, names = [], [], set()

    def work(piece):
        seen.append(piece)
        inside.append(blas_threads())
        names.add(threading.current_thread() is threading.main_thread())

    with threadpool_limits(count, user_api="blas"):
        in_threads(work, list(range(20)))
        assert blas_threads() == {count}
    assert sorted(seen) == list(range(20))
    assert inside == [{1}] * 20
    assert names == {count == 1}


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_in_a_thread_is_raised(count):
    def work(piece):
        raise ValueError(piece)

    with threadpool_limits(count, user_api="blas"), pytest.raises(ValueError, match="3"):
        in_threads(work, [3, 3])


def test_the_kernel_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(greedy_cover, "BLOCK", 64)
    points = np.random.default_rng(0).normal(size=(500, 40)).astype(np.float32) / 5
    kept = []
    for count in (1, 2):
        with threadpool_limits(count, user_api="blas"):
            kept.append(WholeRows(Kernel(points), *np.zeros((2, 500)))._kept_MM)
    np.testing.assert_array_equal(*kept)


def test_kcenter_does_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(9_000, 24)).astype(np.float32)
    labeled = rng.normal(size=(30, 24)).astype(np.float32)
    found = []
    for count in (1, 2):
        with threadpool_limits(count):
            found.append(
                sabal.select(
                    20,
                    strategy="kcenter",
                    features=features,
                    labeled_features=labeled,
                    random_state=0,
                )
            )
    np.testing.assert_array_equal(found[0].indices, found[1].indices)
    np.testing.assert_array_equal(found[0].scores, found[1].scores)


@pytest.mark.parametrize("row", [0, 40, 99])
@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_numbers_that_are_not_finite_are_found_in_threads(monkeypatch, row, value):
    monkeypatch.setattr(arrays, "THREADED_BYTES", 0)
    tens = [slice(start, start + 10) for start in range(0, 100, 10)]
    monkeypatch.setattr(arrays, "row_chunks", lambda rows, bytes_per_row: tens)
    monkeypatch.setattr(arrays, "blas_threads", lambda: 3)
    values = np.full((100, 10), 3e38, dtype=np.float32)
    values[row, 7] = value
    assert arrays.all_finite(values) == np.isfinite(value)
