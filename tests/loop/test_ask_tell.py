"""`sabal.Loop` as in a notebook: the rounds of `run_rounds`, from any kind of data, resumable."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline

import sabal
from sabal.errors import FileError, InputError
from sabal.learners.estimator_learner import EstimatorLearner, logistic
from sabal.loop import Journal, Plan, SimulatedOracle, run_rounds

X, Y = load_digits(return_X_y=True)
X = X / 16
POOL, TEST = slice(0, 300), (X[300:500], Y[300:500])
NAMES = [f"item-{k}" for k in range(300)]


def bayes():
    return GaussianNB(var_smoothing=1e-2)


def play(loop, sizes, labels=Y):
    """Play some rounds, and return the row numbers of every batch."""
    batches = []
    for size in sizes:
        batch = loop.ask(size)
        batches.append(batch.indices.tolist())
        loop.tell(batch.ids, [labels[row] for row in batch])
        loop.fit()
    return batches


def test_five_lines():
    loop = sabal.Loop(bayes(), X[POOL], test=TEST)
    for _ in range(4):
        batch = loop.ask(15)
        loop.tell(batch.ids, Y[batch.indices])
        loop.fit()
    labels = [row["labels"] for row in loop.curve()]
    assert labels == [15, 30, 45, 60]
    accuracy = [row["accuracy"] for row in loop.curve()]
    assert accuracy[-1] > accuracy[0] + 0.1
    assert loop.curve()[0]["changed"] is None
    assert 0 < loop.curve()[-1]["changed"] < 1
    assert repr(loop).startswith("Loop: 60 of 300 items labelled in 4 rounds, accuracy 0.")
    assert np.mean(loop.predict(TEST[0]) == TEST[1]) == accuracy[-1]
    assert loop.model.predict(TEST[0]).tolist() == loop.predict(TEST[0]).tolist()
    assert loop.labels == {int(row): int(Y[row]) for row in loop.labels}


@pytest.mark.parametrize("weighted", [False, True])
def test_the_rounds_are_those_of_a_simulation(tmp_path, weighted):
    """A loop in a notebook and `run_rounds`, which the simulations use, are one loop."""
    plan = Plan(initial=12, batch=5, rounds=3, seed=3, stable_rounds=9, weighted=weighted)
    learner = EstimatorLearner(logistic, X[POOL], classes=10)
    journal = Journal(tmp_path / "run")
    simulated = list(run_rounds(learner, SimulatedOracle(Y[POOL]), plan, journal, test=TEST))
    learner = EstimatorLearner(logistic, X[POOL], classes=10)
    loop = sabal.Loop(learner, random_state=3, stable_rounds=9, weighted=weighted, test=TEST)
    assert play(loop, [12, 5, 5, 5]) == [each.batch.indices.tolist() for each in simulated]
    assert [each.metrics for each in loop.rounds] == [each.metrics for each in simulated]
    assert [each.changed for each in loop.rounds] == [each.changed for each in simulated]


def test_a_loop_goes_on_from_its_folder_at_any_step(tmp_path):
    whole = sabal.Loop(bayes(), X[POOL], ids=NAMES, folder=tmp_path / "whole", test=TEST)
    expected = play(whole, [10, 6, 6])

    def again():
        return sabal.Loop(bayes(), X[POOL], ids=NAMES, folder=tmp_path / "parts", test=TEST)

    for size, rows in zip([10, 6, 6], expected, strict=True):
        batch = again().ask(size)
        assert batch.indices.tolist() == rows
        assert again().ask(99).indices.tolist() == rows, "what is open is asked again"
        half = {NAMES[row]: int(Y[row]) for row in rows[:4]}
        again().tell(half)
        assert again().ask(1).indices.tolist() == rows[4:]
        again().tell([NAMES[row] for row in rows[4:]], Y[rows[4:]])
        again().fit()
    after = again()
    assert [row | TIMES for row in after.curve()] == [row | TIMES for row in whole.curve()]
    assert after.labels == whole.labels
    assert after.predict(TEST[0]).tolist() == whole.predict(TEST[0]).tolist()
    assert after.ask(5).indices.tolist() == whole.ask(5).indices.tolist()


TIMES = {"select_seconds": 0, "train_seconds": 0}


def test_a_loop_in_memory_can_be_saved(tmp_path):
    loop = sabal.Loop(bayes(), X[POOL], test=TEST)
    play(loop, [10, 6])
    opened = loop.ask(7)
    assert loop.save(tmp_path / "new" / "saved") == tmp_path / "new" / "saved"
    other = sabal.Loop(bayes(), X[POOL], folder=tmp_path / "new" / "saved", test=TEST)
    assert other.curve() == loop.curve()
    assert other.ask(1).indices.tolist() == opened.indices.tolist()
    with pytest.raises(FileError, match="which exists"):
        loop.save(tmp_path / "new" / "saved")


def test_a_folder_belongs_to_its_items(tmp_path):
    sabal.Loop(bayes(), X[POOL], folder=tmp_path)
    sabal.Loop(bayes(), X[POOL], folder=tmp_path, strategy="margin")
    with pytest.raises(FileError, match="another ids"):
        sabal.Loop(bayes(), X[POOL], ids=NAMES, folder=tmp_path)
    with pytest.raises(FileError, match="another seed"):
        sabal.Loop(bayes(), X[POOL], folder=tmp_path, random_state=1)


def test_labels_from_the_beginning():
    loop = sabal.Loop(bayes(), X[POOL])
    loop.tell(range(40), Y[:40])
    first = loop.ask(10)
    assert min(first) >= 40, "ask trains on what was told, and never asks for it again"
    assert first.strategy == "sabal"
    assert first.evidence["labeled"] == 40
    assert [row["labels"] for row in loop.curve()] == [40]
    by_query = sabal.query(
        bayes().fit(X[:40], Y[:40]),
        X[40:300],
        10,
        X_labeled=X[:40],
        y_labeled=Y[:40],
        random_state=first.seed,
    )
    assert (40 + by_query.indices).tolist() == first.indices.tolist()


def test_what_cannot_be_labelled_is_never_asked_again_and_what_is_left_out_may_be():
    loop = sabal.Loop(bayes(), X[:30])
    batch = loop.ask(10)
    ids = batch.ids.tolist()
    loop.tell(ids[:4], [None, np.nan, *Y[ids[2:4]]])
    assert len(loop.labels) == 2
    loop.fit()
    asked = [row for rows in play(loop, [10, 16]) for row in rows]
    assert not set(ids[:4]) & set(asked)
    assert set(ids[4:]) <= set(asked)
    assert loop.should_stop()
    assert loop.stop_reason == "every item of the pool is labelled"
    with pytest.raises(InputError, match="none left"):
        loop.ask(1)


def test_a_batch_without_an_answer_stays_open():
    loop = sabal.Loop(bayes(), X[:60])
    play(loop, [10])
    batch = loop.ask(5)
    assert loop.fit() is loop.rounds[-1]
    assert [row["labels"] for row in loop.curve()] == [10]
    assert loop.ask(9).indices.tolist() == batch.indices.tolist()
    loop.tell(batch.ids[:1], [None])
    assert loop.fit().number == 1, "an item that cannot be labelled is an answer"
    assert len(loop.rounds) == 2


def test_the_last_batch_is_what_is_left():
    loop = sabal.Loop(bayes(), X[:30])
    play(loop, [10])
    with pytest.warns(sabal.SabalWarning, match="only 20 items of the 1,000 asked for") as warned:
        assert len(loop.ask(1000)) == 20
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(loop.ask(1000)) == 20, "what is open was warned of before"


def test_rounds_show_what_counts_and_have_the_ids_of_the_caller(tmp_path):
    loop = sabal.Loop(bayes(), X[POOL], ids=NAMES, test=TEST, folder=tmp_path)
    first = play(loop, [10, 5])[0]
    again = sabal.Loop(bayes(), X[POOL], ids=NAMES, test=TEST, folder=tmp_path)
    for rounds in (loop.rounds, again.rounds):
        assert rounds[0].batch.ids.tolist() == [NAMES[row] for row in first]
        assert len(repr(rounds[1])) < 200
    accuracy = f"{loop.rounds[1].metrics['accuracy']:.3f}"
    assert f"Round 1: 5 items by 'sabal', 15 labels, accuracy {accuracy}" in repr(loop.rounds[1])
    assert "of predictions changed" in repr(loop.rounds[1])


def test_stopping():
    loop = sabal.Loop(bayes(), X[POOL], test=TEST, target_accuracy=0.3)
    assert not loop.should_stop()
    play(loop, [60])
    assert loop.should_stop()
    assert "the target 0.3" in loop.stop_reason
    same = np.zeros(300, dtype=int)
    quiet = sabal.Loop(bayes(), X[POOL], stable_rounds=2)
    play(quiet, [10, 5], labels=same)
    assert not quiet.should_stop()
    play(quiet, [5], labels=same)
    assert quiet.should_stop()
    assert "last 2 rounds changed less than 1%" in quiet.stop_reason


def test_callbacks_hear_of_every_new_round(tmp_path):
    heard = []

    def hear(loop, current):
        heard.append((current.number, current.labels, len(loop.rounds)))

    loop = sabal.Loop(bayes(), X[POOL], folder=tmp_path, callbacks=[hear])
    play(loop, [10, 5])
    assert heard == [(0, 10, 1), (1, 15, 2)]
    sabal.Loop(bayes(), X[POOL], folder=tmp_path, callbacks=[hear])
    assert len(heard) == 2, "not of those that are read"


# -- kinds of data and of labels -----------------------------------------------------------------


def test_texts_and_words():
    rng = np.random.default_rng(0)
    topics = rng.integers(0, 2, 80)
    texts = [" ".join(f"w{t}{w}" for w in rng.integers(0, 30, 8)) for t in topics]
    words = np.array(["sport", "news"])[topics]
    loop = sabal.Loop(make_pipeline(TfidfVectorizer(), LogisticRegression()), texts)
    play(loop, [8, 8, 8], labels=words)
    assert set(loop.predict(texts)) == {"sport", "news"}
    assert np.mean(loop.predict(texts) == words) > 0.9
    assert loop.ask(3).evidence["labeled"] == 24


def test_frames_and_their_index():
    frame = pd.DataFrame(X[POOL], index=NAMES)
    loop = sabal.Loop(RandomForestClassifier(10), frame, strategy="margin")
    batch = loop.ask(20)
    assert list(batch.ids) == [NAMES[row] for row in batch]
    loop.tell(batch, Y[batch.indices])
    loop.fit()
    again = sabal.Loop(RandomForestClassifier(10), frame, strategy="margin")
    again.tell(loop.labels)
    assert again.fit().labels == 20
    assert set(loop.ask(5).ids) <= set(NAMES)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_rows(kind):
    dense = sabal.Loop(MultinomialNB(), X[POOL])
    sparse = sabal.Loop(MultinomialNB(), kind(X[POOL]))
    assert play(sparse, [20, 10, 10]) == play(dense, [20, 10, 10])


def test_several_labels_and_numbers():
    several = np.stack([Y % 2, Y >= 5], axis=1).astype(int)
    model = OneVsRestClassifier(LogisticRegression(max_iter=300))
    loop = sabal.Loop(model, X[POOL], test=(TEST[0], several[300:500]))
    play(loop, [20, 10], labels=several)
    assert loop.rounds[-1].batch.evidence["loss"] == "sigmoid"
    assert 0.5 < loop.curve()[-1]["accuracy"] <= 1
    values = X.sum(axis=1)
    loop = sabal.Loop(BayesianRidge(), X[POOL], test=(TEST[0], values[300:500]))
    play(loop, [20, 10, 10], labels=values)
    assert loop.rounds[-1].batch.evidence["loss"] == "squared"
    assert loop.curve()[-1]["r2"] > loop.curve()[0]["r2"]


def test_own_features_and_options():
    own = np.random.default_rng(0).normal(size=(300, 3))
    loop = sabal.Loop(bayes(), X[POOL], features=own, options={"radius": 2.0}, first="typiclust")
    rows = play(loop, [12])[0]
    batch = loop.ask(5)
    left = np.setdiff1d(np.arange(300), rows)
    expected = sabal.select(
        5,
        features=own[left],
        probs=bayes().fit(X[rows], Y[rows]).predict_proba(X[left]),
        labeled_features=own[rows],
        radius=2.0,
        random_state=batch.seed,
    )
    assert left[expected.indices].tolist() == batch.indices.tolist()
    assert loop.rounds[0].batch.strategy == "typiclust"


def test_one_class_so_far():
    same = np.zeros(300, dtype=int)
    loop = sabal.Loop(LogisticRegression(), X[POOL])
    play(loop, [5, 5], labels=same)
    assert loop.predict(X[:3]).tolist() == [0, 0, 0]
    texts = [f"word{k % 5} word{k % 7}" for k in range(40)]
    loop = sabal.Loop(
        make_pipeline(TfidfVectorizer(), LogisticRegression()), texts, strategy="random"
    )
    play(loop, [5, 5], labels=same)
    assert len(loop.labels) == 10


# -- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda loop: loop.fit(), "tell some first"),
        (lambda loop: loop.model, "call fit"),
        (lambda loop: loop.predict(X), "call fit"),
        (lambda loop: loop.ask(0), "at least 1"),
        (lambda loop: loop.ask(2.5), "whole number"),
        (lambda loop: loop.tell([1, 2], [0]), "2 ids and 1 label;"),
        (lambda loop: loop.tell([1, 2]), "2 ids and 0 labels"),
        (lambda loop: loop.tell({1: 0}, [0]), "both"),
        (lambda loop: loop.tell([999], [0]), "ids of the pool"),
        (lambda loop: loop.tell([[1]], [0]), "ids of the pool"),
        (lambda loop: loop.tell([1], [object()]), "words or numbers"),
        (lambda loop: (loop.ask(3), loop.tell({299: 1, 298: 1, 297: 1, 296: 1})), "was not asked"),
    ],
)
def test_mistakes(call, message):
    loop = sabal.Loop(bayes(), X[POOL])
    with pytest.raises(InputError, match=message):
        call(loop)
    assert loop.labels == {}


def test_a_label_is_told_once():
    loop = sabal.Loop(bayes(), X[POOL])
    loop.tell(3, Y[3])
    assert repr(loop) == "Loop: 1 of 300 items labelled in 0 rounds"
    with pytest.raises(InputError, match="has a label already; leave it out"):
        loop.tell(3, Y[3])
    loop.fit()
    with pytest.raises(InputError, match="has a label already"):
        loop.tell(3, Y[3])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sabal.Loop(bayes()), "Loop\\(model, X\\)"),
        (lambda: sabal.Loop("bayes", X), "fit and predict"),
        (lambda: sabal.Loop(GaussianNB, X), "pass GaussianNB\\(\\)"),
        (lambda: sabal.Loop(bayes(), X, ids=[1]), "one entry for each"),
        (lambda: sabal.Loop(bayes(), X, strategy="margn"), "did you mean 'margin'"),
        (lambda: sabal.Loop(bayes(), X, options={"radus": 1}), "did you mean 'radius'"),
        (lambda: sabal.Loop(EstimatorLearner(logistic, X, 10), X), "leave them out"),
        (lambda: sabal.Loop(bayes(), X, seed=1), "did you mean random_state"),
        (lambda: sabal.Loop(bayes(), X, y=Y), "before the first ask"),
        (lambda: sabal.Loop(bayes(), X, X_test=X), "test=\\(X_test, y_test\\)"),
        (lambda: sabal.Loop(bayes(), X, radius=1), "options={'radius': ...}"),
        (lambda: sabal.Loop(bayes(), X, strtegy="margin"), "did you mean 'strategy'"),
        (lambda: sabal.Loop(bayes(), X, random_state=None), "`random_state` as a whole number"),
        (lambda: sabal.Loop(bayes(), X, test=X), "test=\\(X, y\\)"),
        (lambda: sabal.Loop(bayes(), X, test=(X, Y[:1])), "1,797 items and 1 label;"),
        (lambda: sabal.Loop(bayes(), X, target_accuracy=0.9), "leave target_accuracy out"),
        (lambda: sabal.Loop(bayes(), X, min_gain=0.01), "leave min_gain out"),
    ],
)
def test_loops_that_cannot_be(make, message):
    with pytest.raises(sabal.SabalError, match=message):
        make()


def test_a_series_of_labels_has_their_ids():
    frame = pd.DataFrame(np.eye(6), index=list("abcdef"))
    loop = sabal.Loop(GaussianNB(), frame)
    batch = loop.ask(3)
    loop.tell(pd.Series([0, 1, None], index=batch.ids))
    assert loop.labels == {batch.ids[0]: 0, batch.ids[1]: 1}
