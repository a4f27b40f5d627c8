"""A batch through a real Label Studio and back. Opt-in: `make test-label-studio`."""
# ruff: noqa: S603  (a test asserts, and starts processes of its own)

from __future__ import annotations

import csv
import json
import os
import subprocess
from pathlib import Path

from running_server import BIN, TOKEN, LabelStudio
from running_server import sabal as _sabal

CLASSES = ["très bien", 'it\'s "bad"', "<b>other</b> & more 🦜"]
TEXTS = [
    "plain words",
    "=1+1",
    'a "quoted" text, with commas',
    "two\nlines",
    "<script>alert('no')</script>",
    "Zażółć gęślą jaźń 🦜",
]


def test_a_batch_is_labelled_in_label_studio_and_comes_back(
    server: LabelStudio, tmp_path: Path
) -> None:
    """Export, label through the SDK, import, and choose again."""
    project, tasks, config = (tmp_path / name for name in ("project", "batch.json", "config.xml"))
    _write_texts(tmp_path / "texts.csv", 60)
    names = [part for name in CLASSES for part in ("--class", name)]
    _sabal(
        "init", project, "--data", tmp_path / "texts.csv", "--text-column", "body", *names,
        "--initial", 12, "--batch", 10, "--check-share", 0,
    )  # fmt: skip
    export = ("export", project, "--format", "label-studio", "--batch", "--out", tasks)
    _sabal(*export, "--config", config)
    batch = json.loads(tasks.read_text(encoding="utf-8"))
    items = [task["data"]["sabal_id"] for task in batch]
    assert len(items) == 12

    # Two are skipped, and one is left open.
    said = {item: CLASSES[k % 3] if k >= 2 else None for k, item in enumerate(items[:-1])}
    answers, labelled = tmp_path / "answers.json", tmp_path / "labelled.json"
    answers.write_text(json.dumps(said))
    _through_sdk(server.url, config, tasks, answers, labelled)

    report = json.loads(_sabal("import", project, labelled, "--json"))
    assert report == {"labels": 9, "skips": 2, "already": 0, "waiting": 1, "unknown": []}
    again = json.loads(_sabal("import", project, labelled, "--json"))
    assert again == {"labels": 0, "skips": 0, "already": 11, "waiting": 1, "unknown": []}
    rows = [json.loads(line) for line in _sabal("export", project, "-f", "jsonl").splitlines()]
    assert {row["id"]: row["label"] for row in rows} == said
    assert {row["id"]: row["weight"] for row in rows} == {
        task["data"]["sabal_id"]: task["data"]["sabal_weight"] for task in batch[:-1]
    }
    assert {row["annotator"] for row in rows} <= {"sabal@example.com", "label-studio-1"}

    _sabal(*export)
    following = [task["data"]["sabal_id"] for task in json.loads(tasks.read_text())]
    assert following[0] == items[-1]
    assert len(following) == 11
    assert not set(following[1:]) & set(items)

    # Labels that come with their tasks are welcome there, too.
    _sabal("export", project, "--format", "label-studio", "--out", tasks)
    answers.write_text("{}")
    _through_sdk(server.url, config, tasks, answers, labelled)
    exported = json.loads(labelled.read_text(encoding="utf-8"))
    kept = {task["data"]["sabal_id"]: task["annotations"] for task in exported}
    assert kept.keys() == said.keys()
    for item, (annotation,) in kept.items():
        assert annotation["was_cancelled"] == (said[item] is None)
        assert [part["value"]["choices"] for part in annotation["result"]] == (
            [] if said[item] is None else [[said[item]]]
        )


def _write_texts(path: Path, count: int) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "body"])
        for k in range(count):
            writer.writerow([f"item {k}", f"{TEXTS[k % len(TEXTS)]} number {k}"])


def _through_sdk(server: str, *files: Path) -> None:
    command = [BIN / "python", Path(__file__).with_name("through_sdk.py"), server, TOKEN, *files]
    subprocess.run(command, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
