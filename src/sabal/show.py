"""Results as tables in a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from sabal.selection import Selection
from sabal.strategies import option_names, strategies

SHOWN_ITEMS = 10


def print_selection(selection: Selection, saved_to: Path | None) -> None:
    """The batch (its first items), what it is worth beside a random one, and any warnings."""
    console = Console()
    table = Table(title=f"{len(selection)} items chosen by {selection.strategy}")
    for name in ("rank", "id", "weight", "score"):
        table.add_column(name, justify="right")
    for row in selection.rows()[:SHOWN_ITEMS]:
        table.add_row(
            str(row["rank"]), str(row["id"]), f"{row['weight']:.3f}", f"{row['score']:.4g}"
        )
    console.print(table)
    if len(selection) > SHOWN_ITEMS and saved_to is None:
        console.print(f"... and {len(selection) - SHOWN_ITEMS} more: --out FILE writes them all.")
    if "random_batch" in selection.evidence:
        console.print(evidence_table({selection.strategy: selection}))
    for message in selection.evidence.get("warnings", []):
        console.print(f"Warning: {message}", style="yellow", markup=False)
    if saved_to is not None:
        console.print(f"Written to {saved_to}", markup=False)


def evidence_table(selections: dict[str, Selection]) -> Table:
    """Objective, bias and variance of batches, beside what random batches have on average."""
    table = Table(title="Evidence (objective and bias: lower is better)")
    table.add_column("batch")
    for name in ("objective", "bias", "variance", "zero weights", "passes", "seconds"):
        table.add_column(name, justify="right")
    random_batch: dict[str, float] = {}
    for name, selection in selections.items():
        figures = selection.evidence
        random_batch = figures.get("random_batch", random_batch)
        table.add_row(
            name,
            *(f"{figures[key]:.4g}" for key in ("objective", "bias", "variance")),
            str(figures["zero_weights"]),
            str(figures["passes"]),
            f"{figures['seconds']:.3f}",
        )
    table.add_row(
        "a random batch",
        *(f"{random_batch[key]:.4g}" for key in ("objective", "bias", "variance")),
        *("-", "-", "-"),
    )
    return table


def strategy_rows() -> list[dict[str, Any]]:
    """Every strategy as a dictionary of what a table of them shows."""
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
    """The table of strategies."""
    table = Table(title="Strategies (n items, b chosen, d features, C classes, K samples)")
    for name in ("name", "needs", "paper", "cost"):
        table.add_column(name)
    for row in strategy_rows():
        table.add_row(row["name"], ", ".join(row["needs"]) or "-", row["paper"], row["cost"])
    Console().print(table)
