"""Uncertainty scores against per-item loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import reference
from makers import make_pool, softmax
from sabal.core.arrays import top_k
from sabal.predictions.uncertainty import (
    entropy,
    least_confidence,
    margin,
    most_informative,
    mutual_information,
)


def test_scores_are_their_formulas(library, dtype):
    pool = make_pool()
    probs, log_probs = library(pool.probs.astype(dtype)), library(pool.log_probs.astype(dtype))
    close = {"atol": 1e-5 if dtype == "float32" else 1e-12}
    np.testing.assert_allclose(margin(probs), [reference.margin(p) for p in pool.probs], **close)
    np.testing.assert_allclose(entropy(probs), [reference.entropy(p) for p in pool.probs], **close)
    np.testing.assert_allclose(least_confidence(probs), 1 - pool.probs.max(axis=1), **close)
    expected = [reference.mutual_information(item) for item in pool.log_probs]
    np.testing.assert_allclose(mutual_information(log_probs), expected, **close)


@given(st.lists(st.lists(st.floats(-30, 30), min_size=3, max_size=3), min_size=1, max_size=8))
def test_scores_stay_within_their_range(rows):
    probs = softmax(np.array(rows))
    for score, top in ((margin, 1.0), (entropy, np.log(3)), (least_confidence, 2 / 3)):
        values = score(probs)
        assert np.all(values >= 0)
        assert np.all(values <= top + 1e-9)


@pytest.mark.parametrize("score", [margin, entropy, least_confidence])
def test_one_hot_is_certain_and_one_class_is_no_question(score):
    np.testing.assert_allclose(score(np.eye(4)), 0.0)
    np.testing.assert_allclose(score(np.ones((3, 1))), 0.0)


def test_mutual_information_of_one_sample_is_zero():
    log_probs = make_pool(samples=1).log_probs
    np.testing.assert_allclose(mutual_information(log_probs), 0.0, atol=1e-12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 40),
    samples=st.integers(1, 12),
    classes=st.integers(2, 12),
    spread=st.sampled_from([0.0, 1e-4, 1.0, 30.0, 300.0]),
    share=st.floats(0.01, 1.0),
)
def test_the_most_informative_items_are_those_of_a_full_ranking(
    seed, n, samples, classes, spread, share, library
):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 1, classes)) + spread * rng.normal(size=(n, samples, classes))
    logits[n // 2 :] = logits[: n - n // 2]  # copies, so that there are ties
    log_probs = (logits - logsumexp(logits, axis=2, keepdims=True)).astype(np.float32)
    k = max(1, int(share * n))
    items, information = most_informative(library(log_probs), k, rank=lambda score: score)
    exact_N = mutual_information(log_probs)
    assert items[top_k(information, k)].tolist() == top_k(exact_N, k).tolist()
    np.testing.assert_allclose(information, exact_N[items], rtol=1e-12, atol=1e-15)


def test_single_precision_leaves_few_items_to_compute_again(library):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(5_000, 8, 10))
    log_probs = (logits - logsumexp(logits, axis=2, keepdims=True)).astype(np.float32)
    items, _ = most_informative(library(log_probs), 50, rank=lambda score: score)
    assert 50 <= items.size <= 60
