"""Label Studio's JSON: a list of tasks, each with its data and the annotations that it has.

Beside what is shown, the data of a task says which item it is (`sabal_id`), in which round it was
chosen, at which rank and with which weight; Label Studio keeps data as it is. Who answered, and
when, stands in an annotation below `sabal`: Label Studio has annotators of its own, refuses others,
and does not mind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr  # nosec B406  # writes XML, and reads none

from sabal.errors import FileError
from sabal.labeling.exchange.jsonl import parse_json
from sabal.labeling.exchange.rows import Found, Row

LOCAL_FILES = "/data/local-files/?d="
"""Where a Label Studio server shows the files below its document root."""

CONTROL = "label"
"""The name of the choices in the labelling interface."""

OURS = ("annotator", "round", "time")
"""What an annotation of ours has below `sabal`."""


def label_config(classes: Sequence[str], kind: str) -> str:
    """The labelling interface of Label Studio that goes with the tasks: one class out of these."""
    shown = "Image" if kind == "image" else "Text"
    target = _object_name(kind)
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in classes)
    return (
        "<View>\n"
        f'  <{shown} name="{target}" value="${target}"/>\n'
        f'  <Choices name="{CONTROL}" toName="{target}" choice="single" showInline="true">\n'
        f"{choices}\n"
        "  </Choices>\n"
        "</View>\n"
    )


def write_tasks(rows: Sequence[Row], media_url: str = LOCAL_FILES) -> bytes:
    """A task for every item, in the order in which they first come; one annotation an answer.

    rows: with `kind`, `content` and `rank` of the item beside the columns of an export.
    media_url: what Label Studio needs before the path of an image to find it.
    """
    tasks: dict[str, dict[str, Any]] = {}
    for row in rows:
        task = tasks.setdefault(row["id"], {"data": _data(row, media_url), "annotations": []})
        if row["action"] is not None:
            task["annotations"].append(_annotation(row))
    return json.dumps(list(tasks.values()), ensure_ascii=False, indent=1).encode()


def read_tasks(data: bytes, source: str) -> list[Found]:
    """The annotations of exported tasks, a row each; predictions and drafts are not answers."""
    tasks = parse_json(data, source)
    if not isinstance(tasks, list):
        raise _not_tasks(source, type(tasks).__name__)
    return [found for number, task in enumerate(tasks, 1) for found in _found(task, number, source)]


def _found(task: Any, number: int, source: str) -> Iterator[Found]:
    where = f"task {number} of {source}"
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
        raise _not_tasks(where, "something else")
    annotations = task.get("annotations", [])
    if not isinstance(annotations, list) or not all(isinstance(a, dict) for a in annotations):
        raise _not_tasks(where, "annotations that are no list of objects")
    about = task["data"]
    shared = {
        # A task that is not ours has no id that we know: it is reported, and left alone.
        "id": about.get("sabal_id", f"Label Studio's task {task.get('id', number)}"),
        "round": about.get("sabal_round"),
        "weight": about.get("sabal_weight"),
        "role": about.get("sabal_role"),
    }
    if not annotations:
        yield Found({**shared, "label": None}, where)
    for annotation in annotations:
        cancelled = bool(annotation.get("was_cancelled"))
        label = None if cancelled else _choice(annotation, where)
        action = "skip" if cancelled else "label" if label is not None else None
        yield Found({**shared, "label": label, "action": action, **_who(annotation)}, where)


def _choice(annotation: dict[str, Any], where: str) -> Any:
    """The class that was chosen; None if none was."""
    result = annotation.get("result")
    if not isinstance(result, list) or not all(isinstance(part, dict) for part in result):
        raise _not_tasks(where, "an annotation whose result is no list of objects")
    parts = [part for part in result if part.get("type") == "choices"]
    ours = [part for part in parts if part.get("from_name") == CONTROL] or parts
    values = [part.get("value") for part in ours]
    if not all(isinstance(v, dict) and isinstance(v.get("choices"), list) for v in values):
        raise _not_tasks(where, "choices without a list of them")
    chosen = [choice for value in values for choice in value["choices"]]
    if len(chosen) > 1:
        raise FileError(f"one choice in {where}", f"{len(chosen)}", "keep one class for every item")
    return chosen[0] if chosen else None


def _who(annotation: dict[str, Any]) -> Row:
    """The annotator and the time: ours if they are there, else Label Studio's."""
    ours = annotation.get("sabal")
    if isinstance(ours, dict):
        return {name: ours.get(name) for name in OURS}
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        by = by.get("email") or by.get("id")
    name = f"label-studio-{by}" if isinstance(by, int) else by or "label-studio"
    # An annotation that is changed keeps its creation: the change is a later answer.
    return {"annotator": name, "time": annotation.get("updated_at") or annotation.get("created_at")}


def _data(row: Row, media_url: str) -> dict[str, Any]:
    kind, content = row["kind"], row["content"]
    shown = media_url + quote(content) if kind == "image" else content
    return {
        "sabal_id": row["id"],
        _object_name(kind): shown,
        "sabal_round": row["round"],
        "sabal_rank": row["rank"],
        "sabal_weight": row["weight"],
        "sabal_role": row["role"],
    }


def _annotation(row: Row) -> dict[str, Any]:
    chosen = {
        "type": "choices",
        "from_name": CONTROL,
        "to_name": _object_name(row["kind"]),
        "value": {"choices": [row["label"]]},
    }
    return {
        "result": [] if row["action"] == "skip" else [chosen],
        "was_cancelled": row["action"] == "skip",
        # Unless told otherwise, Label Studio takes what comes with a task for the truth.
        "ground_truth": False,
        "sabal": {name: row[name] for name in OURS},
    }


def _object_name(kind: str) -> str:
    return "image" if kind == "image" else "text"


def _not_tasks(where: str, got: str) -> FileError:
    return FileError(
        f"a list of tasks with `data` and `annotations` in {where}",
        got,
        "export from Label Studio as JSON (not JSON-MIN, CSV or TSV)",
    )
