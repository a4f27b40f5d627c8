"""Pools: where the items to choose from are kept."""

from sabal.pools.chunks import pool_of_chunks
from sabal.pools.contents import NAMES, Contents
from sabal.pools.ids import Ids
from sabal.pools.pool_files import pool_size, read_pool

__all__ = ["NAMES", "Contents", "Ids", "pool_of_chunks", "pool_size", "read_pool"]
