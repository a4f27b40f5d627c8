"""The paper's experiments by table: settings and printed results.

Shen, Jiang, Zhang, Koyejo: "Batch Active Learning from the Perspective of Sparse Approximation",
2022: Tables 1 to 3 and the ablation, with the settings of its section on experiments and of its
appendix. The notes of a preset say what the paper leaves open and how it was decided.
"""

from __future__ import annotations

from dataclasses import dataclass

from research.reproduce.bayesian_presets import ABLATION, TABLE1
from research.reproduce.general_presets import CUT, TABLE2, TABLE3
from research.reproduce.preset import Preset
from sabal.errors import UnknownNameError

SCALES = ("paper", "laptop")


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper.

    Parameters
    ----------
    name, title : str
        Name on the command line, and title on the page.
    figure : str
        Name and unit of its figures.
    presets : tuple of Preset
        The data sets.
    timed : bool
        Whether the figures are seconds of the first query rather than areas under learning curves.
    """

    name: str
    title: str
    figure: str
    presets: tuple[Preset, ...]
    timed: bool = False


TABLES = {
    table.name: table
    for table in (
        PaperTable("table1", "Bayesian active learning (Table 1)", "AUC, %", TABLE1),
        PaperTable("table2", "General active learning (Table 2)", "AUC, %", TABLE2),
        PaperTable("table3", "Time of the first query (Table 3)", "seconds", TABLE3, timed=True),
        PaperTable("ablation", "Variance, bias or both (the ablation)", "AUC, %", ABLATION),
        PaperTable("cut", "What the laptop scale keeps", "AUC, %", CUT),
    )
}


def table_of(name: str) -> PaperTable:
    """Return the table called `name`."""
    if name not in TABLES:
        raise UnknownNameError(
            f"a table out of {', '.join(TABLES)}", repr(name), "pick one of these"
        )
    return TABLES[name]


def presets_of(table: PaperTable, dataset: str | None) -> tuple[Preset, ...]:
    """Return the presets of a table: all of them, or that of one data set."""
    if dataset is None:
        return table.presets
    found = tuple(preset for preset in table.presets if preset.dataset == dataset)
    if not found:
        known = ", ".join(preset.dataset for preset in table.presets)
        raise UnknownNameError(
            f"a data set of {table.name} out of {known}", repr(dataset), "pick one of these"
        )
    return found
