"""Pools and batches in Google Cloud Storage, as an emulator has it, with and without Ray."""

from __future__ import annotations

import csv
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray

import sabal
from makers import make_pool
from sabal.core.urls import file_system
from waiting import until

N, B = 2_000, 12


@pytest.fixture(scope="module")
def emulator():
    """The address of an emulator, a process of its own: Arrow keeps Python's lock as it reads."""
    with socket.create_server(("localhost", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--in-memory"]
    process = subprocess.Popen(  # noqa: S603
        [*command, f"--port={port}", "--default-bucket=bucket"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: answers(f"http://localhost:{port}/storage/v1/b/bucket"))
        yield f"localhost:{port}"
    finally:
        process.terminate()
        process.wait()


def answers(address):
    try:
        urllib.request.urlopen(address).close()  # noqa: S310
    except urllib.error.URLError:
        return False
    return True


@pytest.fixture(scope="module")
def at(emulator):
    query = f"?scheme=http&endpoint_override={quote(emulator, safe='')}"
    return lambda path: f"gs://anonymous@bucket/{path}{query}"


@pytest.fixture(scope="module")
def expected(emulator):
    """Upload a pool as other programs do, without markers of folders; return its batch."""
    pool = make_pool(n=N, dimensions=6, classes=3)
    ids = np.arange(N) + 100
    arrays = {"features": pool.features, "probs": pool.probs}
    table = pa.table({"id": ids, **{name: each.tolist() for name, each in arrays.items()}})
    for k, part in enumerate((table[:900], table[900:])):
        sink = pa.BufferOutputStream()
        pq.write_table(part, sink, row_group_size=300)
        where = f"http://{emulator}/upload/storage/v1/b/bucket/o?uploadType=media"
        content = sink.getvalue().to_pybytes()
        name = quote(f"pools/one/{k}.parquet", safe="")
        headers = {"Content-Type": "application/octet-stream"}
        upload = urllib.request.Request(f"{where}&name={name}", content, headers)  # noqa: S310
        urllib.request.urlopen(upload).close()  # noqa: S310
    return sabal.select(B, **arrays, ids=ids, random_state=0)


def test_a_folder_is_a_pool_and_a_batch_goes_back(at, expected):
    batch = sabal.select_pool(at("pools/one/"), B, random_state=0)
    assert batch.ids.tolist() == expected.ids.tolist()
    in_parts = sabal.select_pool(at("pools/one"), B, memory="1MB", random_state=0)
    assert in_parts.ids.tolist() == expected.ids.tolist()
    batch.save(at("batches/one.csv"))
    system, path = file_system(at("batches/one.csv"))
    with system.open_input_stream(path) as stream:
        rows = list(csv.DictReader(stream.read().decode().splitlines()))
    assert [int(row["id"]) for row in rows] == expected.ids.tolist()


def test_workers_of_a_cluster_read_it(at, expected):
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    try:
        url = at("pools/one/")
        batch = sabal.select_pool(url, B, engine="ray", workers=2, random_state=0)
    finally:
        ray.shutdown()
    assert batch.ids.tolist() == expected.ids.tolist()


@pytest.mark.parametrize("path", ["pools/none/", "pools/one/7.parquet"])
def test_nothing_there(at, path):
    with pytest.raises(sabal.SabalError, match="nothing at gs://"):
        sabal.select_pool(at(path), B)


def test_a_bucket_that_is_not_there(at, expected):
    with pytest.raises(sabal.SabalError, match="to write gs://"):
        expected.save(at("batches/one.csv").replace("@bucket/", "@other/"))
