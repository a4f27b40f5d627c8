"""What a run has measured so far, on disk after every measurement, so that it can go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sabal
from research.bench.machine import machine_facts
from research.bench.suite.measurement import Measurement
from research.bench.suite.methods import definitions
from research.bench.suite.scales import Scale
from research.bench.suite.verdicts import verdicts
from sabal.core.files import write_text_whole

RESULTS = "suite.json"
UNMEASURED = ("cli", "labeling", "learners", "models", "simulate")
"""Rooms whose code has no part in a selection."""


@dataclass
class Records:
    """The measurements of a run with certain settings."""

    scale: Scale
    settings: dict[str, Any]
    path: Path
    rows: list[Measurement] = field(default_factory=list)
    finished: bool = False
    machine: dict[str, Any] = field(default_factory=machine_facts)

    @classmethod
    def begin(cls, scale: Scale, folder: Path, settings: Mapping[str, Any]) -> Records:
        """New ones, or those of a run with the same settings that was interrupted.

        The machine, the code that is measured and what the labels of methods stand for count as
        settings: figures are compared with each other, so they have to be from one and the same.
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
        # As JSON has them, to be compared with those in the file.
        records.settings = json.loads(json.dumps(records.settings))
        records._go_on()
        return records

    def add(self, row: Measurement) -> None:
        """Keep a measurement."""
        self.rows.append(row)
        self.write()

    def finish(self) -> None:
        """There is nothing left to measure: the next run starts afresh."""
        self.finished = True
        self.write()

    def write(self) -> None:
        """Put everything on disk."""
        write_text_whole(self.path, json.dumps(self.document(), indent=1) + "\n")

    def document(self) -> dict[str, Any]:
        """Everything as one JSON object."""
        return {
            "machine": self.machine,
            "settings": self.settings,
            "finished": self.finished,
            "verdicts": [verdict.as_dict() for verdict in verdicts(self.rows, self.scale)],
            "rows": [row.as_dict() for row in self.rows],
        }

    def _go_on(self) -> None:
        try:
            before = json.loads(self.path.read_text())
            if before["settings"] != self.settings or before["finished"]:
                return
            self.rows = [Measurement.from_dict(row) for row in before["rows"]]
        except (OSError, ValueError, KeyError, TypeError):
            # Nothing there, or nothing of ours: it is measured anew.
            self.rows = []


def code_fingerprint() -> str:
    """A number for the code that selections run."""
    package = Path(sabal.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package)
        if name.parts[0] not in UNMEASURED:
            digest.update(f"{name}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
