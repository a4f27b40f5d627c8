"""Bad input for as long as wanted: the cases of tests/test_fuzz_*.py, drawn anew from a seed.

    python scripts/fuzz.py --minutes 10 --seed 0

Prints how many cases there were of each kind, how many of them were answered and how many refused,
and the slowest; and of every failure how to see it again:

    python scripts/fuzz.py --case "select badge" --seed 0-1234
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import fuzz_commands
import fuzz_labels
import fuzz_pools
import fuzz_select
from fuzz_oracle import ANSWERED, REFUSED, Kind, watched

KINDS: dict[str, Kind] = {
    **fuzz_select.KINDS,
    **fuzz_pools.KINDS,
    **fuzz_commands.KINDS,
    **fuzz_labels.KINDS,
}
SHOWN_FAILURES = 20


def run(name: str, seed: str, home: Path) -> str:
    """One case, in a folder of its own."""
    folder = Path(tempfile.mkdtemp(dir=home))
    try:
        with watched():
            # Cases that can be drawn again, nothing secret.
            return KINDS[name](Random(f"{name} {seed}"), folder)  # noqa: S311  # nosec B311
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Run cases of all kinds in turn until the time is up; 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--case", choices=KINDS, help="run this one case, of this very seed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        if given.case:
            print(run(given.case, given.seed, Path(home)))
            return 0
        return fuzz(given.minutes, given.seed, Path(home))


def fuzz(minutes: float, seed: str, home: Path) -> int:
    """All kinds in turn, and the table of what came out."""
    end, number, failures = time.monotonic() + 60 * minutes, 0, 0
    counts: Counter[tuple[str, str]] = Counter()
    slowest: Counter[str] = Counter()
    while time.monotonic() < end:
        for name in KINDS:
            started = time.process_time()
            try:
                counts[name, run(name, f"{seed}-{number}", home)] += 1
            except Exception:
                failures += 1
                counts[name, "failed"] += 1
                if failures <= SHOWN_FAILURES:
                    traceback.print_exc()
                    print(f'--case "{name}" --seed {seed}-{number}', file=sys.stderr)
            slowest[name] = max(slowest[name], time.process_time() - started)
        number += 1
    outcomes = (ANSWERED, REFUSED, "failed")
    print(f"{'kind':28}" + "".join(f"{outcome:>10}" for outcome in outcomes) + "  slowest (s)")
    for name in KINDS:
        figures = "".join(f"{counts[name, outcome]:10,}" for outcome in outcomes)
        print(f"{name:28}{figures}{slowest[name]:13.2f}")
    total = "".join(f"{sum(counts[n, outcome] for n in KINDS):10,}" for outcome in outcomes)
    print(f"{f'{sum(counts.values()):,} cases':28}{total}{max(slowest.values()):13.2f}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
