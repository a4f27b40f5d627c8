"""A section of a table: our figures of one data set and the paper's, from the file of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from research.reproduce.paper_tables import PaperTable
from research.reproduce.preset import MeanAndStd, Preset, title_of
from research.reproduce.result_files import (
    Results,
    TableRunRecord,
    digest_of,
    read_results,
    runs_file,
)
from research.reproduce.scaling import SIZES, PresetChange, differences, notes_of
from sabal.simulate.curves import area


@dataclass(frozen=True, kw_only=True)
class StrategyComparison:
    """Our figure of one row and the paper's.

    Attributes
    ----------
    strategy, title : str
        Short name of the row, and what it is.
    seeds : int
        Number of runs.
    ours, paper : MeanAndStd
        Our figure, and the printed one; None if the paper prints none.
    minus_random : MeanAndStd or None
        For areas, the difference to random with the same seed; None for want of random runs.
    final_accuracy : float or None
        For areas, the mean test accuracy after the last round.
    selection : MeanAndStd or None
        For times, the selection alone, with all outputs of the model available.
    options : str
        The options of the strategy with all defaults, as JSON.
    """

    strategy: str
    title: str
    seeds: int
    ours: MeanAndStd
    paper: MeanAndStd | None
    minus_random: MeanAndStd | None = None
    final_accuracy: float | None = None
    selection: MeanAndStd | None = None
    options: str = "{}"

    @property
    def difference(self) -> float | None:
        """Our mean minus the paper's."""
        return None if self.paper is None else self.ours.mean - self.paper.mean


@dataclass(frozen=True, kw_only=True)
class TableSection:
    """The results of one data set at one scale.

    Attributes
    ----------
    dataset, title, model, scale, source : str
        The experiment, and where the paper prints its figures.
    rows : list of StrategyComparison
        The rows that have runs.
    missing : list of str
        The rows without runs, or with fewer seeds than the preset.
    records : list of TableRunRecord
        The runs.
    changes : list of PresetChange
        What differs from the paper.
    notes : list of str
        What the paper leaves open and how it was decided.
    seconds : float
        Time of training and selection over all runs.
    """

    dataset: str
    title: str
    model: str
    scale: str
    source: str
    rows: list[StrategyComparison]
    missing: list[str]
    records: list[TableRunRecord]
    changes: list[PresetChange]
    notes: list[str]
    seconds: float

    def row(self, strategy: str) -> StrategyComparison | None:
        """Return the row called `strategy`."""
        return next((row for row in self.rows if row.strategy == strategy), None)

    def document(self) -> dict[str, Any]:
        """Return the section in types that JSON has, without the runs."""
        rows = [{**asdict(row), "difference": row.difference} for row in self.rows]
        fields = {name: value for name, value in vars(self).items() if name != "records"}
        return {**fields, "rows": rows, "changes": [asdict(change) for change in self.changes]}


def sections_of(
    table: PaperTable, paper: Preset, out: Path, presets: Mapping[str, Preset]
) -> list[TableSection]:
    """Return the sections of a data set: one for each scale that has runs.

    Parameters
    ----------
    table : PaperTable
        The table.
    paper : Preset
        The preset at the scale of the paper.
    out : Path
        The folder of the results.
    presets : mapping of str to Preset
        The presets whose runs are looked for, by scale.
    """
    results = read_results(runs_file(out, table.name, paper.dataset))
    found: list[TableSection] = []
    seen: set[str] = set()
    for scale, preset in presets.items():
        digests = {row: digest_of(preset, row, timed=table.timed) for row in preset.strategies}
        if not seen & set(digests.values()) and any(each in results for each in digests.values()):
            found.append(_section(table, paper, preset, scale, results, digests))
        seen |= set(digests.values())
    return found


def _section(
    table: PaperTable,
    paper: Preset,
    preset: Preset,
    scale: str,
    results: Results,
    digests: Mapping[str, str],
) -> TableSection:
    runs = {row: results[digest] for row, digest in digests.items() if digest in results}
    rows = [_row(table, preset, row, runs) for row in runs]
    records = [record for each in runs.values() for record in each.values()]
    changes = [change for change in differences(paper, preset) if change.field != "seeds"]
    seeds = max(len(each) for each in runs.values())
    if seeds != paper.seeds:
        changes.append(PresetChange("seeds", paper.seeds, seeds))
    return TableSection(
        dataset=preset.dataset,
        title=preset.title,
        model=preset.model,
        scale=scale,
        source=preset.source,
        rows=rows,
        missing=[row for row in digests if len(runs.get(row, {})) < preset.seeds],
        records=records,
        changes=changes,
        notes=[*notes_of(paper, preset), *_copy_notes(preset, records[0])],
        seconds=sum(r.train_seconds + r.seconds + r.selection_seconds for r in records),
    )


def _copy_notes(preset: Preset, record: TableRunRecord) -> list[str]:
    """Say so if the copy of the data set at hand is cut."""
    published = SIZES[preset.dataset]
    if (record.train_items, record.test_items) == published:
        return []
    return [
        f"this copy has {record.train_items:,} training and {record.test_items:,} test items, the "
        f"published data set {published[0]:,} and {published[1]:,}"
    ]


def _row(
    table: PaperTable, preset: Preset, row: str, runs: Mapping[str, Mapping[int, TableRunRecord]]
) -> StrategyComparison:
    own = runs[row]
    records = list(own.values())
    about: dict[str, Any] = {
        "strategy": row,
        "title": title_of(row),
        "seeds": len(records),
        "paper": preset.paper.get(row),
        "options": records[0].options,
    }
    if table.timed:
        return StrategyComparison(
            **about,
            ours=_mean_and_std([record.seconds for record in records]),
            selection=_mean_and_std([record.selection_seconds for record in records]),
        )
    areas = {seed: area_of(record) for seed, record in own.items()}
    chance = {seed: area_of(record) for seed, record in runs.get("random", {}).items()}
    paired = [areas[seed] - chance[seed] for seed in areas if seed in chance]
    return StrategyComparison(
        **about,
        ours=_mean_and_std(list(areas.values())),
        minus_random=_mean_and_std(paired) if paired and row != "random" else None,
        final_accuracy=float(np.mean([record.points()[-1].accuracy for record in records])),
    )


def area_of(record: TableRunRecord) -> float:
    """Return the area under the learning curve of a run, in percent."""
    points = record.points()
    return area([point.labels for point in points], [point.accuracy for point in points])


def _mean_and_std(values: Sequence[float]) -> MeanAndStd:
    std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return MeanAndStd(float(np.mean(values)), std)
