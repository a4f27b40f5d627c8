"""Items: what solvers may ask of a pool, wherever it is."""

from sabal.items.local import LocalDescent, LocalItems
from sabal.items.protocol import Descent, Items
from sabal.items.questions import Best, Proximity, Ranking, SparseWeights, Survey, Terms

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
