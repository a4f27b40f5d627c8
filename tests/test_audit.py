"""What is installed and downloaded: `scripts/audit.py`, lower bounds, sums of files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from sabal.simulate.datasets.downloads import SOURCES

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "audit.py"
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


def test_lower_bounds_are_above_releases_with_known_vulnerabilities():
    """The first release without them, by package, as far as they concern what is used here."""
    mended = {
        "pillow": "12.3",  # CVE-2026-55379, -59198, -59200, -59204, -59205 and others of July 2026
        "jinja2": "3.1.6",  # CVE-2024-56201, CVE-2024-56326, CVE-2025-27516
        "starlette": "1.3.1",  # CVE-2025-62727, CVE-2026-48710, CVE-2026-48818, CVE-2026-54283
        "fastapi": "0.109.1",  # CVE-2024-24762
        "uvicorn": "0.11.7",  # CVE-2020-7694, CVE-2020-7695
        "h11": "0.16",  # CVE-2025-43859
        "markdown-it-py": "2.2",  # CVE-2023-26302, CVE-2023-26303
        "scikit-learn": "1.5",  # CVE-2024-5206
        # CVE-2026-25087 (15.0 to 23.0.0) is in an interface that Python does not reach.
        "pyarrow": "14.0.1",  # CVE-2023-47248
        "pandas": "1.0.4",  # CVE-2020-13091
        "torch": "2.10",  # CVE-2025-32434, CVE-2026-24747
        "ray": "2.54",  # CVE-2025-62593, CVE-2026-27482
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    every = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        every += extra
    bounds = [Requirement(each) for each in every]
    for name, release in mended.items():
        found = [each for each in bounds if each.name == name]
        assert found, name
        for each in found:
            (lowest,) = [part.version for part in each.specifier if part.operator == ">="]
            assert Version(lowest) >= Version(release), each


def test_downloads_are_encrypted_and_checked():
    for source in SOURCES.values():
        assert source.base.startswith("https://")
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in source.files.values())
