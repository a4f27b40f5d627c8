"""Tasks through `sabal.query`: their data, their loop, the oracle, and the plan of the seeds."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import research
import sabal
from research.study.configurations import CONFIGURATIONS, ORACLE
from research.study.csv_lines import append_line, read_lines
from research.study.data_variants import wrong_labels
from research.study.definitions import DIAGNOSTIC, FAMILIES, StudyTask, digest_of
from research.study.findings import find
from research.study.planning import fixed_seeds, parse_shard, planned, seeds_by_time, shard_of
from research.study.query_data import MADE_UP, query_data, stored
from research.study.query_loop import query_rounds
from research.study.query_tasks import HELD_OUT_DATA, QUERY_TASKS
from research.study.run_records import RunRecord, StudyResults, read_results, sort_out
from research.study.runs import run_study
from research.study.seeded_draws import draws_of
from research.study.tasks import HELD_OUT, TASKS
from sabal.errors import FileError, InputError
from sabal.loop.rounds import round_seed

ROOT = Path(research.__file__).parents[1]
BY_NAME = {each.name: each for each in CONFIGURATIONS}
THREE = [BY_NAME[name] for name in ("random", "margin", "sabal")]
TABLE = StudyTask(
    name="table",
    dataset="digits",
    model="scaled-logistic",
    initial=20,
    batch=10,
    rounds=2,
    pool=300,
    test=200,
)
RECORD = RunRecord(
    task="table",
    configuration="random",
    digest="",
    seed=0,
    auc=50.0,
    final=50.0,
    labels=40,
    select_seconds=0.5,
    train_seconds=1.0,
    harness=1,
    data="same",
    curve="50 50 50",
)


def naive_curve(task, strategy, seed):
    """The loop as a person would write it."""
    data = query_data(task, seed, None)
    known = draws_of(seed, "first").permutation(task.pool)[: task.initial]
    curve = []
    for number in range(task.rounds + 1):
        head = LogisticRegression(max_iter=1_000, random_state=round_seed(seed, number, "train"))
        model = make_pipeline(StandardScaler(), head)
        model.fit(data.x_pool[known], data.y_pool[known])
        curve.append(model.score(data.x_test, data.y_test))
        rest = np.setdiff1d(np.arange(task.pool), known)
        batch = sabal.query(
            model,
            data.x_pool[rest],
            task.batch,
            X_labeled=data.x_pool[known],
            y_labeled=data.y_pool[known],
            strategy=strategy,
            random_state=round_seed(seed, number + 1, "select"),
        )
        known = np.append(known, rest[batch.indices])
    return curve


@pytest.mark.parametrize("strategy", ["margin", "sabal"])
def test_a_run_chooses_exactly_as_query_does(strategy):
    data = query_data(TABLE, 1, None)
    rounds = list(query_rounds(TABLE, BY_NAME[strategy], data, 1))
    assert [each.labels for each in rounds] == TABLE.labels
    assert [each.accuracy for each in rounds] == pytest.approx(naive_curve(TABLE, strategy, 1))


@pytest.mark.parametrize("model", ["random-forest", "boosting", "small-network"])
def test_every_learner_runs_in_the_study(model, tmp_path):
    task = replace(TABLE, name=model, model=model, variant="wrong-labels")
    outcome = run_study(planned([task], THREE[1:], 1), tmp_path)
    assert (outcome.finished, outcome.failed) == (2, {})
    results = read_results(tmp_path / "runs.csv", [task], THREE)
    for each in THREE[1:]:
        [record] = results.of(task, each).values()
        assert record.accuracies[-1] > record.accuracies[0]
    assert len({r.data for found in results.runs.values() for r in found.values()}) == 1


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts").mkdir()
    subjects = {"rec.a": "ball team goal win", "sci.b": "cell gene lab test", "talk.c": "law vote"}
    rng = np.random.default_rng(0)
    with gzip.open(tmp_path / "texts" / "small.csv.gz", "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        for number in range(240):
            label = list(subjects)[number % 3]
            words = rng.choice([*subjects[label].split(), "the", "of", "and"], 6)
            writer.writerow((" ".join(words), label))
    return tmp_path


@pytest.mark.parametrize("model", ["tfidf-logistic", "tfidf-pipeline"])
def test_texts_run_as_a_matrix_or_through_a_pipeline(model, texts):
    task = replace(TABLE, dataset="texts/small", model=model, pool=150, test=80)
    data = query_data(task, 0, texts)
    assert data.y_pool.size == 150
    assert data.y_test.size == 80
    for each in THREE:
        rounds = list(query_rounds(task, each, data, 0))
        assert rounds[-1].accuracy > 0.6


def test_texts_can_be_limited_to_classes_and_bad_files_are_named(texts):
    items, labels = stored("texts/small:rec.,sci.", texts)
    assert len(items) == 160
    assert np.bincount(labels).tolist() == [80, 80]
    with pytest.raises(FileError, match=r"absent\.csv\.gz"):
        stored("texts/absent", texts)
    with pytest.raises(FileError, match="--data"):
        stored("tabular/letter", None)
    (texts / "tabular").mkdir()
    np.savez(texts / "tabular" / "bad.npz", x=np.zeros(3))
    with pytest.raises(FileError, match="x and y"):
        stored("tabular/bad", texts)
    with pytest.raises(InputError, match="at least 9200 items"):
        query_data(replace(TABLE, pool=9_000), 0, None)


def test_pool_and_test_are_drawn_by_the_seed_and_disjoint():
    one, again, other = (query_data(TABLE, seed, None) for seed in (0, 0, 1))
    assert one.fingerprint == again.fingerprint != other.fingerprint
    pool, test = ({row.tobytes() for row in each} for each in (one.x_pool, one.x_test))
    assert (len(pool), len(test)) == (300, 200)
    assert not pool & test


def test_a_twentieth_of_the_training_labels_is_wrong_and_none_of_the_test():
    y = np.repeat([3, 5, 9], 200)
    _, labels = wrong_labels(np.zeros((600, 1)), y, np.random.default_rng(0))
    assert np.sum(labels != y) == 30
    assert set(labels) == {3, 5, 9}
    plain, wrong = (
        query_data(replace(TABLE, name=name, variant=name), 0, None)
        for name in ("plain", "wrong-labels")
    )
    assert np.mean(plain.y_pool != wrong.y_pool) == pytest.approx(0.05)
    assert np.array_equal(plain.y_test, wrong.y_test)


def test_the_first_labels_have_two_classes():
    task = replace(TABLE, initial=2, rounds=0)
    for seed in range(5):
        data = replace(query_data(task, seed, None), y_pool=np.arange(300) // 299)
        [first] = query_rounds(task, THREE[0], data, seed)
        assert first.labels == 2


def test_the_made_up_sets_are_as_published():
    x, y = MADE_UP["honeypot"](np.random.default_rng(0))
    assert np.bincount(y).tolist() == [300, 300]
    mixed = x[:, 0] > 2
    assert mixed.mean() == pytest.approx(0.5, abs=0.05)
    assert np.mean(y[mixed]) == pytest.approx(0.5, abs=0.05)
    assert np.mean(y[~mixed] == (x[~mixed, 1] < 3)) > 0.98
    x, y = MADE_UP["diverging-sine"](np.random.default_rng(0))
    assert x.shape == (2_000, 2)
    gap = x[y == 1, 1] - x[y == 0, 1]
    assert np.allclose(gap, x[y == 1, 0], atol=2.5)
    assert tuple(MADE_UP) == DIAGNOSTIC
    task = replace(TABLE, dataset="honeypot", first="per-class", initial=4, test=None)
    one, other = (query_data(task, seed, None) for seed in (0, 1))
    assert one.fingerprint != other.fingerprint
    assert [one.y_pool.size, one.y_test.size] == [300, 300]


def test_the_oracle_is_above_what_does_not_know_the_labels():
    task = replace(TABLE, batch=8, rounds=3)
    oracle = replace(ORACLE, tries=5, parts=3)
    gains = []
    for seed in range(2):
        data = query_data(task, seed, None)
        curves = {
            each.role: [r.accuracy for r in query_rounds(task, each, data, seed)]
            for each in (oracle, THREE[0])
        }
        assert curves["oracle"][0] == curves["baseline"][0]
        assert np.all(np.diff(curves["oracle"]) > -0.05)
        gains.append(np.mean(np.subtract(curves["oracle"], curves["baseline"])))
    assert min(gains) > 0


def test_the_oracle_and_diagnostics_are_reported_and_not_ranked():
    made_up = replace(TABLE, name="made up", dataset="honeypot")
    compared = [*THREE, ORACLE]
    value = {"random": 50.0, "margin": 51.0, "sabal": 52.0, "oracle": 60.0}
    records = [
        replace(
            RECORD,
            task=task.name,
            digest=digest_of(task, each),
            configuration=each.name,
            seed=seed,
            auc=value[each.name] + 0.1 * seed * value[each.name],
        )
        for task in (TABLE, made_up)
        for each in compared
        for seed in range(3)
    ]
    found = find(sort_out(records, [TABLE, made_up], compared), [TABLE, made_up], compared, ())
    assert list(found.known.tasks) == ["table"]
    assert [table.task for table in found.diagnostic] == ["made up"]
    assert {place.configuration for place in found.known.places} == {"random", "margin", "sabal"}
    assert found.ranked[0].row("oracle").auc > 60
    assert "oracle" not in found.ranked[0].winners
    assert "oracle" not in found.names


# -- the tasks ----------------------------------------------------------------------------------


def test_the_tasks_are_as_people_have_them():
    tables = {task.dataset for task in QUERY_TASKS if task.family == "tabular"}
    words = {task.dataset.partition(":")[0] for task in QUERY_TASKS if task.family == "tfidf"}
    assert len(tables) == 10
    assert len(words) == 5
    assert {"random-forest", "boosting", "scaled-logistic"} == {
        task.model for task in QUERY_TASKS if task.family == "tabular"
    }
    ranked = [task for task in QUERY_TASKS if task.name not in HELD_OUT]
    assert {10, 20, 50} <= {task.batch for task in ranked if task.family == "tfidf"}
    for family in ("tabular", "tfidf"):
        assert any(t.variant == "wrong-labels" for t in ranked if t.family == family)
    assert {task.family for task in TASKS} == set(FAMILIES)
    assert set(HELD_OUT_DATA) <= {task.dataset for task in QUERY_TASKS}
    assert all(t.name in HELD_OUT for t in QUERY_TASKS if t.dataset in HELD_OUT_DATA)
    for task in QUERY_TASKS:
        assert task.labels[-1] <= task.pool / 2.5 or task.dataset == "tabular/vowel"


# -- the plan -----------------------------------------------------------------------------------


def results_of(task, configuration, seconds):
    record = replace(RECORD, select_seconds=seconds)
    return StudyResults({(task.name, digest_of(task, configuration)): {0: record}}, [])


def test_quick_tasks_have_many_seeds_and_others_few():
    tasks = [TABLE, replace(TABLE, name="unknown")]
    compared = [*THREE, BY_NAME["kernel-a1"], ORACLE]
    quick, slow = (
        seeds_by_time(tasks, compared, results_of(TABLE, THREE[0], seconds))
        for seconds in (1.0, 9.5)
    )
    assert [quick(TABLE, each) for each in compared] == [20, 20, 20, 5, 3]
    assert [slow(TABLE, each) for each in compared] == [5, 5, 5, 5, 3]
    assert slow(tasks[1], THREE[0]) == 20
    assert [fixed_seeds(7)(TABLE, each) for each in (THREE[0], ORACLE)] == [7, 3]
    assert len(planned(tasks, compared, slow)) == 3 * 5 + 5 + 3 + 3 * 20 + 5 + 3


def test_every_run_is_in_one_shard_with_the_others_of_its_data():
    runs = planned(QUERY_TASKS, THREE, 3)
    parts = [shard_of(runs, number, 3) for number in (1, 2, 3)]
    assert sorted(r.title for part in parts for r in part) == sorted(r.title for r in runs)
    assert min(map(len, parts)) > len(runs) / 5
    keys = [{(r.task.name, r.seed) for r in part} for part in parts]
    assert not keys[0] & keys[1]
    assert parse_shard("2/3") == (2, 3)
    for wrong in ("0/2", "3/2", "a/b", "1", "1/", "-1/2"):
        with pytest.raises(InputError, match="1/2"):
            parse_shard(wrong)


WRITER = """
import json, sys
from dataclasses import replace
from pathlib import Path
from research.study.csv_lines import append_line
from research.study.run_records import RunRecord
record = RunRecord(**json.loads(sys.argv[2]))
for seed in range(40):
    append_line(replace(record, seed=seed), Path(sys.argv[1]))
"""


def test_two_processes_can_write_to_one_file(tmp_path):
    path = tmp_path / "runs.csv"
    words = [sys.executable, "-c", WRITER, str(path), json.dumps(asdict(RECORD))]
    writers = [subprocess.Popen(words, cwd=ROOT) for _ in range(2)]
    assert [each.wait(60) for each in writers] == [0, 0]
    append_line(RECORD, path)
    records, bad = read_lines(path, RunRecord)
    assert (len(records), bad) == (81, 0)
