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
from pathlib import Path

from sabal.labeling.settings import Settings
from sabal.labeling.store import Chosen, ImportedLabel, Item, Store, Submission


def filled(folder: Path, items: int, answered: int, overlap: int) -> Store:
    """A store with one batch of all items, the first of which ann has answered."""
    settings = Settings(
        name="next", classes=("a", "b"), kind="text", data="/none.csv", overlap=overlap
    )
    store = Store.open(folder / f"{answered}-{overlap}.db", settings)
    text = "so many words that it is a text " * 10
    store.add_items(Item(row, f"i{row}", "text", text) for row in range(items))
    store.add_round(0, [Chosen(row) for row in range(items)], strategy="random")
    store.import_labels(ImportedLabel(f"i{row}", "a", "ann") for row in range(answered))
    return store


def milliseconds(action: Callable[[], object], times: int) -> float:
    """The median of some runs, after one that does not count."""
    action()
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        action()
        taken.append(time.perf_counter() - started)
    return 1000 * statistics.median(taken)


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
            ask = milliseconds(lambda store=store: store.next("ann", 5), given.times)
            rows = iter(range(half, given.items))

            def answer(store: Store = store, rows: object = rows) -> None:
                item = f"i{next(rows)}"
                store.submit(Submission(str(uuid.uuid4()), "ann", item, "b"))

            submit = milliseconds(answer, given.times)
            status = milliseconds(store.status, given.times)
            print(
                f"{given.items} items, {name}: next {ask:.1f} ms, submit {submit:.1f} ms, "
                f"status {status:.1f} ms",
                flush=True,
            )
            store.close()


if __name__ == "__main__":
    main()
