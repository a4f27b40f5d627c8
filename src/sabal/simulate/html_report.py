"""The report of an experiment as a single, self-contained HTML file."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.files import write_text_whole
from sabal.simulate.curves import Point, Summary, summarise, wins
from sabal.simulate.early_stop import early_stop
from sabal.simulate.recommendation import recommend
from sabal.simulate.verdict import verdict

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
.verdict { border-left: 4px solid #2a7; padding: .6rem 1rem; font-size: 1.1rem; margin: 1.5rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid #8884; text-align: right; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; height: auto; background: white; }
pre { overflow-x: auto; background: #8882; padding: 1rem; }
.wide { overflow-x: auto; }
"""


def write_report(
    points: Sequence[Point], config: dict[str, Any], picture: Path, path: Path
) -> Path:
    """Write the verdict, tables, configuration and embedded `picture` of an experiment."""
    summaries, advice = summarise(points), recommend(points)
    stop = early_stop(points, advice.strategy)
    lines = [verdict(summaries), *([] if stop is None else [stop.text]), advice.text]
    image = base64.b64encode(picture.read_bytes()).decode("ascii")
    title = f"Sabal: {config['dataset']}"
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{escape(title)}</title><style>{STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p class="verdict">{"<br>".join(map(escape, lines))}</p>
<img alt="Learning curves: test accuracy over labels, one line per strategy"
 src="data:image/png;base64,{image}">
<h2>Areas under the curves</h2>
<div class="wide">{_table(SUMMARY_HEADER, [summary_cells(s) for s in summaries])}</div>
<p>Area: trapezoid over labels, divided by the range of labels, in percent. Differences are paired
by seed, with a 95 % interval (Student's t); the verdict allows for the number of strategies.
A selection's seconds and megabytes (the peak growth of the process) include what the model is asked
for it, and leave out the first batch.</p>
<h2>Who beats whom</h2>
<div class="wide">{_wins_table(points)}</div>
<p>The share of seeds in which the row has the larger area than the column.</p>
<h2>Configuration</h2>
<pre>{escape(json.dumps(config, indent=1))}</pre>
</body></html>
"""
    return write_text_whole(path, page)


SUMMARY_HEADER = (
    "strategy", "area", "std", "to random", "95 % interval", "final accuracy",
    "labels to match random", "seconds a selection", "MB a selection",
)  # fmt: skip


def summary_cells(summary: Summary) -> list[str]:
    """Return a row of the table of areas."""
    return [
        summary.strategy,
        f"{summary.auc:.2f}",
        f"{summary.std:.2f}" if summary.seeds > 1 else "",
        "" if summary.difference is None else f"{summary.difference:+.2f}",
        "" if summary.low is None else f"{summary.low:+.2f} to {summary.high:+.2f}",
        f"{summary.final_accuracy:.1%}",
        "" if summary.labels_to_match is None else f"{summary.labels_to_match:.0f}",
        f"{summary.select_seconds:.3f}",
        "" if summary.select_mb is None else f"{summary.select_mb:.1f}",
    ]


def _wins_table(points: Sequence[Point]) -> str:
    names, matrix = wins(points)
    rows = [
        [name, *("" if np.isnan(share) else f"{share:.0%}" for share in matrix[k])]
        for k, name in enumerate(names)
    ]
    return _table(["", *names], rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
