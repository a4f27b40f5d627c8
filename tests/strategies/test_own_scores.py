"""Scores of one's own take the place of the uncertainty that a strategy would compute."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import reference_coverage
import sabal
from makers import make_pool
from sabal.errors import InputError
from sabal.predictions.uncertainty import margin
from sabal.strategies import strategies

N, B = 80, 7
LIBRARIES = {"numpy": np.asarray, "torch": torch.as_tensor, "list": lambda x: x.tolist()}


def given(seed=3):
    return np.random.default_rng(seed).random(N) ** 4


@pytest.mark.parametrize("strategy", ["sabal", "cluster-margin", "uncertainty-herding"])
def test_the_margin_as_scores_gives_the_batch_of_the_margin(strategy):
    pool = make_pool(n=N)
    options = {"features": pool.features, "strategy": strategy, "random_state": 0}
    labeled = {"labeled_features": make_pool(n=5, seed=9).features}
    by_model = sabal.select(B, probs=pool.probs, **options, **labeled)
    by_scores = sabal.select(B, scores=margin(pool.probs), **options, **labeled)
    np.testing.assert_array_equal(by_scores.indices, by_model.indices)
    np.testing.assert_allclose(by_scores.weights, by_model.weights)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("strategy", ["margin", "entropy", "least-confidence"])
def test_strategies_that_rank_rank_by_the_scores(strategy, library):
    scores = given()
    convert = LIBRARIES[library]
    batch = sabal.select(B, scores=convert(scores), strategy=strategy)
    assert batch.indices.tolist() == np.argsort(-scores)[:B].tolist()
    np.testing.assert_allclose(batch.scores, np.sort(scores)[::-1][:B])
    # What the model says is another matter, also of another loss.
    pool = make_pool(n=N)
    both = sabal.select(
        B, scores=convert(scores), probs=convert(pool.probs), strategy=strategy, ids=range(N)
    )
    assert both.indices.tolist() == batch.indices.tolist()


def test_power_bald_draws_by_the_scores():
    scores = np.zeros(N)
    scores[[3, 5, 8, 13, 21, 34, 55]] = 1.0
    batch = sabal.select(B, scores=scores, strategy="power-bald", random_state=0)
    assert sorted(batch) == [3, 5, 8, 13, 21, 34, 55]
    assert batch.evidence["score"] == "given"


def test_items_without_score_are_not_covered():
    features = np.concatenate([np.zeros((40, 2)), np.full((40, 2), 9.0)])
    features += np.random.default_rng(0).normal(size=features.shape)
    scores = np.repeat([0.0, 1.0], 40)
    batch = sabal.select(B, features=features, scores=scores, random_state=0)
    assert min(batch) >= 40


@pytest.mark.parametrize("seed", range(5))
def test_the_covered_mass_is_that_of_the_slow_form(seed):
    pool, scores = make_pool(n=N, seed=seed), given(seed)
    batch = sabal.select(B, features=pool.features, scores=scores, random_state=0)
    points, _ = reference_coverage.on_sphere(pool.features)
    share = reference_coverage_share(points, scores, batch)
    assert batch.evidence["objective"] == pytest.approx(1 - share)


def reference_coverage_share(points, scores, batch):
    kernel = reference_coverage.kernel(points, points, batch.evidence["radius"])
    return float((scores * kernel[:, batch.indices].max(axis=1)).sum() / scores.sum())


def test_an_option_that_names_an_uncertainty_is_obeyed():
    pool = make_pool(n=N)
    arrays = {"features": pool.features, "probs": pool.probs, "random_state": 0}
    asked = sabal.select(B, **arrays, scores=given(), uncertainty="entropy")
    plain = sabal.select(B, **arrays, uncertainty="entropy")
    assert asked.indices.tolist() == plain.indices.tolist()


def test_kernel_atoms_weigh_by_the_scores():
    pool = make_pool(n=N)
    options = {"features": pool.features, "strategy": "sabal-kernel", "random_state": 0}
    by_model = sabal.select(B, probs=pool.probs, **options)
    by_scores = sabal.select(B, scores=margin(pool.probs), **options)
    np.testing.assert_array_equal(by_scores.indices, by_model.indices)


@pytest.mark.parametrize("name", sorted(strategies()))
def test_every_strategy_takes_scores_beside_the_rest(name):
    pool = make_pool(n=N)
    batch = sabal.select(B, **pool.kwargs(), scores=given(), strategy=name, random_state=0)
    assert len(set(batch)) == B


@pytest.mark.parametrize("scores", [np.zeros(N), np.ones(N), np.eye(1, N, 3)[0] * 1e99])
def test_degenerate_scores(scores):
    pool = make_pool(n=N)
    for strategy in ("sabal", "margin", "power-bald"):
        batch = sabal.select(
            B, features=pool.features, scores=scores, strategy=strategy, random_state=0
        )
        assert len(set(batch)) == B
        assert np.isfinite(batch.weights).all()


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.full(N, -1.0), "1 - confidence"),
        (np.full(N, np.nan), "NaN|finite"),
        (np.full(N, 1e200), "1e\\+100"),
        (np.ones((N, 2)), "1 axes"),
        (np.ones(N - 1), "features with 80 rows, scores with 79"),
        (np.array(["a"] * N), "real numbers"),
    ],
)
def test_scores_that_are_none(scores, message):
    with pytest.raises(InputError, match=message):
        sabal.select(B, features=make_pool(n=N).features, scores=scores)


def test_scores_alone_have_nothing_to_cover():
    with pytest.raises(InputError, match="features"):
        sabal.select(B, scores=given())


@pytest.mark.parametrize("memory", [None, "300KB"])
def test_scores_in_files_and_tables(memory, tmp_path):
    pool, scores = make_pool(n=6_000, dimensions=8), np.random.default_rng(0).random(6_000)
    expected = sabal.select(B, features=pool.features, scores=scores, random_state=0)
    np.savez(tmp_path / "pool.npz", features=pool.features, scores=scores)
    frame = pd.DataFrame({"features": list(pool.features), "doubt": scores})
    frame.to_parquet(tmp_path / "pool.parquet")
    columns = {"scores": "doubt"}
    found = [
        sabal.select_pool(tmp_path / "pool.npz", B, memory=memory, random_state=0),
        sabal.select_pool(
            tmp_path / "pool.parquet", B, memory=memory, columns=columns, random_state=0
        ),
        sabal.select_pool(frame, B, memory=memory, columns=columns, random_state=0),
    ]
    for batch in found:
        np.testing.assert_array_equal(batch.indices, expected.indices)
