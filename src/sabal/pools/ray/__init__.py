"""Pools on a cluster: in shards, each with a worker that answers for its rows."""

from sabal.pools.ray.scoring import score_with_ray
from sabal.pools.ray.select import Cluster, choose_on_ray, select_on_ray

__all__ = ["Cluster", "choose_on_ray", "score_with_ray", "select_on_ray"]
