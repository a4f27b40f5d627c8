"""Pools: where the items to choose from are kept."""

from sabal.pools.files import NAMES, Contents, read_pool

__all__ = ["NAMES", "Contents", "read_pool"]
