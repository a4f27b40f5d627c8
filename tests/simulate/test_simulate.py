"""`sabal simulate` as a user runs it: the folder it leaves, killed and resumed, side by side."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

SABAL = Path(sys.executable).parent / "sabal"
ARGUMENTS = (
    "simulate",
    "digits",
    "--strategies",
    "sabal,sabal-greedy,margin,random",
    "--seeds",
    "2",
    "--init",
    "15",
    "--batch",
    "10",
    "--rounds",
    "2",
)


def run(*more, arguments=ARGUMENTS):
    return subprocess.run(
        [SABAL, *arguments, *map(str, more)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "digits"
    answer = run("--out", folder)
    assert answer.returncode == 0, answer.stderr
    return folder, answer


def test_the_folder_holds_what_it_promises(finished):
    folder, answer = finished
    results = pq.read_table(folder / "results.parquet")
    assert results.column_names == [
        "strategy",
        "seed",
        "round",
        "labels",
        "accuracy",
        "select_seconds",
        "select_mb",
    ]
    assert results.num_rows == 4 * 2 * 3
    assert set(results.column("labels").to_pylist()) == {15, 25, 35}
    selections = pq.read_table(folder / "selections.parquet").to_pylist()
    assert len(selections) == 4 * 2 * 35
    for name in ("config.json", "curves.png", "report.html"):
        assert (folder / name).stat().st_size > 0
    assert "random" in answer.stdout
    assert "The report is at" in answer.stdout
    assert "MB a selection" in (folder / "report.html").read_text()


def test_every_strategy_starts_from_the_same_labels(finished):
    folder, _ = finished
    rows = pq.read_table(folder / "selections.parquet").to_pylist()
    first = {}
    for row in rows:
        if row["round"] == 0:
            first.setdefault((row["seed"], row["strategy"]), []).append(row["item"])
    for seed in (0, 1):
        batches = [items for (s, _), items in first.items() if s == seed]
        assert len(batches) == 4
        assert all(items == batches[0] for items in batches)


def test_the_report_is_one_file_that_asks_for_nothing(finished):
    folder, _ = finished
    page = (folder / "report.html").read_text()
    links = re.findall(r"""(?:src|href)\s*=\s*["']([^"']+)""", page)
    assert links
    assert all(link.startswith("data:image/png;base64,") for link in links)
    assert "default-src 'none'" in page
    assert "<script" not in page


def test_the_same_command_again_repeats_nothing(finished):
    folder, _ = finished
    before = {p: p.stat().st_mtime_ns for p in folder.glob("runs/**/*.json")}
    again = run("--out", folder, "--json")
    assert again.returncode == 0
    assert {p: p.stat().st_mtime_ns for p in folder.glob("runs/**/*.json")} == before
    found = json.loads(again.stdout)
    assert "verdict" in found
    # Two seeds are too few to prefer anything.
    assert found["recommendation"]["strategy"] == "sabal"
    assert "2 paired seeds cannot tell" in found["recommendation"]["reason"]
    shown = run("--out", folder).stdout.splitlines()
    assert " ".join(shown).rstrip().endswith("run at least 5.")
    page = (folder / "report.html").read_text()
    assert "Use sabal on these data" in page
    # Three points are too few to stop a run.
    assert found["early_stop"]["strategy"] == "sabal"
    assert (found["early_stop"]["runs"], found["early_stop"]["stopped"]) == (2, 0)
    said = "would have ended no run of sabal early"
    assert said in " ".join(" ".join(shown).split())
    assert said in page


def test_another_plan_for_the_same_folder_is_refused(finished):
    folder, _ = finished
    other = run("--out", folder, "--model", "forest")
    assert other.returncode == 2
    assert len(other.stderr.strip().splitlines()) == 1
    assert "model" in other.stderr


def test_more_seeds_and_strategies_are_added_to_a_folder(finished, tmp_path):
    folder, _ = finished
    grown = tmp_path / "grown"
    shutil.copytree(folder, grown)
    before = {p: p.stat().st_mtime_ns for p in grown.glob("runs/**/*.json")}
    more = [*ARGUMENTS]
    more[more.index("--seeds") + 1] = "3"
    answer = run("--out", grown, arguments=tuple(more))
    assert answer.returncode == 0, answer.stderr
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert pq.read_table(grown / "results.parquet").num_rows == 4 * 3 * 3
    assert json.loads((grown / "config.json").read_text())["seeds"] == 3


def test_a_folder_from_before_recipes_still_resumes(finished, tmp_path):
    folder, _ = finished
    old = tmp_path / "old"
    shutil.copytree(folder, old)
    config = json.loads((old / "config.json").read_text())
    for name in ("recipe", "validation", "pool"):
        del config[name]
    (old / "config.json").write_text(json.dumps(config))
    rows = pq.read_table(old / "results.parquet").drop_columns(["select_mb"])
    pq.write_table(rows, old / "results.parquet")
    answer = run(arguments=("report", str(old)))
    assert answer.returncode == 0, answer.stderr
    other = run("--out", old, "--pool", 200)
    assert other.returncode == 2
    assert "pool" in other.stderr
    assert run("--out", old).returncode == 0
    assert selections(old) == selections(folder)


def test_report_reads_a_folder_and_refuses_another(finished, tmp_path):
    folder, _ = finished
    (folder / "report.html").unlink()
    answer = run(arguments=("report", str(folder)))
    assert answer.returncode == 0, answer.stderr
    assert (folder / "report.html").exists()
    assert run(arguments=("report", str(tmp_path))).returncode == 2


def test_runs_side_by_side_give_the_same_result(finished, tmp_path):
    folder, _ = finished
    answer = run("--out", tmp_path / "two", "--jobs", 2)
    assert answer.returncode == 0, answer.stderr
    assert selections(tmp_path / "two") == selections(folder)


def selections(folder):
    return (folder / "selections.parquet").read_bytes()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_resumes_to_byte_identical_selections(finished, tmp_path, jobs):
    """SIGKILL to the whole group again and again, at moments that move through the run."""
    folder, _ = finished
    out = tmp_path / "killed"
    kills = 0
    for attempt in range(12):
        process = subprocess.Popen(
            [SABAL, *ARGUMENTS, "--out", out, "--jobs", str(jobs)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        written = len(list(out.glob("runs/**/*.json")))
        while process.poll() is None:
            # Let it write a few files more than it found, then kill it wherever it is.
            if len(list(out.glob("runs/**/*.json"))) >= written + 3 + attempt:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                kills += 1
                break
            time.sleep(0.002)
        else:
            break
    assert kills >= 2
    answer = run("--out", out)
    assert answer.returncode == 0, answer.stderr
    assert selections(out) == selections(folder)


@pytest.mark.parametrize(
    "more",
    [
        ("simulate", "nosuch"),
        ("simulate", "digits", "--strategies", "sabal,nosuch"),
        ("simulate", "digits", "--seeds", "0"),
        ("simulate", "digits", "--init", "100000"),
        ("simulate", "digits", "--model", "oracle"),
        ("simulate", "digits", "--set", "epochs=3"),
        ("simulate", "digits", "--validation", "100"),
        ("simulate", "digits", "--pool", "100000"),
        ("simulate", "digits", "--model", "mlp", "--set", "epoch=3"),
        ("simulate", "digits", "--model", "mlp", "--set", "patience=3"),
        ("simulate", "digits", "--model", "lenet5", "--set", "epochs=1"),
        ("simulate", "npz:absent.npz"),
    ],
)
def test_mistakes_are_one_line(more, tmp_path):
    answer = run("--out", tmp_path / "run", arguments=more)
    assert answer.returncode == 2, answer.stdout
    assert len(answer.stderr.strip().splitlines()) == 1, answer.stderr
