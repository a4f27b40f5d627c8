"""Lazy rows: read from a file, or computed from other rows, on request; see `LazyRows`."""

from sabal.core.rows.derived import DerivedRows, derived, is_stored, load
from sabal.core.rows.stored import DataFile, RawRows, StoredRows

__all__ = ["DataFile", "DerivedRows", "RawRows", "StoredRows", "derived", "is_stored", "load"]
