"""The page of the corrections: corrections.md, made from the lines alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from research.corrections.measure import FILE, LADDERS, RANDOM_BATCHES, ROUNDS, Line
from research.study.analysis import Difference, difference
from research.study.configurations import CHANCE
from research.study.verdict import as_table, difference_text
from sabal.core.files import write_text_whole

States = dict[tuple[str, int, int], Line]
"""The lines of a rung by task, seed and labels."""

SAME = 1e-9
"""Of what separates random batches from chosen ones: no change of f."""

HEADER = (
    "rung",
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

ELSEWHERE = (
    "The other corrections have no rung. That the bonus for uncertainty is a heuristic (5) changes "
    "no batch. What a pass costs (6) is measured in [suite.md](suite.md). The 1 / sqrt(K) of the "
    "posterior norm (7) keeps alpha and beta from meaning another thing for every number of "
    "samples: without it the representation term is K times as large by definition. Drawing the "
    "first batch from what is unlabelled (7) is the only way that there is."
)


@dataclass(frozen=True, kw_only=True)
class RungRow:
    """What a rung changes against the one before it; the first, against a random batch of b items.

    asked: labels asked for, as a share of b, in the mean; short: states with fewer than b.
    lower, higher: states where f is below, or above, that of the rung before; fall: by how much, as
        a share of what separates random batches from the last rung (median). A random batch is
        compared by accuracy alone.
    above_random: states where f is above that of random batches. Where the last rung's is, a fall
        has no measure, and is left out.
    rises: iterations after which f was higher than before, in the mean; greedy has none.
    accuracy: the difference in points, over tasks.
    """

    rung: str
    states: int
    asked: float
    short: int
    lower: int | None
    higher: int | None
    fall: float | None
    above_random: int
    rises: float | None
    accuracy: Difference | None


def rung_rows(lines: Sequence[Line]) -> dict[int, list[RungRow]]:
    """The rows of either algorithm."""
    by_rung: dict[tuple[int, str], States] = {}
    for line in lines:
        states = by_rung.setdefault((line.algorithm, line.rung), {})
        states[line.task, line.seed, line.labels] = line
    found: dict[int, list[RungRow]] = {}
    for rungs, _ in LADDERS:
        number = rungs[0].algorithm
        last = by_rung.get((number, rungs[-1].name), {})
        before = by_rung.get((0, CHANCE), {})
        for rung in rungs:
            own = by_rung.get((number, rung.name), {})
            if own.keys() & before.keys() & last.keys():
                follows = rung is not rungs[0]
                found.setdefault(number, []).append(_row(before, own, last, follows))
            before = own
    return found


def _row(before: States, own: States, last: States, follows: bool) -> RungRow:
    """One rung beside what is before it, in the states that all have."""
    keys = sorted(own.keys() & before.keys() & last.keys())
    mine = [own[key] for key in keys]
    gained: dict[str, list[float]] = {}
    for key in keys:
        gained.setdefault(key[0], []).append(own[key].accuracy - before[key].accuracy)
    falls = np.array([before[key].objective - own[key].objective for key in keys])
    whole = np.array([own[key].chance - last[key].objective for key in keys])
    # Of the same batch, f agrees to some digits.
    changed = np.abs(falls) > SAME * np.abs(whole)
    able = whole > 0
    return RungRow(
        rung=mine[0].rung,
        states=len(keys),
        asked=float(np.mean([line.asked / line.batch for line in mine])),
        short=sum(line.asked < line.batch for line in mine),
        lower=int(np.sum(changed & (falls > 0))) if follows else None,
        higher=int(np.sum(changed & (falls < 0))) if follows else None,
        fall=float(np.median(falls[able] / whole[able])) if follows and able.any() else None,
        above_random=sum(line.objective > line.chance for line in mine),
        rises=float(np.mean([line.rises for line in mine])) if mine[0].algorithm == 2 else None,
        accuracy=difference([float(np.mean(each)) for each in gained.values()]),
    )


def write_page(lines: Sequence[Line], told: Sequence[str], out: Path) -> None:
    """OUT/corrections.md."""
    tasks = {line.task for line in lines}
    states = {(line.task, line.seed, line.labels) for line in lines}
    text = [
        "# What each correction of the paper's algorithms does",
        "",
        f"    {told[0]}",
        "",
        *told[1:],
        "",
        f"{len(states)} states of {len(tasks)} tasks of [the study](study.md), out of "
        f"[{FILE}](study/{FILE}), which `python -m research study --corrections` adds to: a model "
        f"trained on the first labels, or on these and {ROUNDS[-1]} batches more that were "
        "drawn at random. From each state every rung of the "
        "ladders below takes one batch at the alpha and beta that the paper prints (its step is 1, "
        "and IHT ends after 300 iterations or when its weights have settled: the paper leaves that "
        "open), and the model is trained anew with its labels. The rungs add one correction after "
        "the other (numbered as in "
        "[the list](../method.md#3-what-the-paper-prints-and-what-is-right)), so that a row says "
        "what its correction does with those above it in place.",
        "",
        "- *asked*: labels asked for, of the b that may be, in the mean; *short*: states in which "
        "there were fewer than b.",
        "- *f lower*, *higher*: states in which the objective is below or above that of the rung "
        f"before; *fall*: by how much, as a share of what separates the mean of {RANDOM_BATCHES} "
        "random batches from the last rung (the median over states where that is below; above "
        "100 %, random batches were better than the rung before).",
        "- *above random*: states in which f is above that of random batches with weights of 1.",
        "- *rises*: iterations after which f was higher than before, be it by rounding.",
        "- *accuracy*: after training with the batch, in points, against the rung before (the "
        "first: against a random batch of b), in the mean over tasks with a 95 % interval.",
        "",
    ]
    for number, rows in rung_rows(lines).items():
        table = [[cell.replace("|", "\\|") for cell in cells(row)] for row in rows]
        text += [f"## Algorithm {number}", "", *as_table(HEADER, table)]
    text += ["## Without a rung", "", ELSEWHERE]
    write_text_whole(out / "corrections.md", "\n".join(text).rstrip() + "\n")


def cells(row: RungRow) -> list[str]:
    """A row of a table: HEADER says what is in it."""
    return [
        row.rung,
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
