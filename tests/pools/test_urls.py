"""Pools and batches at URLs, with a real S3 server on loopback."""

from __future__ import annotations

import csv
import gc
import io
import json

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sabal
from makers import make_pool
from s3_server import s3_server
from sabal.cli import app
from sabal.core.urls import (
    GCS_RETRY_SECONDS,
    file_ending,
    file_system,
    is_url,
    join_url,
    local_path,
)
from sabal.errors import FileError, MissingPackageError, SabalError

N, B = 300, 12
IDS = [f"item-{k:03d}" for k in range(N)]


@pytest.fixture(scope="module")
def bucket():
    with s3_server() as url:
        yield url


@pytest.fixture(scope="module")
def arrays():
    pool = make_pool(n=N, dimensions=5, classes=3)
    return {"features": pool.features, "probs": pool.probs}


@pytest.fixture(scope="module")
def expected(arrays):
    return sabal.select(B, **arrays, ids=IDS, random_state=0)


def table(arrays, **names):
    columns = {names.get(name, name): array.tolist() for name, array in arrays.items()}
    return pa.table({"id": IDS, "text": IDS, **columns})


def upload(url, files):
    system, path = pyarrow.fs.FileSystem.from_uri(url)
    for name, content in files.items():
        with system.open_output_stream(f"{path}/{name}") as stream:
            stream.write(content)


def parquet_bytes(part):
    sink = pa.BufferOutputStream()
    pq.write_table(part, sink, row_group_size=64)
    return sink.getvalue()


@pytest.fixture(scope="module")
def pool(bucket, arrays):
    """A folder of Parquet files in the bucket."""
    whole = table(arrays)
    files = {"0.parquet": whole[:100], "1.parquet": whole[100:]}
    upload(f"{bucket}/pool", {name: parquet_bytes(part) for name, part in files.items()})
    return f"{bucket}/pool"


def assert_same(ours, theirs):
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_allclose(ours.weights, theirs.weights)
    assert ours.ids.tolist() == theirs.ids.tolist()


def read(url):
    system, path = pyarrow.fs.FileSystem.from_uri(url)
    with system.open_input_stream(path) as stream:
        return stream.read()


@pytest.mark.parametrize("memory", [None, "20KB"])
def test_a_pool_in_a_bucket(pool, expected, memory):
    assert_same(sabal.select_pool(pool, B, memory=memory, random_state=0), expected)
    assert_same(sabal.select_pool(f"{pool}/", B, random_state=0), expected)


@pytest.mark.parametrize("kind", ["npz", "npy"])
@pytest.mark.parametrize("memory", [None, "20KB"])
def test_arrays_in_a_bucket_are_copied(bucket, arrays, expected, kind, memory, tmp_path):
    files = {}
    for name, array in {**arrays, "id": np.array(IDS)}.items():
        stream = io.BytesIO()
        np.save(stream, array)
        files[f"{name}.npy"] = stream.getvalue()
    url = f"{bucket}/arrays"
    if kind == "npz":
        stream = io.BytesIO()
        np.savez(stream, **arrays, id=IDS)
        files, url = {"pool.npz": stream.getvalue()}, f"{bucket}/archive"
    upload(url, files)
    url = f"{url}/pool.npz" if kind == "npz" else url
    batch = sabal.select_pool(url, B, memory=memory, scratch=tmp_path, random_state=0)
    assert_same(batch, expected)
    gc.collect()  # pools and their shards refer to each other
    assert not list(tmp_path.iterdir())


def test_columns_in_a_bucket_and_on_disk(bucket, arrays, expected, tmp_path):
    content = parquet_bytes(table(arrays, features="embedding", probs="p"))
    upload(f"{bucket}/other", {"pool.parquet": content})
    (tmp_path / "pool.parquet").write_bytes(content.to_pybytes())
    columns = {"features": "embedding", "probs": "p"}
    for source in (f"{bucket}/other/pool.parquet", tmp_path, tmp_path.as_uri()):
        assert_same(sabal.select_pool(source, B, columns=columns, random_state=0), expected)
    answer = CliRunner().invoke(
        app,
        f"select {tmp_path} -b{B} --columns features=embedding --columns probs=p --json".split(),
    )
    assert [row["id"] for row in json.loads(answer.stdout)["items"]] == expected.ids.tolist()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_batch_is_saved_to_a_bucket(bucket, expected, ending, tmp_path):
    url = f"{bucket}/out/batch.{ending}"
    assert expected.save(url) == url
    expected.save(tmp_path / f"batch.{ending}")
    assert read(url) == (tmp_path / f"batch.{ending}").read_bytes()
    expected.save((tmp_path / f"again.{ending}").as_uri())
    assert read(url) == (tmp_path / f"again.{ending}").read_bytes()


