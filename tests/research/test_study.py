"""The study's harness: the same runs twice, stopped and gone on, stale lines, its arithmetic."""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

from research.cli import main
from research.study.ablation import CHANGES, effects
from research.study.analysis import best_baseline, paired, ranking, win_matrix
from research.study.configurations import CONFIGURATIONS
from research.study.csv_lines import append_line, read_lines
from research.study.data_variants import imbalanced, near_duplicates
from research.study.definitions import Configuration, StudyTask, digest_of, experiment_of
from research.study.findings import find
from research.study.planning import open_runs, planned
from research.study.report_page import ReportScope, write_report
from research.study.run_records import RunRecord, read_results, sort_out
from research.study.runs import run_study
from research.study.seeded_draws import draws_of, first_per_class
from research.study.task_data import missing_data, prepared
from research.study.tasks import HELD_OUT, TASKS
from sabal.errors import FileError, InputError, SabalError
from sabal.learners.network_recipes import RECIPES

RECORDED = Path(__file__).parents[2] / "docs" / "results" / "study" / "runs.csv"
BY_NAME = {each.name: each for each in CONFIGURATIONS}
THREE = [BY_NAME[name] for name in ("random", "margin", "sabal")]
TINY = StudyTask(
    name="tiny", dataset="digits", model="logistic", initial=20, batch=10, rounds=2, pool=300
)
TWIN = replace(BY_NAME["sabal"], name="as-it-is", role="candidate")
"""A candidate that is `sabal` by another name."""
RARE = replace(TINY, name="rare", variant="imbalanced", first="per-class", test=200)


def lines(folder):
    """What the file says, but for what is never the same twice."""
    records, bad = read_lines(folder / "runs.csv", RunRecord)
    assert bad == 0
    same = [replace(each, select_seconds=0.0, train_seconds=0.0) for each in records]
    return sorted(same, key=lambda each: (each.task, each.configuration, each.seed))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    outcome = run_study(planned([TINY, RARE], THREE, 2), folder)
    assert (outcome.finished, outcome.failed, outcome.left) == (12, {}, 0)
    return folder


# -- runs ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_side_by_side_after_a_stop_comes_to_the_same_lines(finished, tmp_path):
    class StopError(Exception):
        pass

    heard = []

    def stop(point):
        heard.append(point)
        if len(heard) == 10:
            raise StopError

    runs = planned([TINY, RARE], THREE, 2)
    with pytest.raises(StopError):
        run_study(runs, tmp_path, on_round=stop)
    before = lines(tmp_path)
    assert 1 <= len(before) < 12
    rest = open_runs(runs, sort_out(before, [TINY, RARE], THREE))
    assert len(rest) == 12 - len(before)
    assert run_study(rest, tmp_path, jobs=2).finished == len(rest)
    assert lines(tmp_path) == lines(finished)
    assert not open_runs(runs, sort_out(lines(tmp_path), [TINY, RARE], THREE))


def test_runs_of_a_task_and_seed_start_alike(finished):
    groups = {}
    for each in lines(finished):
        groups.setdefault((each.task, each.seed), []).append(each)
    assert len(groups) == 4
    for group in groups.values():
        assert len({each.data for each in group}) == 1
        assert len({each.accuracies[0] for each in group}) == 1
        assert len({each.curve for each in group}) > 1
    assert len({each.data for each in lines(finished)}) == 4
    one = lines(finished)[0]
    assert one.labels == 40
    points = [100 * each for each in one.accuracies]
    assert one.auc == pytest.approx((points[0] / 2 + points[1] + points[2] / 2) / 2, abs=0.01)
    assert one.final == pytest.approx(points[-1], abs=0.01)


