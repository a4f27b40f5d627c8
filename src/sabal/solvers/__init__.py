"""Solvers: a Problem in, a Solution out."""

from sabal.solvers.greedy import Greedy
from sabal.solvers.iht import ProximalIHT
from sabal.solvers.refit import refit
from sabal.solvers.solution import Solution, Solver

__all__ = ["Greedy", "ProximalIHT", "Solution", "Solver", "refit"]
