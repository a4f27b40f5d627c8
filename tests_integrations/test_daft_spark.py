"""Data frames of Daft and Spark: the batch is that of the same rows in pandas."""

from __future__ import annotations

import sys

import daft
import numpy as np
import pandas as pd
import pytest
from pyspark import sql

import sabal


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 4))
    probs = rng.dirichlet(np.ones(3), size=300)
    ids = [f"item-{k}" for k in range(300)]
    return pd.DataFrame({"id": ids, "features": features.tolist(), "probs": probs.tolist()})


def assert_same_batch(table, frame):
    expected = sabal.select(10, frame, random_state=0).ids.tolist()
    assert sabal.select(10, table, random_state=0).ids.tolist() == expected
    assert sabal.select_pool(table, 10, random_state=0).ids.tolist() == expected


def test_daft(frame):
    assert_same_batch(daft.from_pydict({name: frame[name].tolist() for name in frame}), frame)


@pytest.mark.filterwarnings("ignore")  # of pyspark, about newer versions of pandas
def test_spark(frame, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.getOrCreate()
    try:
        schema = "id string, features array<double>, probs array<double>"
        table = session.createDataFrame(list(frame.itertuples(index=False, name=None)), schema)
        assert_same_batch(table, frame)
    finally:
        session.stop()