def test_no_run_begins_when_the_time_is_up_and_a_failed_one_stops_no_other(tmp_path):
    late = run_study(planned([TINY], THREE, 1), tmp_path / "late", minutes=1e-9)
    assert (late.finished, late.failed, late.left) == (0, {}, 3)
    assert not (tmp_path / "late" / "runs.csv").exists()
    greedy = replace(TINY, name="greedy", rounds=100)
    outcome = run_study(planned([greedy, TINY], THREE[:1], 1), tmp_path)
    assert (outcome.finished, outcome.left) == (1, 0)
    assert list(outcome.failed) == ["greedy/random/seed 0"]
    assert "size of the pool" in outcome.failed["greedy/random/seed 0"]
    assert [each.task for each in lines(tmp_path)] == ["tiny"]


@pytest.mark.slow
def test_what_a_killed_worker_was_at_is_done_again(finished, tmp_path, monkeypatch):
    starts = []

    def run_parallel(runs, jobs, hear):
        starts.append(len(runs))
        for k, run in enumerate(runs):
            for point in run():
                hear(point)
                if len(starts) == 1 and k == 1:
                    raise BrokenProcessPool

    monkeypatch.setattr("research.study.runs.run_parallel", run_parallel)
    outcome = run_study(planned([TINY], THREE, 2), tmp_path)
    assert (outcome.finished, outcome.left) == (6, 0)
    assert starts == [6, 5]
    assert lines(tmp_path) == [each for each in lines(finished) if each.task == "tiny"]

    def killed(runs, jobs, hear):
        raise BrokenProcessPool

    monkeypatch.setattr("research.study.runs.run_parallel", killed)
    with pytest.raises(SabalError, match="killed"):
        run_study(planned([TINY], THREE, 2), tmp_path)


