"""The line for whoever waits at a terminal."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import time

import numpy as np
import pytest
from rich.console import Console

from sabal.core import terminal as core_terminal
from sabal.core.terminal import waiting


def terminal():
    return Console(file=io.StringIO(), force_terminal=True, width=80)


def test_long_work_is_told_and_the_line_goes_away(monkeypatch):
    monkeypatch.setattr(core_terminal, "PATIENCE_SECONDS", 0)
    console = terminal()
    with waiting("choosing 5 of [bold]7[/bold] items", console):
        while "choosing 5 of [bold]7[/bold] items" not in console.file.getvalue():
            time.sleep(0.01)
        assert "0:00:00" in console.file.getvalue()
    assert console.file.getvalue().endswith("\x1b[2K")  # the line is erased


@pytest.mark.parametrize("console", [terminal(), Console(file=io.StringIO())])
def test_short_work_and_files_get_nothing(monkeypatch, console):
    monkeypatch.setattr(core_terminal, "PATIENCE_SECONDS", 600 if console.is_terminal else 0)
    with waiting("choosing", console):
        pass
    assert console.file.getvalue() == ""


def test_select_tells_a_terminal_how_much_it_chooses_from(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "pool.npz", features=rng.normal(size=(300, 4)), logits=np.eye(300, 3))
    code = (
        "from sabal.cli import main; from sabal.core import terminal; "
        "terminal.PATIENCE_SECONDS = 0; "
        "import sabal.cli.select as s; import time; choose = s.choose; "
        "s.choose = lambda *a: (time.sleep(0.5), choose(*a))[1]; main()"
    )
    here, there = pty.openpty()
    command = [sys.executable, "-c", code, "select", "pool.npz", "--budget", "7", "--json"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=there, cwd=tmp_path, env=environment
    )
    out, _ = process.communicate(timeout=60)
    said = os.read(here, 100_000).decode()
    os.close(there)
    os.close(here)
    assert process.returncode == 0, said
    assert "choosing 7 of 300 items" in said
    assert out.startswith(b'{"items"')
