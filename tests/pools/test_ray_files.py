"""Where shards come from: recipes, URLs, and data sets that are scored in parts. No Ray here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from local_workers import LocalWorkers, short_segments, write_pool
from makers import make_pool
from sabal.errors import FileError, InputError, UnknownNameError
from sabal.pools import read_pool
from sabal.pools.ray.ray_pool import RayPool
from sabal.pools.ray.score_parts import parts_of, write_scores
from sabal.pools.ray.shard_sources import FileRows, shard_sources


@pytest.mark.parametrize("remote", [False, True])
def test_pools_in_files_are_read_by_rows(tmp_path, remote):
    arrays_of_pool = write_pool(tmp_path / "pool")
    source = (tmp_path / "pool").as_uri() if remote else tmp_path / "pool"
    rows = np.array([39, 0, 12, 13, 20])
    with short_segments():
        here = RayPool(LocalWorkers(arrays_of_pool, 3))
        there = RayPool(LocalWorkers(source, 3))
        assert there.size == 40
        assert np.array_equal(here.ids[rows], there.ids[rows])
        for name in ("features", "probs"):
            mine, theirs = getattr(here.take(rows), name), getattr(there.take(rows), name)
            assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("remote", [False, True])
def test_what_does_not_fit_a_worker_stays_on_disk(tmp_path, remote):
    write_pool(tmp_path / "pool", files=2, rows=500)
    source = (tmp_path / "pool").as_uri() if remote else tmp_path / "pool"
    (tmp_path / "scratch").mkdir()
    recipe = shard_sources(source, memory="40kB", scratch=tmp_path / "scratch").of(200, 900)
    contents = recipe.read()
    assert list((tmp_path / "scratch").iterdir())
    assert contents.pool.size == 700
    assert contents.ids[np.array([0, 699])].tolist() == ["item 200", "item 899"]
    del contents


def test_a_file_that_only_the_driver_sees_is_told_of(tmp_path):
    recipe = FileRows(str(tmp_path / "gone"), 0, 5, None, None)
    with pytest.raises(FileError, match=r"on every machine of the cluster; got nothing there on"):
        recipe.read()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere.npz", "nothing at nowhere.npz"),
        ("nosuch://bucket/pool", "Protocol not known"),
        ("file:///no/such/pool.parquet", "nothing at file:///no/such/pool.parquet"),
        ({"feature": [[1.0]]}, "did you mean 'features'"),
        ({}, "no array at all"),
        ({"features": 3.0}, "a single number"),
        ({"features": [[1.0]], "probs": [[1.0], [1.0]]}, "features with 1 rows, probs with 2"),
        ({"features": [[1.0], [2.0]], "id": [4, 4]}, "4 2 times"),
        (17, "got int"),
    ],
)
def test_sources_that_are_no_pool(source, message):
    with pytest.raises((FileError, InputError, UnknownNameError), match=message):
        shard_sources(source)


def test_urls_of_anything_but_parquet_are_refused(tmp_path):
    np.savez(tmp_path / "pool.npz", probs=make_pool(n=4).probs)
    with pytest.raises(FileError, match="save the pool as Parquet"):
        shard_sources((tmp_path / "pool.npz").as_uri())
    pq.write_table(pa.table({"feature": [1.0]}), tmp_path / "one.parquet")
    with pytest.raises(FileError, match="rename it to"):
        shard_sources((tmp_path / "one.parquet").as_uri())


def test_a_data_set_is_scored_in_parts_that_cover_it(tmp_path):
    arrays_of_pool = write_pool(tmp_path / "pool", files=3, rows=25)
    (tmp_path / "npy").mkdir()
    for name, values in arrays_of_pool.items():
        np.save(tmp_path / "npy" / f"{name}.npy", values)
    for source in (tmp_path / "pool", (tmp_path / "pool").as_uri(), tmp_path / "npy"):
        parts = parts_of(source, 6, 2)
        assert len(parts) >= 6
        batches = [batch for part in parts for batch in part.batches(6)]
        assert max(len(batch["id"]) for batch in batches) == 6
        for name, values in arrays_of_pool.items():
            assert np.array_equal(np.concatenate([batch[name] for batch in batches]), values)


def test_what_is_no_number_comes_as_it_is(tmp_path):
    columns = {"image": [b"ab", b"c", None], "words": [["x"], [], ["y", "z"]]}
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    (part,) = parts_of(tmp_path / "data.parquet", 10, 1)
    (batch,) = part.batches(10)
    assert {name: values.tolist() for name, values in batch.items()} == columns


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda batch: [1], "a dict of arrays from `score`; got list"),
        (lambda batch: {"feature": batch["features"]}, "did you mean 'features'"),
        (lambda batch: {"id": batch["id"]}, "some of features, logits, .* from `score`; got id"),
        (lambda batch: {"features": batch["features"][1:]}, "a row for each of the 6 items"),
        (lambda batch: {"features": batch["features"][:, : len(batch["id"])]}, "the same arrays"),
    ],
)
def test_a_score_that_makes_no_pool_is_refused(tmp_path, score, message):
    write_pool(tmp_path / "pool", files=1, rows=10)
    (part,) = parts_of(tmp_path / "pool", 6, 1)[:1]
    part = replace(part, stop=10)
    with pytest.raises((InputError, UnknownNameError), match=message):
        write_scores(part, score, 6, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_scores_are_written_as_a_pool(tmp_path):
    pool = make_pool(n=9)
    (tmp_path / "npy").mkdir()
    np.save(tmp_path / "npy" / "x.npy", pool.features)
    (part,) = parts_of(tmp_path / "npy", 20, 1)

    def score(batch):
        return {"features": batch["x"].astype(np.float32), "log_probs": pool.log_probs}

    assert write_scores(part, score, 20, tmp_path / "out.parquet")[0] == 9
    found = read_pool(tmp_path / "out.parquet").pool.check()
    assert np.array_equal(found.log_probs, pool.log_probs)
    assert found.features.dtype == np.float32
    assert found.ids.tolist() == list(range(9))


@pytest.mark.parametrize(
    ("source", "message"),
    [("nowhere", "nothing at nowhere"), ("nosuch://x/y", "Protocol not known")],
)
def test_data_sets_that_are_not_there(source, message):
    with pytest.raises(FileError, match=message):
        parts_of(source, 5, 1)
