"""Look up known vulnerabilities of the dependencies with `pip-audit`; part of `make lint`.

The direct dependencies as they are installed here are looked up in a database on the internet.
Without a network the script says so and succeeds.

    python scripts/audit.py
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LONGEST_SECONDS = 60
NO_NETWORK = "pip-audit: skipped, no network"


def requirements(project: dict[str, Any]) -> list[str]:
    """Return every direct dependency that is installed, with its version."""
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    names = {re.split(r"[^A-Za-z0-9._-]", each)[0].lower() for each in wanted}
    found = []
    for name in sorted(names - {project["name"]}):  # an extra may name others of this project
        try:
            # A local build (+cpu) is looked up by its public version.
            found.append(f"{name}=={version(name).partition('+')[0]}")
        except PackageNotFoundError:
            continue
    return found


def audited(wanted: list[str]) -> list[dict[str, Any]]:
    """Return the findings of pip-audit for each dependency; empty without a network."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "requirements.txt"
        path.write_text("\n".join(wanted), encoding="utf-8")
        command = [
            sys.executable, "-m", "pip_audit", "--requirement", str(path), "--no-deps",
            "--disable-pip", "--format", "json", "--progress-spinner", "off", "--timeout", "5",
        ]  # fmt: skip
        try:
            done = subprocess.run(  # noqa: S603  # nosec B603  # our own interpreter
                command, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
            )
            return [each for each in json.loads(done.stdout)["dependencies"] if "vulns" in each]
        except (subprocess.TimeoutExpired, ValueError, KeyError):
            return []


def main() -> None:
    """Print what was found; exit code 1 if a dependency is vulnerable."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = requirements(project)
    answers = audited(wanted)
    if not answers:
        print(NO_NETWORK)
        return
    bad = [(each, vulnerability) for each in answers for vulnerability in each["vulns"]]
    for each, vulnerability in bad:
        fixed = ", ".join(vulnerability["fix_versions"]) or "no version yet"
        print(f"{each['name']} {each['version']}: {vulnerability['id']}, fixed in {fixed}")
    print(f"pip-audit: {len(answers)} of {len(wanted)} dependencies looked up, {len(bad)} findings")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
