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
from sabal.pools.ray.crew import shares
from sabal.pools.ray.keys import repeated
from sabal.pools.ray.recipes import recipes_of
from sabal.pools.ray.shard import Shard


def sent(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301


class LocalCrew:
    """Shards without workers; whatever is said passes through bytes, as it would elsewhere.

    forgetful: every question finds a shard that has just been read, as if the last one had died.
    """

    def __init__(self, source, workers, forgetful=False):
        self.recipes = recipes_of(source)
        self.ranges = shares(self.recipes.size, workers)
        self.forgetful = forgetful
        self.shards = [self._new(k) for k in range(len(self.ranges))]

    def _new(self, k):
        return Shard(sent(self.recipes.of(*self.ranges[k])), self.recipes.size)

    def share(self, value):
        return value

    def ask(self, question, *args):
        answers = self.ask_each(question, dict.fromkeys(range(len(self.shards)), args))
        return [answers[k] for k in range(len(self.shards))]

    def ask_each(self, question, args):
        if self.forgetful:
            self.shards = [self._new(k) for k in range(len(self.ranges))]
        said = sent(args)
        return sent({k: getattr(self.shards[k], question)(*each) for k, each in said.items()})

    def suspects(self):
        count = len(self.shards)
        keys = [[shard.keys(k, count) for shard in self.shards] for k in range(count)]
        return np.concatenate([repeated(each) for each in keys])


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
