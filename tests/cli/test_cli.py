"""The command line as a user runs it: a process, its output, its exit code."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sabal
from makers import make_pool

SABAL = Path(sys.executable).parent / "sabal"
POOL = make_pool(n=30)
IDS = [f"item-{k}" for k in range(30)]


def run(*arguments, **kwargs):
    environment = {**os.environ, "COLUMNS": "120"}
    return subprocess.run(
        [SABAL, *map(str, arguments)], capture_output=True, text=True, env=environment, **kwargs
    )


def nested(array):
    """A Parquet column of (nested) lists."""
    return pa.array(array.tolist())


@pytest.fixture
def pool_npz(tmp_path):
    np.savez(tmp_path / "pool.npz", features=POOL.features, probs=POOL.probs, id=np.array(IDS))
    return tmp_path / "pool.npz"


def write_parquet(path, rows=slice(None), **columns):
    columns = columns or {
        "id": pa.array(IDS[rows]),
        "features": nested(POOL.features[rows]),
        "probs": nested(POOL.probs[rows]),
    }
    pq.write_table(pa.table(columns), path)


def expected_ids(**kwargs):
    names = ("features", "probs")
    return sabal.select(
        6, **POOL.kwargs(names=names), ids=IDS, random_state=0, **kwargs
    ).ids.tolist()


def test_select_writes_what_the_library_chooses(pool_npz, tmp_path):
    out = tmp_path / "batch.csv"
    answer = run("select", pool_npz, "--budget", 6, "--out", out)
    assert answer.returncode == 0, answer.stderr
    assert "Written to" in answer.stdout
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == expected_ids()
    assert [row["rank"] for row in rows] == [str(k) for k in range(1, 7)]
    assert list(rows[0]) == ["id", "rank", "weight", "score", "strategy", "seed"]
    assert {row["strategy"] for row in rows} == {"sabal"}
    assert {row["seed"] for row in rows} == {"0"}


def test_rows_that_are_not_shown_are_told_of(pool_npz, tmp_path):
    asked = ("select", pool_npz, "--budget", 12)
    assert "and 2 more: --out FILE writes them all" in run(*asked).stdout
    answer = run(*asked, "--out", tmp_path / "batch.csv")
    assert "and 2 more: all are in the file" in answer.stdout


def test_what_is_labelled_may_be_in_a_file_of_its_own(pool_npz, tmp_path):
    np.savez(tmp_path / "labeled.npz", features=POOL.features[:4])
    answer = run("select", pool_npz, "--budget", 6, "--labeled", tmp_path / "labeled.npz", "--json")
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["evidence"]["labeled"] == 4
    np.savez(tmp_path / "wrong.npz", probs=POOL.probs)
    answer = run("select", pool_npz, "--budget", 6, "--labeled", tmp_path / "wrong.npz")
    assert answer.returncode == 2
    assert "`features`" in answer.stderr


def test_every_kind_of_pool_gives_the_same_answer(pool_npz, tmp_path):
    write_parquet(tmp_path / "pool.parquet")
    folder = tmp_path / "shards"
    folder.mkdir()
    write_parquet(folder / "a.parquet", slice(0, 11))
    write_parquet(folder / "b.parquet", slice(11, 30))
    arrays = tmp_path / "arrays"
    arrays.mkdir()
    np.save(arrays / "features.npy", POOL.features)
    np.save(arrays / "probs.npy", POOL.probs)
    np.save(arrays / "id.npy", np.array(IDS))
    for pool in (pool_npz, tmp_path / "pool.parquet", folder, arrays):
        answer = run("select", pool, "--budget", 6, "--json")
        assert answer.returncode == 0, answer.stderr
        items = json.loads(answer.stdout)["items"]
        assert [item["id"] for item in items] == expected_ids()


def test_every_ending_holds_the_same_batch(pool_npz, tmp_path):
    for name in ("batch.csv", "batch.jsonl", "batch.parquet"):
        assert run("select", pool_npz, "-b", 6, "-o", tmp_path / name).returncode == 0
    lines = (tmp_path / "batch.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == expected_ids()
    table = pq.read_table(tmp_path / "batch.parquet")
    assert table.column("id").to_pylist() == expected_ids()
    assert table.column_names == ["id", "rank", "weight", "score", "strategy", "seed"]
    assert b"sabal.evidence" in table.schema.metadata


def test_strategy_seed_and_options_reach_the_library(pool_npz):
    arguments = ("--strategy", "sabal-iht", "--option", "atoms=curvature", "--option", "alpha=3")
    answer = run("select", pool_npz, "--budget", 6, *arguments, "--seed", 0, "--json")
    assert answer.returncode == 0, answer.stderr
    items = json.loads(answer.stdout)["items"]
    ids = expected_ids(strategy="sabal-iht", atoms="curvature", alpha=3)
    assert [item["id"] for item in items] == ids


def test_labelled_features_in_a_pool_are_centres_already(tmp_path):
    near = POOL.features[[3, 4]]
    np.savez(tmp_path / "pool.npz", features=POOL.features, labeled_features=near)
    answer = run("select", tmp_path / "pool.npz", "-b", 5, "-s", "kcenter", "--json")
    assert answer.returncode == 0, answer.stderr
    chosen = [item["id"] for item in json.loads(answer.stdout)["items"]]
    expected = sabal.select(
        5, features=POOL.features, labeled_features=near, strategy="kcenter", random_state=0
    )
    assert chosen == expected.indices.tolist()


def test_names_that_mean_nothing_are_named(tmp_path):
    np.savez(tmp_path / "pool.npz", embeddings=POOL.features, probs=POOL.probs)
    answer = run("select", tmp_path / "pool.npz", "-b", 5)
    assert answer.returncode == 0
    assert "Not used: embeddings" in answer.stdout
    assert "no features" in answer.stdout


def test_sabal_alone_prints_its_help():
    answer = run()
    assert answer.returncode == 2
    assert "select" in answer.stdout + answer.stderr
    assert "try `" not in answer.stderr


def test_posterior_pools(tmp_path):
    write_parquet(tmp_path / "pool.parquet", log_probs=nested(POOL.log_probs))
    answer = run("select", tmp_path / "pool.parquet", "--budget", 4, "--json")
    assert answer.returncode == 0, answer.stderr
    evidence = json.loads(answer.stdout)["evidence"]
    assert evidence["atoms"] == "posterior"


def test_warnings_are_printed_with_the_answer(pool_npz):
    answer = run("select", pool_npz, "--budget", 6, "--strategy", "sabal-greedy")
    assert answer.returncode == 0
    assert "atoms vanish" in answer.stdout
    assert answer.stderr == ""


def test_strategies_lists_what_each_needs():
    answer = run("strategies")
    assert answer.returncode == 0
    for name in ("sabal", "sabal-greedy", "sabal-iht", "random"):
        assert name in answer.stdout
    rows = json.loads(run("strategies", "--json").stdout)
    assert all({"name", "needs", "paper", "cost", "options"} <= set(row) for row in rows)


@pytest.mark.parametrize("command", ["select", "strategies"])
def test_help_has_an_example(command):
    answer = run(command, "--help")
    assert answer.returncode == 0
    assert "Example" in answer.stdout
    assert f"sabal {command}" in answer.stdout


def test_version_and_help():
    assert run("--version").stdout.strip() == f"sabal {sabal.__version__}"
    assert "select" in run("--help").stdout


def bad_pools(folder):
    """Pool files that cannot be used, by what is wrong with them."""
    good = {"features": POOL.features, "probs": POOL.probs}

    def npz(name, **arrays):
        np.savez(folder / f"{name}.npz", **arrays)
        return folder / f"{name}.npz"

    yield "nothing there", folder / "absent.npz"
    (folder / "text.txt").write_text("hello")
    yield "another ending", folder / "text.txt"
    (folder / "empty").mkdir()
    yield "an empty folder", folder / "empty"
    (folder / "noise.npz").write_bytes(b"not a zip file at all")
    yield "noise as npz", folder / "noise.npz"
    (folder / "noise.parquet").write_bytes(b"PAR1 not a parquet file")
    yield "noise as parquet", folder / "noise.parquet"
    whole = npz("whole", **good).read_bytes()
    (folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    yield "a truncated npz", folder / "cut.npz"
    (folder / "broken.npz").write_bytes(whole[:200] + b"x" * 50 + whole[250:])
    yield "a damaged npz", folder / "broken.npz"
    np.savez_compressed(folder / "packed.npz", **good)
    packed = (folder / "packed.npz").read_bytes()
    (folder / "packed.npz").write_bytes(packed[:300] + b"x" * 50 + packed[350:])
    yield "a damaged compressed npz", folder / "packed.npz"
    (folder / "bare.npz").write_bytes(b"")
    yield "an empty file", folder / "bare.npz"
    yield "objects", npz("objects", features=np.array([{"a": 1}] * 3, dtype=object))
    yield "no known names", npz("names", embeddings=POOL.features)
    yield "a near miss", npz("near", feature=POOL.features)
    yield "NaN", npz("nan", features=np.full((30, 2), np.nan))
    yield "rows that do not sum to 1", npz("sums", features=POOL.features, probs=POOL.probs * 2)
    yield "unequal lengths", npz("unequal", features=POOL.features, probs=POOL.probs[:4])
    yield "repeated ids", npz("ids", features=POOL.features, id=np.zeros(30, int))
    yield "only ids, no outputs", npz("onlyids", id=np.arange(30))
    write_parquet(folder / "ragged.parquet", features=pa.array([[1.0], [1.0, 2.0]]))
    yield "ragged lists", folder / "ragged.parquet"
    write_parquet(folder / "gaps.parquet", features=pa.array([[1.0], None]))
    yield "missing rows", folder / "gaps.parquet"
    write_parquet(folder / "holes.parquet", features=pa.array([[1.0], [None]]))
    yield "missing numbers", folder / "holes.parquet"
    write_parquet(folder / "words.parquet", features=pa.array(["a", "b"]))
    yield "words", folder / "words.parquet"
    write_parquet(folder / "scalars.parquet", features=pa.array([1.0, 2.0]))
    yield "numbers without lists", folder / "scalars.parquet"
    mixed = folder / "mixed"
    mixed.mkdir()
    write_parquet(mixed / "a.parquet", features=pa.array([[1.0, 2.0]]))
    write_parquet(mixed / "b.parquet", features=pa.array(["words"]))
    yield "shards of different types", mixed
    arrays = folder / "pickled"
    arrays.mkdir()
    np.save(arrays / "features.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    yield "a pickle", arrays


def assert_one_line(answer):
    assert answer.returncode == 2, answer.stdout
    assert len(answer.stderr.strip().splitlines()) == 1, answer.stderr
    assert answer.stderr.startswith("sabal: ")
    assert "Traceback" not in answer.stderr


def test_unusable_pools_are_one_line_and_exit_2_and_write_nothing(tmp_path, monkeypatch):
    """Through `main` in this process: a process each would take a minute."""
    from sabal.cli import main

    out = tmp_path / "out.csv"
    out.write_text("kept")
    for what, pool in bad_pools(tmp_path):
        monkeypatch.setattr(
            sys, "argv", ["sabal", "select", str(pool), "--budget", "2", "--out", str(out)]
        )
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2, what
        assert out.read_text() == "kept", what


@pytest.mark.parametrize(
    "arguments",
    [
        ("select", "absent.npz", "--budget", "3"),
        ("select", "POOL", "--budget", "31"),
        ("select", "POOL", "--budget", "0"),
        ("select", "POOL", "--budget", "many"),
        ("select", "POOL"),
        ("select", "POOL", "--budget", "3", "--strategy", "nonsense"),
        ("select", "POOL", "--budget", "3", "--option", "alpha"),
        ("select", "POOL", "--budget", "3", "--option", "gamma=1"),
        ("select", "POOL", "--budget", "3", "--option", "alpha=big"),
        ("select", "POOL", "--budget", "3", "--option", "alpha=1", "--option", "alpha=2"),
        ("select", "POOL", "--budget", "3", "--seed", "-1"),
        ("select", "POOL", "--budget", "3", "--out", "batch.docx"),
        ("select", "POOL", "--budget", "3", "--out", "no/such/folder/batch.csv"),
        ("select", "POOL", "--bugdet", "3"),
        ("selct", "POOL"),
    ],
)
def test_mistakes_are_one_line_on_stderr_and_exit_2(arguments, pool_npz):
    answer = run(*(pool_npz if a == "POOL" else a for a in arguments))
    assert_one_line(answer)
