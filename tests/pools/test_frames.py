"""A pool in a table gets the answer that the same arrays get."""

from __future__ import annotations

import datasets
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import sabal
from makers import make_pool
from sabal.errors import InputError, SabalError

N, B = 120, 9
IDS = [f"item-{k:03d}" for k in range(N)]


def arrays(dtype="float64"):
    pool = make_pool(n=N, dimensions=6, classes=3, samples=4)
    return {name: getattr(pool, name).astype(dtype) for name in ("features", "probs", "log_probs")}


@pytest.fixture(scope="module")
def expected():
    return sabal.select(B, **arrays(), ids=IDS, random_state=0)


def lists():
    """The pool as columns of (nested) lists, between columns that a pool does not use."""
    return {
        "text": [f"text {k}" for k in range(N)],
        "id": IDS,
        **{name: array.tolist() for name, array in arrays().items()},
        "price": list(range(N)),
    }


def arrow():
    return pa.table(lists())


def arrow_dataset(tmp_path):
    pq.write_table(arrow(), tmp_path / "pool.parquet", row_group_size=37)
    return pads.dataset(tmp_path)


def fixed_size(tmp_path):
    """Columns of fixed-size lists and of tensors, as embeddings are often stored."""
    pool = arrays()
    tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(pool["log_probs"])
    return pa.table(
        {
            "id": pa.array(IDS).dictionary_encode(),
            "features": pa.FixedSizeListArray.from_arrays(pool["features"].reshape(-1), 6),
            "probs": pa.FixedSizeListArray.from_arrays(pool["probs"].reshape(-1), 3),
            "log_probs": tensor,
        }
    )


def duckdb_relation(tmp_path):
    table = arrow()
    return duckdb.connect().from_arrow(table).filter("price >= 0")


TABLES = {
    "pandas": lambda tmp_path: pd.DataFrame(lists()),
    "pandas-index": lambda tmp_path: pd.DataFrame(lists()).set_index("id"),
    "pandas-arrow": lambda tmp_path: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "pandas-from-parquet": lambda tmp_path: arrow().to_pandas(),
    "polars": lambda tmp_path: pl.DataFrame(lists()),
    "arrow-table": lambda tmp_path: arrow(),
    "arrow-chunked": lambda tmp_path: pa.concat_tables([arrow()[:50], arrow()[50:]]),
    "arrow-fixed-size": fixed_size,
    "record-batch": lambda tmp_path: arrow().to_batches()[0],
    "record-batch-reader": lambda tmp_path: arrow().to_reader(max_chunksize=40),
    "arrow-dataset": arrow_dataset,
    "duckdb": duckdb_relation,
    "hugging-face": lambda tmp_path: datasets.Dataset(arrow()),
}
CHUNKS = {
    "record-batches": lambda: arrow().to_batches(max_chunksize=40),
    "tables": lambda: [arrow()[:50], arrow()[50:]],
    "polars": lambda: pl.DataFrame(lists()).iter_slices(50),
    "pandas": lambda: (part for part in (pd.DataFrame(lists())[:50], pd.DataFrame(lists())[50:])),
}


def assert_same(ours, theirs):
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_allclose(ours.weights, theirs.weights)
    assert ours.ids.tolist() == theirs.ids.tolist()


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_gives_the_answer_of_its_arrays(kind, expected, tmp_path):
    make = TABLES[kind]
    assert_same(sabal.select_pool(make(tmp_path), B, random_state=0), expected)
    assert_same(sabal.select(B, make(tmp_path), random_state=0), expected)


@pytest.mark.parametrize("kind", CHUNKS)
def test_chunks_may_be_tables(kind, expected):
    assert_same(sabal.select_pool(CHUNKS[kind](), B, random_state=0), expected)


def test_a_table_larger_than_memory_is_written_to_disk():
    pool = make_pool(n=9_000, dimensions=12, classes=4)
    table = pa.table({"features": pool.features.tolist(), "probs": pool.probs.tolist()})
    inside = sabal.select(B, features=pool.features, probs=pool.probs, random_state=0)
    outside = sabal.select_pool(table, B, memory="700KB", random_state=0)
    np.testing.assert_array_equal(outside.indices, inside.indices)


def test_a_filtered_hugging_face_dataset_has_its_own_rows(expected):
    backwards = datasets.Dataset(arrow()).select(range(N - 1, -1, -1))
    batch = sabal.select_pool(backwards, B, random_state=0)
    assert [IDS[N - 1 - k] for k in batch] == batch.ids.tolist()
    assert backwards.select(batch.indices)["id"] == batch.ids.tolist()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
def test_one_column_per_feature(make):
    features = arrays()["features"]
    frame = make({"id": IDS, **{f"feature_{k}": features[:, k] for k in range(6)}})
    batch = sabal.select_pool(frame, B, random_state=0)
    assert_same(batch, sabal.select(B, features=features, ids=IDS, random_state=0))


def test_a_frame_of_a_matrix():
    features = arrays()["features"]
    batch = sabal.select(B, pd.DataFrame(features), random_state=0)
    assert_same(batch, sabal.select(B, features=features, random_state=0))


