"""Whatever lies where a pool or a run should be, a correct answer or one line comes out of it."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuzz_commands
import fuzz_pools
import sabal
from fuzz_oracle import ANSWERED, REFUSED, Answer, check_refusal, run_cli, watched
from makers import make_pool

POOL = make_pool(n=6)

randoms = st.randoms(use_true_random=False)


def run(kind, rng):
    with tempfile.TemporaryDirectory() as folder, watched():
        assert kind(rng, Path(folder)) in (ANSWERED, REFUSED)


@pytest.mark.parametrize("kind", fuzz_pools.KINDS)
@settings(max_examples=60)
@given(rng=randoms)
def test_pools(kind, rng):
    run(fuzz_pools.KINDS[kind], rng)


@pytest.mark.parametrize("kind", fuzz_commands.KINDS)
@settings(max_examples=20)
@given(rng=randoms)
def test_commands(kind, rng):
    run(fuzz_commands.KINDS[kind], rng)


@pytest.fixture
def pool(tmp_path):
    path = tmp_path / "pool.npz"
    np.savez(path, features=POOL.features, probs=POOL.probs)
    return path


def choose(pool, *more) -> Answer:
    with watched():
        return run_cli("select", "--budget=2", *more, "--", pool)


@pytest.mark.parametrize("name", ["a" * 300 + ".npz", "loop.npz", "pipe.npz", "nowhere.npz"])
def test_what_is_no_file_is_no_pool(name, tmp_path):

    (tmp_path / "loop.npz").symlink_to("loop.npz")
    os.mkfifo(tmp_path / "pipe.npz")
    check_refusal(choose(tmp_path / name))


def test_a_folder_is_no_place_for_a_batch(pool, tmp_path):
    (tmp_path / "batch.csv").mkdir()
    check_refusal(choose(pool, f"--out={tmp_path / 'batch.csv'}"))
    check_refusal(choose(pool, f"--out={tmp_path / ('a' * 300) / 'batch.csv'}"))
    check_refusal(choose(pool, f"--out={tmp_path / ('a' * 300)}.csv"))


@pytest.mark.parametrize("value", ["[" * 3000, "1" * 5000])
def test_an_option_that_is_no_json_is_a_word(value, pool):
    answer = choose(pool, "--strategy=sabal-greedy", f"--option=alpha={value}")
    check_refusal(answer)
    assert "`alpha` as a number" in answer.err


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("dataset", "$x_{$", 0),
        ("dataset", "数据 🐍", 0),
        ("dataset", "\ud800", 2),
        ("dataset", None, 2),
        ("seeds", "two", 2),
        ("accuracy", [0.5], 2),
        ("accuracy", float("nan"), 2),
        ("accuracy", 7.0, 2),
        ("strategy", None, 2),
        ("strategy", "_x", 2),
        ("labels", -1, 2),
    ],
)
def test_a_run_that_says_something_else_is_told_or_reported(name, value, code, tmp_path):
    config = {"dataset": "digits", "model": "logistic", "seeds": 1}
    row = {"strategy": "random", "seed": 0, "round": 0, "labels": 10, "accuracy": 0.5}
    (config if name in config else row)[name] = value
    (tmp_path / "config.json").write_text(json.dumps(config))
    table = pa.Table.from_pylist([{**row, "select_seconds": 0.1}])
    pq.write_table(table, tmp_path / "results.parquet")
    with watched():
        answer = run_cli("report", tmp_path)
    assert answer.code == code, answer
    if code:
        check_refusal(answer)


def test_ids_are_shown_as_they_are(tmp_path):
    ids = np.array([f"[/b]{k}" for k in range(6)])
    np.savez(tmp_path / "pool.npz", features=POOL.features, id=ids)
    assert "[/b]" in choose(tmp_path / "pool.npz").out


def test_a_column_of_maps_is_no_part_of_a_pool(tmp_path):
    maps = pa.array([[("k", 1.0)]] * 3, pa.map_(pa.string(), pa.float64()))
    pq.write_table(pa.table({"features": maps}), tmp_path / "pool.parquet")
    with pytest.raises(sabal.SabalError, match="lists of numbers"):
        sabal.select_pool(tmp_path / "pool.parquet", 1)
