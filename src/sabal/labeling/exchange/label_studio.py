"""Label Studio's JSON: a list of tasks with their data and annotations.

The data of a task has the id of its item (`sabal_id`), its round, rank, weight and role beside the
content; Label Studio keeps data as it is. The annotator and the time of an answer are in its
annotation under `sabal`: Label Studio accepts only annotators of its own, but ignores this key.

An open item has its priority in its batch (`sabal_priority`, at most 1) as well, and a prediction:
what the model says of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr  # nosec B406  # writes XML, and reads none

from sabal.errors import FileError
from sabal.labeling.exchange.answer_rows import FileRow, RowValues
from sabal.labeling.exchange.formats import parse_json

LOCAL_FILES = "/data/local-files/?d="  # where a Label Studio server serves local files
CONTROL = "label"  # the name of the choices in the labelling interface
OWN_KEYS = (
    "annotator",
    "round",
    "time",
    "decides",
)  # the keys under `sabal` in an exported annotation

MODEL = "sabal"  # one name for the predictions of all rounds: Label Studio shows those of one only


@dataclass(frozen=True)
class Interface:
    """The names in a labelling interface: of the choices, of what is shown, and of its data."""

    control: str
    target: str
    key: str


def own_interface(kind: str) -> Interface:
    """Return the names in the labelling interface that `label_config` makes."""
    shown = "image" if kind == "image" else "text"
    return Interface(CONTROL, shown, shown)


def label_config(classes: Sequence[str], kind: str) -> str:
    """Return Label Studio's labelling interface for the tasks: a choice of one class."""
    shown = "Image" if kind == "image" else "Text"
    target = own_interface(kind).target
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in classes)
    return (
        "<View>\n"
        f'  <{shown} name="{target}" value="${target}"/>\n'
        f'  <Choices name="{CONTROL}" toName="{target}" choice="single" showInline="true">\n'
        f"{choices}\n"
        "  </Choices>\n"
        "</View>\n"
    )


def write_tasks(rows: Sequence[RowValues], media_url: str = LOCAL_FILES) -> bytes:
    """Return the tasks of `make_tasks` as a file."""
    return json.dumps(make_tasks(rows, media_url), ensure_ascii=False, indent=1).encode()


def make_tasks(
    rows: Sequence[RowValues], media_url: str = LOCAL_FILES, interface: Interface | None = None
) -> list[dict[str, Any]]:
    """Return a task per item, in the order of first appearance, with an annotation per answer."""
    tasks: dict[str, dict[str, Any]] = {}
    for row in rows:
        names = interface or own_interface(row["kind"])
        task = tasks.setdefault(row["id"], _task(row, media_url, names))
        if row["action"] is not None:
            task["annotations"].append(_annotation(row, names))
    return list(tasks.values())


def read_tasks(data: bytes, source: str) -> list[FileRow]:
    """Return the annotations of exported tasks as rows; predictions and drafts are ignored."""
    tasks = parse_json(data, source)
    if not isinstance(tasks, list):
        raise _not_tasks(source, type(tasks).__name__)
    return [
        found
        for number, task in enumerate(tasks, 1)
        for found in rows_of_task(task, number, source)
    ]


def rows_of_task(task: Any, number: int, source: str, control: str = CONTROL) -> Iterator[FileRow]:
    """Yield the annotations of a task as rows; a task without any is a row without an answer."""
    where = f"task {number} of {source}"
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
        raise _not_tasks(where, "something else")
    annotations = task.get("annotations", [])
    if not isinstance(annotations, list) or not all(isinstance(a, dict) for a in annotations):
        raise _not_tasks(where, "annotations that are no list of objects")
    about = task["data"]
    shared = {
        # A task from elsewhere has no id of an item: it is reported as unknown.
        "id": about.get("sabal_id", f"Label Studio's task {task.get('id', number)}"),
        "round": about.get("sabal_round"),
        "weight": about.get("sabal_weight"),
        "role": about.get("sabal_role"),
    }
    if not annotations:
        yield FileRow({**shared, "label": None}, where)
    for annotation in annotations:
        cancelled = bool(annotation.get("was_cancelled"))
        label = None if cancelled else _choice(annotation, where, control)
        action = "skip" if cancelled else "label" if label is not None else None
        yield FileRow(
            {**shared, "label": label, "action": action, **_annotator_and_time(annotation)}, where
        )


def _choice(annotation: dict[str, Any], where: str, control: str) -> Any:
    """Return the class that was chosen; None if none was."""
    result = annotation.get("result")
    if not isinstance(result, list) or not all(isinstance(part, dict) for part in result):
        raise _not_tasks(where, "an annotation whose result is no list of objects")
    parts = [part for part in result if part.get("type") == "choices"]
    own = [part for part in parts if part.get("from_name") == control] or parts
    values = [part.get("value") for part in own]
    if not all(isinstance(v, dict) and isinstance(v.get("choices"), list) for v in values):
        raise _not_tasks(where, "choices without a list of them")
    chosen = [choice for value in values for choice in value["choices"]]
    if len(chosen) > 1:
        raise FileError(f"one choice in {where}", f"{len(chosen)}", "keep one class for every item")
    return chosen[0] if chosen else None


def _annotator_and_time(annotation: dict[str, Any]) -> RowValues:
    """Return annotator and time: those under `sabal` if there are any, else Label Studio's."""
    own = annotation.get("sabal")
    if isinstance(own, dict):
        return {name: own.get(name) for name in OWN_KEYS}
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        by = by.get("email") or by.get("id")
    name = f"label-studio-{by}" if isinstance(by, int) else by or "label-studio"
    # A changed annotation keeps its time of creation; the change counts as a later answer.
    return {"annotator": name, "time": annotation.get("updated_at") or annotation.get("created_at")}


def _task(row: RowValues, media_url: str, names: Interface) -> dict[str, Any]:
    task: dict[str, Any] = {"data": _data(row, media_url, names.key), "annotations": []}
    if guess := row.get("guess"):
        prediction = {
            "model_version": MODEL,
            "score": guess["probability"],
            "result": [_chosen(guess["label"], names)],
        }
        task["predictions"] = [prediction]
    return task


def _data(row: RowValues, media_url: str, key: str) -> dict[str, Any]:
    kind, content = row["kind"], row["content"]
    shown = media_url + quote(content) if kind == "image" else content
    priority = row.get("priority")
    return {
        "sabal_id": row["id"],
        key: shown,
        "sabal_round": row["round"],
        "sabal_rank": row["rank"],
        "sabal_weight": row["weight"],
        "sabal_role": row["role"],
        **({} if priority is None else {"sabal_priority": priority}),
    }


def _annotation(row: RowValues, names: Interface) -> dict[str, Any]:
    return {
        "result": [] if row["action"] == "skip" else [_chosen(row["label"], names)],
        "was_cancelled": row["action"] == "skip",
        # By default Label Studio takes the annotations of an imported task as ground truth.
        "ground_truth": False,
        "sabal": {name: row[name] for name in OWN_KEYS if row.get(name) is not None},
    }


def _chosen(label: str, names: Interface) -> dict[str, Any]:
    return {
        "type": "choices",
        "from_name": names.control,
        "to_name": names.target,
        "value": {"choices": [label]},
    }


def _not_tasks(where: str, got: str) -> FileError:
    return FileError(
        f"a list of tasks with `data` and `annotations` in {where}",
        got,
        "export from Label Studio as JSON (not JSON-MIN, CSV or TSV)",
    )
