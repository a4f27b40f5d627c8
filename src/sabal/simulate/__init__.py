"""Whole runs with hidden labels, side by side."""
