"""The benchmark harness, run for real: tiny sizes, Sabal's strategies and a fake rival."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from research.bench import (
    PEERS,
    Peer,
    StrategyMeasurement,
    comparisons,
    coverage_table,
    draw,
    environments,
    results_table,
    run_strategies,
    sabal_methods,
)
from research.bench.process import judge
from research.bench.strategy_rows import beaten_before
from research.bench.strategy_tables import peers_page
from research.bench.synthetic_inputs import write_inputs
from sabal.errors import FileError, InputError, SabalError, UnknownNameError
from sabal.strategies import strategies

FAKE = """
import os, signal, subprocess, sys, time
import numpy as np

PACKAGE = "numpy"
NOTES = os.environ.get("FAKE_NOTES", "")


def method(select, wasteful=False):
    def prepare(inputs):
        if wasteful:
            np.ones(400_000_000, dtype=np.uint8).sum()
        n = len(inputs["features"])
        return lambda budget, seed: select(n, budget)
    return prepare


def first(n, budget):
    print("chatter on standard output")
    return np.arange(budget)


def slow(n, budget):
    if n == 256:  # the warm-up
        return range(budget)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(NOTES, "a") as file:
        file.write(f"{os.getpid()} {child.pid}\\n")
    time.sleep(600)


def slow_from_ten(n, budget):
    return slow(n, budget) if budget >= 10 else range(budget)


def greedy_for_memory(n, budget):
    return np.ones(2**36, dtype=np.uint8)[:budget]


def two_hundred_megabytes(n, budget):
    np.ones(200_000_000, dtype=np.uint8).sum()
    return range(budget)


def repeats(n, budget):
    return [0] * (budget - 1) + [1]


def out_of_range(n, budget):
    return range(n - 1, n - 1 + budget)


def too_many(n, budget):
    return range(budget + 1)


def remarks(n, budget):
    return range(budget), "half of it by luck"


def cannot(n, budget):
    raise NotImplementedError(f"needs an n x n distance matrix: {8 * n * n} bytes")


def raises(n, budget):
    raise ValueError("no\\nsuch thing")


def crashes(n, budget):
    if n != 256:
        os.kill(os.getpid(), signal.SIGSEGV)


def leaves(n, budget):
    if n != 256:
        print("what a day", file=sys.stderr)
        os._exit(3)


METHODS = {name: method(function) for name, function in list(globals().items())
           if callable(function) and name != "method"}
METHODS["wasteful before"] = method(first, wasteful=True)
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A function that makes a rival with some of the fake script's methods for a job."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    monkeypatch.setenv("FAKE_NOTES", str(tmp_path / "notes.txt"))

    def make(*methods, job="random", **kwargs):
        return Peer("fake", script, jobs={job: methods}, python=Path(sys.executable), **kwargs)

    return make


def run(*peers, sizes=(300,), budgets=(5,), **kwargs):
    kwargs = {"strategies": ["random"], "dimensions": 6, "classes": 3, "limit": 60.0} | kwargs
    return run_strategies(sizes=sizes, budgets=budgets, peers=peers, **kwargs)


def of(rows, method):
    """The only row of the fake rival's `method`."""
    (row,) = [row for row in rows if row.tool == "fake" and row.method == method]
    return row


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(true):
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# -- Sabal's own strategies ----------------------------------------------------------------------


def test_our_strategies_are_measured_and_everything_is_written(tmp_path, capfd):
    out = tmp_path / "results"
    rows = run(
        sizes=[90, 60], budgets=[4, 80], strategies=["sabal", "random", "sabal"], out=out, seed=3
    )
    capfd_out, capfd_err = capfd.readouterr()
    assert (capfd_out, capfd_err) == ("", "")

    # Smallest first, a name once, and no budget above the size of the pool.
    expected = [(j, n, b) for n, b in [(60, 4), (90, 4), (90, 80)] for j in ("sabal", "random")]
    assert [(row.job, row.n, row.b) for row in rows] == expected
    for row in rows:
        assert (row.tool, row.method, row.status, row.note) == ("sabal", row.job, "ok", "")
        assert row.seconds > 0
        assert row.peak_bytes >= 0
        assert "numpy" in row.versions

    results = json.loads((out / "bench.json").read_text())
    assert [StrategyMeasurement(**row) for row in results["rows"]] == rows
    assert results["machine"]["cores"] >= 1
    assert results["machine"]["libraries"]["numpy"] == np.__version__
    assert results["machine"]["command"]
    assert results["settings"]["sizes"] == [60, 90]
    assert (out / "bench.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in out.iterdir()) == [
        "bench.json",
        "bench.md",
        "bench.png",
    ]
    page = (out / "bench.md").read_text()
    assert page.startswith("# Time and memory")
    _, table = page.split("| job | n | b |")
    assert table.count("\n") == 2 + len(rows)


