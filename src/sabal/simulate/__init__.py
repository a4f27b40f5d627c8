"""Simulated experiments: whole runs with hidden labels, in parallel."""
