"""Pools: where the items to choose from are kept."""

from sabal.pools.files import read_pool

__all__ = ["read_pool"]
