"""Operators: the atoms of a pool, a block at a time."""

from sabal.operators.base import Block, Operator
from sabal.operators.blocks import Dense, RankOne, row_norms_squared
from sabal.operators.computed import Computed, Growing
from sabal.operators.fourier import Fourier

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