@pytest.mark.parametrize("name", list(strategies()))
def test_every_registered_strategy_gets_what_it_needs(name, tmp_path):
    inputs = np.load(write_inputs(tmp_path / "in.npz", 40, dimensions=5, classes=3))
    chosen = sabal_methods.METHODS[name](inputs)(6, 0)
    assert len(set(chosen.tolist())) == 6
    assert chosen.min() >= 0
    assert chosen.max() < 40


@pytest.mark.parametrize(
    ("needs", "names"),
    [
        ((), {"probs"}),
        (("probs",), {"probs"}),
        (("log_probs",), {"log_probs"}),
        (("log_probs|probs",), {"log_probs"}),
        (("probs|scores",), {"probs"}),
        (("features",), {"features", "labeled_features"}),
        (
            ("features|log_probs", "probs"),
            {"features", "labeled_features", "probs", "label_probs"},
        ),
    ],
)
def test_what_a_strategy_is_given(needs, names):
    assert set(sabal_methods.given(needs)) == names


def test_inputs_are_repeatable_single_precision_model_outputs(tmp_path):
    first, again, other = (
        dict(np.load(write_inputs(tmp_path / f"{k}.npz", 50, dimensions=7, classes=4, seed=seed)))
        for k, seed in enumerate([0, 0, 1])
    )
    for name, array in first.items():
        np.testing.assert_array_equal(array, again[name])
    assert not np.array_equal(first["features"], other["features"])
    shapes = {name: array.shape for name, array in first.items()}
    assert shapes == {
        "features": (50, 7),
        "logits": (50, 4),
        "probs": (50, 4),
        "label_probs": (50, 4),
        "log_probs": (50, 20, 4),
        "labeled_features": (100, 7),
        "joint_samples": (),
    }
    assert {a.dtype for a in first.values()} == {np.dtype("float32"), np.dtype("int64")}
    np.testing.assert_allclose(first["probs"].sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.exp(first["log_probs"]).sum(axis=2), 1, rtol=1e-5)


# -- a rival -------------------------------------------------------------------------------------


def test_a_rival_that_takes_too_long_is_killed_with_its_children_and_not_tried_at_larger_sizes(
    fake, tmp_path
):
    rows = run(
        fake("slow", "slow_from_ten", "first"),
        sizes=[300, 400],
        budgets=[5, 10],
        limit=0.4,
    )
    notes = {m: [(r.n, r.b, r.note) for r in rows if r.method == m] for m in ("slow", "first")}
    assert notes["slow"] == [
        (300, 5, "over 0.4 s"),
        (300, 10, "not tried: over the limit at n=300, b=5"),
        (400, 5, "not tried: over the limit at n=300, b=5"),
        (400, 10, "not tried: over the limit at n=300, b=5"),
    ]
    assert [row.status for row in rows if row.method == "slow_from_ten"] == [
        "ok",
        "over the limit",
        "ok",
        "not tried",
    ]
    killed = [row for row in rows if row.status == "over the limit"]
    assert [(row.seconds, row.limit) for row in killed] == [(None, 0.4)] * 2
    pids = [int(pid) for pid in (tmp_path / "notes.txt").read_text().split()]
    assert len(pids) == 4
    wait_until(lambda: not any(map(alive, pids)))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of this")
