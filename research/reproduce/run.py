"""`python -m research reproduce`: the paper's tables, run and printed beside the printed ones.

OUT/TABLE/DATASET/ holds the runs of a data set, as `sabal simulate` leaves them, and its section of
the table; OUT/TABLE.md and OUT/TABLE.json hold all sections that are finished.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from research.reproduce.presets import SCALES, Figure, Preset, Table, presets_of, table_of
from research.reproduce.scale import (
    changed,
    differences,
    experiment_of,
    fitted,
    notes_of,
    scaled,
)
from research.reproduce.tables import Row, Section, plan_lines, write_table
from research.reproduce.times import time_first_query
from sabal.core.checks import check_choice, check_whole
from sabal.core.files import make_folder
from sabal.errors import FileError, InputError
from sabal.loop.journal import Journal
from sabal.simulate.curves import Point, summarise
from sabal.simulate.datasets.catalog import load
from sabal.simulate.experiment import Experiment
from sabal.simulate.runner import rounds_done, run_folder
from sabal.simulate.simulation import simulate

Watch = Callable[[Experiment, int], AbstractContextManager[Callable[[Point], None]]]
"""Opens a progress display for an experiment of which so many rounds are done already."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to reproduce, and where to put it.

    dataset: one of the table's; None for all of them.
    seeds: how many; None for as many as the scale has.
    changes: further changes to the presets, by field; they are reported like those of the scale.
    """

    table: str
    scale: str = "paper"
    dataset: str | None = None
    seeds: int | None = None
    jobs: int = 1
    data_dir: Path | None = None
    out: Path = Path("reproduced")
    resume: bool = False
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        table = table_of(self.table)
        presets_of(table, self.dataset)
        check_choice(self.scale, "scale", SCALES)
        if self.seeds is not None:
            check_whole(self.seeds, "seeds")
        if check_whole(self.jobs, "jobs") > 1 and table.timed:
            raise InputError(
                f"one job for {table.name}: selections side by side would slow each other down",
                f"--jobs {self.jobs}",
                "leave --jobs out",
            )

    def command(self) -> str:
        """What to type for this request."""
        words = ["sabal", "reproduce", self.table, "--scale", self.scale]
        given = {"--dataset": self.dataset, "--seeds": self.seeds, "--data-dir": self.data_dir}
        for name, value in given.items():
            words += [] if value is None else [name, str(value)]
        words += ["--jobs", str(self.jobs)] if self.jobs > 1 else []
        return shlex.join([*words, "--out", str(self.out), *["--resume"] * self.resume])

    def preset(self, paper: Preset) -> Preset:
        """The preset at the scale and with the changes asked for."""
        seeds = {} if self.seeds is None else {"seeds": self.seeds}
        return changed(scaled(paper, self.scale), {**seeds, **self.changes})


@contextmanager
def unwatched(experiment: Experiment, already_done: int) -> Iterator[Callable[[Point], None]]:
    """No display."""
    yield lambda point: None


def reproduce(
    request: Request, *, watch: Watch = unwatched, say: Callable[[str], None] = lambda line: None
) -> list[Section]:
    """Run what is asked for, data set after data set; every finished section of the table.

    say: told, line by line, what is about to be run and what is changed in it.
    """
    table = table_of(request.table)
    papers = presets_of(table, request.dataset)
    for paper in papers:
        _check_folder(_folder(request, paper), request.resume)
    for paper in papers:
        _reproduce_one(table, paper, request, watch, say)
        write_table(table, request.out)
    return write_table(table, request.out)


def _folder(request: Request, preset: Preset) -> Path:
    return request.out / request.table / preset.dataset


def _check_folder(folder: Path, resume: bool) -> None:
    """Nothing is overwritten by accident: to go on in a folder is asked for."""
    if folder.exists() and not folder.is_dir():
        raise FileError(f"a folder at {folder}", "a file", "choose another --out")
    if not resume and folder.is_dir() and any(folder.iterdir()):
        raise FileError(
            f"{folder} to be empty or absent",
            "the runs of an earlier start",
            "pass --resume to go on with them, or choose another --out",
        )


def _reproduce_one(
    table: Table, paper: Preset, request: Request, watch: Watch, say: Callable[[str], None]
) -> None:
    started = time.perf_counter()
    data_dir = None if request.data_dir is None else str(request.data_dir)
    # Before the folder is made: without the data there is nothing to resume.
    here = fitted(request.preset(paper), load(paper.dataset, data_dir=data_dir))
    experiment = experiment_of(here, data_dir)
    folder = _folder(request, paper)
    make_folder(folder)
    changes = differences(paper, here)
    for line in plan_lines(table, here, request.scale, changes):
        say(line)
    if table.timed:
        rows, work = time_first_query(experiment, here.paper, folder, say)
    else:
        with watch(experiment, rounds_done(experiment, folder)) as on_round:
            points = simulate(experiment, folder, jobs=request.jobs, on_round=on_round)
        rows, work = area_rows(points, here), _work_seconds(experiment, points, folder)
    Section(
        dataset=here.dataset,
        title=here.title,
        model=here.model,
        scale=request.scale,
        source=here.source,
        rows=rows,
        changes=changes,
        notes=list(notes_of(paper, here)),
        command=request.command(),
        wall_seconds=time.perf_counter() - started,
        work_seconds=work,
        picture=None if table.timed else f"{table.name}/{here.dataset}/curves.png",
    ).save(folder)


def area_rows(points: list[Point], preset: Preset) -> list[Row]:
    """A row for each strategy, in the order of the preset."""
    summaries = {summary.strategy: summary for summary in summarise(points)}
    return [
        Row(
            strategy=name,
            seeds=summaries[name].seeds,
            ours=Figure(summaries[name].auc, summaries[name].std),
            paper=preset.paper.get(name),
            final_accuracy=summaries[name].final_accuracy,
        )
        for name in preset.strategies
    ]


def _work_seconds(experiment: Experiment, points: list[Point], folder: Path) -> float:
    """What training and choosing took, by the journals of all runs."""
    trained = 0.0
    for label in experiment.strategies:
        for seed in range(experiment.seeds):
            journal = Journal(run_folder(folder, label, seed))
            done = (journal.done(number) for number in range(experiment.rounds + 1))
            trained += sum(float(each["train_seconds"]) for each in done if each is not None)
    return trained + sum(point.select_seconds for point in points)
