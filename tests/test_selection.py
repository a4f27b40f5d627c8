"""Selections as files: whole or absent, the same whatever the format."""

from __future__ import annotations

import csv
import os

import numpy as np
import pytest

import sabal
from makers import make_pool
from sabal.core.files import write_whole


def selection(ids=None):
    pool = make_pool(n=15)
    return sabal.select(5, features=pool.features, probs=pool.probs, ids=ids, random_state=0)


@pytest.mark.parametrize(
    "ids",
    [None, [f'ä,"{k}"\n' for k in range(15)], np.arange(100, 115)],
    ids=["none", "odd", "int"],
)
def test_csv_brings_back_every_id(ids, tmp_path):
    chosen = selection(ids)
    path = chosen.to_csv(tmp_path / "batch.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [str(i) for i in chosen.ids]
    np.testing.assert_allclose([float(row["weight"]) for row in rows], chosen.weights)


def test_an_error_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "batch.csv"
    path.write_text("old")

    def fail(target):
        target.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(sabal.SabalError, match="No space left"):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["batch.csv"]


def test_a_written_file_is_as_readable_as_any_other(tmp_path):
    beside = tmp_path / "plain.txt"
    beside.write_text("")
    path = selection().to_jsonl(tmp_path / "batch.jsonl")
    assert path.stat().st_mode == beside.stat().st_mode


def test_a_file_size_limit_is_a_sabal_error(tmp_path):
    """A disk that fills up half way, as a limit on the size of files."""
    import subprocess
    import sys

    code = f"""
import resource, signal, numpy as np, sabal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
chosen = sabal.select(2000, features=np.ones((2000, 2)), strategy="random")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for name in ("csv", "jsonl", "parquet"):
    try:
        chosen.save({str(tmp_path)!r} + "/batch." + name)
    except sabal.SabalError as error:
        print("refused", error.got)
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.count("refused") == 3, answer.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_batch_is_its_row_numbers_wherever_numbers_are_expected():
    chosen = selection()
    assert list(chosen) == chosen.indices.tolist()
    assert all(type(row) is int for row in chosen)
    np.testing.assert_array_equal(np.asarray(chosen), chosen.indices)
    assert np.asarray(chosen, dtype=np.float32).dtype == np.float32
    np.testing.assert_array_equal(np.arange(100, 115)[chosen], 100 + chosen.indices)
    copied = np.array(chosen)
    copied[:] = -1
    assert (chosen.indices >= 0).all()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_batch_as_a_table(library):
    chosen = selection(ids=[f"item-{k}" for k in range(15)])
    columns = chosen.to_frame(library)
    columns = {name: list(map(str, columns[name].to_numpy())) for name in columns_of(columns)}
    rows = chosen.rows()
    assert columns["id"] == [row["id"] for row in rows]
    assert columns["index"] == [str(k) for k in chosen]
    assert columns["rank"] == [str(row["rank"]) for row in rows]
    assert [float(text) for text in columns["weight"]] == [row["weight"] for row in rows]
    assert list(columns) == ["id", "index", "rank", "weight", "score"]


def columns_of(table):
    return table.column_names if hasattr(table, "column_names") else list(table.columns)


def test_an_unknown_library_is_refused():
    with pytest.raises(sabal.SabalError, match="pandas, polars, pyarrow"):
        selection().to_frame("excel")


@pytest.mark.parametrize("budget", [1, 5, 1000])
def test_a_batch_is_shown_in_a_few_lines(budget):
    features = np.random.default_rng(0).normal(size=(1000, 3))
    ids = [f"<b>{'long' * 40}</b> {k}" for k in range(1000)]
    chosen = sabal.select(budget, features=features, ids=ids, random_state=0)
    lines = repr(chosen).splitlines()
    items = "1 item" if budget == 1 else f"{budget:,} items"
    assert lines[0] == f"Selection of {items} by 'sabal', seed 0"
    assert len(lines) <= 6
    assert max(map(len, lines)) <= 110
    left = f"100.0% before the batch, {chosen.evidence['objective']:.1%} after it, "
    assert f"uncertainty not covered: {left}" in repr(chosen)
    assert "after a random batch" in repr(chosen)
    page = chosen._repr_html_()
    assert "<b>long" not in page
    assert "&lt;b&gt;long" in page
    assert page.count("<tr>") == min(budget, 5) + 1
    assert ("more" in page) == (budget > 5)
