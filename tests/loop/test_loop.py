"""The loop: paired, resumable from any moment, and patient with its oracle."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

import sabal
from sabal.core import files
from sabal.core.memory import PeakMemory
from sabal.learners.estimator_learner import EstimatorLearner, logistic
from sabal.loop import Answers, Journal, Plan, SimulatedOracle, journal, run_rounds
from sabal.loop.rounds import PURPOSES, round_seed

X, Y = load_digits(return_X_y=True)
POOL, TEST = slice(0, 300), (X[300:500], Y[300:500])
PLAN = Plan(initial=12, batch=5, rounds=3, seed=3)


def learner():
    return EstimatorLearner(logistic, X[POOL], classes=10)


def oracle():
    return SimulatedOracle(Y[POOL])


def everything(folder):
    """Every file of a run but for the seconds and the memory that things took."""
    found = {}
    for path in sorted(folder.rglob("*.json")):
        record = json.loads(path.read_text())
        record.pop("train_seconds", None)
        for measured in ("seconds", "megabytes"):
            record.get("evidence", {}).pop(measured, None)
        found[str(path.relative_to(folder))] = record
    return found


def run(folder, plan=PLAN, answering=None):
    return list(run_rounds(learner(), answering or oracle(), plan, Journal(folder), test=TEST))


def test_rounds_label_what_the_plan_says(tmp_path):
    rounds = run(tmp_path)
    assert [each.labels for each in rounds] == [12, 17, 22, 27]
    chosen = np.concatenate([each.batch.indices for each in rounds])
    assert np.unique(chosen).size == 27
    assert rounds[0].batch.strategy == "random"
    assert {each.batch.strategy for each in rounds[1:]} == {"sabal"}
    assert rounds[-1].metrics["accuracy"] > rounds[0].metrics["accuracy"]


def test_every_purpose_of_every_round_has_a_seed_of_its_own():
    keys = [(s, n, p) for s in range(3) for n in range(5) for p in PURPOSES]
    assert len({round_seed(*key) for key in keys}) == len(keys)
    assert [round_seed(*key) for key in keys] == [round_seed(*key) for key in keys]


def test_later_batches_are_chosen_by_the_model_of_the_round_before(tmp_path):
    rounds = run(tmp_path, Plan(initial=12, batch=5, rounds=1, strategy="margin", seed=3))
    first = rounds[0].batch.indices
    model = learner()
    seed = np.random.SeedSequence([3, 0, 2]).generate_state(1, np.uint32)[0]
    model.train(first, Y[POOL][first], None, int(seed))
    rest = np.setdiff1d(np.arange(300), first)
    probs = model.model.predict_proba(X[POOL][rest])
    full = np.zeros((len(rest), 10))
    full[:, model.model.classes_] = probs
    expected = rest[sabal.select(5, probs=full, strategy="margin").indices]
    np.testing.assert_array_equal(rounds[1].batch.indices, expected)


def test_runs_that_differ_in_strategy_only_start_alike(tmp_path):
    one = run(tmp_path / "a", Plan(initial=12, batch=5, rounds=1, strategy="margin", seed=1))
    two = run(tmp_path / "b", Plan(initial=12, batch=5, rounds=1, strategy="random", seed=1))
    np.testing.assert_array_equal(one[0].batch.indices, two[0].batch.indices)
    assert one[0].metrics == two[0].metrics


class Killed(BaseException):
    """Stands for a kill at the moment of a write: nothing after it happens."""


def test_a_run_stopped_at_any_write_resumes_to_the_same_result(tmp_path, monkeypatch):
    run(tmp_path / "whole")
    expected = everything(tmp_path / "whole")
    writes = len(expected)
    assert writes == 12
    for stop_at in range(writes):
        for after in (False, True):
            folder = tmp_path / f"{stop_at}-{after}"
            count = 0

            def write(path, text, *, stop_at=stop_at, after=after):
                nonlocal count
                if count == stop_at and not after:
                    raise Killed
                result = files.write_text_whole(path, text)
                if count == stop_at:
                    raise Killed
                count += 1
                return result

            monkeypatch.setattr(journal, "write_text_whole", write)
            with pytest.raises(Killed):
                run(folder)
            monkeypatch.setattr(journal, "write_text_whole", files.write_text_whole)
            run(folder)
            assert everything(folder) == expected


def test_a_finished_run_is_read_and_not_repeated(tmp_path):
    first = run(tmp_path)

    class Silent:
        size = 300

        def __getattr__(self, name):
            raise AssertionError(f"{name} was called")

    again = list(run_rounds(Silent(), Silent(), PLAN, Journal(tmp_path)))
    assert [each.metrics for each in again] == [each.metrics for each in first]


class InParts:
    """Answers two items at a time, skips every seventh, and needs to be asked again."""

    def __init__(self):
        self.asked: list[int] = []
        self.patience = 0

    def answer(self, items):
        self.patience += 1
        if self.patience % 3 == 0:
            return Answers()
        now = items[:2]
        self.asked.extend(now)
        skipped = frozenset(item for item in now if item % 7 == 0)
        return Answers({i: int(Y[POOL][i]) for i in now if i not in skipped}, skipped)


def test_an_oracle_may_answer_later_in_parts_and_skip(tmp_path):
    slow = InParts()
    for _ in range(60):
        rounds = run(tmp_path, answering=slow)
        if not rounds[-1].open_items:
            break
        assert rounds[-1].metrics == {}
    assert len(rounds) == 4
    assert len(slow.asked) == len(set(slow.asked)) == 27
    skipped = {item for item in slow.asked if item % 7 == 0}
    assert skipped
    assert rounds[-1].labels == 27 - len(skipped)


def test_answers_to_questions_that_were_not_asked_are_refused(tmp_path):
    class Odd:
        def answer(self, items):
            return Answers({299: 0, **{items[0]: 1}}) if 299 not in items else Answers({0: 1})

    with pytest.raises(sabal.SabalError, match="asked for"):
        run(tmp_path, answering=Odd())


@pytest.mark.parametrize(
    ("more", "rounds"), [({"target_accuracy": 0.0}, 1), ({"target_accuracy": 2.0}, 4)]
)
def test_a_target_accuracy_stops_the_run(tmp_path, more, rounds):
    assert len(run(tmp_path, Plan(initial=12, batch=5, rounds=3, **more))) == rounds


@pytest.mark.parametrize("labels", [[0.5, 1.0], [[0, 1]], ["a", "b"]])
def test_an_oracle_of_anything_but_class_numbers_is_refused(labels):
    with pytest.raises(sabal.SabalError, match="one whole number per item"):
        SimulatedOracle(labels)


def test_a_target_accuracy_needs_data_to_measure_on(tmp_path):
    plan = Plan(initial=12, batch=5, rounds=3, target_accuracy=0.9)
    with pytest.raises(sabal.SabalError, match="test data"):
        list(run_rounds(learner(), oracle(), plan, Journal(tmp_path)))


def test_without_test_data_the_batches_are_the_same_and_there_are_no_metrics(tmp_path):
    plain = list(run_rounds(learner(), oracle(), PLAN, Journal(tmp_path / "a")))
    assert [each.metrics for each in plain] == [{}] * 4
    for one, other in zip(plain, run(tmp_path / "b"), strict=True):
        np.testing.assert_array_equal(one.batch.indices, other.batch.indices)


@pytest.mark.parametrize("test", [TEST, None])
def test_stable_predictions_stop_the_run(tmp_path, test):
    class Stable(EstimatorLearner):
        def predict_proba(self, x):
            return np.ones((5, 10))

        def probs(self, items):
            return super().probs(items) if test else np.full((len(items), 10), 0.1)

        def measure(self, x, y):
            return {"accuracy": 0.5}

    model = Stable(logistic, X[POOL], classes=10)
    plan = Plan(initial=12, batch=5, rounds=3, stable_rounds=2)
    assert len(list(run_rounds(model, oracle(), plan, Journal(tmp_path), test=test))) == 3


def test_a_resumed_run_looks_back_at_the_model_of_the_round_before(tmp_path, monkeypatch):
    """What is trained again, to see the predictions settle, knows no later labels."""
    plan = Plan(initial=12, batch=5, rounds=2, stable_rounds=9)
    sizes = []

    class Recording(EstimatorLearner):
        def train(self, items, labels, weights, seed):
            sizes.append(len(items))
            super().train(items, labels, weights, seed)

    def write(path, text):
        if path.name == "done.json" and "0002" in str(path):
            raise Killed
        return files.write_text_whole(path, text)

    def rounds():
        model = Recording(logistic, X[POOL], classes=10)
        return list(run_rounds(model, oracle(), plan, Journal(tmp_path), test=TEST))

    monkeypatch.setattr(journal, "write_text_whole", write)
    with pytest.raises(Killed):
        rounds()
    monkeypatch.undo()
    sizes.clear()
    rounds()
    assert sizes == [17, 22]


def test_weights_count_in_training_when_asked_for(tmp_path):
    plain = run(tmp_path / "a", Plan(initial=12, batch=20, rounds=2))
    weighted = run(tmp_path / "b", Plan(initial=12, batch=20, rounds=2, weighted=True))
    np.testing.assert_array_equal(plain[1].batch.indices, weighted[1].batch.indices)
    assert plain[1].metrics["log_loss"] != weighted[1].metrics["log_loss"]


def test_the_first_batch_may_be_typical_instead_of_random(tmp_path):
    plan = Plan(initial=12, batch=5, rounds=0, first="typiclust")
    assert run(tmp_path, plan)[0].batch.strategy == "typiclust"


def test_a_plan_that_asks_for_more_than_there_is_is_refused(tmp_path):
    with pytest.raises(sabal.SabalError, match="size of the pool"):
        run(tmp_path, Plan(initial=100, batch=100, rounds=3))


def test_a_folder_belongs_to_one_configuration(tmp_path):
    Journal(tmp_path).bind({"seed": 0, "batch": 5})
    Journal(tmp_path).bind({"seed": 0, "batch": 5})
    with pytest.raises(sabal.SabalError, match="batch"):
        Journal(tmp_path).bind({"seed": 0, "batch": 6})


def test_what_may_change_of_a_configuration_is_recorded(tmp_path):
    Journal(tmp_path).bind({"seed": 0, "seeds": [1]})
    Journal(tmp_path).bind({"seed": 0, "seeds": [1, 2]}, may_change=("seeds",))
    assert Journal(tmp_path).config() == {"seed": 0, "seeds": [1, 2]}
    written = (tmp_path / "config.json").stat().st_mtime_ns
    Journal(tmp_path).bind({"seed": 0, "seeds": [1, 2]}, may_change=("seeds",))
    assert (tmp_path / "config.json").stat().st_mtime_ns == written
    with pytest.raises(sabal.SabalError, match="another seed"):
        Journal(tmp_path).bind({"seed": 1, "seeds": [1]}, may_change=("seeds",))


def test_a_damaged_journal_is_said(tmp_path):
    run(tmp_path)
    (tmp_path / "rounds" / "0001" / "done.json").write_text("{")
    with pytest.raises(sabal.SabalError, match="journal"):
        run(tmp_path)


def test_the_memory_of_a_selection_is_kept_beside_its_seconds(tmp_path):
    for each in run(tmp_path, Plan(initial=12, batch=5, rounds=1)):
        assert each.batch.evidence["megabytes"] == each.select_mb
        assert each.select_mb is None or each.select_mb >= 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a part")
def test_peak_memory_is_the_growth_since_the_start():
    held = np.ones(8 * 2**20)
    memory = PeakMemory()
    passing = np.ones(8 * 2**20)
    del passing
    assert held.nbytes == 64 * 2**20
    assert 60 < memory.megabytes() < 100


def test_peak_memory_is_unknown_where_the_system_does_not_tell(tmp_path, monkeypatch):
    monkeypatch.setattr("sabal.core.memory.PROCESS", tmp_path / "none")
    assert PeakMemory().megabytes() is None


def test_a_label_of_every_class_is_no_reason_to_warn():
    """Warnings are errors here."""
    first = np.array([np.flatnonzero(Y[POOL] == k)[0] for k in range(10)])
    model = learner()
    model.train(first, Y[first], None, 0)
    assert model.outputs(np.arange(300), first, 0).label_probs.shape == (300, 10)
