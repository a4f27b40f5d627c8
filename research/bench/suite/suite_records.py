"""The measurements of a run, written after each one, so that the run can be resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sabal
from research.bench.machine import machine_facts
from research.bench.suite.measurement import SuiteMeasurement
from research.bench.suite.methods import definitions
from research.bench.suite.scales import SuiteScale
from research.bench.suite.verdicts import verdicts
from sabal.core.files import write_text_whole

RESULTS = "suite.json"
UNMEASURED = ("cli", "labeling", "learners", "models", "simulate")
"""Rooms whose code is not part of a selection."""


@dataclass
class SuiteRecords:
    """The measurements of a run with certain settings."""

    scale: SuiteScale
    settings: dict[str, Any]
    path: Path
    rows: list[SuiteMeasurement] = field(default_factory=list)
    finished: bool = False
    machine: dict[str, Any] = field(default_factory=machine_facts)

    @classmethod
    def begin(cls, scale: SuiteScale, folder: Path, settings: Mapping[str, Any]) -> SuiteRecords:
        """Return new records, or those of an interrupted run with the same settings.

        The machine, the measured code and the definitions of the methods count as settings, since
        figures are compared with each other.
        """
        records = cls(scale, {}, folder / RESULTS)
        still = {k: v for k, v in records.machine.items() if k not in ("command", "date")}
        records.settings = {
            **settings,
            "sizes": scale.as_dict(),
            "methods": definitions(),
            "code": code_fingerprint(),
            "machine": still,
        }
        # In the form of JSON, to be compared with those in the file.
        records.settings = json.loads(json.dumps(records.settings))
        records._resume()
        return records

    def add(self, row: SuiteMeasurement) -> None:
        """Add a measurement and write all to disk."""
        self.rows.append(row)
        self.write()

    def finish(self) -> None:
        """Mark the run as finished, so that the next one starts anew."""
        self.finished = True
        self.write()

    def write(self) -> None:
        """Write everything to disk."""
        write_text_whole(self.path, json.dumps(self.document(), indent=1) + "\n")

    def document(self) -> dict[str, Any]:
        """Return everything as one JSON object."""
        return {
            "machine": self.machine,
            "settings": self.settings,
            "finished": self.finished,
            "verdicts": [verdict.as_dict() for verdict in verdicts(self.rows, self.scale)],
            "rows": [row.as_dict() for row in self.rows],
        }

    def _resume(self) -> None:
        try:
            before = json.loads(self.path.read_text())
            if before["settings"] != self.settings or before["finished"]:
                return
            self.rows = [SuiteMeasurement.from_dict(row) for row in before["rows"]]
        except (OSError, ValueError, KeyError, TypeError):
            # No file, or not one of this suite: everything is measured.
            self.rows = []


def code_fingerprint() -> str:
    """Return a hash of the code that selections run."""
    package = Path(sabal.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package)
        if name.parts[0] not in UNMEASURED:
            digest.update(f"{name}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
