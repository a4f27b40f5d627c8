"""The examples, run as a user would, and what each of them shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

FOLDER = Path(__file__).parent.parent / "examples"
PERCENT = r"(\d+\.\d)%"


def run(name, folder):
    answer = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"COLUMNS": "120"},
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "Warning" not in answer.stderr
    return answer.stdout


def numbers(pattern, text):
    """What the groups of `pattern` hold, as numbers."""
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in\n{text}"
    return [float(group) for group in found.groups()]


def own_scores(said, folder):
    *_, sabal_after = row_of("sabal, by scores", said)
    *_, top_after = row_of("the top scores", said)
    *_, random_after = row_of("random", said)
    assert sabal_after > top_after > random_after


def row_of(name, said):
    line = next(line for line in said.splitlines() if f" {name} " in line)
    return [float(cell) for cell in re.findall(r"\d+\.\d", line)]


def digits_batch(said, folder):
    picture = re.search(r"picture is at (.+\.png)", said)[1]
    assert Path(picture).stat().st_size > 50_000
    before, after = (
        numbers(f"with {what}: {PERCENT}", said)[0]
        for what in ("20 labels", "20 more chosen by Sabal")
    )
    assert after > before


def sklearn_pipeline(said, folder):
    for strategy in ("sabal", "margin", "random"):
        curve = numbers(rf"{strategy} +" + rf"│ +{PERCENT} " * 4, said)
        assert curve[-1] > curve[0]


def multilabel(said, folder):
    for strategy in ("sabal", "margin", "random"):
        curve = numbers(rf"{strategy} +" + r"│ +(\d+\.\d) " * 5, said)
        assert curve[-1] > curve[0]


def regression(said, folder):
    for strategy in ("sabal", "kcenter", "random"):
        errors = numbers(rf"{strategy} +" + r"│ +(\d+\.\d) " * 6, said)
        assert errors[-1] < errors[0]


def pytorch_images(said, folder):
    steps = ", ".join(f"{PERCENT} with {labels} labels" for labels in (40, 80, 120))
    for strategy in ("sabal", "random"):
        curve = numbers(f"{strategy}: {steps}", said)
        assert curve[-1] > curve[0]


def bayesian_network(said, folder):
    assert "1217 items, 50 networks of the posterior, 10 classes" in said
    numbers(f"With 40 labels: test accuracy {PERCENT}, log loss (0\\.\\d+)", said)
    for strategy in ("sabal", "sabal-greedy", "bald", "random"):
        accuracy, loss = numbers(rf"{strategy} +│ +{PERCENT} │ +(\d\.\d+)", said)
        assert accuracy > 70
        assert loss < 1


def parquet_embeddings(said, folder):
    chosen, drawn = numbers(
        f"undecided part of the pool: {PERCENT}; with a random batch: {PERCENT}", said
    )
    assert chosen < drawn
    batch = pq.read_table(folder / "demo" / "batch.parquet").to_pydict()
    pool = pq.read_table(folder / "demo" / "embeddings.parquet", columns=["id"]).to_pydict()
    assert len(set(batch["id"])) == 100
    assert set(batch["id"]) < set(pool["id"])
    assert batch["id"][0] in said


def training_weights(said, folder):
    before, plain, weighted, change, error = numbers(
        rf"30 labels: {PERCENT}\s.*ignored: {PERCENT}\s.*sample_weight: {PERCENT}\s"
        r"Weights change it by ([+-]\d+\.\d\d)% \(standard error (\d+\.\d\d)%\)",
        said,
    )
    assert min(plain, weighted) > before
    assert change == pytest.approx(weighted - plain, abs=0.11)  # each is rounded
    assert ("no difference" in said) == (abs(change) <= 2 * error)


def custom_strategy(said, folder):
    for strategy in ("spread-margin", "margin", "random"):
        numbers(f"with 20 more by {strategy}: {PERCENT}", said)


def text_topics(said, folder):
    steps = ", ".join([r"(0\.\d{3})"] * 4)
    for strategy in ("sabal", "random"):
        curve = numbers(f"{strategy}: {steps}", said)
        assert curve[-1] > curve[0]


SHOWN = {
    check.__name__: check
    for check in (
        bayesian_network,
        custom_strategy,
        digits_batch,
        multilabel,
        own_scores,
        parquet_embeddings,
        pytorch_images,
        regression,
        sklearn_pipeline,
        text_topics,
        training_weights,
    )
}


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs_and_shows_what_it_promises(name, tmp_path):
    SHOWN[name](run(name, tmp_path), tmp_path)


def test_every_example_is_tested_and_listed():
    examples = {path.stem for path in FOLDER.glob("*.py")}
    assert examples == set(SHOWN)
    listed = set(re.findall(r"\]\((\w+)\.py\)", (FOLDER / "README.md").read_text()))
    assert listed == examples


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_says_how_to_run_it(name):
    assert f"    python examples/{name}.py\n" in (FOLDER / f"{name}.py").read_text()