def test_a_job_does_not_outlive_a_benchmark_that_is_killed(fake, tmp_path):
    script = fake("slow").script
    code = (
        "import sys; from pathlib import Path; from research.bench import Peer, run_strategies; "
        f"peer = Peer('fake', Path({str(script)!r}), jobs={{'random': ('slow',)}}, "
        "python=Path(sys.executable)); "
        "run_strategies(sizes=[300], budgets=[5], strategies=['random'], peers=[peer])"
    )
    # Killed, it cannot clear up after itself.
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    benchmark = subprocess.Popen([sys.executable, "-c", code], env=environment)
    notes = tmp_path / "notes.txt"
    wait_until(lambda: notes.exists() and notes.read_text().endswith("\n"))
    job = int(notes.read_text().split()[0])
    assert alive(job)
    benchmark.terminate()
    benchmark.wait()
    wait_until(lambda: not alive(job))
    # What the job itself had started is not its parent's to end; here it is this test's.
    os.kill(int(notes.read_text().split()[1]), signal.SIGKILL)


def test_a_rival_that_wants_too_much_memory_is_recorded_and_not_tried_at_larger_sizes(fake):
    rows = run(fake("greedy_for_memory"), sizes=[300, 400], memory=4 * 2**30)
    small, large = (row for row in rows if row.tool == "fake")
    assert small.status == "out of memory"
    assert "Unable to allocate 64.0 GiB" in small.note
    assert large.status == "not tried"
    assert large.note == "not tried: out of memory at n=300, b=5"
    assert all(row.status == "ok" for row in rows if row.tool == "sabal")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the mark cannot be set back")
def test_memory_is_what_the_selection_adds(fake):
    rows = run(fake("first", "two_hundred_megabytes", "wasteful before"))
    megabytes = {row.method: row.peak_bytes / 1e6 for row in rows if row.tool == "fake"}
    assert megabytes["first"] < 20
    assert 195 < megabytes["two_hundred_megabytes"] < 220
    # What was used and given back before the selection does not count.
    assert megabytes["wasteful before"] < 20


ENDS = {
    "first": ("ok", ""),
    "repeats": ("incomplete", "returned 2 distinct of 5"),
    "out_of_range": ("incomplete", "returned 1 distinct of 5"),
    "too_many": ("incomplete", "returned 6 distinct of 5"),
    "remarks": ("ok", "half of it by luck"),
    "cannot": ("cannot", "needs an n x n distance matrix: 720000 bytes"),
    "raises": ("failed", "ValueError: no such thing"),
    "crashes": ("failed", "died with signal SIGSEGV"),
    "leaves": ("failed", "died with exit code 3: what a day"),
    "no such method": ("failed", "KeyError: 'no such method'"),
}


def test_how_a_job_ends_is_recorded_and_the_run_goes_on(fake):
    rows = run(fake(*ENDS), strategies=["random", "sabal"])
    assert {row.method: (row.status, row.note) for row in rows if row.tool == "fake"} == ENDS
    for row in rows:
        assert (row.n, row.b) == (300, 5)
        assert (row.seconds is None) == (row.status not in ("ok", "incomplete"))
    assert [(row.job, row.status) for row in rows if row.tool == "sabal"] == [
        ("random", "ok"),
        ("sabal", "ok"),
    ]


def test_an_environment_that_cannot_be_made_is_recorded(fake, tmp_path):
    (tmp_path / "fake").write_text("in the way of the environment")
    peer = fake("first")
    rows = run(Peer(peer.name, peer.script, ("numpy",), peer.jobs), envs=tmp_path)
    row = of(rows, "first")
    assert row.status == "not installed"
    assert row.note.startswith("not installed: ")
    assert "directory" in row.note


def test_what_pip_cannot_install_is_said(tmp_path):
    folder = tmp_path / "a folder with spaces"
    folder.mkdir()
    (folder / "constraints.txt").write_text(environments.CONSTRAINTS)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "./no-such-package"]
    with pytest.raises(environments.NotInstalled, match="no-such-package"):
        environments._call(command, folder)
    with pytest.raises(environments.NotInstalled):
        environments._call([str(tmp_path / "no-such-python")], folder)


