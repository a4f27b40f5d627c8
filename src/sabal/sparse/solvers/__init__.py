"""Solvers: a Problem in, a Solution out."""

from sabal.sparse.solvers.greedy import Greedy
from sabal.sparse.solvers.iht import ProximalIHT
from sabal.sparse.solvers.refit import refit
from sabal.sparse.solvers.solution import Solution, Solver

__all__ = ["Greedy", "ProximalIHT", "Solution", "Solver", "refit"]
