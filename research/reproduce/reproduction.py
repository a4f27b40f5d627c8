"""Run the paper's tables and compare our figures with the printed ones.

OUT/TABLE/DATASET/runs.csv holds the finished runs of a data set; OUT/TABLE.md and OUT/TABLE.json
are written from these files alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from research import PROGRAM
from research.reproduce.comparison_tables import plan_lines, write_table
from research.reproduce.paper_summary import write_summary
from research.reproduce.paper_tables import SCALES, TABLES, PaperTable, presets_of, table_of
from research.reproduce.preset import Preset
from research.reproduce.result_files import TableRunRecord, read_results, runs_file
from research.reproduce.scaling import changed, differences, scaled
from research.reproduce.table_runs import RunOutcome, TableRun, do_runs
from research.reproduce.table_sections import TableSection, sections_of
from research.study.csv_lines import append_line
from sabal.core.checks import check_choice, check_number, check_whole
from sabal.errors import FileError, InputError
from sabal.simulate.curves import Point
from sabal.simulate.datasets.catalog import load

Watch = Callable[[Sequence[TableRun]], AbstractContextManager[Callable[[Point], None]]]
"""Opens a progress display for runs."""


@dataclass(frozen=True, kw_only=True)
class ReproductionRequest:
    """What to reproduce, and where to write it.

    Parameters
    ----------
    table, scale : str
        Name of the table and of the scale.
    dataset : str or None
        A data set of the table; None for all of them.
    rows : tuple of str or None
        Rows to run; None for all of them.
    seeds : int or None
        Number of seeds; None for that of the scale.
    jobs : int
        Number of runs in parallel, with one thread each.
    minutes : float or None
        No run is started after this many minutes.
    data_dir : Path or None
        The folder with the NAME.npz files of the data sets.
    out : Path
        The folder for the results.
    work : Path
        The folder for runs in progress and shared first models.
    changes : mapping
        Further changes to the presets by field; they are reported like those of the scale.
    """

    table: str
    scale: str = "laptop"
    dataset: str | None = None
    rows: tuple[str, ...] | None = None
    seeds: int | None = None
    jobs: int = 1
    minutes: float | None = None
    data_dir: Path | None = None
    out: Path = Path("docs/results")
    work: Path = Path("runs/reproduce")
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        table = table_of(self.table)
        presets_of(table, self.dataset)
        check_choice(self.scale, "scale", SCALES)
        if self.seeds is not None:
            check_whole(self.seeds, "seeds")
        if self.minutes is not None:
            check_number(self.minutes, "minutes", above=0.0)
        if check_whole(self.jobs, "jobs") > 1 and table.timed:
            raise InputError(
                f"one job for {table.name}: selections side by side would slow each other down",
                f"--jobs {self.jobs}",
                "leave --jobs out",
            )
        for row in self.rows or ():
            known = dict.fromkeys(each for preset in table.presets for each in preset.strategies)
            check_choice(row, "rows", tuple(known))

    def preset(self, paper: Preset) -> Preset:
        """Return the preset at the requested scale and with the requested changes."""
        seeds = {} if self.seeds is None else {"seeds": self.seeds}
        return changed(scaled(paper, self.scale), {**seeds, **self.changes})


@contextmanager
def unwatched(runs: Sequence[TableRun]) -> Iterator[Callable[[Point], None]]:
    """Show no progress."""
    yield lambda point: None


def reproduce(
    request: ReproductionRequest,
    *,
    watch: Watch = unwatched,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[list[TableSection], RunOutcome]:
    """Do the runs of a request that are missing, and write the table.

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
        Every section of the table that has runs.
    RunOutcome
        The runs finished, failed and left.
    """
    table = table_of(request.table)
    papers = presets_of(table, request.dataset)
    data_dir = None if request.data_dir is None else str(request.data_dir)
    for paper in papers:
        # Before anything is written: without the data there is nothing to run.
        load(paper.dataset, data_dir=data_dir)
        for line in plan_lines(table, request.preset(paper), request.scale, paper):
            say(line)
    runs = planned(table, papers, request)
    todo = open_runs(runs, request.out)

    def keep(run: TableRun, record: TableRunRecord) -> None:
        append_line(record, runs_file(request.out, run.table, run.preset.dataset))
        say(f"finished {run.title}")

    with watch(todo) as on_round:
        outcome = do_runs(
            todo,
            request.work,
            keep,
            data_dir=data_dir,
            jobs=request.jobs,
            minutes=request.minutes,
            on_round=on_round,
        )
    return report(request), outcome


def report(request: ReproductionRequest) -> list[TableSection]:
    """Write the table from the files of results; return its sections."""
    table = table_of(request.table)
    sections = [
        section
        for preset in table.presets
        for section in sections_of(table, preset, request.out, _considered(preset, request))
    ]
    if not sections:
        raise FileError(
            f"finished runs in {request.out / table.name}",
            "none",
            f"run `{PROGRAM} reproduce {table.name}` first",
        )
    write_table(table, sections, request.out)
    write_summary(request.out)
    return sections


def _considered(paper: Preset, request: ReproductionRequest) -> dict[str, Preset]:
    """Return the presets that runs may belong to, by scale."""
    found = {scale: scaled(paper, scale) for scale in SCALES}
    if request.changes:
        found = {request.scale: request.preset(paper)}
    return found


def planned(
    table: PaperTable, papers: Sequence[Preset], request: ReproductionRequest
) -> list[TableRun]:
    """Return every run of a request, seed by seed, so that every part of them can be compared."""
    presets = [(paper, request.preset(paper)) for paper in papers]
    return [
        TableRun(
            table=table.name,
            scale=scale_of(paper, preset, request.scale),
            preset=preset,
            row=row,
            seed=seed,
            timed=table.timed,
        )
        for seed in range(max(preset.seeds for _, preset in presets))
        for paper, preset in presets
        for row in preset.strategies
        if seed < preset.seeds and (request.rows is None or row in request.rows)
    ]


def scale_of(paper: Preset, preset: Preset, scale: str) -> str:
    """Return the scale of a preset: that of the paper if nothing but seeds is changed."""
    same = all(change.field == "seeds" for change in differences(paper, preset))
    return "paper" if same else scale


def open_runs(runs: Sequence[TableRun], out: Path) -> list[TableRun]:
    """Return the runs that no file of results holds.

    A run that another table has is copied into the file of this one.
    """
    found = {(run.table, run.preset.dataset) for run in runs}
    results = {key: read_results(runs_file(out, *key)) for key in found}
    todo = []
    for run in runs:
        own = results[run.table, run.preset.dataset]
        if run.seed in own.get(run.digest, {}):
            continue
        record = _record_elsewhere(run, out)
        if record is None:
            todo.append(run)
        else:
            append_line(
                replace(record, strategy=run.row), runs_file(out, run.table, run.preset.dataset)
            )
    return todo


def _record_elsewhere(run: TableRun, out: Path) -> TableRunRecord | None:
    for other in TABLES:
        if other != run.table:
            results = read_results(runs_file(out, other, run.preset.dataset))
            record = results.get(run.digest, {}).get(run.seed)
            if record is not None:
                return record
    return None
