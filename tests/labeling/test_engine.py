"""The engine: the simulation's rounds, one step at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from labeling_digits import CLASSES, SAME, X, Y, digits_project, label_all, row, true_label
from labeling_helpers import answer, undo
from sabal.errors import FileError, InputError
from sabal.labeling.choosing import interleave
from sabal.labeling.engine import Engine
from sabal.labeling.project import Project
from sabal.labeling.store.item_pages import ItemFilter
from sabal.labeling.store.records import ImportedLabel, NewBatchItem
from sabal.learners.estimator_learner import EstimatorLearner, logistic
from sabal.learners.linear import LinearLearner
from sabal.loop import Journal, Plan, SimulatedOracle, run_rounds


def work(engine):
    """Everything that is due; returns what was done, predictions for several folds as one."""
    done = []
    while (step := engine.step()) is not None:
        if (step, done[-1:]) != ("predict", ["predict"]):
            done.append(step)
        assert len(done) < 100
    return done


def run_to_the_end(project):
    engine, steps = Engine(project), []
    while True:
        steps.append(work(engine))
        if project.store.status().finished:
            return steps
        label_all(project.store)


def stored_model(path, classes=CLASSES, x=X[:500]):
    model = LinearLearner(x, classes)
    model.load(path, np.empty(0, np.int64), np.empty(0, np.int64), None)
    return model


# One engine


@pytest.mark.parametrize("first", ["random", "typiclust"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_app_and_the_simulation_are_one_engine(tmp_path, first, weighted):
    project = digits_project(tmp_path, **SAME, first=first, weighted=weighted)
    run_to_the_end(project)
    plan = Plan(initial=12, batch=5, rounds=4, first=first, seed=3, weighted=weighted)
    learner = EstimatorLearner(logistic, X[:500], classes=10)
    test, journal = (X[500:], Y[500:]), Journal(tmp_path / "s")
    simulated = list(run_rounds(learner, SimulatedOracle(Y[:500]), plan, journal, test=test))
    store = project.store
    assert [each.number for each in store.rounds()] == [0, 1, 2, 3, 4]
    for kept, told in zip(store.rounds(), simulated, strict=True):
        batch = store.batch(kept.number)
        assert [row(x.item) for x in batch] == told.batch.indices.tolist()
        assert [x.weight for x in batch] == told.batch.weights.tolist()
        assert [x.score for x in batch] == told.batch.scores.tolist()
        assert (kept.strategy, kept.seed) == (told.batch.strategy, told.batch.seed)
    last = store.trainings()[-1]
    model = stored_model(project.folder / last.model)
    accuracy = float(np.mean(model.predict(X[500:]) == Y[500:]))
    assert accuracy == simulated[-1].metrics["accuracy"]
    project.close()


def test_the_latest_model_disagrees_with_wrong_labels(tmp_path):
    """Also of items that were chosen before there was a model, and that it was trained on."""
    project = digits_project(tmp_path, check_share=0.2)
    store, engine = project.store, Engine(project)
    work(engine)
    wrong = [each.item for each in store.batch(0) if each.role == "train"][:3]
    for _ in range(3):
        for each in store.next_items("ann", 50):
            shift = 1 if each.item in wrong else 0
            answer(store, each.item, CLASSES[(Y[row(each.item)] + shift) % 10])
        assert "predict" in work(engine)
    store.import_labels([ImportedLabel("d400", CLASSES[0], "import")])
    assert work(engine)[-1] == "predict"  # d400 came after the training
    assert engine.step() is None
    labeled, count = store.item_page(ItemFilter(shown="labeled"), 0, 500)
    assert count > 20
    found = {each.item for each in store.item_page(ItemFilter(shown="model"), 0, 500)[0]}
    assert found == {each.item for each in labeled if each.guess["label"] != each.label}
    assert set(wrong) <= found < {each.item for each in labeled}
    # Of items that were not trained on, it is what the stored model says.
    model = stored_model(project.folder / store.trainings()[-1].model)
    unseen = [each for each in labeled if each.role == "check" or each.item == "d400"]
    best = model.probs(np.array([row(each.item) for each in unseen])).argmax(axis=1)
    assert [each.guess["label"] for each in unseen] == [CLASSES[k] for k in best]
    project.close()


def test_predictions_of_a_class_that_was_renamed_have_its_new_name(tmp_path):
    project = digits_project(tmp_path)
    engine = Engine(project)
    for _ in range(2):
        work(engine)
        label_all(project.store)
    work(engine)
    before = project.store.item_page(ItemFilter(shown="model"), 0, 500)
    project.store.rename_class(CLASSES[0], "zero", write=lambda classes: None)
    assert project.store.item_page(ItemFilter(shown="model"), 0, 500)[1] == before[1]
    guesses = {
        each.guess["label"]
        for each in project.store.item_page(ItemFilter(shown="labeled"), 0, 99)[0]
    }
    assert CLASSES[0] not in guesses
    assert "zero" in guesses
    project.close()


def test_skipped_items_are_left_out_as_in_the_simulation(tmp_path):
    from sabal.loop.oracle import Answers

    class Skips:
        def answer(self, items):
            skipped = frozenset(k for k in items if k % 3 == 0)
            return Answers({k: int(Y[k]) for k in items if k not in skipped}, skipped)

    project = digits_project(tmp_path, **SAME, first="random", budget=1000, initial=12)
    engine = Engine(project)
    for _ in range(3):
        work(engine)
        for each in project.store.batch():
            skip = row(each.item) % 3 == 0
            answer(project.store, each.item, None if skip else true_label(each.item))
    plan = Plan(initial=12, batch=5, rounds=2, seed=3)
    learner = EstimatorLearner(logistic, X[:500], classes=10)
    simulated = list(run_rounds(learner, Skips(), plan, Journal(tmp_path / "s")))
    for told in simulated:
        chosen = [row(each.item) for each in project.store.batch(told.number)]
        assert chosen == told.batch.indices.tolist()
    project.close()


# Steps


def test_steps_come_one_at_a_time_and_every_one_is_a_row(tmp_path):
    project = digits_project(tmp_path, **SAME, budget=22)
    store, engine = project.store, Engine(project)
    assert [engine.step() for _ in range(3)] == ["features", "choose", None]
    assert (store.status().training, store.status().progress) == ("waiting", 1.0)
    leased = store.next_items("ann", 20)
    for each in leased[:-1]:
        answer(store, each.item, true_label(each.item))
        assert engine.step() is None
    answer(store, leased[-1].item, true_label(leased[-1].item))
    assert [engine.step() for _ in range(3)] == ["train", "choose", "predict"]
    assert work(engine) == ["predict"]  # of the other folds
    label_all(store)
    assert work(engine) == ["train", "choose", "predict"]
    label_all(store)
    assert work(engine) == ["train", "predict"]
    assert work(engine) == []
    found = store.status()
    assert (found.labeled, found.finished, found.training) == (22, True, "idle")
    trainings = store.trainings()
    assert [each.labels for each in trainings] == [12, 17, 22]
    assert [each.training_id for each in store.rounds()] == [None, 1, 2]
    assert all((project.folder / each.model).is_file() for each in trainings)
    project.close()


def test_the_next_batch_is_chosen_before_the_current_one_ends(tmp_path):
    project = digits_project(tmp_path, check_share=0.0, initial=10, batch=5, budget=15)
    store, engine = project.store, Engine(project)
    work(engine)
    first = [each.item for each in store.batch(0)]
    for key in first[:7]:
        answer(store, key, true_label(key))
    assert work(engine) == []
    answer(store, first[7], None)
    assert work(engine) == ["train", "choose", "predict"]
    assert store.trainings()[0].labels == 7
    second = [each.item for each in store.batch(1)]
    # Open items are not chosen again, and are still to be answered first.
    assert not set(first) & set(second)
    assert [each.item for each in store.next_items("ann", 20)] == [*first[8:], *second]
    label_all(store)
    # One was skipped: the budget has room for another; and the end knows every label.
    assert work(engine) == ["train", "choose", "predict"]
    label_all(store)
    assert work(engine) == ["train", "predict"]
    assert store.status().labeled == 15
    assert store.status().finished
    project.close()


def test_a_label_that_is_changed_at_the_end_is_learnt_again(tmp_path):
    project = digits_project(tmp_path, **SAME, budget=12)
    run_to_the_end(project)
    undo(project.store)
    engine = Engine(project)
    assert work(engine) == []
    label_all(project.store)
    assert work(engine) == ["train", "predict"]
    project.close()


def test_a_batch_that_everyone_skipped_is_followed_by_another(tmp_path):
    project = digits_project(tmp_path, initial=5, batch=5)
    store, engine = project.store, Engine(project)
    work(engine)
    for each in store.batch():
        answer(store, each.item, None)
    assert work(engine) == ["choose"]
    assert store.rounds()[1].strategy == "typiclust"
    label_all(store)
    assert work(engine) == ["train", "choose", "predict"]
    assert store.rounds()[2].strategy == "sabal"
    project.close()


def test_one_class_so_far_is_no_obstacle(tmp_path):
    project = digits_project(tmp_path, **SAME)
    store, engine = project.store, Engine(project)
    work(engine)
    for each in store.batch():
        answer(store, each.item, CLASSES[4])
    assert work(engine) == ["train", "choose", "predict"]
    model = stored_model(project.folder / store.trainings()[0].model)
    np.testing.assert_array_equal(model.predict_proba(X[:3])[:, 4], 1.0)
    project.close()


def test_the_pool_may_be_smaller_than_the_budget(tmp_path):
    project = digits_project(tmp_path, items=20, initial=12, batch=5, budget=500)
    run_to_the_end(project)
    found = project.store.status()
    assert (found.labeled, found.remaining, found.finished) == (20, 0, True)
    project.close()


def test_what_was_stopped_between_steps_goes_on_the_same(tmp_path):
    whole = digits_project(tmp_path / "a")
    run_to_the_end(whole)
    broken = digits_project(tmp_path / "b")
    while True:
        # A new engine for every step, as if the worker had died after each. Scores of earlier
        # models are computed in several steps, and begun anew by another worker.
        while Engine(broken).step() not in (None, "assess"):
            pass
        if broken.store.status().finished:
            break
        label_all(broken.store)

    def batches(project):
        return [
            [(x.item, x.weight, x.role, x.why) for x in project.store.batch(each.number)]
            for each in project.store.rounds()
        ]

    assert batches(whole) == batches(broken)
    for one, two in zip(whole.store.curve(), broken.store.curve(), strict=True):
        assert one == two
    whole.close()
    broken.close()


def test_two_engines_do_no_harm(tmp_path):
    project = digits_project(tmp_path)
    one, two = Engine(project), Engine(project)
    for _ in range(3):
        work(one)
        work(two)
        label_all(project.store)
    numbers = [each.number for each in project.store.rounds()]
    assert numbers == list(range(len(numbers)))
    project.close()


def test_labels_from_elsewhere_are_learnt_and_count(tmp_path):
    project = digits_project(tmp_path, **SAME, first="random", budget=20)
    store = project.store
    store.import_labels(
        ImportedLabel(f"d{k}", CLASSES[Y[k]], "eve", 7, weight=0.5) for k in range(400, 408)
    )
    engine = Engine(project)
    work(engine)
    assert not {each.item for each in store.batch(0)} & {f"d{k}" for k in range(400, 408)}
    label_all(store)
    assert work(engine) == ["train", "predict"]
    assert store.trainings()[0].labels == store.status().labeled == 20
    assert store.status().finished
    project.close()


# Checks


def test_check_items_are_measured_on_and_never_learnt(tmp_path):
    project = digits_project(tmp_path, initial=20, batch=10, budget=80, check_share=0.2)
    store = project.store
    run_to_the_end(project)
    batch = store.batch(0)
    assert [each.role for each in batch].count("check") == 4
    assert len(batch) == 24
    checks = {row(each.item) for k in store.rounds() for each in store.batch(k.number)
              if each.role == "check"}  # fmt: skip
    labels = [each for each in store.training_labels() if each.role == "train"]
    assert not checks & {each.item for each in labels}
    last, point = store.trainings()[-1], store.curve()[-1]
    assert last.labels == len(labels) == point.labels
    assert point.checks == len(checks)
    model = stored_model(project.folder / last.model)
    rows = sorted(checks)
    expected = np.mean(model.predict(X[rows]) == Y[rows])
    assert point.accuracy == pytest.approx(expected)
    assert store.status().metrics["accuracy"] == point.accuracy
    assert store.status().metrics["checks"] == len(checks)
    project.close()


def test_check_items_are_a_sample_of_the_whole_pool_whatever_the_batches_take(tmp_path):
    """Drawn from what is left, they would be as easy as what no strategy wanted."""
    asked = []
    for name, strategy in (("a", "margin"), ("b", "random")):
        project = digits_project(tmp_path / name, check_share=0.2, strategy=strategy, budget=60)
        run_to_the_end(project)
        store = project.store
        batches = [store.batch(each.number) for each in store.rounds()]
        asked.append([[x.item for x in batch if x.role == "check"] for batch in batches])
        project.close()
    rounds = min(map(len, asked))
    assert rounds > 3
    assert asked[0][:rounds] == asked[1][:rounds]
    drawn = [item for batch in asked[0] for item in batch]
    assert len(set(drawn)) == len(drawn)


def test_a_pool_that_is_nearly_labelled_gives_up_what_it_reserved(tmp_path):
    project = digits_project(tmp_path, items=40, check_share=0.5, initial=20, batch=10, budget=40)
    run_to_the_end(project)
    assert project.store.status().labeled == 40
    project.close()


def test_check_items_are_spread_over_the_batch():
    batch, checks = [NewBatchItem(k) for k in range(10)], [NewBatchItem(100), NewBatchItem(101)]
    mixed = [each.item for each in interleave(batch, checks)]
    assert [mixed.index(100), mixed.index(101)] == [4, 8]
    assert [item for item in mixed if item < 100] == list(range(10))
    assert interleave(batch, []) == batch
    assert [x.item for x in interleave([], checks)] == [100, 101]


# Reasons


def test_every_item_says_why(tmp_path):
    project = digits_project(tmp_path, **SAME)
    store, engine = project.store, Engine(project)
    work(engine)
    first = store.batch(0)
    assert all(set(each.why) == {"represents"} for each in first)
    assert sum(each.why["represents"] for each in first) == 500
    label_all(store)
    work(engine)
    head = LinearLearner(X[:500], CLASSES)
    items = np.asarray([lesson.item for lesson in store.training_labels()])
    from sabal.loop.rounds import round_seed

    head.train(items, Y[items], None, round_seed(3, 0, "train"))
    batch = store.batch(1)
    assert sum(each.why["represents"] for each in batch) == 500 - 12
    for each in batch:
        probs = head.probs(np.asarray([row(each.item)]))[0]
        best = np.sort(probs)[::-1]
        assert each.why["uncertainty"] == pytest.approx(1 - (best[0] - best[1]))
        assert each.why["guess"] == {
            "label": CLASSES[probs.argmax()],
            "probability": pytest.approx(best[0]),
        }
        distances = np.linalg.norm(
            head.space(items) - head.space(np.asarray([row(each.item)])), axis=1
        )
        neighbours = each.why["neighbours"]
        assert [x["distance"] for x in neighbours] == pytest.approx(np.sort(distances)[:3])
        assert all(x["label"] == true_label(x["item"]) for x in neighbours)
    project.close()


# Models


@pytest.mark.parametrize("classes", [1, 2, 10])
def test_a_stored_model_says_the_same(tmp_path, classes):
    head = LinearLearner(X[:300], CLASSES)
    items = np.flatnonzero(Y[:300] < classes)
    head.train(items, Y[items], None, 0)
    assert head.save(tmp_path / "m.safetensors")
    stored = stored_model(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(stored.predict_proba(X[:300]), head.probs(np.arange(300)))
    np.testing.assert_array_equal(stored.space(items), LinearLearner.space(head, items))


def test_a_file_that_is_no_model_is_said(tmp_path):
    (tmp_path / "m.safetensors").write_text("no")
    with pytest.raises(FileError, match="a model"):
        stored_model(tmp_path / "m.safetensors")


def test_the_classes_of_a_stored_model_are_found_by_name(tmp_path):
    """A project may have more classes by now, in another order."""
    head = LinearLearner(X[:300], CLASSES[:3])
    items = np.flatnonzero(Y[:300] < 3)
    head.train(items, Y[items], None, 0)
    head.save(tmp_path / "m.safetensors")
    stored = stored_model(tmp_path / "m.safetensors", CLASSES[::-1])
    expected = np.zeros((300, 10))
    expected[:, [9, 8, 7]] = head.probs(np.arange(300))
    np.testing.assert_array_equal(stored.predict_proba(X[:300]), expected)
    with pytest.raises(FileError, match="the class"):
        stored_model(tmp_path / "m.safetensors", CLASSES[1:])
    with pytest.raises(FileError, match="64"):
        stored_model(tmp_path / "m.safetensors", CLASSES, X[:300, :5])


def test_any_training_can_be_replayed(tmp_path):
    project = digits_project(tmp_path)
    run_to_the_end(project)
    undo(project.store)
    for training in project.store.trainings():
        labels = [
            x for x in project.store.training_labels(training.last_answer) if x.role == "train"
        ]
        assert len(labels) == training.labels
        head = Engine(project)
        head.step()
        again = head._trained_head(labels, training.round)
        stored = stored_model(project.folder / training.model)
        np.testing.assert_array_equal(stored.model[-1].coef_, again.model[-1].coef_)
    project.close()


# Overlap


def test_with_overlap_the_majority_is_learnt(tmp_path):
    project = digits_project(tmp_path, **SAME, overlap=3, initial=12, budget=12)
    store, engine = project.store, Engine(project)
    work(engine)
    for who in ("ann", "bob"):
        for each in store.next_items(who, 20):
            answer(store, each.item, true_label(each.item), who)
    assert work(engine) == []
    for each in store.next_items("eve", 20):
        answer(store, each.item, CLASSES[0], "eve")
    assert work(engine) == ["train", "predict"]
    assert store.trainings()[0].labels == 12
    assert all(lesson.label == CLASSES[Y[lesson.item]] for lesson in store.training_labels())
    assert store.agreement().pairs == 36
    project.close()


# What goes wrong


def test_a_failure_is_told_and_the_work_goes_on_after_it(tmp_path, monkeypatch):
    project = digits_project(tmp_path, **SAME)
    store, engine = project.store, Engine(project)
    work(engine)
    label_all(store)

    def fail(self, *args):
        raise MemoryError("no room")

    monkeypatch.setattr(LinearLearner, "train", fail)
    with pytest.raises(MemoryError):
        engine.step()
    found = store.status()
    assert (found.training, found.error) == ("failed", "no room")
    assert store.trainings()[0].error == "no room"
    monkeypatch.undo()
    assert work(engine) == ["train", "choose", "predict"]
    assert store.status().error is None
    project.close()


def test_a_strategy_that_needs_what_there_is_not_is_told(tmp_path):
    project = digits_project(tmp_path, **SAME, strategy="bald")
    engine = Engine(project)
    work(engine)
    label_all(project.store)
    engine.step()
    with pytest.raises(InputError, match="log_probs"):
        engine.step()
    assert "bald" in project.store.status().error
    project.close()


def test_features_with_gaps_are_told(tmp_path):
    pq.write_table(pa.table({"features": [[1.0], [float("nan")]]}), tmp_path / "pool.parquet")
    data = tmp_path / "pool.parquet"
    with Project.create(tmp_path / "p", data=data, classes=["a", "b"]) as project:
        with pytest.raises(InputError, match="NaN"):
            Engine(project).step()
        found = project.store.status()
        assert (found.training, found.progress) == ("failed", 0.0)


# Images that cannot be read


def test_images_that_cannot_be_read_are_skipped_and_named(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for k in range(10):
        Image.fromarray((load_digits().images[k] * 15).astype("uint8")).save(photos / f"{k}.png")
    (photos / "empty.png").write_bytes(b"")
    (photos / "half.png").write_bytes((photos / "3.png").read_bytes()[:40])
    project = Project.create(
        tmp_path / "p", data=photos, classes=CLASSES, backbone="pixels", initial=6, batch=4,
        budget=12, check_share=0.0, choose_at=1.0,
    )  # fmt: skip
    (photos / "9.png").unlink()
    store = project.store
    for _ in range(2):
        engine = Engine(project)  # a second one skips nothing twice
        while engine.step():
            pass
        for each in store.next_items("ann", 20):
            answer(store, each.item, CLASSES[0])
    assert sorted(each.id for each in store.skipped()) == ["9.png", "empty.png", "half.png"]
    assert {each.annotator for each in store.skipped()} == {"sabal 1"}
    assert sorted(each.id for each in store.labels()) == [f"{k}.png" for k in range(9)]
    assert store.status().finished
    project.close()
