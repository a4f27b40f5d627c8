"""Simulations with networks: paired, killed and resumed, side by side."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from typer.main import get_command

from sabal import models
from sabal.cli import app
from sabal.core.extras import install_command
from sabal.errors import FileError, InputError, UnknownNameError
from sabal.learners import network_learner as networks
from sabal.learners.network_learner import NetworkLearner
from sabal.models import training
from sabal.simulate.curves import Point
from sabal.simulate.datasets.catalog import load
from sabal.simulate.experiment import MODELS, Experiment
from sabal.simulate.parallel import run_parallel
from sabal.simulate.runner import rounds_done
from sabal.simulate.simulation import simulate
from sabal.simulate.terminal_report import TimeLeft
from sabal.sparse.greedy import Greedy

SETTINGS = {"hidden": [16], "epochs": 4, "lr": 0.01}


def experiment(**changes):
    common = {
        "dataset": "digits",
        "strategies": ("sabal-greedy", "random"),
        "seeds": 2,
        "initial": 20,
        "batch": 6,
        "rounds": 2,
        "model": "mlp",
        "recipe": SETTINGS,
        "validation": 50,
        "pool": 300,
    }
    return Experiment(**{**common, **changes})


def selections(folder):
    return (folder / "selections.parquet").read_bytes()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run, with the data that every learner was given and the networks before any training."""
    folder = tmp_path_factory.mktemp("runs") / "unbroken"
    given, initial = [], []

    class Recording(NetworkLearner):
        def __init__(self, recipe, x_pool, classes, validation):
            given.append((x_pool, *validation))
            super().__init__(recipe, x_pool, classes, validation=validation)

    def fit(network, *data, **settings):
        initial.append({name: value.clone() for name, value in network.state_dict().items()})
        return training.fit(network, *data, **settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks, "NetworkLearner", Recording)
        patch.setattr(models, "fit", fit)
        points = simulate(experiment(), folder)
    return folder, points, given, initial


def test_networks_learn(finished):
    _, points, _, _ = finished
    assert len(points) == 2 * 2 * 3
    assert {point.labels for point in points} == {20, 26, 32}
    assert min(point.accuracy for point in points) > 0.15


def test_the_folder_says_everything(finished):
    folder, _, _, _ = finished
    config = json.loads((folder / "config.json").read_text())
    assert (config["validation"], config["pool"]) == (50, 300)
    assert config["recipe"]["epochs"] == 4
    assert config["recipe"]["weight_decay"] == 5e-4
    assert len(config.pop("data")) == 16
    config["strategies"] = tuple(config["strategies"])
    assert Experiment(**config).config() == config
    assert len(list(folder.glob("runs/*/*/rounds/*/model.safetensors"))) == 2 * 2 * 3


def test_every_strategy_starts_a_round_from_the_same_network(finished):
    _, _, _, initial = finished
    assert len(initial) == 2 * 2 * 3
    heads = [state["head.weight"] for state in initial]
    # Runs in order: seed by seed, strategy by strategy, round by round.
    by_run = np.arange(12).reshape(2, 2, 3)
    for seed in range(2):
        for number in range(3):
            one, other = by_run[seed, :, number]
            assert torch.equal(heads[one], heads[other])
    distinct = {heads[k].numpy().tobytes() for k in by_run[:, 0].ravel()}
    assert len(distinct) == 6


def test_pool_and_held_out_items_are_apart_and_the_same_in_every_run(finished):
    folder, _, given, _ = finished
    assert len(given) == 5  # one to see whether it can be done, and one for every run
    for one, *others in zip(*given, strict=True):
        assert all(np.array_equal(one, other) for other in others)
    data = load("digits")
    pool, held_out = experiment().split(len(data.x_train))
    assert (len(set(pool)), len(set(held_out))) == (300, 50)
    assert not set(pool) & set(held_out)
    np.testing.assert_array_equal(given[0][0], data.x_train[pool])
    np.testing.assert_array_equal(given[0][1], data.x_train[held_out])
    chosen = pq.read_table(folder / "selections.parquet").column("item").to_pylist()
    assert set(chosen) <= set(pool.tolist())