def test_the_order_can_be_stopped_anywhere():
    candidate = BY_NAME["kernel-c10-a1"]
    quick = replace(TINY, name="quick", model="scaled-logistic")
    runs = planned([TINY, RARE, quick], [candidate, *THREE], 7)
    assert len(runs) == 84
    keys = [(r.seed, r.configuration.role == "candidate", r.task.name) for r in runs]
    # In blocks of five seeds: what is compared, the quick family first; then the candidates.
    order = {"quick": 0, "tiny": 1, "rare": 2}
    assert keys == sorted(
        keys, key=lambda key: (key[0] // 5, key[1], key[2] != "quick", key[0], order[key[2]])
    )


def test_what_two_configurations_agree_on_is_one_run():
    assert digest_of(TINY, TWIN) == digest_of(TINY, BY_NAME["sabal"])
    assert digest_of(TINY, BY_NAME["kernel-a1"]) != digest_of(TINY, BY_NAME["sabal"])
    runs = planned([TINY], [TWIN, BY_NAME["sabal"]], 1)
    assert [run.configuration.name for run in runs] == ["sabal"]


def test_every_recorded_run_is_of_a_current_definition():
    results = read_results(RECORDED, TASKS, CONFIGURATIONS)
    assert (len(results.stale), results.bad) == (0, 0)
    assert sum(map(len, results.runs.values())) >= 2_226


@dataclass(frozen=True, kw_only=True)
class CoverageOnly:
    """`sabal` without the options of atoms."""

    needs: ClassVar[tuple[str, ...]] = ("features|probs",)
    uncertainty: str | None = None
    radius: float | None = None


def test_recorded_runs_outlive_a_renamed_strategy():
    """Kernel atoms were reached through `sabal` when their runs were recorded."""
    kernel = [each for each in CONFIGURATIONS if each.strategy == "sabal-kernel"]
    assert {each.role for each in kernel} == {"candidate"}
    lost = [replace(each, recorded_strategy=None) for each in CONFIGURATIONS]
    stale = {each.configuration for each in read_results(RECORDED, TASKS, lost).stale}
    assert "kernel-a1" in stale
    assert "sabal" not in stale


def test_options_that_came_later_can_be_left_out_of_a_digest():
    greedy = BY_NAME["greedy-free"]
    later = replace(greedy, recorded_options={"refresh": None, "score": "other"})
    assert "refresh" in greedy.definition()["options"]
    assert "refresh" not in later.definition()["options"]
    assert later.definition()["options"]["score"] == "other"


# -- records ------------------------------------------------------------------------------------


def test_a_changed_definition_makes_its_lines_stale(finished):
    records, _ = read_lines(finished / "runs.csv", RunRecord)
    assert len(sort_out(records, [TINY, RARE], THREE).stale) == 0
    longer = replace(TINY, rounds=3)
    stale = sort_out(records, [longer, RARE], THREE).stale
    assert {each.task for each in stale} == {"tiny"}
    assert len(stale) == 6
    # As if the defaults of `sabal` had changed.
    other = replace(BY_NAME["sabal"], options={"uncertainty": "entropy"})
    results = sort_out(records, [TINY, RARE], [*THREE[:2], other])
    assert {each.configuration for each in results.stale} == {"sabal"}
    assert results.of(TINY, other) == {}
    assert len(open_runs(planned([TINY, RARE], [*THREE[:2], other], 2), results)) == 4
    # And a candidate that says what it did before has its runs.
    kept = sort_out(records, [TINY, RARE], [*THREE[:2], other, TWIN])
    assert not kept.stale
    assert list(kept.of(TINY, TWIN)) == [0, 1]


def test_what_is_only_a_name_or_a_remark_changes_no_digest():
    assert digest_of(replace(TINY, name="x", cheap=True), THREE[0]) == digest_of(TINY, THREE[0])
    assert digest_of(TINY, replace(THREE[2], name="x")) == digest_of(TINY, THREE[2])
    assert digest_of(TINY, replace(THREE[2], weighted=True)) != digest_of(TINY, THREE[2])
    network = replace(TINY, model="mlp")
    assert digest_of(replace(network, recipe={"epochs": 100}), THREE[0]) == digest_of(
        network, THREE[0]
    )
    assert digest_of(replace(network, recipe={"epochs": 7}), THREE[0]) != digest_of(
        network, THREE[0]
    )


def test_a_line_of_other_data_than_its_pairs_is_stale(finished):
    records, _ = read_lines(finished / "runs.csv", RunRecord)
    odd = [replace(r, data="other") if r.configuration == "random" else r for r in records]
    results = sort_out(odd, [TINY, RARE], THREE)
    assert {each.configuration for each in results.stale} == {"random"}


@pytest.mark.parametrize("cut", [1, 9, 60])
def test_a_torn_line_is_told_of_and_loses_no_other(tmp_path, cut):
    path = tmp_path / "runs.csv"
    one = made_up("tiny", THREE[0], 0, 50.0)
    append_line(one, path)
    append_line(replace(one, seed=1), path)
    path.write_bytes(path.read_bytes()[:-cut])
    assert [len(read_lines(path, RunRecord)[0]), read_lines(path, RunRecord)[1]] == [1, 1]
    append_line(replace(one, seed=2), path)
    records, bad = read_lines(path, RunRecord)
    assert [each.seed for each in records] == [0, 2]
    assert records[0] == one
    assert bad == 1
    path.write_text("")
    append_line(one, path)
    assert read_lines(path, RunRecord) == ([one], 0)
    path.write_text("something else\n")
    with pytest.raises(FileError, match="to begin with task"):
        read_lines(path, RunRecord)


# -- analysis -----------------------------------------------------------------------------------


def made_up(task, configuration, seed, auc):
    definition = next((each for each in (TINY, RARE, *TASKS) if each.name == task), TINY)
    return RunRecord(
        task=task,
        configuration=configuration.name,
        digest=digest_of(definition, configuration),
        seed=seed,
        auc=auc,
        final=auc,
        labels=40,
        select_seconds=0.5,
        train_seconds=1.0,
        harness=1,
        data="same",
        curve=" ".join([f"{auc:.2f}"] * (definition.rounds + 1)),
    )


def made_up_areas(tasks=6, names=("random", "margin", "badge", "sabal"), seeds=5):
    rng = np.random.default_rng(3)
    return {
        f"t{k}": {
            name: {s: 50 + j * 0.4 * (k % 3) + rng.normal() for s in range(seeds)}
            for j, name in enumerate(names)
        }
        for k in range(tasks)
    }


def test_paired_intervals_and_the_ranking_against_a_naive_computation():
    areas = made_up_areas()
    names = list(areas["t0"])
    away = paired(areas["t2"]["sabal"], areas["t2"]["random"])
    values = [areas["t2"]["sabal"][s] - areas["t2"]["random"][s] for s in range(5)]
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (away.mean, away.low, away.high) == pytest.approx((np.mean(values), *expected))
    assert away.better == (expected.low > 0)

    found = ranking(areas, list(areas), names)
    for place in found.places:
        ranks = []
        for task in areas.values():
            means = {name: np.mean(list(task[name].values())) for name in names}
            ranks.append(1 + sum(means[name] > means[place.configuration] for name in names))
        assert place.rank == pytest.approx(np.mean(ranks))
        low, high = stats.t.interval(0.95, 5, np.mean(ranks), stats.sem(ranks))
        assert (place.low, place.high) == pytest.approx((max(low, 1), min(high, 4)))
    assert [place.rank for place in found.places] == sorted(place.rank for place in found.places)

    wins = win_matrix(areas, list(areas), names)
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            naive = 0
            for task in areas.values():
                values = [task[one][s] - task[other][s] for s in range(5)]
                naive += stats.ttest_1samp(values, 0.0, alternative="greater").pvalue < 0.025
            assert wins[i, j] == (naive if i != j else 0)


def test_only_seeds_and_tasks_that_all_share_are_ranked():
    areas = made_up_areas()
    names = list(areas["t0"])
    del areas["t1"]["badge"]
    areas["t2"]["margin"] = {0: 99.0, 7: 0.0}
    areas["t3"]["margin"] = {8: 99.0}
    found = ranking(areas, list(areas), names)
    assert found.tasks == {"t0": 5, "t2": 1, "t4": 5, "t5": 5}
    alone = ranking(areas, ["t2"], names)
    assert alone.places[0].configuration == "margin"
    assert alone.places[0].low is None
    assert ranking(areas, ["t1", "t3"], names).places == []


def test_equals_share_a_rank_and_a_lucky_seed_is_no_best_baseline():
    same = {"a": {0: 1.0}, "b": {0: 1.0}, "c": {0: 0.0}}
    assert [p.rank for p in ranking({"t": same}, ["t"], list("abc")).places] == [1.5, 1.5, 3.0]
    areas = {"random": {0: 5.0, 1: 5.0}, "margin": {0: 9.0}}
    assert best_baseline(areas, THREE) == "random"


def test_held_out_tasks_are_reported_and_never_ranked(tmp_path):
    tasks = [TINY, RARE]
    gains = {"random": 0.0, "margin": 1.0, "sabal": 2.0}
    records = [
        made_up(task.name, each, seed, 60 + gains[each.name] + 0.01 * seed * gains[each.name])
        for task in tasks
        for each in THREE
        for seed in range(4)
    ]
    results = sort_out(records, tasks, THREE)
    found = find(results, tasks, THREE, ("rare",))
    assert list(found.known.tasks) == ["tiny"]
    assert [table.task for table in found.ranked] == ["tiny"]
    assert [table.task for table in found.held_out] == ["rare"]
    assert found.ranked[0].winners == ["margin", "sabal"]
    assert found.ranked[0].best == "margin"
    assert found.wins.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    json.dumps(found.document())

    scope = ReportScope(
        tasks=tasks, configurations=THREE, held_out=("rare",), origin=("python -m research study",)
    )
    write_report(results, scope, tmp_path)
    page = (tmp_path / "study.md").read_text()
    assert "| sabal | 1.00 |" in page
    assert page.index("## Held-out") < page.index("### rare")
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert {"study/ranks.png", "study/wins.png", "study/curves-frozen.png"} < set(links)
    for link in links:
        assert link == "study/runs.csv" or (tmp_path / link).stat().st_size > 0


def test_what_was_tried_on_few_tasks_does_not_shrink_the_ranking():
    tasks = [replace(TINY, name=f"t{k}") for k in range(4)]
    candidates = [BY_NAME["kernel-c10-a1"], BY_NAME["kernel-c3-a1"]]
    records = [
        replace(made_up("tiny", each, seed, 60.0 + seed), task=task.name)
        for k, task in enumerate(tasks)
        for each in (*THREE, *candidates)
        for seed in range(2)
        if each is not candidates[1] or k == 0
    ]
    configurations = [*CONFIGURATIONS, TWIN]
    found = find(sort_out(records, tasks, configurations), tasks, configurations, ())
    assert found.unranked == ["kernel-c3-a1"]
    assert len(found.known.tasks) == len(found.candidates.tasks) == 4
    # What is `sabal` by another name is not ranked beside it.
    ranked = {place.configuration for place in found.candidates.places}
    assert ranked == {"random", "margin", "sabal", "kernel-c10-a1"}


def test_the_effect_of_a_change_is_paired_and_over_tasks():
    areas = {
        "one": {"greedy-as-printed": {0: 50.0, 1: 60.0}, "sabal-greedy": {0: 51.0, 1: 61.1}},
        "two": {"greedy-as-printed": {0: 40.0, 1: 41.0}, "sabal-greedy": {0: 38.0, 1: 39.0, 2: 9}},
        "three": {"iht-as-printed": {0: 40.0}},
    }
    [effect] = effects(areas, list(areas))
    assert (effect.change.before, effect.change.after) == ("greedy-as-printed", "sabal-greedy")
    assert effect.over_tasks.mean == pytest.approx((1.05 - 2.0) / 2)
    assert (effect.over_tasks.pairs, effect.better, effect.worse) == (2, 1, 1)


def test_every_change_to_the_paper_is_a_pair_that_is_run():
    for change in CHANGES:
        assert {BY_NAME[change.before].role, BY_NAME[change.after].role} == {"paper"}


def test_the_report_says_where_sabal_is_worse(tmp_path):
    gains = {"random": 0.0, "margin": 2.0, "sabal": 1.0}
    records = [
        made_up(task.name, each, seed, 60 + gains[each.name] + 0.01 * seed * gains[each.name])
        for task in (TINY, RARE)
        for each in THREE
        for seed in range(4)
    ]
    results = sort_out(records, [TINY, RARE], THREE)
    scope = ReportScope(tasks=[TINY, RARE], configurations=THREE, held_out=("rare",))
    found = write_report(results, scope, tmp_path)
    assert [table.task for table in found.worse_than_best(found.ranked)] == ["tiny"]
    page = (tmp_path / "study.md").read_text()
    assert "that of `margin`, 1.00; next is `sabal`, 2.00" in page
    assert "worse than the best baseline on 1 of 1: tiny (margin)" in page
    assert "`random` on 1 of the 1 tasks" in page


def test_ranks_are_also_told_by_the_size_of_the_batch(tmp_path):
    large = replace(TINY, name="large", batch=40)
    gains = {"tiny": {"random": 0.0, "margin": 1.0, "sabal": 2.0}}
    gains["large"] = {"random": 0.0, "margin": 3.0, "sabal": 2.0}
    records = [
        replace(
            made_up("tiny", each, seed, 60 + gains[task.name][each.name]),
            task=task.name,
            digest=digest_of(task, each),
        )
        for task in (TINY, large)
        for each in THREE
        for seed in range(2)
    ]
    results = sort_out(records, [TINY, large], THREE)
    scope = ReportScope(tasks=[TINY, large], configurations=THREE, held_out=())
    found = write_report(results, scope, tmp_path)
    assert {size: each.places[0].configuration for size, each in found.by_batch.items()} == {
        10: "sabal",
        40: "margin",
    }
    page = (tmp_path / "study.md").read_text()
    assert "| 40 | 1 | 1.00 (+1.00) | 2.00 | 3.00 (-2.00) |" in page


# -- data ---------------------------------------------------------------------------------------


def test_rare_classes_keep_a_tenth_and_the_others_all():
    y = np.repeat(np.arange(10), 50)
    x = np.arange(500.0)[:, None]
    items, labels = imbalanced(x, y, np.random.default_rng(0))
    counts = np.bincount(labels)
    assert sorted(counts.tolist()) == [5] * 5 + [50] * 5
    assert np.array_equal(y[items[:, 0].astype(int)], labels)
    assert np.unique(items).size == items.size
    assert np.array_equal(imbalanced(x, y, np.random.default_rng(0))[0], items)


@pytest.mark.parametrize("kind", ["features", "images"])
def test_a_third_are_near_copies_with_the_labels_of_what_they_copy(kind):
    rng = np.random.default_rng(1)
    if kind == "images":
        x = rng.integers(0, 256, (300, 6, 6), dtype=np.uint8)
    else:
        x = rng.normal(size=(300, 36)).astype(np.float32)
    y = np.arange(300)
    items, labels = near_duplicates(x, y, np.random.default_rng(0))
    assert items.shape == x.shape
    assert items.dtype == x.dtype
    copies = np.flatnonzero((items != x).reshape(300, -1).any(axis=1))
    assert copies.size == 100
    assert np.unique(labels[copies]).size <= 20
    spread = 255 if kind == "images" else 1.0
    gaps = items[copies].astype(float) - x[labels[copies]]
    assert 0 < np.abs(gaps).mean() < 0.06 * spread
    # What is copied is still there.
    kept = np.setdiff1d(np.arange(300), copies)
    assert np.array_equal(labels[kept], y[kept])
    assert set(labels[copies]) <= set(kept)


def test_draws_are_decided_by_the_seed_and_every_class_has_its_first_labels(tmp_path):
    one, again, other = (prepared(TINY, seed, None) for seed in (0, 0, 1))
    assert one.fingerprint() == again.fingerprint() != other.fingerprint()
    assert len(one.x_train) == 300
    first = first_per_class(one.y_train, 20, draws_of(0, "first"))
    assert np.bincount(one.y_train[first]).tolist() == [2] * 10
    assert np.unique(first).size == 20
    with pytest.raises(InputError, match="multiple of 10"):
        first_per_class(one.y_train, 15, draws_of(0, "first"))
    with pytest.raises(InputError, match="at least 5000 items"):
        prepared(replace(TINY, pool=5_000), 0, None)


def test_turned_features_keep_their_distances(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 8)) * np.arange(1, 9)
    np.savez(
        tmp_path / "own.npz",
        x_train=x,
        y_train=np.arange(40) % 4,
        x_test=x,
        y_test=np.arange(40) % 4,
    )
    task = replace(TINY, dataset="own", pool=None)
    plain, turned = (prepared(each, 0, tmp_path) for each in (task, replace(task, rotate=True)))
    before, after = (np.linalg.norm(d.x_train - d.x_train[0], axis=1) for d in (plain, turned))
    assert after == pytest.approx(before, rel=1e-4)
    assert turned.x_train.std(axis=0).max() < plain.x_train.std(axis=0).max()


