"""The page corrections.md, made from the records of the variants alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from research.corrections.variant_measurements import (
    ALGORITHMS,
    CORRECTIONS_FILE,
    RANDOM_BATCHES,
    ROUNDS,
    VariantRecord,
)
from research.study.analysis import Difference, difference
from research.study.configurations import CHANCE
from research.study.report_lines import as_table, difference_text
from sabal.core.files import write_text_whole

States = dict[tuple[str, int, int], VariantRecord]
"""The records of a variant by task, seed and number of labels."""

SAME = 1e-9
"""A change of f below this share of the gap between random and selected batches is rounding."""

HEADER = (
    "variant",
    "states",
    "asked",
    "short",
    "f lower",
    "higher",
    "fall",
    "above random",
    "rises",
    "accuracy",
)

OTHER_CORRECTIONS = (
    "The other corrections have no variant. That the bonus for uncertainty is a heuristic (5) "
    "changes no batch. What a pass costs (6) is measured in [suite.md](suite.md). The 1 / sqrt(K) "
    "of the posterior norm (7) makes alpha and beta independent of the number of samples: without "
    "it the representation term is K times as large by definition. Drawing the first batch from "
    "the unlabelled items (7) is the only way there is."
)


@dataclass(frozen=True, kw_only=True)
class VariantRow:
    """What a variant changes compared with the one before it.

    The first variant of an algorithm is compared with a random batch of b items, by accuracy alone.

    Attributes
    ----------
    variant : str
        Name of the variant.
    states : int
        Number of states compared.
    asked : float
        Labels requested, as a share of b, on average.
    short : int
        States with fewer than b labels requested.
    lower, higher : int or None
        States where f is below, or above, that of the variant before.
    fall : float or None
        Median decrease of f, as a share of the gap between random batches and the last variant.
        States in which the last variant is above random batches are left out.
    above_random : int
        States where f is above that of random batches.
    rises : float or None
        Iterations after which f was higher than before, on average; None for greedy.
    accuracy : Difference or None
        Difference in accuracy, in points, over tasks.
    """

    variant: str
    states: int
    asked: float
    short: int
    lower: int | None
    higher: int | None
    fall: float | None
    above_random: int
    rises: float | None
    accuracy: Difference | None


def variant_rows(records: Sequence[VariantRecord]) -> dict[int, list[VariantRow]]:
    """Return the rows of each algorithm."""
    by_variant: dict[tuple[int, str], States] = {}
    for record in records:
        states = by_variant.setdefault((record.algorithm, record.variant), {})
        states[record.task, record.seed, record.labels] = record
    found: dict[int, list[VariantRow]] = {}
    for variants, _ in ALGORITHMS:
        number = variants[0].algorithm
        last = by_variant.get((number, variants[-1].name), {})
        before = by_variant.get((0, CHANCE), {})
        for variant in variants:
            own = by_variant.get((number, variant.name), {})
            if own.keys() & before.keys() & last.keys():
                follows = variant is not variants[0]
                found.setdefault(number, []).append(_row(before, own, last, follows))
            before = own
    return found


def _row(before: States, own: States, last: States, follows: bool) -> VariantRow:
    """Compare a variant with the one before it, in the states that both and the last have."""
    keys = sorted(own.keys() & before.keys() & last.keys())
    mine = [own[key] for key in keys]
    gained: dict[str, list[float]] = {}
    for key in keys:
        gained.setdefault(key[0], []).append(own[key].accuracy - before[key].accuracy)
    falls = np.array([before[key].objective - own[key].objective for key in keys])
    whole = np.array([own[key].chance - last[key].objective for key in keys])
    # The same batch gives the same f up to rounding only.
    changed = np.abs(falls) > SAME * np.abs(whole)
    able = whole > 0
    return VariantRow(
        variant=mine[0].variant,
        states=len(keys),
        asked=float(np.mean([each.asked / each.batch for each in mine])),
        short=sum(each.asked < each.batch for each in mine),
        lower=int(np.sum(changed & (falls > 0))) if follows else None,
        higher=int(np.sum(changed & (falls < 0))) if follows else None,
        fall=float(np.median(falls[able] / whole[able])) if follows and able.any() else None,
        above_random=sum(each.objective > each.chance for each in mine),
        rises=float(np.mean([each.rises for each in mine])) if mine[0].algorithm == 2 else None,
        accuracy=difference([float(np.mean(each)) for each in gained.values()]),
    )


def write_page(records: Sequence[VariantRecord], origin: Sequence[str], out: Path) -> None:
    """Write OUT/corrections.md.

    Parameters
    ----------
    records : sequence of VariantRecord
        The results.
    origin : sequence of str
        The command, then lines that say when and on which machine it was run.
    out : Path
        The folder of the page.
    """
    tasks = {record.task for record in records}
    states = {(record.task, record.seed, record.labels) for record in records}
    text = [
        "# What each correction of the paper's algorithms does",
        "",
        f"    {origin[0]}",
        "",
        *origin[1:],
        "",
        f"{len(states)} states of {len(tasks)} tasks of [the study](study.md), from "
        f"[{CORRECTIONS_FILE}](study/{CORRECTIONS_FILE}), to which `python -m research "
        "corrections` appends. A state is a model trained on the initial labels, or on these and "
        f"{ROUNDS[-1]} more batches drawn at random. From each state every variant of the two "
        "algorithms selects one batch at the alpha and beta printed in the paper, and the model is "
        "trained again with its labels. (The step is 1, and IHT stops after 300 iterations or when "
        "its weights have converged: the paper leaves both open.) The variants add one correction "
        "after another, numbered as in "
        "[the list](../method.md#3-what-the-paper-prints-and-what-is-right), so a row shows what "
        "its correction does with those above it in place.",
        "",
        "- *asked*: labels requested, as a share of b, on average; *short*: states with fewer than "
        "b labels requested.",
        "- *f lower*, *higher*: states in which the objective is below or above that of the "
        "previous variant; *fall*: by how much, as a share of the gap between the mean of "
        f"{RANDOM_BATCHES} random batches and the last variant (the median over states where the "
        "last variant is below random batches; above 100 %, random batches were better than the "
        "previous variant).",
        "- *above random*: states in which f is above that of random batches with weights of 1.",
        "- *rises*: iterations after which f was higher than before, rounding included.",
        "- *accuracy*: after training with the batch, in points, compared with the previous "
        "variant (the first: with a random batch of b items), averaged over tasks, with a 95 % "
        "interval.",
        "",
    ]
    for number, rows in variant_rows(records).items():
        table = [[cell.replace("|", "\\|") for cell in cells(row)] for row in rows]
        text += [f"## Algorithm {number}", "", *as_table(HEADER, table)]
    text += ["## Without a variant", "", OTHER_CORRECTIONS]
    write_text_whole(out / "corrections.md", "\n".join(text).rstrip() + "\n")


def cells(row: VariantRow) -> list[str]:
    """Return the cells of a row, in the order of HEADER."""
    return [
        row.variant,
        str(row.states),
        f"{row.asked:.1%}",
        str(row.short),
        _text(row.lower, "d"),
        _text(row.higher, "d"),
        _text(row.fall, ".2%"),
        str(row.above_random),
        _text(row.rises, ".1f"),
        difference_text(row.accuracy),
    ]


def _text(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
