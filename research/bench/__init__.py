"""Benchmarks: the time and memory of a selection, compared with other libraries."""

from research.bench.catalogue import PEERS, Peer
from research.bench.strategy_bench import document, run_strategies
from research.bench.strategy_plots import draw
from research.bench.strategy_rows import RivalComparison, StrategyMeasurement, comparisons
from research.bench.strategy_tables import coverage_table, results_table

__all__ = [
    "PEERS",
    "Peer",
    "RivalComparison",
    "StrategyMeasurement",
    "comparisons",
    "coverage_table",
    "document",
    "draw",
    "results_table",
    "run_strategies",
]