def test_data_that_cannot_be_had_is_named(tmp_path):
    assert missing_data(["digits"], None) == {}
    missing = missing_data(["digits", "agnews-minilm"], tmp_path)
    assert list(missing) == ["agnews-minilm"]
    assert "agnews-minilm.npz" in missing["agnews-minilm"]
    assert "--data" in missing_data(["agnews-minilm"], None)["agnews-minilm"]
    with pytest.raises(FileError, match="no folder"):
        missing_data(["digits"], tmp_path / "absent")


# -- definitions --------------------------------------------------------------------------------


def test_the_tasks_and_configurations_are_sound():
    assert len({task.name for task in TASKS}) == len(TASKS)
    assert len(BY_NAME) == len(CONFIGURATIONS)
    held_out = {task.dataset for task in TASKS if task.name in HELD_OUT}
    assert len(held_out) == 6
    assert not held_out & {task.dataset for task in TASKS if task.name not in HELD_OUT}
    for task in TASKS:
        for each in CONFIGURATIONS:
            if each.applies_to(task):
                if not task.by_query:
                    experiment_of(task, each, 0)
                assert task.posterior or not each.needs_posterior
        assert (task.model in RECIPES) or not task.validation
    suited = [task for task in TASKS if BY_NAME["bald"].applies_to(task)]
    assert suited
    assert all(task.posterior for task in suited)
    assert {each.role for each in CONFIGURATIONS} == {
        *("baseline", "paper", "sabal", "candidate", "oracle")
    }


