"""Lazy rows: read from a file, or computed from other rows, on request.

Both kinds look like an array with one row per item as far as a pass over a pool needs it: a shape,
a dtype, a namespace, and `[rows]`, which returns a plain array.
"""

from sabal.core.rows.derived import DerivedRows, derived, is_stored, load
from sabal.core.rows.stored import DataFile, RawRows, StoredRows

__all__ = ["DataFile", "DerivedRows", "RawRows", "StoredRows", "derived", "is_stored", "load"]
