"""Shards in this process, and pools to cut into shards."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from makers import make_pool
from sabal.core import arrays
from sabal.pools.ray.actor import read_shard, shard_keys
from sabal.pools.ray.id_keys import repeated
from sabal.pools.ray.shard_sources import shard_sources
from sabal.pools.ray.shards import row_ranges


def sent(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301


class LocalWorkers:
    """Shards without workers; all that is said passes through bytes, as it would elsewhere.

    forgetful: every question finds a shard that has just been read, as if the last one had died.
    """

    def __init__(self, source, workers, forgetful=False, loss="softmax"):
        self.sources = shard_sources(source, loss=loss)
        self.ranges = row_ranges(self.sources.size, workers)
        self.forgetful = forgetful
        self.shards = [None] * len(self.ranges)

    def shard(self, k):
        if self.shards[k] is None or self.forgetful:
            source = sent(self.sources.of(*self.ranges[k]))
            self.shards[k] = read_shard(source, self.sources.size)
        return self.shards[k]

    def share(self, value):
        return value

    def ask(self, question, *args):
        answers = self.ask_each(question, dict.fromkeys(range(len(self.ranges)), args))
        return [answers[k] for k in range(len(self.ranges))]

    def ask_each(self, question, args):
        said, question = sent(args), sent(question)
        return sent({k: question(self.shard(k), *each) for k, each in said.items()})

    def suspects(self):
        count = len(self.ranges)
        keys = [[shard_keys(self.shard(j), k, count) for j in range(count)] for k in range(count)]
        return np.concatenate([repeated(each) for each in keys])

    def evidence(self):
        return {}


@contextmanager
def short_segments(rows=7):
    """Segments of a few rows, so that a small pool has many."""
    with patch.object(arrays, "SHORTEST_SEGMENT", rows):
        yield


def write_pool(folder, files=4, rows=10, ids=None):
    """A folder of Parquet files; returns its arrays."""
    n = files * rows
    pool = make_pool(n=n)
    ids = [f"item {k}" for k in range(n)] if ids is None else ids
    folder.mkdir()
    for k in range(files):
        part = slice(k * rows, (k + 1) * rows)
        columns = {"id": ids[part], "features": pool.features[part].tolist()}
        columns |= {"probs": pool.probs[part].tolist()}
        pq.write_table(pa.table(columns), folder / f"{k}.parquet", row_group_size=4)
    return {"features": pool.features, "probs": pool.probs, "id": ids}
