"""Projects of handwritten digits, and a person who knows them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_digits

from labeling_helpers import answer
from sabal.labeling.project import Project

X, Y = load_digits(return_X_y=True)
CLASSES = [f"digit {k} <b>👍</b>" for k in range(10)]
SAME = {"choose_at": 1.0, "check_share": 0.0}


def digits_project(folder, items=500, **more):
    table = pa.table({"id": [f"d{k}" for k in range(items)], "features": X[:items].tolist()})
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / "pool.parquet")
    given = {"initial": 12, "batch": 5, "budget": 32, "seed": 3, **more}
    return Project.create(folder / "p", data=folder / "pool.parquet", classes=CLASSES, **given)


def row(key):
    return int(key[1:])


def true_label(key):
    return CLASSES[Y[row(key)]]


def label_all(store, who="ann"):
    """Answer every open item truly, a few at a time."""
    while leased := store.next_items(who, 7):
        for each in leased:
            answer(store, each.item, true_label(each.item), who)
