"""The store of a project: an append-only history in a database."""

from sabal.labeling.store.records import (
    Answer,
    BatchItem,
    CurvePoint,
    ImportedLabel,
    ImportReport,
    LeasedItem,
    NewBatchItem,
    PoolItem,
    Status,
    Submission,
    TrainingLabel,
    TrainingRecord,
)
from sabal.labeling.store.store import Store
from sabal.labeling.store.store_base import StoreSettings

__all__ = [
    "Answer",
    "BatchItem",
    "CurvePoint",
    "ImportReport",
    "ImportedLabel",
    "LeasedItem",
    "NewBatchItem",
    "PoolItem",
    "Status",
    "Store",
    "StoreSettings",
    "Submission",
    "TrainingLabel",
    "TrainingRecord",
]
