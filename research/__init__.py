"""The experiments and measurements behind the documentation; not part of the package."""
