"""The paper's experiments as data, by table: what was run, how, and what came of it.

Shen, Jiang, Zhang, Koyejo: "Batch Active Learning from the Perspective of Sparse Approximation",
2022: Tables 1 to 3 and the ablation, with the settings of its section on experiments and of its
appendix. The notes of a preset say what the paper leaves open and what was decided here.
"""

from __future__ import annotations

from dataclasses import dataclass

from research.reproduce.bayesian import ABLATION, TABLE1
from research.reproduce.general import TABLE2, TABLE3
from research.reproduce.preset import Figure, Preset
from sabal.errors import UnknownNameError

__all__ = ["SCALES", "TABLES", "Figure", "Preset", "Table", "presets_of", "table_of"]

SCALES = ("paper", "laptop")


@dataclass(frozen=True)
class Table:
    """A table of the paper.

    figure: what its figures are.
    timed: whether these are seconds of the first query rather than areas under learning curves.
    """

    name: str
    title: str
    figure: str
    presets: tuple[Preset, ...]
    timed: bool = False


TABLES = {
    table.name: table
    for table in (
        Table("table1", "Bayesian active learning (Table 1)", "AUC, %", TABLE1),
        Table("table2", "General active learning (Table 2)", "AUC, %", TABLE2),
        Table("table3", "Time of the first query (Table 3)", "seconds", TABLE3, timed=True),
        Table("ablation", "Variance, bias or both (the ablation)", "AUC, %", ABLATION),
    )
}


def table_of(name: str) -> Table:
    """The table called `name`."""
    if name not in TABLES:
        raise UnknownNameError(
            f"a table out of {', '.join(TABLES)}", repr(name), "pick one of these"
        )
    return TABLES[name]


def presets_of(table: Table, dataset: str | None) -> tuple[Preset, ...]:
    """The presets of a table: all of them, or that of one data set."""
    if dataset is None:
        return table.presets
    found = tuple(preset for preset in table.presets if preset.dataset == dataset)
    if not found:
        known = ", ".join(preset.dataset for preset in table.presets)
        raise UnknownNameError(
            f"a data set of {table.name} out of {known}", repr(dataset), "pick one of these"
        )
    return found