def test_the_command_reads_and_writes_urls(bucket, pool, expected):
    out = f"{bucket}/out/chosen.csv"
    words = ["select", pool, "--budget", str(B), "--out", out]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    assert f"Written to {out}" in answer.stdout
    assert "Not used: text" in answer.stdout
    rows = csv.DictReader(io.StringIO(read(out).decode()))
    assert [row["id"] for row in rows] == expected.ids.tolist()


def test_file_urls_are_paths(arrays, expected, tmp_path):
    np.savez(tmp_path / "a pool.npz", **arrays, id=IDS)
    url = (tmp_path / "a pool.npz").as_uri()
    assert "%20" in url
    assert_same(sabal.select_pool(url, B, random_state=0), expected)
    with pytest.raises(FileError, match="no folder"):
        expected.save((tmp_path / "missing" / "batch.csv").as_uri())


def test_other_kinds_of_urls_go_through_fsspec(arrays, expected):
    with fsspec.open("memory://pools/one.parquet", "wb") as file:
        file.write(parquet_bytes(table(arrays)).to_pybytes())
    assert_same(sabal.select_pool("memory://pools/one.parquet", B, random_state=0), expected)
    assert_same(sabal.select_pool("memory://pools", B, random_state=0), expected)
    expected.save("memory://out/batch.jsonl")
    with fsspec.open("memory://out/batch.jsonl") as file:
        assert len(file.readlines()) == B


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://bucket/none", "nothing at s3://bucket/none"),
        ("s3://nosuchbucket/pool", "nothing at s3://nosuchbucket"),
        ("s3://bucket/pool/*.parquet", "pass the folder, without \\*"),
        ("nosuch://bucket/pool", "Protocol not known"),
        ("s3://bucket/empty/x.txt", "a .parquet file"),
        ("s3://bucket/broken", "can be read at s3://bucket/broken"),
        ("file:///no/such/pool.npz", "nothing at /no/such/pool.npz"),
    ],
)
def test_urls_that_are_no_pool(bucket, url, message):
    upload(f"{bucket}/empty", {"x.txt": b"text"})
    upload(f"{bucket}/broken", {"x.parquet": b"not Parquet"})
    with pytest.raises(SabalError, match=message) as error:
        sabal.select_pool(url, 1)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("url", "kind", "message"),
    [
        ("s3://nosuchbucket/batch.csv", FileError, "NO_SUCH_BUCKET"),
        ("s3://bucket/batch.xlsx", FileError, "ends in .csv"),
        ("nosuch://bucket/batch.csv", FileError, "Protocol not known"),
        ("sftp://host/batch.csv", MissingPackageError, "paramiko"),
    ],
)
def test_urls_that_cannot_be_written(bucket, expected, url, kind, message):
    with pytest.raises(kind, match=message):
        expected.save(url)


def test_a_command_with_a_wrong_destination_says_so_before_it_reads(bucket):
    words = ["select", "s3://bucket/none", "-b1", "--out", "nosuch://bucket/batch.csv"]
    assert "Protocol not known" in str(CliRunner().invoke(app, words).exception)


def test_what_urls_are():
    assert is_url("s3://bucket")
    assert not is_url("C://folder")
    assert not is_url("s3:/bucket")
    assert str(local_path("file:///a/b%20c")) == "/a/b c"
    assert local_path("file://host/a") is None
    assert local_path("s3://a/b") is None
    assert file_ending("s3://b/x.CSV?endpoint_override=a.b") == ".csv"
    assert join_url("s3://b/x/?k=v", "y") == "s3://b/x/y?k=v"


def test_google_is_not_tried_again_for_minutes(monkeypatch):
    url = "gs://anonymous@bucket/pool"
    limited, _ = pyarrow.fs.FileSystem.from_uri(f"{url}?retry_limit_seconds={GCS_RETRY_SECONDS}")
    longer, _ = pyarrow.fs.FileSystem.from_uri(f"{url}?retry_limit_seconds=77")
    assert limited != longer
    assert file_system(url)[0] == limited
    assert file_system(f"{url}?retry_limit_seconds=77")[0] == longer
    monkeypatch.setattr("sabal.core.urls.GCS_RETRY_SECONDS", 1)
    nobody = f"{url}?scheme=http&endpoint_override=127.0.0.1%3A9"
    with pytest.raises(FileError, match="Could not connect to server \\(gs://"):
        sabal.select_pool(nobody, B)


def test_google_without_credentials(monkeypatch, tmp_path):
    monkeypatch.setattr("sabal.core.urls.GCS_RETRY_SECONDS", 1)
    keys = {"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}
    where = {"token_uri": "http://127.0.0.1:9/token"}
    (tmp_path / "keys.json").write_text(json.dumps(keys | where))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "keys.json"))
    with pytest.raises(FileError, match=r"no credentials .* set GOOGLE_APPLICATION_CREDENTIALS"):
        sabal.select_pool("gs://bucket/pool", B)
