"""A small run of the load driver: several people at once, nothing lost and nothing done twice.

`make load` does the same with 50 people for two minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "label_load.py"
ARGUMENTS = ("--annotators", "8", "--seconds", "3", "--pause", "0.02", "--items", "2000")


def test_people_at_once_lose_nothing_and_do_nothing_twice():
    answer = subprocess.run(
        [sys.executable, SCRIPT, *ARGUMENTS, "--batch", "100", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    report = json.loads(answer.stdout)
    assert (report["errors"], report["answered_twice"], report["lost"]) == (0, 0, 0)
    assert report["answers"] >= report["annotators"]
    assert report["requests"] > report["answers"]
    assert "Traceback" not in answer.stderr
