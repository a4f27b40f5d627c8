"""A batch through a real FiftyOne, which also reads our files for CVAT: `make test-fiftyone`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

PYTHON = Path(os.environ.get("FIFTYONE_PYTHON", ".venv-fiftyone/bin/python")).absolute()
COUNT = 24


def sabal(*arguments):
    command = [sys.executable, "-m", "sabal", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not PYTHON.exists(), reason="FiftyOne is not installed: make test-fiftyone")
def test_a_batch_is_labelled_in_fiftyone_and_comes_back(tmp_path):
    images = tmp_path / "images"
    (images / "below").mkdir(parents=True)
    for k in range(COUNT):
        name = ("red", "blue")[k % 2]
        color = (200, k, 10) if name == "red" else (10, k, 200)
        folder = images / "below" if k % 3 == 0 else images
        Image.new("RGB", (20 + k, 10), color).save(folder / f"{name}-{k}.png")
    project, batch, cvat, out = (tmp_path / n for n in ("p", "b.json", "b.xml", "out.json"))
    sabal(
        "init", project, "--data", images, "--classes", "red,blue", "--initial", 8, "--batch", 5,
        "--check-share", 0, "--backbone", "pixels", "--head", "linear",
    )  # fmt: skip
    sabal("export", project, "--batch", "-f", "fiftyone", "-o", batch)
    sabal("export", project, "--batch", "-f", "cvat", "-o", cvat)
    # What CVAT adds to the file when the images are tagged.
    image = re.compile(r'(<image [^>]*name="(?:below/)?(red|blue)-[^>]*?) />')
    cvat.write_text(image.sub(r'\1><tag label="\2" source="manual"/></image>', cvat.read_text()))
    done = subprocess.run(  # noqa: S603
        [PYTHON, Path(__file__).with_name("with_fiftyone.py"), batch, cvat, images, out],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path), "FIFTYONE_DO_NOT_TRACK": "1", "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    order = [sample["sabal_id"] for sample in json.loads(batch.read_text())["samples"]]
    assert seen["order"] == order
    assert {"sabal_id", "sabal_priority", "sabal_prediction", "ground_truth"} <= set(seen["fields"])
    assert seen["cvat"] == {Path(key).name: [Path(key).name.partition("-")[0]] for key in order}

    report = json.loads(sabal("import", project, out, "-f", "fiftyone", "--json"))
    assert (report["labels"], report["skips"]) == (7, 1)
    again = json.loads(sabal("import", project, out, "-f", "fiftyone", "--json"))
    assert (again["labels"], again["skips"], again["already"]) == (0, 0, 8)
    sabal("export", project, "--batch", "-f", "fiftyone", "-o", batch)
    following = json.loads(batch.read_text())["samples"]
    assert len(following) == 5
    for sample in following:
        assert sample["sabal_prediction"]["label"] in ("red", "blue")
