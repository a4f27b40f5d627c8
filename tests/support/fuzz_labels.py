"""Files of labels to import that are not what they should be."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sabal
from fuzz_oracle import ANSWERED, REFUSED, Answer, Kind, check_error, check_refusal, run_cli
from fuzz_pools import damaged
from sabal.labeling.exchange.importing import import_file
from sabal.labeling.project import Project
from sabal.labeling.store import Store

FORMATS = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet", "label-studio": ".json"}
ITEMS = 4

VALUES: tuple[Any, ...] = (
    None, "", "cat", "dog", "Cat", " cat", "i0", "i3", "nobody", 0, 1, -1, 2**31, 2**63, 10**30,
    1.0, 0.5, -0.5, 1e308, float("nan"), float("inf"), True, False, [], ["cat"], {}, {"a": 1},
    "\x00", "a\x00b", "\ud800", "é" * 300, "2026-01-31T12:00:00Z", "2026-01-31", "yesterday",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "=1+1", "'", '"', "\r\n", "skip",
    "label", "train", "check", "test", "x" * 5000, "1e400", "nan", "-1", "007",
)  # fmt: skip
"""What comes where an id, a class, a person, a number or a time should."""

NAMES = ("id", "label", "annotator", "round", "weight", "time", "action", "role", "rank", "content")


def make_project(folder: Path) -> Path:
    """A project of a few texts, of which some have labels."""
    data = folder / "texts.csv"
    lines = [f"i{k},text {k}\n" for k in range(ITEMS)]
    data.write_text("id,text\n" + "".join(lines))
    path = folder / "project"
    with Project.create(path, data=data, classes=("cat", "dog")):
        pass
    return path


def some_rows(rng: Random) -> list[dict[str, Any]]:
    """Rows as they should be, but for a value or a column here and there."""
    rows = [
        {"id": f"i{rng.randrange(ITEMS)}", "label": rng.choice(("cat", "dog"))} for _ in range(3)
    ]
    row: dict[str, Any]
    for row in rows:
        for name in rng.sample(NAMES, rng.choice((0, 0, 0, 1, 2))):
            row[name] = rng.choice(VALUES)
        if rng.random() < 0.1:
            row.pop(rng.choice(sorted(row)))
    return rows


def as_csv(rng: Random) -> bytes:
    """Cells, not quoted as they should be now and then."""
    rows = some_rows(rng)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if rng.random() < 0.1:
        columns.append("id")
    quote = rng.choice((json.dumps, str, str))
    lines = [",".join(columns)]
    lines += [",".join(quote(row.get(name, "")) for name in columns) for row in rows]
    text = rng.choice(("\n", "\r\n", "\r")).join(lines)
    return text.encode(rng.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16")), "surrogatepass")


def as_jsonl(rng: Random) -> bytes:
    """Lines of JSON, with a key twice, a number too long, or too deep a nest perhaps."""
    lines = [json.dumps(row) for row in some_rows(rng)]
    strange = (
        '{"id": "i0", "id": "i1", "label": "cat"}', '{"id": "i0", "label": %s}' % ("9" * 5000),
        "[" * 100_000, "null", "[]", "{}", '{"id": "i0", "label": "cat"}}', '{"id": "i0", "label"',
        "\ufeff{}", "NaN", '{"id": NaN, "label": Infinity}', "\x00", "{'id': 'i0'}",
    )  # fmt: skip
    if rng.random() < 0.5:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(strange))
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def as_parquet(rng: Random) -> bytes:
    """Columns of whatever type the values agree on; of text where they do not."""
    rows = some_rows(rng)
    columns = {name: [row.get(name) for row in rows] for row in rows for name in row}
    if rng.random() < 0.1:
        columns[rng.choice(sorted(columns))] = [None] * len(rows)
    for table in (columns, {name: [ascii(v) for v in values] for name, values in columns.items()}):
        file = io.BytesIO()
        try:
            pq.write_table(pa.table(table), file, use_dictionary=rng.random() < 0.5)
        except (pa.ArrowException, TypeError, OverflowError, UnicodeError):
            continue
        return file.getvalue()
    raise AssertionError("text can always be written")


def as_tasks(rng: Random) -> bytes:
    """Tasks of Label Studio, something else in the place of any part of them."""
    tasks: list[Any] = []
    for row in some_rows(rng):
        result: Any = [
            {"type": "choices", "from_name": "label", "value": {"choices": [row.get("label")]}}
        ]
        annotation = {"result": result, "was_cancelled": rng.random() < 0.2, "completed_by": 3}
        if rng.random() < 0.2:
            annotation["completed_by"] = rng.choice((*VALUES, {"email": "a@b.c"}, {"id": 3}))
        if rng.random() < 0.2:
            annotation["created_at"] = rng.choice(VALUES)
        if rng.random() < 0.2:
            annotation["sabal"] = rng.choice((row, *VALUES))
        tasks.append({"id": 1, "data": {"sabal_id": row.get("id")}, "annotations": [annotation]})
    for _ in range(rng.choice((0, 0, 1, 2))):
        place, parents = tasks, []
        while isinstance(place, dict | list) and place and rng.random() < 0.8:
            key = (
                rng.choice(sorted(place)) if isinstance(place, dict) else rng.randrange(len(place))
            )
            parents.append((place, key))
            place = place[key]
        if parents:
            container, key = parents[-1]
            if isinstance(container, dict) and rng.random() < 0.3:
                del container[key]
            else:
                container[key] = rng.choice(VALUES)
    text = json.dumps(tasks)
    if rng.random() < 0.1:
        text = rng.choice((json.dumps({"tasks": tasks}), "[" * 100_000, '{"a": 1}', "[[]]"))
    return text.encode("utf-8", "surrogatepass")


WRITERS: dict[str, Callable[[Random], bytes]] = {
    "csv": as_csv,
    "jsonl": as_jsonl,
    "parquet": as_parquet,
    "label-studio": as_tasks,
}


def current_labels(store: Store) -> list[Any]:
    """Everything that is answered."""
    return [*store.labels(), *store.skipped()]


def import_case(format: str) -> Kind:
    """`import_file` into a project: all of a file or nothing of it, and twice is once."""

    def run(rng: Random, folder: Path) -> str:
        data = WRITERS[format](rng)
        path = folder / f"labels é{FORMATS[format]}"
        path.write_bytes(damaged(data, rng) if rng.random() < 0.3 else data)
        with Project.open(shared_project(folder)) as project:
            before = current_labels(project.store)
            try:
                imported = import_file(project.store, path)
            except sabal.SabalError as error:
                check_error(error)
                assert current_labels(project.store) == before
                return REFUSED
            after = current_labels(project.store)
            assert {row.label for row in after} <= {"cat", "dog", None}
            assert {row.id for row in after} <= {f"i{k}" for k in range(ITEMS)}
            again = import_file(project.store, path)
            assert (again.labels, again.skips) == (0, 0), (imported, again)
            assert current_labels(project.store) == after
        return ANSWERED

    return run


def command_case(rng: Random, folder: Path) -> str:
    """`sabal import`: the same by the command line."""
    format = rng.choice(tuple(FORMATS))
    path = folder / rng.choice((f"labels{FORMATS[format]}", "labels", "labels.CSV", "-labels.csv"))
    path.write_bytes(damaged(WRITERS[format](rng), rng))
    more = ["--format", rng.choice((*FORMATS, "xml", ""))] if rng.random() < 0.4 else []
    if rng.random() < 0.1:
        path = folder / rng.choice(("nowhere.csv", "", "a" * 300 + ".csv"))
    project = shared_project(folder)
    answer: Answer = run_cli("import", *more, "--json", "--", project, path)
    if answer.code:
        check_refusal(answer)
        return REFUSED
    assert json.loads(answer.out)["labels"] >= 0
    return ANSWERED


def shared_project(folder: Path) -> Path:
    """One project beside the folders of all cases: answers pile up in it, as in life."""
    home = folder.parent / "labels"
    if not home.exists():
        home.mkdir()
        make_project(home)
    return home / "project"


KINDS: dict[str, Kind] = {
    **{f"import {format}": import_case(format) for format in FORMATS},
    "sabal import": command_case,
}
