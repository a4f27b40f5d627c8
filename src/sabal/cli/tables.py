"""Results as tables in a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sabal.core.terminal import print_table
from sabal.errors import counted
from sabal.selection import Selection
from sabal.strategies import option_names, strategies

SHOWN_ITEMS = 10


def print_selection(
    selection: Selection, saved_to: str | Path | None, *, on_stderr: bool = False
) -> None:
    """Print the first items of a batch, a comparison with random ones, and any warnings."""
    console = Console(stderr=on_stderr)
    table = Table(title=f"{counted(len(selection), 'item')} chosen by {selection.strategy}")
    for name in ("rank", "id", "weight", "score"):
        table.add_column(name, justify="right")
    for row in selection.rows()[:SHOWN_ITEMS]:
        table.add_row(
            str(row["rank"]), escape(str(row["id"])), f"{row['weight']:.3f}", f"{row['score']:.4g}"
        )
    console.print(table)
    if len(selection) > SHOWN_ITEMS:
        where = "--out FILE writes them all." if saved_to is None else "all are in the file."
        where = "all are on standard output." if on_stderr else where
        console.print(f"... and {len(selection) - SHOWN_ITEMS} more: {where}")
    if "random_batch" in selection.evidence:
        random_batch = selection.evidence["random_batch"]
        batches = {selection.strategy: selection.evidence, "random, on average": random_batch}
        console.print(evidence_table(batches))
    if selection.evidence.get("atoms") == "coverage" and not selection.evidence["labeled"]:
        console.print("Better with --labeled FILE: a batch that knows what is labelled already.")
    for message in selection.evidence.get("warnings", []):
        console.print(f"Warning: {message}", style="yellow", markup=False)
    if saved_to is not None and not on_stderr:
        console.print(f"Written to {saved_to}", markup=False)


def evidence_table(batches: dict[str, dict[str, Any]]) -> Table:
    """Return a table of the objective, bias, variance and cost of batches (evidence by name)."""
    table = Table(title="Evidence")
    table.add_column("batch")
    columns = {
        "objective": ".4g",
        "bias": ".4g",
        "variance": ".4g",
        "zero_weights": "d",
        "passes": "d",
        "seconds": ".3f",
    }
    columns = {key: how for key, how in columns.items() if any(key in b for b in batches.values())}
    better = {"objective": "lower", "bias": "lower", "variance": "higher"}
    shown = [f"{name}: {way} is better" for name, way in better.items() if name in columns]
    table.title = f"Evidence ({'; '.join(shown)})" if shown else "Evidence"
    for name in columns:
        table.add_column(name.replace("_", " "), justify="right")
    for name, figures in batches.items():
        table.add_row(
            name,
            *(format(figures[key], how) if key in figures else "-" for key, how in columns.items()),
        )
    return table


def strategy_rows() -> list[dict[str, Any]]:
    """Return a dictionary for each strategy with the columns of the table of strategies."""
    return [
        {
            "name": name,
            "needs": [need.replace("|", " or ") for need in cls.needs],
            "paper": cls.paper,
            "cost": cls.cost,
            "options": option_names(cls),
        }
        for name, cls in strategies().items()
    ]


def print_strategies() -> None:
    """Print the table of strategies."""
    table = Table(title="Strategies (n items, b chosen, d features, C classes, K samples)")
    for name in ("name", "needs", "paper", "cost"):
        table.add_column(name)
    for row in strategy_rows():
        table.add_row(row["name"], ", ".join(row["needs"]) or "-", row["paper"], row["cost"])
    print_table(table)
