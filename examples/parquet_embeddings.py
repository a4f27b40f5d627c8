"""Embeddings in Parquet: a pool on disk in, a batch on disk out.

Writes a pool of 20,000 embeddings with a model's predictions, a row group at a time, as a data
warehouse would store it. `sabal.select_pool` reads it in passes within a memory limit. The batch is
saved with the ids of the pool, its weights, and the evidence in the file's metadata. Runs in
seconds, and writes into the folder demo/:

    python examples/parquet_embeddings.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

import sabal

ITEMS = 20_000
DIMENSIONS = 32
CLASSES = 8
LABELED = 80
BUDGET = 100
ROWS_AT_A_TIME = 5_000
SEED = 0
FOLDER = Path("demo")


def write_pool(path: Path, embeddings: np.ndarray, model: LogisticRegression) -> None:
    """Write the columns id, features and probs; arrays are columns of lists."""
    width = pa.list_(pa.float32(), DIMENSIONS), pa.list_(pa.float32(), CLASSES)
    schema = pa.schema([("id", pa.string()), ("features", width[0]), ("probs", width[1])])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, len(embeddings), ROWS_AT_A_TIME):
            part = embeddings[start : start + ROWS_AT_A_TIME]
            probs = model.predict_proba(part).astype(np.float32)
            columns = [
                pa.array([f"item-{start + row:05d}" for row in range(len(part))]),
                pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), DIMENSIONS),
                pa.FixedSizeListArray.from_arrays(pa.array(probs.ravel()), CLASSES),
            ]
            writer.write_table(pa.table(columns, schema=schema))


def main() -> None:
    """Write the pool, choose from it, and read the batch."""
    console = Console()
    FOLDER.mkdir(exist_ok=True)
    pool_file, batch_file = FOLDER / "embeddings.parquet", FOLDER / "batch.parquet"
    embeddings, classes = make_blobs(
        ITEMS + LABELED, DIMENSIONS, centers=CLASSES, cluster_std=12.0, random_state=SEED
    )
    embeddings = embeddings.astype(np.float32)
    known, pool = embeddings[:LABELED], embeddings[LABELED:]
    model = LogisticRegression(max_iter=500).fit(known, classes[:LABELED])
    write_pool(pool_file, pool, model)

    # With the features of the labelled items, the batch covers the rest of the pool.
    batch = sabal.select_pool(
        pool_file, BUDGET, memory="64MiB", labeled_features=known, random_state=SEED
    )
    batch.save(batch_file)

    chosen = pq.read_table(batch_file)
    table = Table(title=f"The first 5 of {chosen.num_rows} rows of {batch_file}")
    for name in ("id", "rank", "weight"):
        table.add_column(name, justify="right")
    for row in chosen.slice(0, 5).to_pylist():
        table.add_row(row["id"], str(row["rank"]), f"{row['weight']:.3f}")
    console.print(table)
    evidence = json.loads(chosen.schema.metadata[b"sabal.evidence"])
    console.print(f"{evidence['items']:,} items, {evidence['labeled']} labelled")
    console.print(
        f"What is not covered of the undecided part of the pool: {evidence['objective']:.1%}; "
        f"with a random batch: {evidence['random_batch']['objective']:.1%}",
        soft_wrap=True,
    )
    rows = {
        name: row
        for row, name in enumerate(pq.read_table(pool_file, columns=["id"])["id"].to_pylist())
    }
    found = pool[[rows[name] for name in chosen["id"].to_pylist()]]
    console.print(
        f"The embeddings of the batch, looked up by id: {found.shape[0]} x {found.shape[1]}"
    )


if __name__ == "__main__":
    main()
