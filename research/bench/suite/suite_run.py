"""Run the suite: all measurements of speed and memory, compared with their goals.

Measurements run one after another, each in a new process (see `research.bench.job` for what is
measured and how). All figures that are compared come from one run on one machine.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from research.bench.process import Job, JobOutcome, import_path, run_job
from research.bench.progress_bar import progress
from research.bench.strategy_bench import LIMIT, MEMORY
from research.bench.suite.measurement import MeasurementIndex, SuiteMeasurement
from research.bench.suite.plan import (
    SCRIPTS,
    PlannedMeasurement,
    chosen_parts,
    known_outcome,
    tasks_of,
)
from research.bench.suite.pool_inputs import ArrayFile, ParquetFolder, check_room
from research.bench.suite.scales import SuiteScale, scale_of
from research.bench.suite.suite_page import page
from research.bench.suite.suite_plots import draw_pictures
from research.bench.suite.suite_records import SuiteRecords
from sabal.core.checks import check_number, check_whole
from sabal.core.files import make_folder, write_text_whole

PAGE = "suite.md"
SCRATCH = ".sabal-bench-"


def run_suite(
    *,
    parts: Sequence[str] | None = None,
    limit: float = LIMIT,
    scale: str | SuiteScale = "full",
    out: str | Path = "bench",
    seed: int = 0,
) -> SuiteRecords:
    """Measure everything, or some `parts` of it.

    Parameters
    ----------
    parts : sequence of str, optional
        Names out of `PARTS`; all by default.
    limit : float
        Seconds for one selection; a method that takes longer is killed, and not tried at larger
        sizes.
    scale : str or SuiteScale
        "full", or "small" for sizes that finish within about a minute.
    out : path
        A folder for suite.json (after every measurement), suite.md and plots (at the end). It also
        holds synthetic inputs while they are needed. An interrupted run with the same settings is
        resumed; any other is replaced.
    seed : int
        Seed of the inputs and the selections.

    Returns
    -------
    SuiteRecords
        The measurements.
    """
    sizes = scale_of(scale)
    chosen = chosen_parts(parts)
    settings = {
        "parts": chosen,
        "limit": check_number(limit, "limit", above=0.0),
        "seed": check_whole(seed, "seed", minimum=0),
    }
    folder = Path(out)
    make_folder(folder)
    for left in folder.glob(f"{SCRATCH}*"):
        # Left behind by a run that was killed.
        shutil.rmtree(left, ignore_errors=True)
    check_room(folder, sizes.temporary_bytes(chosen))
    records = SuiteRecords.begin(sizes, folder, settings)
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder) as scratch:
        _measure(tasks_of(chosen, sizes), records, Path(scratch))
    pictures = draw_pictures(records.rows, sizes, folder)
    text = page(records.rows, sizes, records.machine, pictures, records.settings["limit"])
    write_text_whole(folder / PAGE, text)
    records.finish()
    return records


def _measure(tasks: Sequence[PlannedMeasurement], records: SuiteRecords, scratch: Path) -> None:
    """Make every measurement that is not done yet."""
    limit, seed = records.settings["limit"], records.settings["seed"]
    inputs = _Inputs(records.scale, scratch, seed)
    with progress() as bar:
        shown = bar.add_task("", total=len(tasks))
        for task in tasks:
            bar.update(shown, description=str(task))
            found = MeasurementIndex(records.rows)
            if found.get(*task.key) is None:
                outcome = known_outcome(task, found)
                if outcome is None:
                    outcome = _outcome(task, inputs.hold(task), limit, seed)
                records.add(SuiteMeasurement.of(task.part, task.method, task.shape, outcome))
            bar.advance(shown)


class _Inputs:
    """The inputs of the measurements, written on first use and deleted with their part."""

    def __init__(self, scale: SuiteScale, scratch: Path, seed: int) -> None:
        self._arrays = ArrayFile(scratch, seed)
        files = {"disk": scale.disk, "cluster": scale.cluster}
        self._folders = {
            part: ParquetFolder(scratch / part, each, seed, scale.workers)
            for part, each in files.items()
        }

    def hold(self, task: PlannedMeasurement) -> Path:
        """Return the inputs for a planned measurement."""
        for part, folder in self._folders.items():
            if part != task.part:
                folder.remove()
        wanted = self._folders.get(task.part)
        if wanted is None:
            return self._arrays.hold(task.shape)
        self._arrays.remove()
        return wanted.hold(task.shape)


def _outcome(task: PlannedMeasurement, inputs: Path, limit: float, seed: int) -> JobOutcome:
    job = Job(
        python=Path(sys.executable),
        script=SCRIPTS[task.part],
        method=task.method,
        inputs=inputs,
        items=task.shape.n,
        budget=task.shape.b,
        seed=seed,
        # The running Sabal is the one that is measured.
        python_path=import_path(),
    )
    # Ray reserves more address space than it uses.
    return run_job(job, limit=limit, memory=None if task.part == "cluster" else MEMORY)
