"""Predictions for other data: with the classes of now, and as the engine itself predicts."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from labeling_digits import CLASSES, X, digits_project, label_all
from labeling_helpers import answer
from sabal.errors import FileError
from sabal.labeling.engine import Engine
from sabal.labeling.exchange.exporting import WRITERS, export_bytes
from sabal.labeling.predicting import predict, prediction_columns
from sabal.labeling.project import Project


def work(engine):
    while engine.step():
        pass


def test_predictions_are_those_of_the_engine(tmp_path):
    with digits_project(tmp_path, items=200) as project:
        engine = Engine(project)
        work(engine)
        with pytest.raises(FileError, match="label the first batch"):
            predict(project, tmp_path / "pool.parquet")
        label_all(project.store)
        work(engine)
        rows = predict(project, tmp_path / "pool.parquet")
        expected_NC = engine._head.probs(np.arange(200))
        found_NC = np.array([[row[f"p: {name}"] for name in CLASSES] for row in rows])
        np.testing.assert_allclose(found_NC, expected_NC, atol=1e-12)
        assert [row["label"] for row in rows] == [CLASSES[k] for k in expected_NC.argmax(axis=1)]
        assert [row["id"] for row in rows] == [f"d{k}" for k in range(200)]
        project.change_classes("rename", CLASSES[0], "zero")
        project.change_classes("merge", CLASSES[1], CLASSES[7])
        again = predict(project, tmp_path / "pool.parquet")
        zero = [row["p: zero"] for row in again]
        np.testing.assert_allclose(zero, expected_NC[:, 0], atol=1e-12)
        merged = [row[f"p: {CLASSES[7]}"] for row in again]
        np.testing.assert_allclose(merged, expected_NC[:, 1] + expected_NC[:, 7], atol=1e-12)
        table = pq.read_table(io.BytesIO(WRITERS["parquet"](again, prediction_columns(project))))
        assert table.column("probability").type == pa.float64()
        narrow = tmp_path / "narrow.parquet"
        pq.write_table(pa.table({"id": ["n"], "features": [[1.0]]}), narrow)
        with pytest.raises(FileError, match="64"):
            predict(project, narrow)


def images_project(folder, head):
    rng = np.random.default_rng(0)
    (folder / "photos").mkdir()
    for k in range(24):
        pixels = rng.integers(0, 60, (12, 12, 3)) + (150 if k % 2 else 0)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / "photos" / f"{k}.png")
    given = {"data": folder / "photos", "classes": ["dark", "light"], "head": head}
    return Project.create(folder / "p", backbone="pixels", initial=8, check_share=0.0, **given)


@pytest.mark.parametrize("head", ["linear", "lenet"])
def test_images_elsewhere_are_predicted(tmp_path, head):
    with images_project(tmp_path, head) as project:
        engine = Engine(project)
        work(engine)
        for each in project.store.next_items("ann", 99):
            answer(project.store, each.item, "light" if int(each.item[:-4]) % 2 else "dark")
        work(engine)
        (tmp_path / "new").mkdir()
        for name, value in (("a.png", 20), ("b.png", 200)):
            Image.new("RGB", (9, 9), (value, value, value)).save(tmp_path / "new" / name)
        (tmp_path / "new" / "broken.png").write_text("no image")
        rows = predict(project, tmp_path / "new")
        assert ["label" in row for row in rows] == [True, True, False]
        assert head == "lenet" or [row["label"] for row in rows[:2]] == ["dark", "light"]
        about = json.loads((project.folder / project.store.trainings()[-1].model)
                           .with_suffix(".json").read_text())  # fmt: skip
        assert (about["model"], about["classes"]) == (head, ["dark", "light"])
        found = {row["id"]: row["p: light"] for row in predict(project, tmp_path / "photos")}
        expected = engine._head.probs(np.arange(24))[:, 1]
        order = [found[item.key] for item in project.items]
        np.testing.assert_allclose(order, expected, atol=1e-6)


def test_exports_have_content_and_split(tmp_path):
    with digits_project(tmp_path, items=100, check_share=0.25) as project:
        work(Engine(project))
        label_all(project.store)
        rows = list(csv.DictReader(io.StringIO(export_bytes(project.store, "csv").decode())))
        assert {row["split"] for row in rows} == {"train", "test"}
        assert all((row["split"] == "test") == (row["role"] == "check") for row in rows)
        contents = {item.key: item.content for item in project.items}
        assert all(row["content"] == contents[row["id"]] for row in rows)
    assert len(X) > 100
