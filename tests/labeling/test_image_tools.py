"""Files for CVAT and FiftyOne. tests_integrations has a round trip through a real FiftyOne."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sabal.errors import FileError
from sabal.labeling.engine import Engine
from sabal.labeling.exchange import image_tools
from sabal.labeling.exchange.answer_rows import answer_in
from sabal.labeling.exchange.exporting import export_images
from sabal.labeling.exchange.image_tools import (
    cvat_labels,
    read_cvat,
    read_fiftyone,
    write_cvat,
    write_fiftyone,
)
from sabal.labeling.exchange.importing import import_file
from sabal.labeling.project import Project

# XML has no control characters, and JSON no half characters.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)
TOOLS = {"cvat": (write_cvat, read_cvat), "fiftyone": (write_fiftyone, read_fiftyone)}


@pytest.mark.parametrize("tool", TOOLS)
@given(items=st.dictionaries(TEXTS, st.none() | TEXTS, max_size=5))
def test_ids_and_labels_survive_a_file(tool, items):
    write, read = TOOLS[tool]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(image_tools, "_size", lambda path: (3, 2))  # of images that do not exist
        rows = [{"id": key, "content": "x.png", "label": label} for key, label in items.items()]
        data = write(rows, ["cat"], Path("/images"))
    found = [answer_in(row) for row in read(data, "file")]
    expected = [None if label is None else (key, label, tool) for key, label in items.items()]
    assert [each and (each.id, each.label, each.annotator) for each in found] == expected


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (read_cvat, b"<annotations"),
        (read_cvat, b"<other/>"),
        (read_cvat, "<annotations/>".encode("utf-16")),
        (read_cvat, b'<!DOCTYPE a [<!ENTITY b "c">]><annotations>&b;</annotations>'),
        (
            read_cvat,
            b'<annotations><image name="a"><tag label="x"/><tag label="y"/></image></annotations>',
        ),
        (read_fiftyone, b"[]"),
        (read_fiftyone, b'{"samples": [1]}'),
        (read_fiftyone, b'{"samples": [{"sabal_id": "a", "ground_truth": "cat"}]}'),
    ],
)
def test_other_files_are_refused(read, data):
    with pytest.raises(FileError):
        read(data, "file")


def test_samples_without_our_id_are_left_out():
    assert read_fiftyone(b'{"samples": [{"filepath": "x.png"}]}', "file") == []


@pytest.fixture
def project(tmp_path):
    for k in range(8):
        (tmp_path / "images" / "below").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8 + k, 6), (30 * k, 0, 0)).save(tmp_path / f"images/below/{k}.png")
    settings = {"initial": 3, "batch": 2, "check_share": 0, "backbone": "pixels", "head": "linear"}
    with Project.create(
        tmp_path / "p", data=tmp_path / "images", classes=["cat", "dog"], **settings
    ) as made:
        engine = Engine(made)
        while engine.step():
            pass
        yield made


def test_a_batch_goes_to_cvat_and_comes_back(project, tmp_path):
    document = ET.fromstring(export_images(project, "cvat", batch=True))  # noqa: S314
    assert [label.findtext("name") for label in document.iter("label")] == ["cat", "dog"]
    images = list(document.iter("image"))
    chosen = [item.item for item in project.store.batch(0)]
    assert [image.get("name") for image in images] == chosen
    assert images[0].get("width") == str(8 + int(Path(chosen[0]).stem))
    for image, label in zip(images[:2], ("cat", "dog"), strict=True):
        ET.SubElement(image, "tag", {"label": label, "source": "manual"})
    (tmp_path / "annotations.xml").write_bytes(ET.tostring(document))
    report = import_file(project.store, tmp_path / "annotations.xml")
    assert (report.labels, report.waiting, report.unknown) == (2, 1, [])
    assert import_file(project.store, tmp_path / "annotations.xml").already == 2
    labels = ET.fromstring(export_images(project, "cvat"))  # noqa: S314
    found = {image.get("name"): image.find("tag").get("label") for image in labels.iter("image")}
    assert found == {chosen[0]: "cat", chosen[1]: "dog"}
    assert [each["name"] for each in json.loads(cvat_labels(project.classes))] == ["cat", "dog"]


def test_a_batch_goes_to_fiftyone_and_comes_back(project, tmp_path):
    dataset = json.loads(export_images(project, "fiftyone", batch=True))
    samples = dataset["samples"]
    assert all(Path(sample["filepath"]).is_file() for sample in samples)
    assert set(samples[0]) - {"filepath", "tags"} == set(dataset["sample_fields"])
    samples[0]["ground_truth"] = {"_cls": "Classification", "label": "cat"}
    samples[1]["tags"] = ["sabal-skip"]
    (tmp_path / "out.json").write_text(json.dumps(dataset))
    report = import_file(project.store, tmp_path / "out.json", "fiftyone")
    assert (report.labels, report.skips, report.waiting) == (1, 1, 1)


def test_texts_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("id,text\n1,a\n2,b\n")
    with (
        Project.create(tmp_path / "p", data=tmp_path / "t.csv", classes=["a", "b"]) as made,
        pytest.raises(FileError, match="a project of images"),
    ):
        export_images(made, "cvat")
