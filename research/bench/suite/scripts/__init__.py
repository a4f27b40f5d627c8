"""Scripts for `research.bench.job`, each run in the process of one measurement."""