def test_the_held_out_items_do_not_depend_on_the_pool():
    _, held_out = experiment().split(1000)
    pool, same = experiment(pool=None).split(1000)
    np.testing.assert_array_equal(held_out, same)
    assert sorted([*pool, *same]) == list(range(1000))
    with pytest.raises(InputError, match="at most 349"):
        experiment().split(349)


# -- killed and resumed -------------------------------------------------------------------------


def end_at(calls, holder, name, when=lambda *arguments: True):
    """Have this process killed at the `calls`-th call of a function that matters."""
    whole, count = getattr(holder, name), 0

    def counting(*arguments, **named):
        nonlocal count
        count += bool(when(*arguments))
        if count == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(*arguments, **named)

    setattr(holder, name, counting)


def writes(name):
    return lambda source, target: Path(target).name == name


MOMENTS = {
    # Four epochs a round: in the middle of training round 1.
    "training": (6, training, "_epoch"),
    "selection": (2, Greedy, "solve"),
    # The file is written, and not yet moved to its name.
    "model": (2, Path, "replace", writes("model.safetensors")),
    "done": (3, Path, "replace", writes("done.json")),
}


def killed_run(moment, folder):
    """What the child process does; it does not come back."""
    end_at(*MOMENTS[moment])
    simulate(experiment(seeds=1), Path(folder))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_killed_at_any_moment_resumes_to_byte_identical_selections(
    moment, tmp_path, finished
):
    folder, _, _, _ = finished
    child = "import sys, test_simulate_networks as t; t.killed_run(*sys.argv[1:])"
    answer = subprocess.run(
        [sys.executable, "-c", child, moment, str(tmp_path / "run")],
        cwd=Path(__file__).parent,
        capture_output=True,
    )
    assert answer.returncode == -signal.SIGKILL, answer.stderr
    done = rounds_done(experiment(seeds=1), tmp_path / "run")
    assert done < 2 * 3
    reported = []
    simulate(experiment(), tmp_path / "run", on_round=reported.append)
    assert len(reported) == 2 * 2 * 3
    assert selections(tmp_path / "run") == selections(folder)


def test_the_same_again_repeats_nothing_and_another_recipe_is_refused(finished, monkeypatch):
    folder, points, _, _ = finished
    monkeypatch.setattr(models, "fit", None)
    assert simulate(experiment(), folder) == points
    with pytest.raises(FileError, match="recipe"):
        simulate(experiment(recipe={**SETTINGS, "epochs": 5}), folder)


def test_networks_run_parallel_give_the_same_result(finished, tmp_path):
    folder, _, _, _ = finished
    threads = torch.get_num_threads()
    reported = []
    points = simulate(experiment(), tmp_path / "two", jobs=2, on_round=reported.append)
    assert sorted(map(str, reported)) == sorted(map(str, points))
    assert torch.get_num_threads() == threads
    if threads == 1:
        # Sums in more threads are rounded differently.
        assert selections(tmp_path / "two") == selections(folder)


def test_a_variational_network_weighted_and_streamed(tmp_path):
    asked = {
        "strategies": ("sabal-greedy", "bayesian-coreset", "sabal", "bald", "random"),
        "seeds": 1,
        "rounds": 1,
        "model": "mlp-variational",
        "recipe": {**SETTINGS, "samples": 6},
        "weighted": True,
    }
    points = simulate(experiment(**asked), tmp_path)
    assert len(points) == 5 * 2
    assert len({point.accuracy for point in points if point.round == 0}) == 1


def test_weights_change_what_is_learnt(tmp_path):
    asked = {"strategies": ("sabal",), "seeds": 1, "rounds": 1, "batch": 40}
    plain = simulate(experiment(**asked), tmp_path / "plain")
    weighted = simulate(experiment(**asked, weighted=True), tmp_path / "weighted")
    assert plain[0].accuracy == weighted[0].accuracy
    one, other = (
        json.loads((tmp_path / name / "runs/sabal/seed-000/rounds/0001/done.json").read_text())
        for name in ("plain", "weighted")
    )
    assert one["metrics"]["log_loss"] != other["metrics"]["log_loss"]


