"""Scripts for `research.bench.job`: what is done in the process of one measurement."""
