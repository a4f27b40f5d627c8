"""`python -m research` as a program: its commands, its errors, and interrupts."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import research

ROOT = Path(research.__file__).parents[1]
INTERRUPT_AN_IMPORT = """
import os, runpy, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
runpy.run_module("research", run_name="__main__", alter_sys=True)
"""


def run(*words):
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        # Tests in the background ignore interrupts, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_the_help_lists_the_commands():
    answer = run("-m", "research", "--help")
    assert answer.returncode == 0
    for name in ("reproduce", "study", "corrections", "bench"):
        assert f" {name} " in answer.stdout


def test_a_mistake_is_one_line_that_names_the_program():
    answer = run("-m", "research", "study", "--nothing")
    assert (answer.returncode, answer.stdout) == (2, "")
    line = "research: No such option: --nothing; try `python -m research study --help`\n"
    assert answer.stderr == line


@pytest.mark.parametrize("name", ["numpy", "typer", "research.cli", "research.commands.bench"])
def test_an_interrupt_while_it_loads_leaves_no_traceback(name):
    answer = run("-c", INTERRUPT_AN_IMPORT.format(name=name), "study", "--list")
    assert (answer.returncode, answer.stderr, answer.stdout) == (
        130,
        "research: interrupted\n",
        "",
    )