def test_a_definition_that_cannot_work_is_refused():
    with pytest.raises(InputError, match="variant"):
        replace(TINY, variant="noisy")
    with pytest.raises(LookupError):
        Configuration(name="x", strategy="sabal", role="candidate", options={"alfa": 1})


# -- command line -------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch, capsys):
    """The command in this process: its exit code, and what it printed."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["research", "study", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        return int(left.value.code or 0), *capsys.readouterr()

    return run


@pytest.mark.slow
def test_the_command_runs_what_it_can_and_reports_it_again(run, tmp_path):
    out, empty = tmp_path / "out", tmp_path / "empty"
    empty.mkdir()
    only = ("--tasks", "digits-logistic-b40,agnews-frozen-*", "--configurations", "random,margin")
    code, _, errors = run(*only, "--seeds", 1, "--data", empty, "--out", out)
    assert code == 0, errors
    said = errors.splitlines()
    assert len(said) == 1
    assert "agnews-frozen-b10, agnews-frozen-b40" in said[0]
    records, _ = read_lines(out / "study" / "runs.csv", RunRecord)
    assert [each.configuration for each in records] == ["random", "margin"]
    page = (out / "study.md").read_text()
    assert "python -m research study --tasks" in page
    (out / "study" / "ranks.png").unlink()

    append_line(replace(records[0], digest="0123456789"), out / "study" / "runs.csv")
    code, answer, errors = run("--report", "--out", out, "--json")
    assert code == 0, errors
    assert "1 stale" in errors
    found = json.loads(answer)
    assert found["stale"] == {"digits-logistic-b40/random": 1}
    assert [place["configuration"] for place in found["known"]["places"]] == ["margin", "random"]
    assert (out / "study" / "ranks.png").exists()
    assert "Not used, since their definition" in (out / "study.md").read_text()

    page = tmp_path / "page.md"
    page.write_text("<!-- study: summary -->\n<!-- end of study: summary -->\n")
    code, _, errors = run("--report", "--out", out, "--fill", page)
    assert code == 2
    assert "to fill pages from" in errors

    for part in ("1/2", "2/2"):
        more = ("--configurations", "sabal,badge", "--shard", part, "--seeds", 1)
        code, _, errors = run("--tasks", "digits-logistic-b40", *more, "--out", out)
        assert code == 0, errors
    records, _ = read_lines(out / "study" / "runs.csv", RunRecord)
    assert sorted(r.configuration for r in records if r.digest != "0123456789") == [
        *("badge", "margin", "random", "sabal")
    ]
    code, _, errors = run("--report", "--families", "frozen", "--out", out, "--fill", page)
    assert code == 0, errors
    assert "in the median over 1 tasks" in page.read_text()

    _, answer, _ = run("--list", "--json", "--seeds", 1, *only, "--out", out)
    listed = json.loads(answer)
    assert {row["task"]: row["done"] for row in listed["tasks"]} == {
        "digits-logistic-b40": 2,
        "agnews-frozen-b10": 0,
        "agnews-frozen-b40": 0,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("--tasks", "nosuch"),
        ("--configurations", "sabbal"),
        ("--seeds", 0),
        ("--seeds", "many"),
        ("--shard", "3/2"),
        ("--families", "pictures"),
        ("--tasks", "digits-logistic-b10", "--jobs", 0),
        ("--tasks", "agnews-frozen-b10"),
        ("--tasks", "digits-logistic-b10", "--data", "absent"),
        ("--report",),
        ("--report", "--list"),
    ],
)
def test_mistakes_are_one_line(run, arguments, tmp_path):
    code, answer, errors = run(*arguments, "--out", tmp_path / "out")
    assert code == 2, answer
    assert len(errors.strip().splitlines()) == 1, errors
