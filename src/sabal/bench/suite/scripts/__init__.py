"""Scripts for `sabal.bench.job`: what is done in the process of one measurement."""
