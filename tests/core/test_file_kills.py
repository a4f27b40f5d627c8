"""Files are whole or absent: `sabal select` and `sabal simulate` are killed at random moments.

`make torture` does the same with 200 kills of each.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from itertools import count

import numpy as np
import pyarrow.parquet as pq
import pytest

from forks import COMMAND, COMMAND_IMPORTS, Forks

SELECT_KILLS = int(os.environ.get("SABAL_KILLS", "7"))
SIMULATE_KILLS = int(os.environ.get("SABAL_KILLS", "3"))
ITEMS = 5_000
ENDINGS = (".csv", ".jsonl", ".parquet")
SIMULATE = (
    "simulate", "digits", "--strategies", "sabal,random", "--seeds", 1,
    "--init", 15, "--batch", 10, "--rounds", 2, "--jobs", 1,
)  # fmt: skip


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    log = tmp_path_factory.mktemp("log") / "said"
    with Forks(COMMAND_IMPORTS, COMMAND, log) as forks:
        yield forks


def test_a_batch_is_whole_or_what_was_there_before(forks, tmp_path):
    rng = np.random.default_rng(0)
    pool = tmp_path / "pool.npz"
    np.savez(pool, features=rng.normal(size=(ITEMS, 2)), logits=rng.normal(size=(ITEMS, 3)))

    def select(out, seed):
        return ("select", pool, "--budget", ITEMS, "-s", "random", "--seed", seed, "--out", out)

    whole, took = {}, {}
    for ending in ENDINGS:
        for seed in (0, 1):
            out = tmp_path / f"whole-{seed}{ending}"
            started = time.monotonic()
            assert forks.run(*select(out, seed)) == 0, forks.log.read_text()
            took[ending] = time.monotonic() - started
            whole[ending, seed] = out
        assert content(whole[ending, 0]) != content(whole[ending, 1])

    draw, found = random.Random(SELECT_KILLS), []  # noqa: S311
    for number in range(SELECT_KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        ending = ENDINGS[number % len(ENDINGS)]
        out = folder / f"batch{ending}"
        if draw.random() < 0.5:
            shutil.copy(whole[ending, 0], out)
        before = content(out)
        looks = look(folder)
        process = forks.start(*select(out, 1))
        if number == 0:
            pass  # at once: long before anything is written
        elif draw.random() < 0.3:
            time.sleep(draw.uniform(0, took[ending]))
        else:
            # In the midst of writing: as soon as there is something beside the file, or soon after.
            deadline = time.monotonic() + 300
            while look(folder) == looks and time.monotonic() < deadline:
                time.sleep(0.0005)
            time.sleep(draw.uniform(0, took[ending] / 10))
        killed = forks.kill(process) == -9
        now = content(out)
        assert now in (before, content(whole[ending, 1]))
        found.append((killed, now == before))
        # What a killed command leaves behind is hidden, and in nobody's way.
        assert all(name.startswith(".batch") for name in set(os.listdir(folder)) - {out.name})
    assert any(killed and kept for killed, kept in found)
    print(f"\n{len(found)} kills: {sum(kept for _, kept in found)} before the file was there")


def look(folder):
    """The files of a folder: by name, and by which of that name it is."""
    return {(entry.name, entry.inode()) for entry in os.scandir(folder)}


def content(path):
    """The batch in a file; None if there is none. Figures of the machine do not count."""
    if not path.exists():
        return None
    return pq.read_table(path) if path.suffix == ".parquet" else path.read_bytes()


def test_a_simulation_ends_as_if_it_had_never_been_killed(forks, tmp_path):
    unbroken = tmp_path / "unbroken"
    started = time.monotonic()
    assert forks.run(*SIMULATE, "--out", unbroken) == 0, forks.log.read_text()
    took = time.monotonic() - started
    expected = result(unbroken)

    draw, kills, ended = random.Random(SIMULATE_KILLS), 0, 0  # noqa: S311
    for number in count():
        out = tmp_path / f"killed-{number}"
        while kills < SIMULATE_KILLS:
            process = forks.start(*SIMULATE, "--out", out)
            time.sleep(draw.uniform(0, took))
            code = forks.kill(process)
            assert code in (0, -9), forks.log.read_text()
            if code == 0:
                break
            kills += 1
            check_whole(out)
        assert forks.run(*SIMULATE, "--out", out) == 0, forks.log.read_text()
        assert result(out) == expected
        ended += 1
        if kills >= SIMULATE_KILLS:
            break
    print(f"\n{kills} kills, {ended} simulations that ended as one that was not killed")


def result(folder):
    """What a simulation found, without what it measured of the machine."""
    table = pq.read_table(folder / "results.parquet").drop_columns(["select_seconds", "select_mb"])
    return table.to_pylist(), (folder / "selections.parquet").read_bytes()


def check_whole(folder) -> None:
    """Every file that is not hidden can be read."""
    for path in folder.rglob("*"):
        if path.is_dir() or path.name.startswith("."):
            continue
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".parquet":
            pq.read_table(path)
        else:
            assert path.stat().st_size > 0
