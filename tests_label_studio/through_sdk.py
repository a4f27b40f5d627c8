"""What a team does in Label Studio, done by its SDK: import tasks, label them, export.

Runs in Label Studio's own environment, and knows nothing of sabal but the two files of an export.

    python through_sdk.py URL TOKEN CONFIG.xml TASKS.json ANSWERS.json OUT.json

ANSWERS.json: for every sabal_id a class, or null to skip it; an item that is not in it stays open.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from label_studio_sdk import LabelStudio


def main(url: str, token: str, config: str, tasks: str, answers: str, out: str) -> None:
    """Import, label and export."""
    client = LabelStudio(base_url=url, api_key=token)
    project = client.projects.create(
        title="A batch of sabal's", label_config=Path(config).read_text(encoding="utf-8")
    )
    client.projects.import_tasks(id=project.id, request=_read(tasks))
    said = _read(answers)
    guess = next((name for name in said.values() if name is not None), None)
    for task in client.tasks.list(project=project.id, fields="all"):
        item = task.data["sabal_id"]
        if item in said and said[item] is None:
            client.annotations.create(id=task.id, result=[], was_cancelled=True)
        elif item in said:
            client.annotations.create(id=task.id, result=[_choice(said[item])])
        elif guess is not None:
            # What a model says is no answer.
            client.predictions.create(task=task.id, result=[_choice(guess)], score=0.9)
    exported = client.projects.exports.as_json(project.id)
    Path(out).write_text(json.dumps(exported, ensure_ascii=False), encoding="utf-8")


def _choice(name: str) -> dict[str, Any]:
    return {
        "type": "choices",
        "from_name": "label",
        "to_name": "text",
        "value": {"choices": [name]},
    }


def _read(path: str) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(*sys.argv[1:])
