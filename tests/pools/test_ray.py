"""Pools on Ray: the same batches as in memory and on disk, whoever dies meanwhile."""

from __future__ import annotations

import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_limits

import sabal
from makers import make_pool
from sabal.cli.root import app
from sabal.errors import ClusterError, InputError, MissingPackageError
from sabal.pools import open_pool, read_pool
from sabal.pools.ray import RayPool, score_with_ray
from sabal.pools.ray.ray_workers import RayWorkers
from sabal.pools.ray.session import session
from sabal.pools.ray.shard_sources import shard_sources
from sabal.simulate.experiment import Experiment
from sabal.simulate.simulation import simulate

ray = pytest.importorskip("ray")

SABAL = Path(sys.executable).parent / "sabal"
N = 10_000
POOL = make_pool(n=N, dimensions=6, classes=3)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """One Ray for all tests of this process, with room for two workers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=80 * 2**20,
        )
    # Workers have one thread, and digits depend on how many there are.
    with threadpool_limits(1):
        yield
    ray.shutdown()


def select_on_ray(source, budget, **options):
    return sabal.select_pool(source, budget, engine="ray", **options)


def arrays(*names):
    return {name: getattr(POOL, name).astype(np.float32) for name in names}


def same_batch(found, expected):
    assert np.array_equal(found.indices, expected.indices)
    assert np.array_equal(found.weights, expected.weights)
    assert np.array_equal(found.scores, expected.scores)
    assert found.ids.tolist() == expected.ids.tolist()
    own = ("seconds", "cluster")
    told, meant = ({k: v for k, v in e.evidence.items() if k not in own} for e in (found, expected))
    assert told == meant
    assert found.seed == expected.seed


@pytest.fixture(scope="module")
def pool_folder(tmp_path_factory):
    """The pool as a folder of two Parquet files, with names for its items."""
    folder = tmp_path_factory.mktemp("cluster") / "pool"
    folder.mkdir()
    ids = np.array([f"item {k}" for k in range(N)])
    for k, part in enumerate((slice(0, 3_000), slice(3_000, N))):
        columns = {name: list(array[part]) for name, array in arrays("features", "logits").items()}
        table = pa.table({"id": ids[part], **columns})
        pq.write_table(table, folder / f"{k}.parquet", row_group_size=1_000)
    return folder


MODEL = ("features", "probs", "label_probs")
CASES = {
    # How many candidates a pass brings depends on where the pool is, unless `refresh` says.
    "sabal-kernel": {"refresh": 32},
    "sabal, coverage": {},
    "sabal-greedy": {"refresh": 32},
    "sabal-iht": {"iterations": 5, "candidates": None},
    "sabal-kernel, candidates": {"candidates": 5},
    "margin": {},
    "random": {},
}


def test_batches_are_those_that_are_chosen_in_memory():
    with RayWorkers(shard_sources(arrays(*MODEL)), 2) as held:
        pool = RayPool(held)
        for case, options in CASES.items():
            name = case.partition(",")[0]
            expected = sabal.select(40, **arrays(*MODEL), strategy=name, random_state=3, **options)
            found = sabal.select(40, pool, strategy=name, random_state=3, **options)
            assert np.array_equal(found.indices, expected.indices), case
            assert np.array_equal(found.weights, expected.weights), case
            assert np.array_equal(found.scores, expected.scores), case
        assert held.replaced == 0


@pytest.mark.parametrize("names", [("features", "logits"), ("log_probs",)])
def test_the_answer_has_all_that_it_has_in_memory(names):
    strategy = "sabal-greedy" if "log_probs" in names else "sabal-kernel"
    options = {"strategy": strategy, "random_state": 3, "refresh": 32}
    expected = sabal.select(40, **arrays(*names), **options)
    found = select_on_ray(arrays(*names), 40, **options)
    same_batch(found, expected)
    assert found.evidence["cluster"]["workers"] == 2
    assert found.evidence["cluster"]["replaced"] == 0
    assert found.evidence["cluster"]["bytes_per_pass"] > 0


@pytest.mark.parametrize("memory", [None, "400kB"])
def test_the_batch_is_the_one_that_is_chosen_on_disk(pool_folder, memory):
    contents = read_pool(pool_folder, memory="800kB")
    options = {"strategy": "sabal-kernel", "refresh": 32, "random_state": 0}
    expected = sabal.select(40, contents.pool.check(), **options)
    found = select_on_ray(pool_folder, 40, memory=memory, **options)
    same_batch(found, expected)
    assert found.ids[0] == f"item {found.indices[0]}"


def test_labelled_features_stay_with_the_driver():
    labeled = arrays("features")["features"][:30] + 0.01
    given = {"random_state": 3, "labeled_features": labeled}
    expected = sabal.select(40, **arrays(*MODEL), **given)
    found = select_on_ray(arrays(*MODEL), 40, workers=2, **given)
    same_batch(found, expected)
    assert found.evidence["labeled"] == 30
    with pytest.raises(sabal.SabalError, match="columns"):
        select_on_ray(arrays(*MODEL), 40, labeled_features=labeled[:, 1:])


def kill_worker(workers, k):
    os.kill(ray.get(workers._workers[k].process.remote()), signal.SIGKILL)


def kill_at(monkeypatch, question, times):
    """Kill the second worker when it is asked `question`, at the given times; returns them all."""
    asked, send = [], RayWorkers._send

    def sent(workers, k, packed):
        if (k, pickle.loads(packed[0])[0].__name__) != (1, question):  # noqa: S301
            return send(workers, k, packed)
        asked.append(ray.get(workers._workers[k].process.remote()))
        reference = send(workers, k, packed)
        if len(asked) in times:
            os.kill(asked[-1], signal.SIGKILL)
        return reference

    monkeypatch.setattr(RayWorkers, "_send", sent)
    return asked


@pytest.mark.parametrize(
    ("case", "question", "time"),
    [("sabal-kernel", "best_items", 2), ("sabal-iht", "nearest_items", 2)],
)
def test_a_worker_that_is_killed_changes_nothing(monkeypatch, case, question, time):
    options = {"strategy": case, "random_state": 3, **CASES[case]}
    expected = sabal.select(40, **arrays(*MODEL), **options)
    asked = kill_at(monkeypatch, question, [time])
    found = select_on_ray(arrays(*MODEL), 40, **options)
    assert len(asked) > time
    assert len(set(asked)) == 2
    assert found.evidence["cluster"]["replaced"] == 1
    same_batch(found, expected)


def test_a_worker_that_dies_while_ids_are_compared_is_replaced(monkeypatch, pool_folder):
    compared, attempts = RayWorkers._compared, []

    def compare(workers):
        attempts.append(workers)
        if len(attempts) == 1:
            kill_worker(workers, 0)
        return compared(workers)

    monkeypatch.setattr(RayWorkers, "_compared", compare)
    found = select_on_ray(pool_folder, 5, strategy="margin")
    assert len(attempts) == 2
    assert found.evidence["cluster"]["replaced"] == 1


def test_workers_that_die_of_a_question_are_not_replaced_for_ever(monkeypatch):
    monkeypatch.setattr("sabal.pools.ray.ray_workers.MAX_DEATHS", 1)
    kill_at(monkeypatch, "most_uncertain", [1, 2])
    with pytest.raises(ClusterError, match="its work on rows 4096 to 10000; got 2 that died"):
        select_on_ray(arrays("logits"), 5, strategy="margin")


def test_what_comes_to_the_driver_does_not_grow_with_the_pool():
    told = []
    for n in (10_000, 40_000):
        pool = make_pool(n=n, dimensions=6, classes=3)
        source = {"features": pool.features.astype(np.float32), "logits": pool.logits}
        options = {"strategy": "sabal-kernel", "refresh": 32, "width": 64}
        batch = select_on_ray(source, 40, random_state=0, **options)
        told.append(batch.evidence["cluster"])
    assert told[0]["bytes_per_pass"] == told[1]["bytes_per_pass"]
    # Sums come by segment, of which there are 3 and 10 here, and never more than 64.
    assert told[1]["bytes"] < 1.1 * told[0]["bytes"]


def test_mistakes_are_told_by_the_workers():
    logits = POOL.logits.copy()
    logits[9_000, 1] = np.nan
    with pytest.raises(InputError, match=r"at row 4904, counted from row 4096 of the pool"):
        select_on_ray({"logits": logits}, 5)
    with pytest.raises(InputError, match="features or log_probs for the strategy"):
        select_on_ray(arrays("logits"), 5, strategy="sabal-greedy")


def test_more_workers_than_cpus_are_waited_for_and_given_up(monkeypatch):
    monkeypatch.setattr("sabal.pools.ray.ray_workers.START_SECONDS", 2.0)
    with (
        pytest.warns(sabal.SabalWarning, match="3 CPUs of 3 workers, but 2: waiting"),
        pytest.raises(ClusterError, match="3 more workers of 1 CPUs each; got not enough in 2 sec"),
    ):
        select_on_ray(arrays("logits"), 5, workers=3)
    assert len(select_on_ray(arrays("logits"), 5, workers=2)) == 5


def test_a_pool_that_was_closed_says_so():
    with open_pool(arrays("features", "logits"), engine="ray", workers=1) as pool:
        assert len(sabal.select(3, pool, strategy="margin")) == 3
    with pytest.raises(ClusterError, match="inside its `with` block"):
        sabal.select(3, pool, strategy="margin")


def test_a_session_does_not_end_what_it_did_not_start():
    with session():
        assert ray.is_initialized()
    assert ray.is_initialized()
    with pytest.raises(ClusterError, match=r"call ray\.shutdown"), session("127.0.0.1:1"):
        pass


def test_ray_has_to_be_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match=r"pip install .*\[ray\]"):
        select_on_ray(arrays("logits"), 5)


def cli(capsys, *arguments):
    """What a command prints, run in this process, which has its Ray already."""
    app([str(each) for each in arguments], standalone_mode=False)
    return capsys.readouterr().out


def test_the_command_line_chooses_the_same_on_ray(pool_folder, capsys):
    command = ["select", pool_folder, "--budget", 30, "--json"]
    command += ["--strategy", "sabal-kernel", "--option", "refresh=32"]
    expected = json.loads(cli(capsys, *command))
    found = json.loads(cli(capsys, *command, "--engine", "ray", "--workers", 2, "--memory", "1MB"))
    assert found["items"] == expected["items"]
    assert found["evidence"]["cluster"]["workers"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "spark"], "--engine as local or ray"),
        (["--workers", "2"], "write --engine ray, or leave --workers out"),
        (["--address", "auto"], "write --engine ray, or leave --address out"),
    ],
)
def test_options_of_the_cluster_go_with_its_engine(pool_folder, capsys, arguments, message):
    with pytest.raises(InputError, match=message):
        cli(capsys, "select", pool_folder, "--budget", 3, *arguments)


def test_a_ray_of_our_own_is_quiet_and_stopped_again(pool_folder):
    environment = {k: v for k, v in os.environ.items() if k != "RAY_ADDRESS"}
    common = [SABAL, "select", pool_folder, "--budget", "3", "--strategy", "margin", "--json"]
    done = subprocess.run(
        [*common, "--engine", "ray"],
        capture_output=True,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["items"]) == 3
    assert done.stderr == ""
    refused = subprocess.run(
        [*common, "--engine", "ray", "--address", "127.0.0.1:1"],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert refused.returncode == 2
    assert "a Ray cluster at 127.0.0.1:1; got" in refused.stderr
    assert refused.stderr.count("\n") == 1


class Model:
    """Scores a batch; made once in every worker."""

    def __init__(self):
        self.weights = np.arange(12.0).reshape(4, 3) / 7

    def __call__(self, batch):
        assert set(batch) == {"id", "x", "text"}
        return {"features": batch["x"], "logits": batch["x"] @ self.weights}


def test_a_data_set_is_scored_in_order(tmp_path):
    x = np.random.default_rng(0).normal(size=(2_000, 4)).astype(np.float32)
    ids = [f"item {k}" for k in range(2_000)]
    (tmp_path / "data").mkdir()
    for k in range(2):
        part = slice(1_000 * k, 1_000 * (k + 1))
        columns = {"id": ids[part], "x": list(x[part]), "text": ["some words"] * 1_000}
        pq.write_table(pa.table(columns), tmp_path / "data" / f"{k}.parquet", row_group_size=300)
    out = score_with_ray(tmp_path / "data", Model, tmp_path / "pool", batch_size=128)
    pool = read_pool(out).pool.check()
    assert pool.ids.tolist() == ids
    assert np.array_equal(pool.features, x)
    assert pool.logits.shape == (2_000, 3)
    expected = sabal.select(5, features=x, logits=pool.logits, random_state=0)
    found = select_on_ray(out, 5, random_state=0)
    assert np.array_equal(found.indices, expected.indices)


def broken(batch):
    raise KeyError("no such column")


def test_a_model_that_fails_is_told_of(tmp_path):
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "x.npy", np.zeros((50, 4)))
    with pytest.raises(InputError, match="KeyError: 'no such column'") as caught:
        score_with_ray(tmp_path / "data", broken, tmp_path / "pool")
    assert "in broken" in caught.value.__notes__[0]
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_simulation_on_ray_is_the_same(tmp_path):
    experiment = Experiment(
        dataset="digits", strategies=("margin", "random"), seeds=1, initial=20, batch=10, rounds=1
    )
    heard = []
    expected = simulate(experiment, tmp_path / "here")
    found = simulate(experiment, tmp_path / "there", engine="ray", on_round=heard.append)

    def plain(points):
        return [(p.strategy, p.seed, p.round, p.labels, p.accuracy) for p in points]

    assert plain(found) == plain(expected)
    assert sorted(plain(heard)) == sorted(plain(expected))
    files = [
        sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
        for folder in (tmp_path / "here", tmp_path / "there")
    ]
    assert files[0] == files[1]
    tables = [pq.read_table(tmp_path / name / "selections.parquet") for name in ("here", "there")]
    assert tables[0].equals(tables[1])
