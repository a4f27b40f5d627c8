"""The store of a project: an append-only history in a database."""

from sabal.labeling.store.store import Store
from sabal.labeling.store.store_base import StoreSettings

__all__ = ["Store", "StoreSettings"]
