"""Temporary."""

from sabal.pools.pool import AGREEMENT as AGREEMENT
from sabal.pools.pool import FILE_ARRAYS as PARTS  # noqa: F401
from sabal.pools.pool import ArrayPool as Outputs  # noqa: F401
