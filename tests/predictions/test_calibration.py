"""Label distributions: temperatures that are recovered, found by cross-validation, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sabal
from makers import make_pool, softmax


def labels_at(logits, temperature, rng):
    """Labels drawn from softmax(logits / temperature)."""
    probs = softmax(logits / temperature)
    return (probs.cumsum(axis=1) > rng.random((len(probs), 1))).argmax(axis=1)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5, 8.0])
def test_a_temperature_is_recovered_within_two_percent(temperature, library):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(100_000, 5)) * 8
    labels = labels_at(logits, temperature, rng)
    found = sabal.fit_temperature(library(logits), library(labels))
    assert found == pytest.approx(temperature, rel=0.02)


def test_the_fitted_temperature_is_the_minimum_of_the_likelihood():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(300, 4)) * 3
    labels = labels_at(logits, 2.0, rng)

    def nll(t):
        return -np.mean(np.log(softmax(logits / t)[np.arange(300), labels]))

    found = sabal.fit_temperature(logits, labels)
    assert nll(found) <= min(nll(found * f) for f in (0.95, 0.99, 1.01, 1.05))
    assert nll(found) <= min(nll(t) for t in np.geomspace(0.02, 50, 60)) + 1e-9


def test_separable_logits_get_a_temperature_that_leaves_no_doubt():
    logits = np.eye(3)[[0, 1, 2, 0]] * 5
    found = sabal.fit_temperature(logits, [0, 1, 2, 0])
    assert np.all(sabal.apply_temperature(logits, found).max(axis=1) > 1 - 1e-6)


def test_apply_temperature_and_predictive_mean_are_their_formulas(library, dtype):
    pool = make_pool()
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(
        np.asarray(sabal.apply_temperature(library(pool.logits.astype(dtype)), 2.0)),
        softmax(pool.logits / 2.0),
        atol=tolerance,
    )
    np.testing.assert_allclose(
        np.asarray(sabal.predictive_mean(library(pool.log_probs.astype(dtype)))),
        np.exp(pool.log_probs).mean(axis=1),
        atol=tolerance,
    )


def test_huge_logits_do_not_overflow():
    q = sabal.apply_temperature([[1e30, 0.0], [-1e30, 0.0]], 0.01)
    np.testing.assert_array_equal(q, [[1.0, 0.0], [0.0, 1.0]])


def test_cross_validation_finds_that_an_overconfident_model_needs_cooling():
    X, y = load_digits(return_X_y=True)
    X, y = X[:120], y[:120]
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e4, max_iter=2000))
    temperature = sabal.cross_validated_temperature(model, X, y, random_state=0)
    assert temperature > 1.1
    again = sabal.cross_validated_temperature(model, X, y, random_state=0)
    assert temperature == again


@pytest.mark.parametrize("y", [[0, 0, 0, 1, 1, 2], ["a", "b", "a", "b", "a", "c"]])
def test_cross_validation_works_with_a_class_of_one_item(y):
    X = np.random.default_rng(0).normal(size=(6, 3))
    assert sabal.cross_validated_temperature(LogisticRegression(), X, y) > 0


def test_held_out_rows_of_a_class_that_the_clone_has_not_seen_are_ignored():
    """They have probability zero at every temperature, and would drive it to its bound."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    y[7] = 2
    assert sabal.cross_validated_temperature(LogisticRegression(), X, y, random_state=0) < 1


def test_cross_validation_refuses_one_class():
    with pytest.raises(sabal.SabalError, match="2 classes"):
        sabal.cross_validated_temperature(LogisticRegression(), np.ones((6, 2)), np.zeros(6))


@pytest.mark.parametrize(
    "labels", [[0, 1, 3], [0, -1, 1], [0, 1], [0.5, 1, 0], np.eye(3), ["a", "b", "c"]]
)
def test_unusable_labels_are_refused(labels):
    with pytest.raises(sabal.SabalError):
        sabal.fit_temperature(np.zeros((3, 3)), labels)


@pytest.mark.parametrize("temperature", [0, -1, np.nan, np.inf, "2", True])
def test_unusable_temperatures_are_refused(temperature):
    with pytest.raises(sabal.SabalError, match="temperature"):
        sabal.apply_temperature(np.zeros((3, 3)), temperature)
