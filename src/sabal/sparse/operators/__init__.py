"""Operators: the atoms of a pool, a block at a time."""

from sabal.sparse.operators.blocks import Dense, RankOne, row_norms_squared
from sabal.sparse.operators.computed import Computed, Growing
from sabal.sparse.operators.fourier import Fourier
from sabal.sparse.operators.operator import Block, Operator

__all__ = [
    "Block",
    "Computed",
    "Dense",
    "Fourier",
    "Growing",
    "Operator",
    "RankOne",
    "row_norms_squared",
]
