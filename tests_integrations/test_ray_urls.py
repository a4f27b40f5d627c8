"""A Ray cluster that reads from and writes to a real S3 server."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
import ray

import sabal
from makers import make_pool
from s3_server import s3_server
from sabal.errors import FileError, InputError
from sabal.pools.ray import score_with_ray

N, B = 5_000, 30


@pytest.fixture(scope="module")
def bucket():
    """A bucket; the workers of the cluster inherit its settings."""
    with s3_server() as url:
        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        try:
            yield url
        finally:
            ray.shutdown()


@pytest.fixture(scope="module")
def pool():
    return make_pool(n=N, dimensions=8, classes=4)


@pytest.fixture(scope="module")
def items(bucket, pool):
    """A data set to score: two Parquet files in the bucket."""
    table = pa.table({"id": np.arange(N) + 100, "x": pool.features.tolist()})
    system, path = pyarrow.fs.FileSystem.from_uri(f"{bucket}/items")
    for name, part in {"0.parquet": table[:2000], "1.parquet": table[2000:]}.items():
        with system.open_output_stream(f"{path}/{name}") as stream:
            pq.write_table(part, stream, row_group_size=700)
    return f"{bucket}/items"


def score(batch):
    features = np.stack(batch["x"]).astype(np.float32)
    return {"features": features, "logits": features[:, :4]}


def files(url):
    system, path = pyarrow.fs.FileSystem.from_uri(url)
    found = system.get_file_info(
        pyarrow.fs.FileSelector(path, recursive=True, allow_not_found=True)
    )
    return sorted(each.base_name for each in found if each.is_file)


@pytest.fixture(scope="module")
def scored(bucket, items):
    out = f"{bucket}/pools/scored"
    assert score_with_ray(items, score, out, batch_size=500, workers=2) == out
    return out


def test_scores_are_written_to_a_bucket(scored, pool):
    names = files(scored)
    assert len(names) > 1
    assert all(name.startswith("part-") for name in names), "no temporary file is left"
    with sabal.pools.open_pool(scored) as found:
        np.testing.assert_allclose(found.features, pool.features.astype(np.float32))


def test_a_pool_in_a_bucket_is_read_by_workers_and_here_alike(scored, bucket, pool):
    features = pool.features.astype(np.float32)
    arrays = {"features": features, "logits": features[:, :4], "ids": np.arange(N) + 100}
    expected = sabal.select(B, **arrays, random_state=0)
    on_ray = sabal.select_pool(scored, B, engine="ray", workers=2, random_state=0)
    here = sabal.select_pool(scored, B, random_state=0)
    for batch in (on_ray, here):
        np.testing.assert_array_equal(batch.indices, expected.indices)
        np.testing.assert_array_equal(batch.ids, expected.ids)
        np.testing.assert_allclose(batch.weights, expected.weights)
    url = f"{bucket}/batches/one.parquet"
    on_ray.save(url)
    assert files(f"{bucket}/batches") == ["one.parquet"]


def test_a_failing_model_leaves_nothing_behind(items, bucket):
    def fails(batch):
        raise RuntimeError("no such layer")

    with pytest.raises(InputError, match="no such layer"):
        score_with_ray(items, fails, f"{bucket}/pools/failed", workers=2)
    assert files(f"{bucket}/pools/failed") == []


def test_a_folder_with_files_is_not_written_to(items, scored):
    with pytest.raises(FileError, match="which exists"):
        score_with_ray(items, score, scored, workers=2)


def test_a_bucket_that_is_not_there(items):
    with pytest.raises(FileError, match="to write s3://nosuchbucket/out"):
        score_with_ray(items, score, "s3://nosuchbucket/out", workers=2)
