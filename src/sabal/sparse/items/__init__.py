"""Items: what solvers may ask of a pool, wherever it is."""

from sabal.sparse.items.local import LocalDescent, LocalItems
from sabal.sparse.items.protocol import Descent, Items
from sabal.sparse.items.queries import Best, Proximity, Ranking, SparseWeights, Survey, Terms

__all__ = [
    "Best",
    "Descent",
    "Items",
    "LocalDescent",
    "LocalItems",
    "Proximity",
    "Ranking",
    "SparseWeights",
    "Survey",
    "Terms",
]
