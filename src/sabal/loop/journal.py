"""The journal of a run: every step of the loop as a file that is whole or absent.

    rounds/0003/asked.json        the batch, with weights, scores and evidence
    rounds/0003/answers-0000.json labels in the order of their arrival, one file for each part
    rounds/0003/model.safetensors the trained model, where the learner can store it
    rounds/0003/done.json         the metrics after training: the round is complete

Files are only ever added. A run that is killed at any moment continues from the last one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.files import make_folder, move_into_place, write_text_whole
from sabal.errors import FileError
from sabal.loop.oracle import Answers
from sabal.selection import Selection


class Journal:
    """The rounds of one run, as files.

    Parameters
    ----------
    folder : str or pathlib.Path
        The folder of the run; it is created on the first write.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def bind(self, config: dict[str, Any], may_change: Collection[str] = ()) -> None:
        """Record the configuration of the folder, or check that it is the recorded one.

        Parameters
        ----------
        config : dict
            The configuration, in types that JSON has.
        may_change : collection of str
            Keys that may differ from the record: they add or remove runs, but change none.

        Raises
        ------
        FileError
            If the folder was started with another configuration.
        """
        path = self.folder / "config.json"
        make_folder(self.folder)
        if not path.exists():
            _write_json(path, config)
            return
        before, now = _read_json(path), json.loads(json.dumps(config))
        changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        fixed = [key for key in changed if key not in may_change]
        if fixed:
            raise FileError(
                f"the configuration that {self.folder} was begun with",
                f"another {', '.join(fixed)}",
                "choose a new folder, or the old options",
            )
        if changed:
            _write_json(path, config)

    def config(self) -> dict[str, Any]:
        """Return the recorded configuration."""
        return _read_json(self.folder / "config.json")

    def asked(self, number: int) -> Selection | None:
        """Return the batch of a round, or None if it has not been chosen yet."""
        record = self._read(number, "asked.json")
        if record is None:
            return None
        indices = np.asarray(record["indices"], dtype=np.int64)
        return Selection(
            indices=indices,
            ids=indices,
            weights=np.asarray(record["weights"], dtype=np.float64),
            scores=np.asarray(record["scores"], dtype=np.float64),
            strategy=record["strategy"],
            evidence=record["evidence"],
            seed=record["seed"],
        )

    def write_asked(self, number: int, batch: Selection) -> None:
        """Record a batch before the oracle is asked."""
        record = {
            "indices": batch.indices.tolist(),
            "weights": batch.weights.tolist(),
            "scores": batch.scores.tolist(),
            "strategy": batch.strategy,
            "evidence": batch.evidence,
            "seed": batch.seed,
        }
        self._write(number, "asked.json", record)

    def answers(self, number: int) -> Answers:
        """Return all answers of a round so far."""
        labels: dict[int, Any] = {}
        skipped: set[int] = set()
        for path in sorted(self._round(number).glob("answers-*.json")):
            part = _read_json(path)
            labels.update({int(item): label for item, label in part["labels"].items()})
            skipped.update(part["skipped"])
        return Answers(labels, frozenset(skipped))

    def add_answers(self, number: int, answers: Answers) -> None:
        """Record answers as they arrive."""
        part = len(list(self._round(number).glob("answers-*.json")))
        record = {
            "labels": {str(item): label for item, label in answers.labels.items()},
            "skipped": sorted(answers.skipped),
        }
        self._write(number, f"answers-{part:04d}.json", record)

    def done(self, number: int) -> dict[str, Any] | None:
        """Return the record of a complete round, or None if it is not complete."""
        return self._read(number, "done.json")

    def write_done(self, number: int, figures: dict[str, Any]) -> None:
        """Record that a round is complete."""
        self._write(number, "done.json", figures)

    def keep_model(self, number: int, save: Callable[[Path], bool]) -> None:
        """Store the model of a round with `save`, unless that returns False."""
        make_folder(self._round(number))
        temporary = self._round(number) / ".model"
        try:
            if save(temporary):
                move_into_place(temporary, self.model_path(number))
        finally:
            temporary.unlink(missing_ok=True)

    def model_path(self, number: int) -> Path:
        """Return the path of the model of a round."""
        return self._round(number) / "model.safetensors"

    def _round(self, number: int) -> Path:
        return self.folder / "rounds" / f"{number:04d}"

    def _read(self, number: int, name: str) -> dict[str, Any] | None:
        path = self._round(number) / name
        return _read_json(path) if path.exists() else None

    def _write(self, number: int, name: str, record: dict[str, Any]) -> None:
        make_folder(self._round(number))
        _write_json(self._round(number) / name, record)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(
            f"a readable journal file {path}", str(error), "restore it from a copy, or start anew"
        ) from None
    if not isinstance(record, dict):
        raise FileError(f"a JSON object in {path}", type(record).__name__, "start anew")
    return record


def _write_json(path: Path, record: dict[str, Any]) -> None:
    write_text_whole(path, json.dumps(record, indent=1))
