"""The commands of `python -m research`, which add themselves to the app when imported."""

from research.commands import bench, corrections, reproduce, shares, stopping, study

__all__ = ["bench", "corrections", "reproduce", "shares", "stopping", "study"]
