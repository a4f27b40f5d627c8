"""Lines of the report: the answers in short, tables, and the format of differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from research.study.analysis import Difference, RankedConfiguration
from research.study.configurations import CHANCE, DEFAULT
from research.study.findings import Findings


def verdict_lines(findings: Findings) -> list[str]:
    """Return the main answers of the study."""
    lines = []
    for name, tables in (("Ranked", findings.ranked), ("Held-out", findings.held_out)):
        helped = findings.helped(tables)
        own = sum(DEFAULT in table.winners for table in helped)
        worse = [f"{each.task} ({each.best})" for each in findings.worse_than_best(tables)]
        lines.append(
            f"- {name} tasks: `{DEFAULT}` is significantly worse than the best baseline on "
            f"{len(worse)} of {len(tables)}{': ' + ', '.join(worse) if worse else ''}; it is "
            f"significantly better than `{CHANCE}` on {own} of the {len(helped)} tasks where "
            "anything is."
        )
    first = findings.known.places[:2]
    if len(first) == 2:
        lines.insert(
            0,
            f"- The best mean rank over {len(findings.known.tasks)} tasks is that of "
            f"`{first[0].configuration}`, {first[0].rank:.2f}; next is "
            f"`{first[1].configuration}`, {first[1].rank:.2f}.",
        )
    return [*lines, ""]


def batch_lines(findings: Findings) -> list[str]:
    """Return mean ranks, and areas minus that of `sabal`, by batch size."""
    names = [place.configuration for place in findings.known.places]
    rows = []
    for size, found in findings.by_batch.items():
        places = {place.configuration: place for place in found.places}
        if places:
            cells = [_place_text(places[name]) for name in names]
            rows.append([f"{size:,}", str(len(found.tasks)), *cells])
    table = as_table(["batch", "tasks", *names], rows)
    what = f"The same by batch size, with the area minus that of `{DEFAULT}` in brackets:"
    return [what, "", *table] if table else []


def _place_text(place: RankedConfiguration) -> str:
    away = place.to_default
    return f"{place.rank:.2f}" if away is None else f"{place.rank:.2f} ({away.mean:+.2f})"


def effect_lines(findings: Findings) -> list[str]:
    """Return a table with the effect of each change to the paper's method."""
    header = ["change", "from", "to", "difference over tasks", "tasks", "better", "worse"]
    rows = [
        [
            each.change.what,
            each.change.before,
            each.change.after,
            difference_text(each.over_tasks),
            str(each.over_tasks.pairs),
            str(each.better),
            str(each.worse),
        ]
        for each in findings.effects
    ]
    return as_table(header, rows)


def difference_text(away: Difference | None) -> str:
    """Format a difference as +1.20 (+0.40 to +2.00), in bold if the interval excludes zero."""
    if away is None:
        return ""
    text = f"{away.mean:+.2f}"
    if away.low is not None:
        text += f" ({away.low:+.2f} to {away.high:+.2f})"
    return f"**{text}**" if away.better or away.worse else text


def as_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return a Markdown table whose columns after the first are right-aligned."""
    if not rows:
        return []
    return [
        f"| {' | '.join(header)} |",
        f"|---|{'---:|' * (len(header) - 1)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]
