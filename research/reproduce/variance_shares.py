"""The share of the variance term in the objective at the printed alpha, for every preset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from research import PROGRAM
from research.reproduce.first_query import first_outputs
from research.reproduce.paper_tables import TABLES, presets_of
from research.reproduce.preset import FREE_ROWS, READING_ROWS, Preset, scale_free, title_of
from research.reproduce.preset_data import data_of
from research.reproduce.result_files import digest_of, experiment_of
from research.reproduce.scaling import SIZES, scaled
from research.reproduce.table_runs import first_round
from research.study.csv_lines import append_line, read_lines
from sabal.api import choose
from sabal.core.files import write_text_whole
from sabal.sparse.problem import Problem
from sabal.strategies import make_strategy

SHARES_FILE = "variance-shares.csv"
SHARES_PAGE = "variance-shares.md"
ROWS = (*READING_ROWS, *FREE_ROWS)
"""What is measured: both readings at the printed alpha, and the same in scale-free units."""

RANDOM_BATCHES = 5


@dataclass(frozen=True, kw_only=True)
class VarianceShare:
    """The terms of the objective at the first query.

    Attributes
    ----------
    table, dataset, row : str
        The preset, and the row with the alpha.
    digest : str
        The digest of the row at the laptop scale.
    alpha : float
        The weight of the variance term.
    items, budget : int
        Number of items to choose from, and of items in a batch.
    random_bias, random_variance : float
        The terms of a random batch with weights of 1, the mean of several.
    chosen_bias, chosen_variance : float
        The terms of the batch that the row chooses, with its weights.
    unchanged : int
        Number of items of that batch that the row also chooses with alpha = 0.
    """

    table: str
    dataset: str
    row: str
    digest: str
    alpha: float
    items: int
    budget: int
    random_bias: float
    random_variance: float
    chosen_bias: float
    chosen_variance: float
    unchanged: int

    @property
    def random_share(self) -> float:
        """Variance / (bias + variance) of a random batch."""
        return _share(self.random_bias, self.random_variance)

    @property
    def chosen_share(self) -> float:
        """Variance / (bias + variance) of the chosen batch."""
        return _share(self.chosen_bias, self.chosen_variance)

    def share_at(self, items: int, budget: int) -> float:
        """Return the share of a random batch in literal units for another pool and batch.

        The variance goes with budget / items^2, the bias of a random batch with 1 / budget.
        """
        variance = self.random_variance * budget / self.budget * (self.items / items) ** 2
        return _share(self.random_bias * self.budget / budget, variance)


def _share(bias: float, variance: float) -> float:
    return variance / (bias + variance)


def measured_presets() -> Iterator[tuple[str, Preset]]:
    """Yield the presets with printed values of alpha: those of Tables 1 and 2."""
    for table in ("table1", "table2"):
        for preset in TABLES[table].presets:
            yield table, preset


def measure_shares(
    out: Path,
    work: Path,
    data_dir: str | None,
    say: Callable[[str], None] = lambda line: None,
    presets: Sequence[tuple[str, Preset]] | None = None,
) -> list[VarianceShare]:
    """Measure what OUT/variance-shares.csv lacks; return all shares."""
    for table, paper in measured_presets() if presets is None else presets:
        preset = scaled(paper, "laptop")
        preset = replace(preset, options={**preset.options, **scale_free()})
        found, _ = read_lines(out / SHARES_FILE, VarianceShare)
        missing = [row for row in ROWS if digest_of(preset, row) not in {f.digest for f in found}]
        if missing:
            say(f"{table}, {preset.dataset}: the first model at the laptop scale")
            for share in _shares(table, preset, missing, work, data_dir):
                append_line(share, out / SHARES_FILE)
    return read_lines(out / SHARES_FILE, VarianceShare)[0]


def _shares(
    table: str, preset: Preset, rows: Sequence[str], work: Path, data_dir: str | None
) -> Iterator[VarianceShare]:
    dataset, experiment = data_of(preset, data_dir), experiment_of(preset)
    outputs = first_outputs(experiment, dataset, first_round(preset, dataset, work, 0), 0)
    for row in rows:
        name, options = experiment.strategy_of(row)
        strategy: Any = make_strategy(name, options)
        chosen, without = (
            choose(outputs, preset.batch, name, 0, each)
            for each in (options, {**options, "alpha": 0.0})
        )
        problem = strategy.spec(chosen.evidence["atoms"]).problem(
            outputs, preset.batch, np.random.default_rng(0)
        )
        yield VarianceShare(
            table=table,
            dataset=preset.dataset,
            row=row,
            digest=digest_of(preset, row),
            alpha=strategy.alpha,
            items=problem.size,
            budget=preset.batch,
            chosen_bias=chosen.evidence["bias"],
            chosen_variance=chosen.evidence["variance"],
            unchanged=len(set(chosen.indices.tolist()) & set(without.indices.tolist())),
            **_random_terms(problem),
        )


def _random_terms(problem: Problem) -> dict[str, float]:
    rng = np.random.default_rng(0)
    drawn = [
        problem.figures(
            rng.choice(problem.size, problem.budget, replace=False), np.ones(problem.budget)
        )
        for _ in range(RANDOM_BATCHES)
    ]
    terms = ("bias", "variance")
    return {f"random_{term}": float(np.mean([each[term] for each in drawn])) for term in terms}


def shares_table(shares: Sequence[VarianceShare]) -> list[str]:
    """Return the shares as lines of Markdown."""
    columns = (
        *("data set", "row", "alpha", "random batch", "paper's n and b", "chosen batch"),
        "chosen with alpha = 0 too",
    )
    lines = [f"| {' | '.join(columns)} |", f"|---|---|{'--:|' * (len(columns) - 2)}"]
    for share in shares:
        (paper,) = presets_of(TABLES[share.table], share.dataset)
        items = SIZES[paper.dataset][0] - paper.validation - paper.initial
        at_paper = f"{share.share_at(items, paper.batch):.1g}"
        cells = (
            f"{paper.title}, {paper.model}",
            title_of(share.row),
            f"{share.alpha:g}",
            f"{share.random_share:.1g}",
            "" if share.row in FREE_ROWS else at_paper,
            f"{share.chosen_share:.1g}",
            f"{share.unchanged} of {share.budget}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def unchanged_text(shares: Sequence[VarianceShare]) -> str:
    """Say how much of the batches of each solver does not depend on alpha."""
    greedy = _unchanged(shares, ("greedy-as-printed", "greedy-corrected"))
    exact, appendix = (_unchanged(shares, (f"iht-{each}",)) for each in ("corrected", "as-printed"))
    return (
        f"with alpha = 0 in place of the printed alpha, greedy chooses {greedy} of the same items "
        f"by either score, IHT {exact} with the exact rule and {appendix} with that of the appendix"
    )


def _unchanged(shares: Sequence[VarianceShare], rows: Sequence[str]) -> str:
    parts = [share.unchanged / share.budget for share in shares if share.row in rows]
    return f"{100 * min(parts):.0f} to {100 * max(parts):.0f} %"


def write_shares(shares: Sequence[VarianceShare], out: Path) -> Path:
    """Write OUT/variance-shares.md."""
    lines = [
        "# What alpha weighs",
        "",
        "The share of the variance term in the objective at the first query, variance / (bias + "
        "variance): for a random batch with weights of 1, and for the batch that is chosen. The "
        "last column is how many items of that batch are also chosen with alpha = 0. The model is "
        "the first one of each preset at the laptop scale, seed 0.",
        "",
        *shares_table(shares),
        "",
        f"In short: {unchanged_text(shares)}; in scale-free units greedy and IHT choose "
        f"{_unchanged(shares, FREE_ROWS)}.",
        "",
        "In the paper's units sigma_j carries 1/n and is squared, so that the variance term goes "
        "with b / n^2, while the bias of a random batch goes with 1 / b. The column `paper's n and "
        "b` extrapolates the share of a random batch in this way to the pool and batch of the "
        "paper.",
        "",
        f"    {PROGRAM} shares",
        "",
    ]
    return write_text_whole(out / SHARES_PAGE, "\n".join(lines))
