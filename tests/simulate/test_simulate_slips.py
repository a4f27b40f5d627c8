"""What goes wrong for a user of `sabal simulate`: said in a line, with nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from test_simulate import SABAL, run

QUICK = ("simulate", "digits", "--strategies", "margin,random", "--seeds", "1", "--rounds", "1")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--init", "5000"), "at most 1258"),
        (("--pool", "30"), "at most 30"),
        (("--strategies", "random,bald"), "mlp-variational"),
        (("--strategies", " , "), "--strategies"),
        (("--model", "lenet5"), "12 x 12"),
        (("--model", "lenet"), "lenet5"),
        (("--model", "mlp", "--set", "epoch=5"), "'epochs'"),
        (("--model", "mlp", "--set", "epochs"), "--set"),
        (("--data-dir", "nowhere", "--seeds", "0"), "seeds"),
    ],
)
def test_a_slip_leaves_nothing_behind(more, said, tmp_path):
    answer = run(*more, "--out", tmp_path / "run", arguments=QUICK)
    assert answer.returncode == 2
    assert len(answer.stderr.strip().splitlines()) == 1
    assert said in answer.stderr
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        answer = run("--out", out, arguments=QUICK)
        assert answer.returncode == 2
        assert len(answer.stderr.strip().splitlines()) == 1
    assert (tmp_path / "file").read_text() == "mine"


def test_blanks_after_commas_are_fine(tmp_path):
    assert run("--strategies", "margin, random", "--out", tmp_path, arguments=QUICK).returncode == 0


def test_runs_of_nobody_knows_what_are_refused(tmp_path):
    assert run("--out", tmp_path, arguments=QUICK).returncode == 0
    (tmp_path / "config.json").unlink()
    answer = run("--batch", 30, "--out", tmp_path, arguments=QUICK)
    assert answer.returncode == 2
    assert "config.json" in answer.stderr


def test_data_that_changed_since_are_refused(tmp_path):
    def write(seed):
        rng = np.random.default_rng(seed)
        y = np.arange(200) % 2
        np.savez(tmp_path / "own.npz", x=rng.normal(size=(200, 3)) + y[:, None], y=y)

    write(0)
    arguments = ("simulate", f"npz:{tmp_path / 'own.npz'}", *QUICK[2:])
    assert run("--out", tmp_path / "run", arguments=arguments).returncode == 0
    write(1)
    answer = run("--seeds", 2, "--out", tmp_path / "run", arguments=arguments)
    assert answer.returncode == 2
    assert "another data" in answer.stderr


def start(*more, stderr=subprocess.DEVNULL):
    return subprocess.Popen(
        [SABAL, *QUICK[:4], "--seeds", "20", *map(str, more)],
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        text=True,
        start_new_session=True,
        # Whoever runs the tests in the background has them ignore interrupts, and children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def wait_for_a_round(process, folder):
    while not list(folder.glob("runs/*/*/rounds/*/done.json")):
        assert process.poll() is None
        time.sleep(0.01)


def test_an_interrupt_says_how_to_go_on(tmp_path):
    process = start("--out", tmp_path, stderr=subprocess.PIPE)
    wait_for_a_round(process, tmp_path)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on" in said


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts processes as Linux does")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_when_their_parent_was_killed(how, tmp_path):
    process = start("--out", tmp_path, "--jobs", "2")
    wait_for_a_round(process, tmp_path)
    group = os.getpgid(process.pid)
    process.send_signal(how)
    process.wait(timeout=60)
    deadline = time.monotonic() + 60
    while members(group):
        assert time.monotonic() < deadline, f"still there: {members(group)}"
        time.sleep(0.05)


def members(group):
    """The processes of a group that are alive, as Linux lists them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of_group = path.read_text().rpartition(")")[2].split()[:3]
            if int(of_group) == group and state != "Z":
                found.append(path.parent.name)
    return found
