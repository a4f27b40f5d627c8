"""Pools on a Ray cluster: one shard per worker."""

from sabal.pools.ray.opening_on_ray import open_on_ray
from sabal.pools.ray.ray_pool import RayPool
from sabal.pools.ray.scoring import score_with_ray

__all__ = ["RayPool", "open_on_ray", "score_with_ray"]
