"""Ctrl+C at any moment of a command: no traceback, exit code 130, nothing lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import distribution

import pytest

from labeling_helpers import answer
from sabal.labeling.example import make_example
from sabal.labeling.project import Project
from sabal.labeling.store.records import NewBatchItem

START = "from sabal.__main__ import main; main()"
INTERRUPT_AN_IMPORT = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
from sabal.__main__ import main
main()
"""
INTERRUPT_TIDYING = """
import os, signal, sys
import sabal.cli

class Left:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass

def tidy():
    Left()
    raise SystemExit("never reached")

sabal.cli.main = tidy
from sabal.__main__ import main
main()
"""


def start(code, *arguments):
    """A command in a session of its own, as a terminal would start it."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Whoever runs the tests in the background has them ignore interrupts, and children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_the_command_starts_there():
    found = {point.name: point.value for point in distribution("sabal").entry_points}
    assert found["sabal"] == "sabal.__main__:main"


@pytest.mark.parametrize(
    "name",
    ["sabal.cli", "numpy", "sabal.predictions.calibration", "sabal.cli.labeling", "rich.table"],
)
def test_while_it_loads(name):
    process = start(INTERRUPT_AN_IMPORT.format(name=name), "strategies")
    out, said = process.communicate(timeout=60)
    assert (process.returncode, said, out) == (130, "sabal: interrupted\n", "")


def test_while_python_tidies_up():
    process = start(INTERRUPT_TIDYING)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "sabal: interrupted\n")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="a terminal's processes, as POSIX has them")
def test_again_and_again_while_the_labelling_app_ends(tmp_path):
    with make_example(tmp_path / "p"):
        pass
    process = start(START, "label", tmp_path / "p", "--port", "0", "--no-browser")
    try:
        assert re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        with Project.open(tmp_path / "p") as project:
            project.store.add_round(0, [NewBatchItem(row) for row in range(3)], strategy="random")
            [first] = project.store.next_items("ann", 1)
            answer(project.store, first.item, "7")
        while process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.1)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    # It may have ended in good order before the second one, or while Python was leaving.
    assert process.returncode in (130, 0, -signal.SIGINT)
    first_line, *rest = said.splitlines()
    assert "It learns with" in first_line
    assert rest in (["sabal: interrupted"], [])
    with Project.open(tmp_path / "p") as project:
        assert [(row.id, row.label) for row in project.store.labels()] == [(first.item, "7")]