def test_columns_say_what_is_what():
    pool = arrays()
    frame = pd.DataFrame(
        {
            "path": IDS,
            "embedding": list(pool["features"]),
            "label": 0,
            "features": "not these",
            **{f"p_{name}": pool["probs"][:, k] for k, name in enumerate("abc")},
        }
    )
    columns = {"features": "embedding", "probs": ["p_a", "p_b", "p_c"], "id": "path"}
    wanted = sabal.select(
        B, features=pool["features"], probs=pool["probs"], ids=IDS, random_state=0
    )
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert_same(sabal.select_pool(table, B, columns=columns, random_state=0), wanted)
        assert_same(sabal.select(B, table, columns=columns, random_state=0), wanted)
    parts = [frame[:70], frame[70:]]
    assert_same(sabal.select_pool(parts, B, columns=columns, random_state=0), wanted)


def test_arrays_beside_a_table_take_precedence(expected):
    pool = arrays()
    frame = pd.DataFrame({"features": list(pool["features"])}, index=IDS)
    rest = {name: pool[name] for name in ("probs", "log_probs")}
    assert_same(sabal.select(B, frame, **rest, random_state=0), expected)


def test_a_regression_in_a_table():
    rng = np.random.default_rng(0)
    columns = {"features": rng.normal(size=(N, 3)), "variances": rng.random(N)}
    frame = pd.DataFrame({"features": list(columns["features"]), "variances": columns["variances"]})
    wanted = sabal.select(B, **columns, loss="squared", random_state=0)
    assert_same(sabal.select(B, frame, loss="squared", random_state=0), wanted)
    assert_same(sabal.select_pool(frame, B, loss="squared", random_state=0), wanted)
    with pytest.raises(InputError, match="loss='squared'"):
        sabal.select_pool(frame, B)


@pytest.mark.parametrize(
    "column",
    [
        lambda rows: pd.Series(rows.tolist()),
        lambda rows: pl.Series(rows.tolist()),
        lambda rows: pl.Series(rows, dtype=pl.Array(pl.Float64, rows.shape[1])),
        lambda rows: pa.array(rows.tolist()),
        lambda rows: pa.chunked_array([rows[:50].tolist(), rows[50:].tolist()]),
        lambda rows: pl.DataFrame(rows),
        lambda rows: pd.DataFrame(rows),
    ],
    ids=["pandas", "polars", "polars-array", "arrow", "arrow-chunked", "frame", "pandas-frame"],
)
def test_columns_of_lists_are_arrays(column, expected):
    pool = arrays()
    given = {"features": column(pool["features"]), "probs": column(pool["probs"])}
    wanted = sabal.select(B, features=pool["features"], probs=pool["probs"], random_state=0)
    assert_same(sabal.select(B, **given, random_state=0), wanted)


def test_the_index_gives_the_ids():
    features = pd.DataFrame(arrays()["features"])
    odd = features[features.index % 2 == 1]
    batch = sabal.select(B, features=odd, random_state=0)
    pd.testing.assert_frame_equal(odd.loc[batch.ids], odd.iloc[batch.indices])
    assert batch.ids.tolist() != batch.indices.tolist()
    assert sabal.select_pool(odd, B, random_state=0).ids.tolist() == batch.ids.tolist()
    repeated = odd.set_axis([0] * len(odd))
    assert sabal.select(B, repeated, random_state=0).ids.tolist() == batch.indices.tolist()
    named = sabal.select(B, features=odd, ids=range(1000, 1000 + len(odd)), random_state=0)
    assert named.ids.tolist() == [1000 + k for k in batch]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"a": [1.0, 2.0], "text": ["x", "y"]}), r"columns=\{'features'"),
        (pd.DataFrame({"a": [1.0, 2.0], "label": [0, 1]}), r"columns=\{'features'"),
        (pd.DataFrame({"id": [1, 2]}), r"columns=\{'features'"),
        (pa.table({"features": [[1.0], [2.0, 3.0]]}), "different lengths"),
        (pd.DataFrame({"features": [[1.0], [2.0, 3.0]]}), "different lengths"),
        (pa.table({"features": [[1.0], None]}), "empty rows"),
        (pl.DataFrame({"features": [[1.0], [None]]}), "empty entries"),
        (pd.DataFrame({"features": [[1.0], None]}), "real numbers"),
        (pd.DataFrame({"feature": [[1.0], [2.0]], "probs": [[1.0], [1.0]]}), "rename it"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "'a' twice"),
        (pd.DataFrame({"features": []}), "at least one"),
        (pa.table({"features": pa.array([], pa.list_(pa.float64()))}), "at least one"),
    ],
)
def test_tables_that_are_no_pool(table, message):
    with pytest.raises(SabalError, match=message) as error:
        sabal.select_pool(table, 1)
    assert len(str(error.value).splitlines()) == 1
    with pytest.raises(SabalError):
        sabal.select(1, table)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"feature": "a"}, "did you mean 'features'"),
        ({"features": "aa"}, "did you mean 'a'"),
        ({"features": []}, "at least one"),
        ("features", "a dict"),
    ],
)
def test_wrong_columns(columns, message):
    with pytest.raises(SabalError, match=message):
        sabal.select_pool(pd.DataFrame({"a": [1.0, 2.0]}), 1, columns=columns)


def test_columns_without_a_table():
    with pytest.raises(InputError, match="a table where there is `columns`"):
        sabal.select(1, features=np.ones((2, 2)), columns={"features": "a"})
    with pytest.raises(InputError, match="a table where there is `columns`"):
        sabal.select_pool({"features": np.ones((2, 2))}, 1, columns={"features": "a"})
