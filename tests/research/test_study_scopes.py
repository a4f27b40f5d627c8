"""Labels saved, ranks by scope, what chance gives, goals, and the blocks of other pages."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from research.study.chance import behind_any, behind_best, chance_of_behind
from research.study.configurations import CONFIGURATIONS, ORACLE
from research.study.definitions import StudyTask, digest_of
from research.study.filled_blocks import blocks_of, fill_blocks
from research.study.findings import find
from research.study.goals import goals_of, share_text
from research.study.labels_saved import saved_labels, share_needed
from research.study.report_page import ReportScope, write_report
from research.study.run_records import RunRecord, curve_figures, sort_out
from research.study.scope_lines import advice_lines, summary_lines
from research.study.scopes import task_scopes
from sabal.errors import FileError

BY_NAME = {each.name: each for each in CONFIGURATIONS}
FOUR = [BY_NAME[name] for name in ("random", "margin", "badge", "sabal")]
TABLE = StudyTask(
    name="table",
    dataset="digits",
    model="scaled-logistic",
    initial=20,
    batch=10,
    rounds=4,
    pool=300,
    test=200,
)
WORDS = replace(TABLE, name="words", model="tfidf-logistic")
LARGE = replace(TABLE, name="large", model="logistic", batch=200)
HELD = replace(TABLE, name="held")
MADE_UP = replace(TABLE, name="made up", dataset="honeypot")
TASKS = [TABLE, WORDS, LARGE, HELD, MADE_UP]
RISE = {
    "random": [0.2, 0.3, 0.4, 0.5, 0.6],
    "margin": [0.2, 0.4, 0.6, 0.65, 0.7],
    "badge": [0.2, 0.3, 0.5, 0.6, 0.65],
    "sabal": [0.2, 0.5, 0.75, 0.75, 0.75],
    "oracle": [0.2, 0.8, 0.8, 0.8, 0.8],
}


def records(tasks, compared, seeds=6, rise=RISE):
    rng = np.random.default_rng(0)
    for task in tasks:
        for each in compared:
            for seed in range(3 if each is ORACLE else seeds):
                curve = np.array(rise[each.name]) + 0.001 * rng.normal(size=5)
                yield RunRecord(
                    task=task.name,
                    configuration=each.name,
                    digest=digest_of(task, each),
                    seed=seed,
                    select_seconds=0.5,
                    train_seconds=1.0,
                    harness=2,
                    data="same",
                    **curve_figures(task.labels, list(curve)),
                )


def findings(compared=(*FOUR, ORACLE), tasks=TASKS, **more):
    results = sort_out(records(tasks, compared, **more), tasks, compared)
    return results, find(results, tasks, compared, ("held",))


def test_the_share_of_labels_counts_what_was_asked_for():
    curve = np.array([0.2, 0.4, 0.6, 0.6, 0.9])
    assert share_needed(TABLE, curve, 0.5) == pytest.approx(1.5 / 4)
    assert share_needed(TABLE, curve, 0.1) == 0.0
    assert share_needed(TABLE, curve, 0.91) == float("inf")
    results, _ = findings(seeds=1)
    found = saved_labels(results, TABLE, FOUR)
    assert found.share["sabal"] == pytest.approx(1.4 / 4, abs=0.01)
    assert found.share["margin"] == pytest.approx(2 / 4, abs=0.02)
    assert found.share["random"] == 1.0
    assert found.best == "margin"
    assert saved_labels(results, TABLE, FOUR[1:]) is None
    assert [share_text(0.375), share_text(float("inf"))] == ["38 %", "not reached"]


def test_scopes_part_the_tasks_and_diagnostics_are_in_none():
    scopes = {
        title: [t.name for t in found] for title, found in task_scopes(TASKS, ["held"]).items()
    }
    assert scopes == {
        "all": ["table", "words", "large"],
        "tabular": ["table"],
        "tfidf": ["words"],
        "frozen": ["large"],
        "b >= 200": ["large"],
        "held out": ["held"],
    }


def test_figures_of_a_scope():
    _, found = findings()
    every = found.scopes["all"]
    assert every.tasks == 3
    assert every.median_share("sabal") == pytest.approx(1.4 / 4, abs=0.02)
    assert [place.configuration for place in every.by_area.places][:2] == ["sabal", "margin"]
    assert every.by_area.tasks == {"table": 6, "words": 6, "large": 6}
    assert every.behind == every.behind_adjusted == []
    assert 0.075 < every.chance < 0.6
    lead = every.lead["badge"]
    assert lead.mean == pytest.approx(100 * (0.61875 - 0.45625), abs=0.2)
    assert lead.better
    # (area of sabal - random) / (area of oracle - random), on the seeds of the oracle; the oracle
    # is not run on tasks of other doors.
    assert every.oracle_tasks == 2
    assert every.oracle_share["sabal"] == pytest.approx((0.61875 - 0.4) / (0.725 - 0.4), abs=0.02)
    json.dumps(found.document(), allow_nan=False)


def test_leads_allow_for_several_comparisons():
    rise = {**RISE, "sabal": [0.2, 0.31, 0.41, 0.51, 0.61]}
    tasks = [replace(TABLE, name=f"t{k}") for k in range(5)]
    _, found = findings(FOUR, tasks, rise=rise)
    lead = found.scopes["all"].lead["random"]
    areas = [table.row("sabal").auc - table.row("random").auc for table in found.ranked]
    level = 1 - 0.05 / 3
    expected = stats.t.interval(level, 4, np.mean(areas), stats.sem(areas))
    assert (lead.low, lead.high) == pytest.approx(expected)


def test_leads_over_data_sets_are_of_the_means_of_their_tasks():
    tasks = [TABLE, replace(TABLE, name="again"), replace(WORDS, dataset="texts/x:a,b")]
    _, found = findings(FOUR, tasks)
    every = found.scopes["all"]
    rows = {t.task: t.row("sabal").auc - t.row("badge").auc for t in found.ranked}
    lead = every.lead_by_data["badge"]
    assert (every.lead["badge"].pairs, lead.pairs) == (3, 2)
    first = (rows["table"] + rows["again"]) / 2
    assert lead.mean == pytest.approx((first + rows["words"]) / 2)


def test_behind_the_best_is_the_test_of_scipy():
    rng = np.random.default_rng(1)
    for _ in range(30):
        values = rng.normal([0.0, 0.0, 0.8, 0.3], size=(8, 4))
        best = 1 + int(values[:, 1:].mean(axis=0).argmax())
        test = stats.ttest_rel(values[:, 0], values[:, best])
        assert behind_best(values) == (test.pvalue < 0.05 and test.statistic < 0)
        p = [
            stats.ttest_rel(values[:, 0], values[:, k], alternative="less").pvalue
            for k in (1, 2, 3)
        ]
        assert behind_any(values) == (min(p) < 0.025 / 3)
    assert not behind_best(values[:1])


def test_chance_grows_with_the_number_of_others():
    rng = np.random.default_rng(2)
    rates = [
        np.mean([chance_of_behind(rng.normal(size=(10, k)), rng) for _ in range(20)])
        for k in (2, 11)
    ]
    assert rates[0] == pytest.approx(0.025, abs=0.01)
    assert rates[1] > 0.06


def test_goals_are_figures_met_or_not(tmp_path):
    results, found = findings()
    met = {goal.what: goal.met for goal in found.goals}
    assert met["best mean rank by area, all (3 tasks)"]
    assert any("at most 45 %, all" in what and goal for what, goal in met.items())
    assert met["ahead of `badge` in mean area, tabular (1 tasks)"] is False  # no interval
    assert not any(goal for what, goal in met.items() if "paired seeds" in what)
    slow = {**RISE, "sabal": RISE["random"], "random": RISE["sabal"]}
    _, lost = findings(rise=slow)
    worse = {goal.what: goal for goal in lost.goals}
    assert not worse["best mean rank by area, all (3 tasks)"].met
    behind = next(goal for what, goal in worse.items() if what.startswith("significantly behind"))
    assert behind.figure.startswith("3 tasks; chance gives 0.1")
    assert not behind.met
    assert goals_of({}) == []

    scope = ReportScope(tasks=TASKS, configurations=[*FOUR, ORACLE], held_out=("held",))
    write_report(results, scope, tmp_path)
    page = (tmp_path / "study.md").read_text()
    for heading in ("## Labels saved", "## Goals", "## By family", "## What was possible"):
        assert heading in page
    assert "| all ranked tasks | 3 | 6 | 35 % |" in page
    for name in ("saved", "curves-tabular", "curves-tfidf", "curves-frozen", "curves-diagnostic"):
        assert f"study/{name}.png" in page
        assert (tmp_path / "study" / f"{name}.png").stat().st_size > 0


def test_few_seeds_prove_nothing():
    slow = {**RISE, "sabal": RISE["random"], "random": RISE["sabal"]}
    _, found = findings(seeds=4, rise=slow)
    assert found.scopes["all"].behind == []
    assert not [g for g in found.goals if g.what.startswith("significantly behind") and g.met]


def test_advice_follows_from_the_families():
    _, found = findings()
    rows = advice_lines(found.scopes)
    assert [row.split(" | ")[2] for row in rows[2:-1]] == ["`sabal`"] * 4
    tasks = [replace(TABLE, name=f"t{k}") for k in range(5)]
    better = {**RISE, "margin": [0.2, 0.6, 0.8, 0.8, 0.8]}
    _, lost = findings(FOUR, tasks, rise=better)
    assert "| `margin` |" in advice_lines(lost.scopes)[2]
    slightly = {**RISE, "margin": [0.2, 0.5, 0.7, 0.7, 0.7001]}
    for seeds in (1, 2, 3):
        _, even = findings(FOUR, tasks[:3], rise=slightly, seeds=seeds)
        assert "`sabal`" in advice_lines(even.scopes)[2]


def test_blocks_of_pages_are_filled(tmp_path):
    _, found = findings()
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- study: summary -->\nold\n<!-- end of study: summary -->\nafter\n")
    assert fill_blocks(page, blocks_of(found)) == ["summary"]
    text = page.read_text()
    assert text.startswith("before\n<!-- study: summary -->\nLabels that `sabal` needs")
    assert text.endswith("<!-- end of study: summary -->\nafter\n")
    assert "**35 %** in the median over 3 tasks" in text
    assert "python -m research study" in text
    assert fill_blocks(page, blocks_of(found)) == ["summary"]
    assert page.read_text() == text
    page.write_text("nothing here")
    with pytest.raises(FileError, match="summary, advice"):
        fill_blocks(page, blocks_of(found))
    with pytest.raises(FileError, match="no file"):
        fill_blocks(tmp_path / "absent.md", blocks_of(found))
    assert summary_lines({}) == advice_lines({}) == []
    with pytest.raises(FileError, match="to fill pages from"):
        blocks_of(findings(FOUR[:2])[1])


def test_the_summary_says_where_it_does_not_win():
    slow = {**RISE, "sabal": RISE["random"], "random": RISE["sabal"]}
    _, lost = findings(rise=slow)
    text = "\n".join(summary_lines(lost.scopes))
    assert "Not first by area: all ranked tasks" in text
    assert (
        "Significantly behind the best of all others on 3 of 3 tasks (table, words, large)" in text
    )
    assert "is not reached on 3 of 3 tasks" in text
