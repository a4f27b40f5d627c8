"""Temporary."""

from sabal.sparse.from_arrays import RandomState as RandomState
