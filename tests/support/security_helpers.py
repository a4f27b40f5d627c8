"""A project to attack, and clients of its app."""

from __future__ import annotations

import json
import uuid
import warnings

from sabal.labeling.project import Project
from sabal.labeling.store.records import NewBatchItem
from sabal.labeling.web import create_app

with warnings.catch_warnings():
    # With the older httpx it works as well, and says so.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

HERE = "http://127.0.0.1:8760"


def text_project(folder, texts=("one", "two", "three", "four"), classes=("cat", "dog"), **more):
    folder.mkdir(exist_ok=True)
    rows = [{"id": more.get("ids", {}).get(n, f"t{n}"), "text": t} for n, t in enumerate(texts)]
    data = folder / "texts.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    given = {name: value for name, value in more.items() if name != "ids"}
    project = Project.create(folder / "p", data=data, classes=classes, **given)
    project.store.add_round(0, [NewBatchItem(row) for row in range(len(texts))], strategy="random")
    return project


def client_of(project, **options):
    return TestClient(create_app(project, worker=False, **options), base_url=HERE)


def label(item="t0", name="cat", annotator="ada"):
    return {"submission": str(uuid.uuid4()), "annotator": annotator, "item": item, "label": name}
