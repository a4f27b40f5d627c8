"""Uncertainty scores against per-item loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from makers import make_pool, softmax
from sabal.uncertainty import entropy, least_confidence, margin, mutual_information


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
