"""Experiments: whole runs with hidden labels, compared."""
