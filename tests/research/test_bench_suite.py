"""The suite that guards speed and memory: run for real when tiny, and what is left out of it."""

from __future__ import annotations

import json
import shutil
import sys
from collections import namedtuple
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bench_tiny import DISK, KERNEL, LARGER, SHAPE, SLOW, TINY, made_row
from research.bench import synthetic_inputs as made_up
from research.bench.process import JobOutcome
from research.bench.suite import (
    SCALES,
    plan,
    run_suite,
    sheets,
    suite_records,
    suite_run,
    verdicts,
)
from research.bench.suite.measurement import MeasurementIndex
from research.bench.suite.methods import METHODS, SHAPED
from research.bench.suite.plan import (
    PlannedMeasurement,
    chosen_parts,
    known_outcome,
    tasks_of,
)
from research.bench.suite.pool_inputs import ParquetFolder
from research.bench.suite.scripts import cluster_job, passes_job
from research.cli import main
from sabal.api import select_pool
from sabal.errors import FileError, InputError, UnknownNameError
from sabal.pools import read_pool


def call(*arguments, monkeypatch):
    """The command line in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["research", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


# -- everything for real -------------------------------------------------------------------------


def test_the_whole_suite_but_for_ray_which_takes_its_time_to_start(tmp_path, monkeypatch):
    # One test, for tests that share a run would each make their own in processes side by side.
    monkeypatch.setattr(plan, "find_spec", lambda name: None)
    out = tmp_path / "out"
    rows = run_suite(scale=TINY, out=out, limit=300.0).rows
    everything_is_measured_and_written(rows, out)
    a_selection_is_measured(MeasurementIndex(rows))
    passes_and_a_pool_on_disk_are_measured(MeasurementIndex(rows))
    every_line_is_judged_but_for_what_was_not_measured(rows)


def everything_is_measured_and_written(rows, out):
    done = {row.key for row in rows}
    expected = tasks_of(chosen_parts(None), TINY)
    assert done == {task.key for task in expected}
    for row in rows:
        assert row.status == ("not installed" if row.part == "cluster" else "ok"), row
    names = ["suite-growth.png", "suite-memory.png", "suite-times.png", "suite.json", "suite.md"]
    assert sorted(path.name for path in out.iterdir()) == names
    document = json.loads((out / "suite.json").read_text())
    assert document["finished"]
    assert len(document["rows"]) == len(rows)
    assert document["machine"]["command"]
    assert document["settings"]["sizes"]["name"] == "tiny"
    page = (out / "suite.md").read_text()
    for word in ("## Verdict", "## Passes", "## From disk", "](suite-growth.png)", "met"):
        assert word in page


def a_selection_is_measured(rows):
    for label in SHAPED:
        method = METHODS[label]
        row = rows.get("shapes", label, SHAPE)
        assert row.seconds > 0
        wide = {"features": 8, "probs": 3, "label_probs": 3}
        assert row.fact("input_bytes") == 4 * SHAPE.n * sum(wide[name] for name in method.given)
    for label, atoms in (("sabal-greedy", "gradient"), (KERNEL, "kernel")):
        blocks = rows.get("shapes", label, SHAPE)
        slow = rows.get("shapes", f"{label}{SLOW}", SHAPE)
        assert blocks.fact("atoms") == slow.fact("atoms") == atoms
        assert blocks.fact("passes") < slow.fact("passes") == SHAPE.b
        assert blocks.fact("objective") < blocks.fact("random_objective")
        # One and the same problem, but for the rounding of atoms that are stored.
        assert blocks.fact("random_objective") == pytest.approx(slow.fact("random_objective"))
    covered = rows.get("shapes", "sabal", SHAPE)
    assert (covered.fact("atoms"), covered.fact("passes")) == ("coverage", 1)
    assert 0 < covered.fact("objective") < covered.fact("random_objective") < 1
    # The first pick needs no pass, and the last is not followed by one.
    assert rows.get("shapes", f"badge{SLOW}", SHAPE).fact("passes") == SHAPE.b - 1


def passes_and_a_pool_on_disk_are_measured(rows):
    assert [row.method for row in rows.of("passes")] == ["sabal-greedy", KERNEL, "sabal-iht"]
    for row in rows.of("passes"):
        assert row.fact("bare_seconds") > 0
        assert row.fact("stream_rate") > 0
    assert rows.get("passes", KERNEL, SHAPE).fact("pass_bytes") == 4 * SHAPE.n * 8
    assert rows.get("passes", "sabal-iht", SHAPE).fact("pass_bytes") == 4 * SHAPE.n * 14
    assert {row.fact("atoms") for row in rows.of("disk", "sabal")} == {"coverage"}
    for row in rows.of("disk"):
        halves = row.fact("reading_seconds") + row.fact("selecting_seconds")
        assert halves == pytest.approx(row.seconds)
        # Of the whole process, whatever the selection adds to it.
        assert row.fact("highest_bytes") > 20_000_000


def every_line_is_judged_but_for_what_was_not_measured(rows):
    lines = verdicts(rows, TINY)
    assert {line.answer for line in lines if "Ray" in line.what} == {"not measured"}
    assert {line.met for line in lines if "Ray" not in line.what} <= {True, False}
    (first, *_) = sheets(rows, TINY)
    assert len(first.rows) == len(lines)


# -- going on, starting afresh -------------------------------------------------------------------


class Runner:
    """Stands in for processes: every job goes well, until it is interrupted."""

    def __init__(self, last=None):
        self.jobs = []
        self.last = last

    def __call__(self, job, *, limit, memory):
        if len(self.jobs) == self.last:
            raise KeyboardInterrupt
        assert job.inputs.exists()
        self.jobs.append((job.script.stem, job.method, job.items))
        facts = {"passes": 2, "objective": -1.0, "random_objective": 0.0, "input_bytes": 4}
        return JobOutcome("ok", seconds=1.0 * len(self.jobs), peak_bytes=1, facts=facts)


@pytest.fixture
def again(tmp_path, monkeypatch):
    """A function that runs the suite without processes; the jobs that it did, and the records."""
    monkeypatch.setattr(suite_records, "code_fingerprint", lambda: "the code")
    monkeypatch.setattr(suite_run, "draw_pictures", lambda rows, scale, folder: {})

    def start(last=None, **settings):
        runner = Runner(last)
        monkeypatch.setattr(suite_run, "run_job", runner)
        given = {"scale": TINY, "out": tmp_path / "out", "parts": ["growth", "shapes"]} | settings
        try:
            return runner.jobs, run_suite(**given)
        except KeyboardInterrupt:
            return runner.jobs, None

    return start


def test_an_interrupted_run_goes_on_where_it_was(again, tmp_path):
    first, _ = again(last=5)
    assert len(first) == 5
    kept = json.loads((tmp_path / "out" / "suite.json").read_text())
    assert (len(kept["rows"]), kept["finished"]) == (5, False)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["suite.json"]

    second, whole = again()
    tasks = tasks_of(("shapes", "growth"), TINY)
    assert len(first) + len(second) == len(tasks) == len(whole.rows)
    assert [row.key for row in whole.rows] == [task.key for task in tasks]
    assert [row.as_dict() for row in whole.rows[:5]] == kept["rows"]

    third, _ = again()
    assert len(third) == len(tasks)  # one that came to its end is made anew


@pytest.mark.parametrize(
    "other",
    [{"limit": 500.0}, {"seed": 1}, {"parts": ["shapes"]}, {"scale": replace(TINY, workers=3)}],
)
def test_a_run_with_other_settings_starts_afresh(again, other):
    again(last=5)
    jobs, found = again(**other)
    assert len(jobs) == len(found.rows)


def test_a_run_of_other_code_starts_afresh(again, monkeypatch):
    again(last=5)
    monkeypatch.setattr(suite_records, "code_fingerprint", lambda: "other code")
    jobs, found = again()
    assert len(jobs) == len(found.rows)


def test_a_run_in_which_a_label_stood_for_something_else_starts_afresh(again, monkeypatch):
    as_now = METHODS["sabal"]
    monkeypatch.setitem(METHODS, "sabal", replace(as_now, options={"atoms": "kernel"}))
    again(last=5)
    monkeypatch.setitem(METHODS, "sabal", as_now)
    jobs, found = again()
    assert len(jobs) == len(found.rows)


def test_a_run_that_does_not_say_what_its_labels_stood_for_starts_afresh(again, tmp_path):
    again(last=5)
    path = tmp_path / "out" / "suite.json"
    document = json.loads(path.read_text())
    assert document["settings"]["methods"].keys() == METHODS.keys()
    del document["settings"]["methods"]
    path.write_text(json.dumps(document))
    jobs, found = again()
    assert len(jobs) == len(found.rows)


@pytest.mark.parametrize("text", ["", "[]", '{"rows": [{}], "finished": false}', "\x00"])
def test_results_that_make_no_sense_are_replaced(again, tmp_path, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "suite.json").write_text(text)
    jobs, found = again()
    assert len(jobs) == len(found.rows) > 0


def test_what_a_killed_run_left_behind_is_removed(again, tmp_path):
    left = tmp_path / "out" / f"{suite_run.SCRATCH}abc"
    left.mkdir(parents=True)
    (left / "inputs.npz").touch()
    again()
    assert not left.exists()


def test_the_fingerprint_is_of_the_code_that_selects(monkeypatch, tmp_path):
    for name in ("atoms.py", "cli/select.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    package = SimpleNamespace(__file__=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(suite_records, "sabal", package)
    before = suite_records.code_fingerprint()
    (tmp_path / "cli" / "select.py").write_text("2")
    assert suite_records.code_fingerprint() == before
    (tmp_path / "atoms.py").write_text("2")
    assert suite_records.code_fingerprint() != before


# -- what is not worth trying --------------------------------------------------------------------


SMALLER = replace(SHAPE, b=10)


@pytest.mark.parametrize("status", ["over the limit", "out of memory", "failed", "ok"])
def test_a_method_over_a_limit_is_not_tried_at_larger_shapes(status):
    found = MeasurementIndex([made_row(method="badge", status=status)])
    given_up = known_outcome(PlannedMeasurement("shapes", "badge", LARGER), found)
    assert (given_up is not None) == (status in ("over the limit", "out of memory"))
    assert known_outcome(PlannedMeasurement("shapes", "badge", SMALLER), found) is None
    assert known_outcome(PlannedMeasurement("shapes", "kcenter", LARGER), found) is None
    assert known_outcome(PlannedMeasurement("growth", "badge", LARGER), found) is None


def test_atoms_that_are_stored_choose_what_computed_ones_choose():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 6)).astype("float32")
    probs = rng.dirichlet(np.ones(3), size=300).astype("float32")
    arrays = {"features": features, "probs": probs, "label_probs": probs}
    method = METHODS[f"{KERNEL}{SLOW}"]
    assert method.stored
    computed = replace(method, stored=False).select(arrays, 20, 0)
    assert computed.evidence["atoms"] == "kernel"
    assert method.select(arrays, 20, 0).indices.tolist() == computed.indices.tolist()


def test_inputs_do_not_depend_on_the_chunks_they_are_made_in(tmp_path, monkeypatch):
    whole = dict(np.load(made_up.write_inputs(tmp_path / "a.npz", 300, dimensions=9, classes=3)))
    monkeypatch.setattr(made_up, "CHUNK_BYTES", 4 * 9 * 64)
    parts = dict(np.load(made_up.write_inputs(tmp_path / "b.npz", 300, dimensions=9, classes=3)))
    assert whole.keys() == parts.keys()
    for name, array in whole.items():
        np.testing.assert_allclose(array, parts[name], atol=1e-5)
    path = made_up.write_inputs(tmp_path / "c.npz", 300, dimensions=9, classes=3, posterior=False)
    few = dict(np.load(path))
    assert whole.keys() - few.keys() == {"log_probs"}
    for name, array in few.items():
        np.testing.assert_array_equal(array, parts[name])


def test_a_parquet_folder_grows_and_shrinks_around_the_same_rows(tmp_path):
    folder = ParquetFolder(tmp_path / "pools", DISK, seed=0, workers=2)

    def features(n):
        described = json.loads(folder.hold(DISK.shape(n)).read_text())
        assert described["memory"] == DISK.memory
        return read_pool(described["path"]).parts["features"]

    small, large, again = features(2_000), features(4_000), features(2_000)
    assert large.shape == (4_000, 8)
    np.testing.assert_array_equal(large[:2_000], small)
    np.testing.assert_array_equal(again, small)
    folder.remove()
    assert not (tmp_path / "pools").exists()


@pytest.mark.parametrize("label", passes_job.METHODS)
def test_a_bare_pass_is_the_first_one_of_the_selection(label, tmp_path):
    path = made_up.write_inputs(tmp_path / "in.npz", 3_000, dimensions=6, classes=3)
    method = METHODS[label]
    arrays = method.arrays(np.load(path))
    ask = passes_job.first_pass(method, arrays, 5, 0)
    answer = ask()
    if label == "sabal-iht":
        assert answer.total.shape == (3, 7)
        np.testing.assert_array_equal(answer.total, ask().total)
    else:
        # With nothing picked yet, the best item of the first pass is the first pick.
        assert answer.indices[0] == method.select(arrays, 5, 0).indices[0]
        np.testing.assert_array_equal(answer.indices, ask().indices)


def test_a_cover_has_no_bare_passes():
    assert list(passes_job.METHODS) == ["sabal-greedy", KERNEL, "sabal-iht"]
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), size=100)
    arrays = {"features": rng.normal(size=(100, 4)), "probs": probs, "label_probs": probs}
    with pytest.raises(NotImplementedError, match="sabal makes no pass"):
        passes_job.first_pass(METHODS["sabal"], arrays, 5, 0)


def test_the_fastest_of_several_calls_is_taken_but_not_the_first(monkeypatch):
    taken = iter([1.0, *(3.0 + k for k in range(passes_job.REPEATS))])
    clock = [0.0]

    def work():
        clock[0] += next(taken)

    monkeypatch.setattr(passes_job, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    assert passes_job.fastest(work) == 3.0


@pytest.mark.parametrize("label", ["sabal-greedy", "sabal"])
def test_batches_of_memory_disk_and_cluster_are_compared(label, tmp_path, monkeypatch):
    folder = ParquetFolder(tmp_path / "pools", DISK, seed=0, workers=2)
    described = cluster_job.open_inputs(str(folder.hold(DISK.shape(2_000))))

    def on_ray(path, budget, *, engine="local", workers=None, **options):
        selection = select_pool(path, budget, **options)
        if engine == "local":
            return selection
        extra = {"workers": workers, "bytes_per_pass": 7, "bytes": 70}
        return replace(selection, evidence={**selection.evidence, "cluster": extra})

    monkeypatch.setattr(cluster_job, "select_pool", on_ray)
    indices, _, facts = cluster_job.METHODS[label](described)(20, 0)
    assert len(set(indices.tolist())) == 20
    assert (facts["same_as_memory"], facts["same_as_disk"]) == (True, True)
    assert (facts["bytes_per_pass"], facts["workers"]) == (7, 2)
    assert facts["seconds"] > 0


# -- mistakes, and the command line --------------------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "error", "hint"),
    [
        ({"parts": ["shape"]}, UnknownNameError, "did you mean 'shapes'"),
        ({"parts": ["?"]}, UnknownNameError, "pick some of these"),
        ({"scale": "huge"}, InputError, "scale"),
        ({"limit": 0}, InputError, "limit"),
        ({"seed": -1}, InputError, "seed"),
    ],
)
def test_bad_arguments_are_said_before_anything_is_written(kwargs, error, hint, tmp_path):
    with pytest.raises(error, match=hint):
        run_suite(**({"out": tmp_path / "out"} | kwargs))
    assert not (tmp_path / "out").exists()


def test_a_disk_without_room_is_said_before_anything_runs(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 9, 1))
    with pytest.raises(FileError, match=r"room for 6\.7 GB"):
        run_suite(out=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ("--parts", "shape"),
        ("--parts", ","),
        ("--scale", "huge"),
        ("--limit", "-1"),
        ("--limit", "soon"),
        ("--out", "FILE/out"),
        ("--limit", "3", "strategies"),
        ("shapes",),
    ],
)
def test_mistakes_are_one_line_and_exit_2(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").touch()
    assert call("bench", *arguments, monkeypatch=monkeypatch) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("research: ")
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["FILE"]


def test_the_command_prints_tables_or_json_and_says_how_to_go_on(
    again, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(suite_run, "run_job", Runner())
    arguments = ("bench", "--scale", "small", "--parts", "shapes", "--out", tmp_path / "cli")
    assert call(*arguments, monkeypatch=monkeypatch) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for words in ("Side by side", "Verdict", "not measured", f"pictures in {tmp_path / 'cli'}"):
        assert words in out
    assert call(*arguments, "--json", monkeypatch=monkeypatch) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "cli" / "suite.json").read_text())

    monkeypatch.setattr(suite_run, "run_job", Runner(last=3))
    assert call(*arguments, monkeypatch=monkeypatch) == 130
    assert "start it again to go on" in capsys.readouterr().err
    monkeypatch.setattr(suite_run, "run_job", last := Runner())
    assert call(*arguments, monkeypatch=monkeypatch) == 0
    assert len(last.jobs) == len(tasks_of(("shapes",), SCALES["small"])) - 3


def test_the_help_says_that_an_interrupted_run_goes_on(monkeypatch, capsys):
    assert call("bench", "--help", monkeypatch=monkeypatch) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "interrupted continues when it is started again" in text
    assert "strategies" in text


# -- a page that is filled from results ----------------------------------------------------------


def on_disk(method, n, seconds):
    facts = {"selecting_seconds": seconds / 2, "highest_bytes": 5 * 10**8, "passes": 1}
    facts["input_bytes"] = 336 * n
    return made_row("disk", method, DISK.shape(n), seconds=seconds, facts=facts)


def test_the_page_on_scale_is_filled_from_the_results(tmp_path, monkeypatch, capsys):
    rows = [on_disk(m, n, 2.0 + n / 1000) for m in ("sabal", "sabal-greedy") for n in (2000, 4000)]
    results, page = tmp_path / "suite.json", tmp_path / "scale.md"
    results.write_text(
        json.dumps({"rows": [row.as_dict() for row in rows], "machine": {"cores": 2}})
    )
    page.write_text("before\n<!-- bench: billion -->\nold\n<!-- end of bench: billion -->\nafter\n")
    arguments = ("bench", "fill", page, "--results", results)
    assert call(*arguments, monkeypatch=monkeypatch) == 0
    assert "billion" in capsys.readouterr().out
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    # 1 ms a row and 2 s: 277.8 h for a billion, and a 32nd of it for 32 workers.
    assert "1e+03 microseconds a row and 2 s" in text
    assert "| a billion rows on 2 cores | 277 h 46 min | 277 h 46 min |" in text
    assert "| on 32 such workers | 8 h 40 min | 8 h 40 min |" in text
    assert "| the pool (float32) | 336 GB | 336 GB |" in text


def test_results_without_a_pool_on_disk_fill_nothing(tmp_path, monkeypatch, capsys):
    results, page = tmp_path / "suite.json", tmp_path / "scale.md"
    page.write_text("<!-- bench: disk -->\n<!-- end of bench: disk -->\n")
    for text in ("", '{"rows": [], "machine": {}}'):
        results.write_text(text)
        arguments = ("bench", "fill", page, "--results", results)
        assert call(*arguments, monkeypatch=monkeypatch) == 2
        assert "run the" in capsys.readouterr().err
    assert page.read_text().count("\n") == 2