def test_an_environment_is_made_once(tmp_path, monkeypatch):
    calls = []

    def call(command, folder):
        calls.append(command)
        assert (folder / "constraints.txt").read_text() == "torch==2.13.0\n"
        (folder / "x" / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "x" / "bin" / "python").touch()

    monkeypatch.setattr(environments, "_call", call)
    peer = Peer("x", tmp_path / "x.py", ("package==1",))
    made = [environments.interpreter(peer, tmp_path / "envs") for _ in range(2)]
    assert made[0] == made[1] == tmp_path / "envs" / "x" / "bin" / "python"
    assert len(calls) == 2
    assert calls[1][1:] == ["-m", "pip", "install", "--quiet", "package==1"]
    environments.interpreter(Peer("x", peer.script, ("package==2",)), tmp_path / "envs")
    assert len(calls) == 4


def test_pips_error_is_a_short_line():
    said = "WARNING: old\nERROR: no version of x (from versions: " + "1.0, " * 99 + ")\nbye\n"
    assert environments._reason(said).startswith("no version of x")
    assert len(environments._reason(said)) <= 200
    assert environments._reason("") == "pip said nothing"


# -- rows, tables, picture -----------------------------------------------------------------------


def row(**kwargs):
    given = {"job": "badge", "tool": "sabal", "method": "badge", "n": 10, "b": 2, "status": "ok"}
    return StrategyMeasurement(**(given | kwargs))


@given(
    failed=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    asked=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    status=st.sampled_from(["over the limit", "out of memory", "ok", "failed", "not tried"]),
    method=st.sampled_from(["badge", "kcenter"]),
)
def test_pruning_needs_the_same_method_over_a_limit_at_no_larger_n_and_b(
    failed, asked, status, method
):
    rows = [row(n=failed[0], b=failed[1], status=status)]
    pruned = beaten_before(rows, "sabal", method, *asked)
    expected = (
        method == "badge"
        and status in ("over the limit", "out of memory")
        and asked[0] >= failed[0]
        and asked[1] >= failed[1]
    )
    assert (pruned is not None) == expected
    assert beaten_before(rows, "other", method, *asked) is None


@given(indices=st.lists(st.integers(-3, 8), max_size=6), budget=st.integers(1, 6))
def test_an_answer_is_complete_when_it_is_b_distinct_rows(indices, budget):
    said = {
        "indices": indices,
        "seconds": 1.0,
        "peak_bytes": 2,
        "remark": "",
        "whole_life": False,
        "versions": {},
    }
    outcome = judge(said, items=6, budget=budget)
    distinct = len({i for i in indices if 0 <= i < 6})
    complete = len(indices) == budget == distinct
    assert outcome.status == ("ok" if complete else "incomplete")
    assert outcome.note == ("" if complete else f"returned {distinct} distinct of {budget}")
    assert (outcome.seconds, outcome.peak_bytes) == (1.0, 2)
    assert "whole process" in judge(said | {"whole_life": True}, 6, budget).note


ROWS = [
    row(seconds=2.0, peak_bytes=4_000_000),
    row(tool="a", method="Badge", seconds=6.0, peak_bytes=40_000_000),
    row(tool="b", method="kmeanspp", status="over the limit", note="over 9 s", limit=9.0),
    row(n=20, seconds=3.0, peak_bytes=0),
    row(n=20, tool="a", method="Badge", status="incomplete", note="returned 1 distinct of 2",
        seconds=1.5, peak_bytes=500_000),
    row(job="sabal", method="sabal", seconds=1.0, peak_bytes=1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "theirs", "met"),
    [(0.1, 0.5, True), (0.1, 0.49, False), (0.005, 0.001, True), (0.006, 0.001, False)],
)
def test_a_page_counts_who_is_five_times_as_fast_or_done_within_milliseconds(ours, theirs, met):
    rows = [row(seconds=ours), row(tool="other", method="theirs", seconds=theirs)]
    rows.append(row(tool="another", method="slow", status="over the limit", limit=9.0))
    settings = {"sizes": [9], "budgets": [2], "dimensions": 3, "classes": 2, "limit": 9.0}
    page = peers_page(
        rows,
        {"command": "bench", "date": "today", "cores": 2, "processor": "one"},
        {**settings, "posterior_samples": 4},
        "bench.png",
    )
    assert f"{int(met)} of 1 comparisons meet it" in page
    assert ("Where the goal is missed" in page) is not met
    assert f"| other theirs | 1 | {int(met)} | {theirs / ours:.2g} |" in page


