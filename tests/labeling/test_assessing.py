"""The advice when to stop, on digits that are labelled truly: it decides within the budget."""

from __future__ import annotations

import numpy as np
import pytest

from labeling_digits import X, Y, digits_project, label_all
from sabal.labeling.assessing import assess, spread
from sabal.labeling.engine import Engine
from sabal.labeling.stop_advice import stop_advice
from sabal.labeling.store.records import TrainingLabel
from sabal.learners.linear import LinearLearner

NAMES = [str(k) for k in range(10)]


def test_the_advice_decides_within_the_default_budget(tmp_path):
    given = {"initial": 20, "batch": 60, "budget": 500, "check_share": 0.1, "seed": 0}
    with digits_project(tmp_path, items=1200, **given) as project:
        engine, verdicts = Engine(project), []
        while not project.store.status().finished:
            while engine.step():
                pass
            verdicts.append(stop_advice(project.store).verdict)
            label_all(project.store)
        while engine.step():
            pass
        advice = stop_advice(project.store)
        assert verdicts[0] == "too-early"
        assert advice.verdict == "not-helping", advice.text
        latest = project.store.latest_assessment()[1]
        assert latest.items == latest.checks + latest.labels[-1]
        # As promised: as many labels again bring little on digits that nobody has seen.
        labels = [each for each in project.store.training_labels() if each.role == "train"]
        head = engine._trained_head(labels, 0)
        seen = {each.item for each in project.store.training_labels()}
        rest = np.setdiff1d(np.arange(1200), list(seen))
        now = head.measure_items(rest, Y[rest])["accuracy"]
        more = [TrainingLabel(int(k), project.classes[Y[k]], 1.0, "train") for k in rest[:200]]
        then = engine._trained_head([*labels, *more], 0).measure_items(rest[200:], Y[rest[200:]])
        assert then["accuracy"] - now < 0.03


def test_a_batch_that_is_due_does_not_wait_for_all_models_to_be_scored(tmp_path):
    with digits_project(tmp_path, items=300, budget=100) as project:
        engine = Engine(project)
        while (done := engine.step()) != "assess":
            if done is None:
                label_all(project.store)
        label_all(project.store)
        assert [engine.step() for _ in range(3)] == ["train", "choose", "predict"]
        while engine.step():
            pass
        training, latest = project.store.latest_assessment()
        assert training == project.store.trainings()[-1].id
        assert len(latest.labels) == len(project.store.trainings())


def slow_scores(labels, checks, size, folds):
    """The obvious twin: an item at a time."""

    def right(kept, item, label):
        rows = [each.item for each in kept]
        head = LinearLearner(X[:300], NAMES)
        head.train(np.array(rows), np.array([int(each.label) for each in kept]), None, 0)
        return NAMES[head.probs(np.array([item])).argmax()] == label

    found = sum(right(labels[:size], each.item, each.label) for each in checks)
    for k, each in enumerate(labels):
        kept = [other for j, other in enumerate(labels[:size]) if folds[j] != folds[k]]
        found += right(kept, each.item, each.label)
    return found


def test_scores_are_those_of_items_that_a_model_has_not_seen():
    labels = [TrainingLabel(k, NAMES[Y[k]], 1.0, "train") for k in range(30)]
    checks = [TrainingLabel(k, NAMES[Y[k]], 1.0, "check") for k in range(100, 106)]

    def train(some):
        head = LinearLearner(X[:300], NAMES)
        rows = np.array([each.item for each in some])
        head.train(rows, np.array([int(each.label) for each in some]), None, 0)
        return head

    first, found = assess(train, labels, checks, [20, 30], cross_validate=True)
    folds = np.random.default_rng(0).permutation(np.arange(30) % 5)
    assert found.right == tuple(slow_scores(labels, checks, size, folds) for size in (20, 30))
    assert (found.items, found.checks) == (36, 6)
    assert (first.labels, first.right) == ((20,), found.right[:1])
    *_, only_checks = assess(train, labels, checks, [20, 30], cross_validate=False)
    assert only_checks.items == 6
    assert only_checks.wrong_checks == found.wrong_checks


@pytest.mark.parametrize("sizes", [[], [5], [5, 5, 0], list(range(20, 900, 20))])
def test_few_sizes_are_kept_with_both_ends(sizes):
    kept = spread(sizes)
    assert len(kept) <= 8
    assert kept == sorted(set(kept))
    assert set(kept) <= set(sizes) - {0}
    if kept:
        assert (kept[0], kept[-1]) == (min(x for x in sizes if x), max(sizes))
