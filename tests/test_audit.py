"""`scripts/audit.py` fails for a vulnerable dependency, and only for that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "audit.py"
VULNERABLE = {
    "name": "numpy",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"], "description": ""}],
}


@pytest.mark.parametrize(
    ("told", "code", "said"),
    [
        ({"dependencies": [VULNERABLE]}, 1, "numpy 1.0: PYSEC-1, fixed in 1.1"),
        ({"dependencies": [{**VULNERABLE, "vulns": []}]}, 0, "0 findings"),
        ({"dependencies": [{"name": "numpy", "skip_reason": "?"}]}, 0, "skipped, no network"),
        (None, 0, "skipped, no network"),
    ],
)
def test_what_pip_audit_says_decides(tmp_path, told, code, said):
    """The database is out of reach of a test: a stand-in says what pip-audit would say."""
    words = "" if told is None else json.dumps(told)
    (tmp_path / "pip_audit.py").write_text(
        "import pathlib, sys\n"
        "wanted = pathlib.Path(sys.argv[sys.argv.index('--requirement') + 1]).read_text()\n"
        "assert 'numpy==' in wanted and 'fastapi==' in wanted and 'sabal' not in wanted\n"
        f"print({words!r})\n"
    )
    answer = subprocess.run(
        [sys.executable, SCRIPT],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert answer.returncode == code, answer.stderr
    assert said in answer.stdout
