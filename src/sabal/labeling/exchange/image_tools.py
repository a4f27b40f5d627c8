"""Files for CVAT and FiftyOne: images with one label each, the one that stands.

CVAT: its XML for images, version 1.1, where the label of an image is a tag. FiftyOne: the JSON of
`Dataset.from_json` and `Dataset.write_json`, where the label is the field `ground_truth`, a sample
with the tag `sabal-skip` is skipped, and what Sabal knows is in fields that begin with `sabal_`.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET  # nosec B405  # see `_parsed`
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sabal.core.extras import import_optional
from sabal.errors import FileError
from sabal.labeling.exchange.answer_rows import FileRow, RowValues
from sabal.labeling.exchange.formats import parse_json

FIELD = "fiftyone.core.fields."
CLASSIFICATION = f"{FIELD}EmbeddedDocumentField(fiftyone.core.labels.Classification)"
SABAL_FIELDS = {
    "id": "StringField",
    "round": "IntField",
    "rank": "IntField",
    "priority": "FloatField",
    "weight": "FloatField",
    "role": "StringField",
}
LABEL_FIELD, PREDICTION_FIELD, SKIP_TAG = "ground_truth", "sabal_prediction", "sabal-skip"


def write_cvat(rows: Sequence[RowValues], classes: Sequence[str], root: Path) -> bytes:
    """Return the images of rows, and their labels as tags, as CVAT's XML."""
    document = ET.Element("annotations")
    ET.SubElement(document, "version").text = "1.1"
    labels = ET.SubElement(ET.SubElement(ET.SubElement(document, "meta"), "task"), "labels")
    for name in classes:
        label = ET.SubElement(labels, "label")
        ET.SubElement(label, "name").text = name
        ET.SubElement(label, "type").text = "tag"
        ET.SubElement(label, "attributes")
    for number, row in enumerate(rows):
        width, height = _size(root / row["content"])
        about = {"id": str(number), "name": row["id"], "width": str(width), "height": str(height)}
        image = ET.SubElement(document, "image", about)
        if row.get("label") is not None:
            ET.SubElement(image, "tag", {"label": row["label"], "source": "manual"})
    ET.indent(document)
    return ET.tostring(document, encoding="utf-8", xml_declaration=True)


def read_cvat(data: bytes, source: str) -> list[FileRow]:
    """Return the tag of every image as a row."""
    document = _parsed(data, source)
    rows = []
    for image in document.iter("image"):
        where = f"image {image.get('name')!r} of {source}"
        tags = [tag.get("label") for tag in image.findall("tag")]
        if len(tags) > 1:
            raise FileError(f"one tag for {where}", f"{len(tags)}", "keep one class for each image")
        rows.append(_row(image.get("name"), tags[0] if tags else None, "cvat", where))
    return rows


def cvat_labels(classes: Sequence[str]) -> str:
    """Return the labels of a task, for the "Raw" tab of CVAT's constructor."""
    labels = [{"name": name, "type": "tag", "attributes": []} for name in classes]
    return json.dumps(labels, ensure_ascii=False, indent=1) + "\n"


def write_fiftyone(rows: Sequence[RowValues], classes: Sequence[str], root: Path) -> bytes:
    """Return the images of rows as a dataset of FiftyOne."""
    fields = {f"sabal_{name}": FIELD + kind for name, kind in SABAL_FIELDS.items()}
    dataset = {
        "name": "sabal",
        "media_type": "image",
        "sample_fields": {
            **fields,
            PREDICTION_FIELD: CLASSIFICATION,
            LABEL_FIELD: CLASSIFICATION,
        },
        "default_classes": list(classes),
        "samples": [_sample(row, root) for row in rows],
    }
    return json.dumps(dataset, ensure_ascii=False, indent=1).encode()


def read_fiftyone(data: bytes, source: str) -> list[FileRow]:
    """Return the label of every sample as a row; samples that are not from Sabal are left out."""
    dataset = parse_json(data, source)
    samples = dataset.get("samples") if isinstance(dataset, dict) else None
    if not isinstance(samples, list) or not all(isinstance(each, dict) for each in samples):
        raise FileError(
            f"a dataset of FiftyOne in {source}", "something else", "write it with write_json()"
        )
    return [_sample_row(each, source) for each in samples if each.get("sabal_id") is not None]


def _sample_row(sample: dict[str, Any], source: str) -> FileRow:
    where = f"sample {sample['sabal_id']!r} of {source}"
    label = sample.get(LABEL_FIELD)
    if label is not None and not isinstance(label, dict):
        raise FileError(f"a classification in {LABEL_FIELD} of {where}", repr(label), "repair it")
    if SKIP_TAG in (sample.get("tags") or ()):
        return _row(sample["sabal_id"], None, "fiftyone", where, skip=True)
    return _row(sample["sabal_id"], (label or {}).get("label"), "fiftyone", where)


def _row(item: Any, label: Any, annotator: str, where: str, *, skip: bool = False) -> FileRow:
    # Without a time: neither tool has that of a label, and one read again is then not a new one.
    action = "skip" if skip else None if label is None else "label"
    return FileRow({"id": item, "label": label, "action": action, "annotator": annotator}, where)


def _sample(row: RowValues, root: Path) -> dict[str, Any]:
    guess, label = row.get("guess"), row.get("label")
    return {
        "filepath": str(root / row["content"]),
        "tags": [],
        **{f"sabal_{name}": row.get(name) for name in SABAL_FIELDS},
        PREDICTION_FIELD: guess and _classification(guess["label"], guess["probability"]),
        LABEL_FIELD: None if label is None else _classification(label),
    }


def _classification(label: str, confidence: float | None = None) -> dict[str, Any]:
    return {"_cls": "Classification", "tags": [], "label": label, "confidence": confidence}


def _size(path: Path) -> tuple[int, int]:
    """Return the width and height of an image; only its header is read."""
    images = import_optional("PIL.Image", "app", "to read the sizes of images")
    try:
        with images.open(path) as image:
            return int(image.width), int(image.height)
    except (OSError, ValueError) as error:
        raise FileError(f"a readable image at {path}", str(error), "restore it") from None


def _parsed(data: bytes, source: str) -> ET.Element:
    """Return the root of CVAT's XML, which never declares entities: a file that does is refused."""
    try:
        text = data.decode("utf-8-sig")
        if "<!" not in text.replace("<!--", ""):
            document = ET.fromstring(text)  # noqa: S314  # nosec B314  # has no entities
            if document.tag == "annotations":
                return document
        got = "something else"
    except (UnicodeDecodeError, ET.ParseError, ValueError) as error:
        got = str(error)
    raise FileError(
        f"the annotations of CVAT in {source}",
        got,
        "export as CVAT for images 1.1, and take annotations.xml out of the archive",
    )
