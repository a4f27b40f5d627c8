"""How long it takes to ask for the next items, by how many are in a batch and how it stands.

    python scripts/next_items.py --items 80000

A batch of so many items in a file of SQLite, as a person finds it who asks for five: nothing
answered; half of it answered; half of it answered by that person, and another one is wanted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from sabal.labeling.settings import Settings
from sabal.labeling.store import Store
from sabal.labeling.store.records import ImportedLabel, NewBatchItem, PoolItem, Submission

T = TypeVar("T")


def filled(folder: Path, items: int, answered: int, overlap: int) -> Store:
    """Make a store with one batch of all items, the first of which ann has answered."""
    settings = Settings(
        name="next", classes=("a", "b"), kind="text", data="/none.csv", overlap=overlap
    )
    store = Store.open(folder / f"{answered}-{overlap}.db", settings)
    text = "so many words that it is a text " * 10
    store.add_items(PoolItem(row, f"i{row}", "text", text) for row in range(items))
    store.add_round(0, [NewBatchItem(row) for row in range(items)], strategy="random")
    store.import_labels(ImportedLabel(f"i{row}", "a", "ann") for row in range(answered))
    return store


def measure(store: Store, times: int) -> dict[str, float]:
    """Milliseconds at the median: ask for five items, answer them, look where the project is.

    Everything that was asked for is answered before the next time, so that nothing is held.
    """
    taken: dict[str, list[float]] = {"next": [], "submit": [], "status": []}

    def timed(name: str, action: Callable[[], T]) -> T:
        started = time.perf_counter()
        answer = action()
        taken[name].append(1000 * (time.perf_counter() - started))
        return answer

    for _ in range(times):
        for each in timed("next", partial(store.next_items, "ann", 5)):
            given = Submission(str(uuid.uuid4()), "ann", each.item, "b")
            timed("submit", partial(store.submit, given))
        timed("status", store.status)
    return {name: statistics.median(each) for name, each in taken.items()}


def main() -> None:
    """Measure, and print a line for every situation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=80_000)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    half = given.items // 2
    situations = {
        "nothing answered": (0, 1),
        "half answered": (half, 1),
        "half answered, another person wanted": (half, 2),
    }
    with tempfile.TemporaryDirectory() as place:
        for name, (answered, overlap) in situations.items():
            store = filled(Path(place), given.items, answered, overlap)
            figures = measure(store, given.times)
            told = ", ".join(f"{what} {value:.1f} ms" for what, value in figures.items())
            print(f"{given.items} items, {name}: {told}", flush=True)
            store.close()


if __name__ == "__main__":
    main()
