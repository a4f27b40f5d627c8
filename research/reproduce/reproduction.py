"""Run the paper's tables and compare our figures with the printed ones.

OUT/TABLE/DATASET/ holds the runs of a data set, in the layout of `sabal simulate`, and its section
of the table; OUT/TABLE.md and OUT/TABLE.json hold all finished sections.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from research import PROGRAM
from research.reproduce.comparison_tables import (
    StrategyComparison,
    TableSection,
    plan_lines,
    write_table,
)
from research.reproduce.first_query import time_first_query
from research.reproduce.paper_tables import SCALES, PaperTable, presets_of, table_of
from research.reproduce.preset import MeanAndStd, Preset
from research.reproduce.scaling import (
    changed,
    differences,
    experiment_of,
    fitted,
    notes_of,
    scaled,
)
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
"""Opens a progress display for an experiment, given the number of rounds already done."""


@dataclass(frozen=True, kw_only=True)
class ReproductionRequest:
    """What to reproduce, and where to write it.

    Parameters
    ----------
    table, scale : str
        Name of the table and of the scale.
    dataset : str or None
        A data set of the table; None for all of them.
    seeds : int or None
        Number of seeds; None for that of the scale.
    jobs : int
        Number of runs in parallel.
    data_dir : Path or None
        The folder with the NAME.npz files of the data sets.
    out : Path
        The folder for the results.
    resume : bool
        Whether to continue with the contents of that folder.
    changes : mapping
        Further changes to the presets by field; they are reported like those of the scale.
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
        """Return the command line of this request."""
        words = [*PROGRAM.split(), "reproduce", self.table, "--scale", self.scale]
        given = {"--dataset": self.dataset, "--seeds": self.seeds, "--data-dir": self.data_dir}
        for name, value in given.items():
            words += [] if value is None else [name, str(value)]
        words += ["--jobs", str(self.jobs)] if self.jobs > 1 else []
        return shlex.join([*words, "--out", str(self.out), *["--resume"] * self.resume])

    def preset(self, paper: Preset) -> Preset:
        """Return the preset at the requested scale and with the requested changes."""
        seeds = {} if self.seeds is None else {"seeds": self.seeds}
        return changed(scaled(paper, self.scale), {**seeds, **self.changes})


@contextmanager
def unwatched(experiment: Experiment, already_done: int) -> Iterator[Callable[[Point], None]]:
    """Show no progress."""
    yield lambda point: None


def reproduce(
    request: ReproductionRequest,
    *,
    watch: Watch = unwatched,
    say: Callable[[str], None] = lambda line: None,
) -> list[TableSection]:
    """Run a request, data set after data set.

    Parameters
    ----------
    request : ReproductionRequest
        What to run.
    watch : callable
        Opens a progress display.
    say : callable
        Called with lines that announce what is run, and what is changed from the paper.

    Returns
    -------
    list of TableSection
        Every finished section of the table.
    """
    table = table_of(request.table)
    papers = presets_of(table, request.dataset)
    for paper in papers:
        _check_folder(_folder(request, paper), request.resume)
    for paper in papers:
        _reproduce_one(table, paper, request, watch, say)
        write_table(table, request.out)
    return write_table(table, request.out)


def _folder(request: ReproductionRequest, preset: Preset) -> Path:
    return request.out / request.table / preset.dataset


def _check_folder(folder: Path, resume: bool) -> None:
    """Refuse a folder that is not empty unless resuming, so that nothing is overwritten."""
    if folder.exists() and not folder.is_dir():
        raise FileError(f"a folder at {folder}", "a file", "choose another --out")
    if not resume and folder.is_dir() and any(folder.iterdir()):
        raise FileError(
            f"{folder} to be empty or absent",
            "the runs of an earlier start",
            "pass --resume to go on with them, or choose another --out",
        )


def _reproduce_one(
    table: PaperTable,
    paper: Preset,
    request: ReproductionRequest,
    watch: Watch,
    say: Callable[[str], None],
) -> None:
    started = time.perf_counter()
    data_dir = None if request.data_dir is None else str(request.data_dir)
    # Before the folder is created: without the data there is nothing to resume.
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
    TableSection(
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


def area_rows(points: list[Point], preset: Preset) -> list[StrategyComparison]:
    """Return a row for each strategy, in the order of the preset."""
    summaries = {summary.strategy: summary for summary in summarise(points)}
    return [
        StrategyComparison(
            strategy=name,
            seeds=summaries[name].seeds,
            ours=MeanAndStd(summaries[name].auc, summaries[name].std),
            paper=preset.paper.get(name),
            final_accuracy=summaries[name].final_accuracy,
        )
        for name in preset.strategies
    ]


def _work_seconds(experiment: Experiment, points: list[Point], folder: Path) -> float:
    """Return the time of training and selection, from the journals of all runs."""
    trained = 0.0
    for label in experiment.strategies:
        for seed in range(experiment.seeds):
            journal = Journal(run_folder(folder, label, seed))
            done = (journal.done(number) for number in range(experiment.rounds + 1))
            trained += sum(float(each["train_seconds"]) for each in done if each is not None)
    return trained + sum(point.select_seconds for point in points)
