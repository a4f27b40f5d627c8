"""Posterior samples of other libraries, axis by axis."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import sabal
from sabal.integrations import log_probs_from

N, K, C = 7, 3, 4


def made(values):
    rng = np.random.default_rng(0)
    logits_NKC = rng.normal(size=(N, K, C))
    probs_NKC = np.exp(logits_NKC) / np.exp(logits_NKC).sum(axis=2, keepdims=True)
    given = {"logits": logits_NKC, "probs": probs_NKC, "log_probs": np.log(probs_NKC)}
    return given[values], np.log(probs_NKC)


@pytest.mark.parametrize("values", ["probs", "log_probs", "logits"])
@pytest.mark.parametrize("axes", ["".join(order) for order in permutations("NKC")])
def test_every_order_of_axes_comes_out_as_ours(axes, values, library):
    given_NKC, wanted_NKC = made(values)
    array = library(np.ascontiguousarray(given_NKC.transpose(["NKC".index(a) for a in axes])))
    found = log_probs_from(array, axes=axes, values=values)
    assert type(found) is type(array)
    np.testing.assert_allclose(np.asarray(found), wanted_NKC, rtol=1e-12)


def test_a_probability_of_zero_stays_one():
    probs = np.array([[[1.0, 0.0]], [[0.5, 0.5]]])
    found = log_probs_from(probs, axes="NKC", values="probs")
    np.testing.assert_array_equal(np.exp(found), probs)


def test_large_logits_do_not_overflow():
    found = log_probs_from([[[1000.0, 0.0]], [[0.0, -1000.0]]], axes="KNC", values="logits")
    np.testing.assert_allclose(found, [[[0.0, -1000.0], [0.0, -1000.0]]], atol=1e-12)


@pytest.mark.parametrize(
    ("axes", "values", "message"),
    [
        ("NCK", "probs", "sum to 1"),
        ("KNC", "log_probs", "negative|sum to 1|at most 0"),
        ("NK", "probs", "letters N"),
        ("NNC", "probs", "letters N"),
        (None, "probs", "letters N"),
        ("NKC", "softmax", "one of probs, log_probs, logits"),
    ],
)
def test_axes_and_values_that_do_not_fit_are_refused(axes, values, message):
    probs_NKC, _ = made("probs")
    with pytest.raises(sabal.SabalError, match=message):
        log_probs_from(probs_NKC, axes=axes, values=values)


def test_an_array_of_other_axes_is_refused():
    with pytest.raises(sabal.SabalError, match="axes N, K, C"):
        log_probs_from(np.ones((3, 2)), axes="NKC", values="probs")


def test_nothing_is_changed_in_place():
    probs, _ = made("probs")
    kept = probs.copy()
    log_probs_from(probs, axes="NKC", values="probs")
    np.testing.assert_array_equal(probs, kept)
