"""The experiments and measurements behind the documentation; not part of the package."""

PROGRAM = "python -m research"
"""What users type before the name of a command."""