# -- labels, workers, the command line ----------------------------------------------------------


def test_one_strategy_under_two_labels(tmp_path):
    options = {
        "both": {"strategy": "sabal-greedy"},
        "bias-only": {"strategy": "sabal-greedy", "alpha": 0.0},
    }
    asked = experiment(
        strategies=("both", "bias-only"), options=options, model="logistic", recipe={},
        validation=0, seeds=1, rounds=1,
    )  # fmt: skip
    assert asked.plan("bias-only", 0).strategy == "sabal-greedy"
    assert asked.plan("bias-only", 0).options == {"alpha": 0.0}
    simulate(asked, tmp_path)
    rows = pq.read_table(tmp_path / "selections.parquet").to_pylist()
    chosen = {
        label: [row["item"] for row in rows if row["strategy"] == label and row["round"] == 1]
        for label in options
    }
    assert chosen["both"] != chosen["bias-only"]
    assert (tmp_path / "runs" / "bias-only").is_dir()


@pytest.mark.parametrize("label", ["../up", "", "a b", ".hidden"])
def test_labels_that_cannot_name_a_folder_are_refused(label):
    with pytest.raises(InputError, match="folder"):
        experiment(strategies=(label,), options={label: {"strategy": "random"}})


def test_a_label_of_nothing_is_refused():
    with pytest.raises(UnknownNameError):
        experiment(strategies=("mine",), options={"mine": {"strategy": "nosuch"}})


def wait_for_news(seed, folder):
    """A run that goes on only when its first round was heard of."""
    yield Point("wait", seed, 0, 1, 0.0, 0.0)
    deadline = time.monotonic() + 60
    while not (folder / str(seed)).exists():
        if time.monotonic() > deadline:
            raise AssertionError("nobody heard of the round")
        time.sleep(0.01)
    yield Point("wait", seed, 1, torch.get_num_threads(), 0.0, 0.0)


def fail(folder):
    raise InputError("a run that works", "this one", "try another")


def test_rounds_are_heard_of_when_they_are_done_and_workers_have_one_thread(tmp_path):
    heard = []

    def hear(point):
        heard.append(point)
        (tmp_path / str(point.seed)).touch()

    points = run_parallel([partial(wait_for_news, seed, tmp_path) for seed in range(2)], 2, hear)
    assert sorted(map(str, heard)) == sorted(map(str, points))
    assert [point.labels for point in points] == [1] * 4


def test_a_run_that_fails_is_said(tmp_path):
    with pytest.raises(InputError, match="this one"):
        run_parallel([partial(fail, tmp_path)], 2, lambda point: None)


def test_time_left_counts_only_what_was_done_now():
    left = TimeLeft(already_done=4)
    assert left.seconds(4, 10, None, 7.0) is None
    assert left.seconds(6, 10, None, 30.0) == pytest.approx(60.0)
    assert left.seconds(10, 10, 80.0, 80.0) == 0.0


def test_the_command_line_names_every_model_and_takes_settings(tmp_path):
    command = get_command(app).commands["simulate"]
    described = {parameter.name: parameter for parameter in command.params}["model"].help
    assert all(name in described for name in MODELS)
    more = "--model mlp --set hidden=[8] --set epochs=1 --validation 20 --pool 60 --seeds 1"
    plan = "--init 10 --batch 5 --rounds 1 --strategies margin,random"
    arguments = ["digits", *more.split(), *plan.split(), "--out", str(tmp_path)]
    command(arguments, standalone_mode=False)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["recipe"]["network_options"] == {"hidden": [8]}
    assert (config["recipe"]["epochs"], config["validation"], config["pool"]) == (1, 20, 60)


def test_without_torch_one_line_says_what_to_install(tmp_path):
    child = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': raise ImportError('No module named torch')\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "from sabal.cli import main; main()"
    )
    arguments = ["simulate", "digits", "--model", "mlp", "--out", str(tmp_path)]
    answer = subprocess.run(
        [sys.executable, "-c", child, *arguments], capture_output=True, text=True
    )
    assert answer.returncode == 2, answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1
    assert install_command("torch") in answer.stderr