def test_rows_are_compared_with_ours_at_the_same_job_and_size():
    pairs = comparisons(ROWS)
    figures = [(p.ours.n, p.peer and p.peer.tool, p.time_ratio, p.memory_ratio) for p in pairs]
    assert figures == [
        (10, "a", 3.0, 10.0),
        (10, "b", None, None),
        (20, "a", 0.5, 1.0),  # less than a megabyte is not told apart
        (10, None, None, None),
    ]


def test_the_table_shows_ours_the_rivals_ratios_and_notes():
    console = Console(width=200, record=True, quiet=False, file=open(os.devnull, "w"))  # noqa: SIM115
    with console.file:
        console.print(results_table(ROWS))
        text = console.export_text()
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]
    assert [line for line in lines if line] == [
        ["badge", "10", "2", "2", "4.0", "a Badge", "6", "40.0", "3", "10", ""],
        ["", "", "", "", "", "b kmeanspp", "over the limit", "", "", "", "over 9 s"],
        ["badge", "20", "2", "3", "0.0", "a Badge", "1.5", "0.5", "0.5", "1",
         "returned 1 distinct of 2"],
        ["sabal", "10", "2", "1", "0.0", "-", "", "", "", "", ""],
    ]  # fmt: skip


def test_the_picture_is_a_png_also_with_nothing_but_failures(tmp_path):
    for k, rows in enumerate([ROWS, [row(status="failed")]]):
        path = draw(rows, tmp_path / f"{k}.png")
        assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError):
        draw([], tmp_path / "none.png")


# -- the catalogue -------------------------------------------------------------------------------


def literal_methods(script):
    """The keys of METHODS in a script, which cannot be imported here."""
    for node in ast.parse(script.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "METHODS":
            return {key.value for key in node.value.keys}
    raise AssertionError(f"no METHODS in {script}")


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_rivals_script_has_its_methods_and_does_not_import_sabal(peer):
    assert {m for methods in peer.jobs.values() for m in methods} == literal_methods(peer.script)
    assert not set(peer.jobs) & set(peer.reasons)
    for node in ast.walk(ast.parse(peer.script.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        assert not [name for name in names if name.split(".")[0] == "sabal"]


def test_who_does_what():
    by_name = {peer.name: peer for peer in PEERS}
    assert by_name["scikit-activeml"].coverage("badge") == "Badge"
    assert by_name["modAL"].coverage("badge") == "no such strategy"
    assert by_name["bmdal-reg"].coverage("entropy") == "made for regression"
    assert coverage_table(["badge", "random"]).row_count == 2


@pytest.mark.parametrize(
    ("kwargs", "error", "hint"),
    [
        ({"strategies": ["sabl"]}, UnknownNameError, "did you mean 'sabal'"),
        ({"peers": ["scikit-active"]}, UnknownNameError, "did you mean 'scikit-activeml'"),
        ({"peers": ["?"]}, UnknownNameError, "pick some of these"),
        ({"sizes": [0]}, InputError, "sizes"),
        ({"budgets": [2.5]}, InputError, "budgets"),
        ({"sizes": [3], "budgets": [4]}, InputError, "fits"),
        ({"limit": 0}, InputError, "limit"),
        ({"classes": 1}, InputError, "classes"),
    ],
)
def test_bad_arguments_are_said_before_anything_runs(kwargs, error, hint):
    with pytest.raises(error, match=hint) as caught:
        run_strategies(**({"peers": []} | kwargs))
    assert isinstance(caught.value, SabalError)


def test_a_folder_that_cannot_be_made_is_said_before_anything_runs(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="to make the folder"):
        run(out=tmp_path / "file" / "out")
