"""Benchmarks: how fast Sabal is, and how much memory it takes, beside other libraries."""

from research.bench.catalogue import PEERS, Peer
from research.bench.picture import draw
from research.bench.rows import Comparison, Row, comparisons
from research.bench.strategies import document, run_strategies
from research.bench.table import coverage_table, results_table

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
