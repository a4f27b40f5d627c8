"""The corrections: the variants of the algorithms, their measurement and the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sabal
from research.cli import main
from research.corrections import variants as variants_module
from research.corrections.corrections_page import variant_rows, write_page
from research.corrections.variant_measurements import (
    ALGORITHMS,
    CORRECTIONS_FILE,
    VariantRecord,
    measure,
    open_states,
    read_current,
    variant_points,
)
from research.corrections.variants import GREEDY, IHT, DenseProblem, WeightedBatch
from research.study.csv_lines import append_line, read_lines
from research.study.definitions import StudyTask, digest_of
from research.study.tasks import TASKS
from sabal.sparse.items import LocalItems
from sabal.sparse.operators import Dense
from sabal.sparse.problem import Problem

TINY = StudyTask(
    name="tiny", dataset="digits", model="logistic", initial=20, batch=10, rounds=2, pool=200
)
VARIANTS = 1 + len(GREEDY) + len(IHT)


def whole(seed, *, n=40, m=6, budget=7, alpha=0.1, beta=1e-4, scale="literal"):
    rng = np.random.default_rng(seed)
    items = LocalItems(Dense(rng.normal(size=(n, m))), rng.random(n))
    make = Problem.literal if scale == "literal" else Problem.scale_free
    return DenseProblem(make(items, budget, alpha=alpha, beta=beta), items)


FEW = 6
"""Iterations: in many, rounding that two items are told apart by grows to other batches."""

SOLVERS = (
    (GREEDY[1], sabal.Greedy(score="first-order", refresh=1)),
    (GREEDY[2], sabal.Greedy(refresh=1)),
    (IHT[2], sabal.ProximalIHT(prox="appendix", iterations=FEW)),
    (IHT[3], sabal.ProximalIHT(iterations=FEW)),
)


@pytest.fixture
def few_iterations(monkeypatch):
    monkeypatch.setattr(variants_module, "ITERATIONS", FEW)


@pytest.mark.parametrize(("variant", "solver"), SOLVERS)
@pytest.mark.parametrize("scale", ["literal", "free"])
@pytest.mark.usefixtures("few_iterations")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(3, 25),
    m=st.integers(1, 6),
    alpha=st.sampled_from([0.0, 1e-8, 0.1, 2.0]),
    beta=st.sampled_from([1e-4, 0.1, 1.0]),
)
def test_corrected_variants_are_the_solvers(variant, solver, scale, seed, n, m, alpha, beta):
    """The variants are written for all n weights, the solvers for the batch alone."""
    problem = whole(seed, n=n, m=m, budget=min(n, 4), alpha=alpha, beta=beta, scale=scale)
    batch, solution = variant.run(problem), solver.solve(problem.problem)
    # Where two items rank alike but for rounding, either may be first.
    assume(set(batch.indices) == set(solution.indices))
    order, other = np.argsort(batch.indices), np.argsort(solution.indices)
    np.testing.assert_allclose(batch.weights[order], solution.weights[other], atol=1e-5)


@pytest.mark.parametrize(("variant", "solver"), SOLVERS)
@pytest.mark.usefixtures("few_iterations")
def test_corrected_variants_choose_what_the_solvers_do(variant, solver):
    """What the property above leaves out is rare."""
    same = 0
    for seed in range(20):
        problem = whole(seed)
        batch, solution = variant.run(problem), solver.solve(problem.problem)
        same += set(batch.indices) == set(solution.indices)
    assert same >= 19


@pytest.mark.parametrize(
    "variant", [*GREEDY, *IHT], ids=lambda variant: f"{variant.algorithm}-{variant.name}"
)
def test_a_whole_batch_has_b_items_and_a_printed_one_only_positive_weights(variant):
    asked = []
    for seed in range(10):
        batch = variant.run(whole(seed))
        assert np.unique(batch.indices).size == batch.indices.size
        assert np.all(batch.weights >= 0)
        if variant.whole_batch:
            assert batch.indices.size == 7
        else:
            assert np.all(batch.weights > 0)
        asked.append(batch.indices.size)
    if not variant.whole_batch:
        # The correction has something to correct.
        assert min(asked) < 7


def test_the_best_iterate_is_never_above_the_last_and_sometimes_below():
    below = 0
    for seed in range(10):
        problem = whole(seed, alpha=1e-8)
        last, best = (problem.objective(variant.run(problem)) for variant in IHT[1:3])
        assert best <= last
        below += best < last
    assert below > 0


@pytest.mark.parametrize("scale", ["literal", "free"])
def test_f_of_a_whole_batch_is_that_of_the_problem_but_for_a_constant(scale):
    problem = whole(3, beta=0.5, scale=scale)
    rng = np.random.default_rng(0)
    batches = [WeightedBatch(rng.choice(40, 7, replace=False), rng.random(7)) for _ in range(5)]
    apart = [
        problem.objective(each) - problem.problem.objective(each.indices, each.weights)
        for each in batches
    ]
    np.testing.assert_allclose(apart, apart[0], atol=1e-12)


# -- measuring ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corrections")
    measure(open_states([TINY], 1, []), folder, data=None, jobs=2)
    return folder


def test_every_state_has_every_variant_and_is_measured_once(measured):
    lines = read_current(measured / CORRECTIONS_FILE, [TINY])
    assert len(lines) == 2 * VARIANTS
    assert {line.labels for line in lines} == {20, 40}
    assert open_states([TINY], 1, lines) == []
    assert len(open_states([TINY], 2, lines)) == 2
    for line in lines:
        assert line.asked <= line.batch == 10
        assert 0 <= line.accuracy <= 100


def test_a_state_comes_to_the_same_lines_again(measured):
    """In this process, with as many threads as it has."""
    again = [point.record for point in variant_points(TINY, 0, 2, None)]
    before = {
        (line.algorithm, line.variant): line
        for line in read_current(measured / CORRECTIONS_FILE, [TINY])
        if line.labels == 40
    }
    assert len(again) == len(before) == VARIANTS
    for line in again:
        twin = before[line.algorithm, line.variant]
        assert (line.asked, line.accuracy) == (twin.asked, twin.accuracy)
        np.testing.assert_allclose(line.objective, twin.objective, rtol=1e-6)


def test_a_state_that_was_left_half_done_is_done_again_and_counts_once(measured, tmp_path):
    lines = read_current(measured / CORRECTIONS_FILE, [TINY])
    for line in lines[:5]:
        append_line(line, tmp_path / CORRECTIONS_FILE)
    left = open_states([TINY], 1, read_current(tmp_path / CORRECTIONS_FILE, [TINY]))
    assert [(seed, number) for _, seed, number in left] == [(0, 0), (0, 2)]
    for line in lines:
        append_line(line, tmp_path / CORRECTIONS_FILE)
    assert len(read_lines(tmp_path / CORRECTIONS_FILE, VariantRecord)[0]) == len(lines) + 5
    assert len(read_current(tmp_path / CORRECTIONS_FILE, [TINY])) == len(lines)


def test_a_state_that_fails_is_told_of_and_the_others_go_on(tmp_path):
    impossible = StudyTask(
        name="impossible", dataset="digits", model="logistic", initial=20, batch=10, rounds=2,
        pool=10**6,
    )  # fmt: skip
    failed = measure([(impossible, 0, 0), (TINY, 0, 0)], tmp_path, data=None, jobs=1)
    assert list(failed) == ["impossible/round 0/seed 0"]
    assert "at least 1000000 items" in failed["impossible/round 0/seed 0"]
    assert len(read_current(tmp_path / CORRECTIONS_FILE, [TINY])) == VARIANTS


def test_every_recorded_line_is_of_current_settings():
    path = Path(__file__).parents[2] / "docs" / "results" / "study" / CORRECTIONS_FILE
    lines, bad = read_lines(path, VariantRecord)
    assert bad == 0
    assert len(read_current(path, TASKS)) == len(lines) == 1_040


# -- the page -----------------------------------------------------------------------------------


def made_up(task, seed, variant, **more):
    printed = ALGORITHMS[max(variant.algorithm, 1) - 1][1]
    given = {
        "labels": 20,
        "batch": 10,
        "asked": 10,
        "rises": 0,
        "objective": 0.0,
        "chance": 10.0,
        "accuracy": 50.0,
        **more,
    }
    return VariantRecord(
        task=task,
        seed=seed,
        digest=digest_of(TINY, printed),
        algorithm=variant.algorithm,
        variant=variant.name,
        **given,
    )


def test_a_row_is_the_change_from_the_variant_before():
    lines = []
    for task, gain in (("one", 1.0), ("two", 3.0)):
        for seed in range(2):
            random = made_up(task, seed, GREEDY[0])
            lines.append(VariantRecord(**{**vars(random), "algorithm": 0, "variant": "random"}))
            lines.append(made_up(task, seed, GREEDY[0], asked=5, objective=8.0, accuracy=49.0))
            lines.append(made_up(task, seed, GREEDY[1], objective=6.0, accuracy=49.0 + gain))
            lines.append(made_up(task, seed, GREEDY[2], objective=0.0, accuracy=49.0 + gain))
    printed, carried, best = variant_rows(lines)[1]
    assert (printed.states, printed.short, printed.asked) == (4, 4, 0.5)
    assert (printed.lower, printed.fall) == (None, None)
    assert printed.accuracy.mean == pytest.approx(-1.0)
    assert (carried.lower, carried.higher) == (4, 0)
    assert carried.fall == pytest.approx(0.2)
    assert (carried.accuracy.mean, carried.accuracy.pairs) == (pytest.approx(2.0), 2)
    assert (best.fall, best.accuracy.mean) == (pytest.approx(0.6), 0.0)


def test_the_page_says_what_the_lines_do(measured, tmp_path):
    lines = read_current(measured / CORRECTIONS_FILE, [TINY])
    write_page(lines, ["the command", "the machine"], tmp_path)
    page = (tmp_path / "corrections.md").read_text()
    assert "    the command\n" in page
    assert "2 states of 1 tasks" in page
    for variant in (*GREEDY, *IHT):
        assert page.count(variant.name.replace("|", "\\|")) >= 1


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*arguments):
        words = ["research", "corrections", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as left:
            main()
        return int(left.value.code or 0), *capsys.readouterr()

    return run


def test_the_command_refuses_what_means_nothing_to_it(run, tmp_path):
    for words in (("--list",), ("--minutes", 0), ("--configurations", "random")):
        code, _, errors = run(*words, "--out", tmp_path)
        assert code == 2
        assert f"No such option: {words[0]}" in errors
    code, _, errors = run("--jobs", 0, "--out", tmp_path)
    assert code == 2
    assert "`jobs` as a whole number" in errors
    code, _, errors = run("--report", "--out", tmp_path)
    assert code == 2
    assert "run `python -m research corrections` first" in errors


@pytest.mark.slow
def test_the_command_measures_and_reports_it_again(run, tmp_path):
    only = ("--tasks", "digits-logistic-b10", "--out", tmp_path)
    code, _, errors = run(*only, "--seeds", 1)
    assert code == 0, errors
    page = (tmp_path / "corrections.md").read_text()
    assert "python -m research corrections --tasks digits-logistic-b10 --seeds 1" in page
    code, answer, errors = run(*only, "--report", "--json")
    assert code == 0, errors
    variants = json.loads(answer)["algorithms"]
    assert [len(variants["1"]), len(variants["2"])] == [len(GREEDY), len(IHT)]
    code, answer, _ = run(*only, "--seeds", 1)
    assert code == 0
    assert "Algorithm 2 as printed" in answer
