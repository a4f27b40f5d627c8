"""Pools: the items to choose from, in memory, on disk, in chunks, or on a cluster."""

from sabal.pools.chunks import pool_of_chunks
from sabal.pools.contents import NAMES, Contents
from sabal.pools.ids import Ids
from sabal.pools.opening import open_pool, read_contents
from sabal.pools.pool import ArrayPool, Pool
from sabal.pools.pool_files import pool_size, read_pool

__all__ = [
    "NAMES",
    "ArrayPool",
    "Contents",
    "Ids",
    "Pool",
    "open_pool",
    "pool_of_chunks",
    "pool_size",
    "read_contents",
    "read_pool",
]
