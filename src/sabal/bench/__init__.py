"""Benchmarks: how fast Sabal is, and how much memory it takes, beside other libraries."""

from sabal.bench.catalogue import PEERS, Peer
from sabal.bench.picture import draw
from sabal.bench.rows import Comparison, Row, comparisons
from sabal.bench.strategies import document, run_strategies
from sabal.bench.table import coverage_table, results_table

__all__ = [
    "PEERS",
    "Comparison",
    "Peer",
    "Row",
    "comparisons",
    "coverage_table",
    "document",
    "draw",
    "results_table",
    "run_strategies",
]
