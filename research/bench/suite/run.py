"""The suite that guards the speed and the memory of a selection: everything in one run.

One measurement after another, each in a fresh process (see `research.bench.job` for what is measured
and how). Whatever is compared comes from the same run, on the same machine.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from research.bench.process import Job, Outcome, import_path, run_job
from research.bench.progress import progress
from research.bench.strategies import LIMIT, MEMORY
from research.bench.suite.measurement import Found, Measurement
from research.bench.suite.pictures import draw_pictures
from research.bench.suite.plan import SCRIPTS, Task, chosen_parts, foregone, superfluous, tasks_of
from research.bench.suite.pools import Arrays, ParquetFolder, check_room
from research.bench.suite.records import Records
from research.bench.suite.report import page
from research.bench.suite.scales import Scale, scale_of
from sabal.core.checks import check_number, check_whole
from sabal.core.files import make_folder, write_text_whole

PAGE = "suite.md"
SCRATCH = ".sabal-bench-"


def run_suite(
    *,
    parts: Sequence[str] | None = None,
    limit: float = LIMIT,
    scale: str | Scale = "full",
    out: str | Path = "bench",
    seed: int = 0,
) -> Records:
    """Measure everything, or some `parts` of it.

    parts: names out of shapes, growth, passes, disk, cluster; None for all.
    limit: seconds for one selection; one that takes longer is killed, and not tried at larger
        sizes.
    scale: "full", or "small" for sizes that end within about a minute.
    out: a folder for suite.json (after every measurement), suite.md and pictures (at the end).
        Made-up inputs are in there too as long as they are needed. A run with the same settings
        that was interrupted there is continued; any other is replaced.
    """
    sizes = scale_of(scale)
    chosen = chosen_parts(parts)
    settings = {
        "parts": chosen,
        "limit": check_number(limit, "limit", above=0.0),
        "seed": check_whole(seed, "seed", least=0),
    }
    folder = Path(out)
    make_folder(folder)
    for left in folder.glob(f"{SCRATCH}*"):
        # Of a run that was killed, and could not clear up.
        shutil.rmtree(left, ignore_errors=True)
    check_room(folder, sizes.temporary_bytes(chosen))
    records = Records.begin(sizes, folder, settings)
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder) as scratch:
        _measure(tasks_of(chosen, sizes), records, Path(scratch))
    pictures = draw_pictures(records.rows, sizes, folder)
    text = page(records.rows, sizes, records.machine, pictures, records.settings["limit"])
    write_text_whole(folder / PAGE, text)
    records.finish()
    return records


def _measure(tasks: Sequence[Task], records: Records, scratch: Path) -> None:
    """Every task that is not done yet."""
    limit, seed = records.settings["limit"], records.settings["seed"]
    inputs = _Inputs(records.scale, scratch, seed)
    with progress() as bar:
        shown = bar.add_task("", total=len(tasks))
        for task in tasks:
            bar.update(shown, description=str(task))
            found = Found(records.rows)
            if found.get(*task.key) is None and not superfluous(task, found):
                outcome = foregone(task, found)
                if outcome is None:
                    outcome = _outcome(task, inputs.hold(task), limit, seed)
                records.add(Measurement.of(task.part, task.method, task.shape, outcome))
            bar.advance(shown)


class _Inputs:
    """What tasks read: made when it is first needed, gone when the next part has its turn."""

    def __init__(self, scale: Scale, scratch: Path, seed: int) -> None:
        self._arrays = Arrays(scratch, seed)
        files = {"disk": scale.disk, "cluster": scale.cluster}
        self._folders = {
            part: ParquetFolder(scratch / part, each, seed, scale.workers)
            for part, each in files.items()
        }

    def hold(self, task: Task) -> Path:
        """The inputs for `task`."""
        for part, folder in self._folders.items():
            if part != task.part:
                folder.remove()
        wanted = self._folders.get(task.part)
        if wanted is None:
            return self._arrays.hold(task.shape)
        self._arrays.remove()
        return wanted.hold(task.shape)


def _outcome(task: Task, inputs: Path, limit: float, seed: int) -> Outcome:
    job = Job(
        python=Path(sys.executable),
        script=SCRIPTS[task.part],
        method=task.method,
        inputs=inputs,
        items=task.shape.n,
        budget=task.shape.b,
        seed=seed,
        # The Sabal that runs here is the one that is measured.
        python_path=import_path(),
    )
    # Ray reserves more addresses than it ever uses.
    return run_job(job, limit=limit, memory=None if task.part == "cluster" else MEMORY)
