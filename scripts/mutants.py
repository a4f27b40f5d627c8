"""Changes single lines of Sabal and counts the changes that a named test notices.

    python scripts/mutants.py                          # all of scripts/mutants.jsonl; resumes
    python scripts/mutants.py --area sparse            # one area
    python scripts/mutants.py --write                  # and put the table into docs/reliability.md
    python scripts/mutants.py --narrow                 # name the test that fails for new changes
    python scripts/mutants.py --mutants scripts/mends.jsonl --state .mends.json

The last one takes back, one at a time, what was mended after an attack, by the points of which
`docs/reliability.md` tells. New changes to try are drawn by `scripts/draw_mutants.py`.

A line of `scripts/mutants.jsonl` is a change: the file, the line as it is (and which one, if it is
there more than once), the line as it becomes, and the tests that should fail. Tests run in a copy
of the tree, one process after the other. The unchanged code comes first: a test that fails there
proves nothing, and the script ends. A change is killed only if one of its named tests fails; an
error on import or a process that does not end is no kill. A change with a `reason` makes no
difference that a test could see; these are not counted.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = ROOT / "scripts" / "mutants.jsonl"
STATE = ROOT / ".mutants.json"
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- mutants: written by `make mutants` -->", "<!-- /mutants -->"
COPIED = ("src", "tests", "research", "scripts", "docs", "README.md", "pyproject.toml")
AREAS = ("predictions", "sparse", "coverage", "strategies", "loop", "store")
PRELOADED = (
    "hypothesis.extra.numpy", "pytest", "scipy.optimize", "sklearn.ensemble",
    "sklearn.linear_model", "sqlalchemy.orm", "torch",
)  # fmt: skip
"""Imported once, for all processes; Sabal itself must not be."""
GOAL = 0.95
CPU_SECONDS, WALL_SECONDS = 120, 900
KILLED, SURVIVED, BROKEN, ENDLESS, STALE = "killed", "survived", "broken", "endless", "stale"


@dataclass(frozen=True)
class Mutant:
    """A change of one line."""

    area: str
    file: str
    line: str
    to: str
    tests: tuple[str, ...]
    nth: int = 0
    reason: str = ""

    def changed(self, text: str) -> str | None:
        """Return the text of the file with the change; None if the line is no longer there."""
        lines = text.splitlines(keepends=True)
        places = [number for number, line in enumerate(lines) if line.strip() == self.line]
        if self.nth >= len(places):
            return None
        place = places[self.nth]
        lines[place] = lines[place].replace(self.line, self.to)
        return "".join(lines)

    def digest(self) -> str:
        """Return a hash of the change, of its file and of the tests: the key of a result."""
        paths = sorted({self.file, *(test.partition("::")[0] for test in self.tests)})
        parts = [repr((self.line, self.to, self.nth, self.tests)).encode()]
        parts += [(ROOT / path).read_bytes() for path in paths]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


def read_mutants(path: Path) -> list[Mutant]:
    """Read the changes, one per line."""
    rows = [json.loads(line) for line in path.read_text().splitlines() if line]
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def write_mutants(path: Path, mutants: Sequence[Mutant]) -> None:
    """Write the changes, without values that are the default."""
    rows = [{key: value for key, value in asdict(each).items() if value} for each in mutants]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


class Failures:
    """A pytest plugin that notes the tests that failed, and that ran."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.ran = 0

    def pytest_runtest_logreport(self, report: object) -> None:
        """Note a report."""
        self.ran += report.when == "call"
        if report.failed and report.when != "teardown":
            self.failed.append(report.nodeid)


class Workshop:
    """A copy of the tree, in which tests run in processes forked from this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            kept = (
                {"ignore": shutil.ignore_patterns("__pycache__")} if (ROOT / name).is_dir() else {}
            )
            copy(ROOT / name, folder / name, **kept)
        os.environ["PYTHONPATH"] = f"{folder / 'src'}:{folder}"
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        sys.dont_write_bytecode = True
        sys.path[:0] = [str(folder / "src"), str(folder)]
        for module in PRELOADED:
            importlib.import_module(module)
        assert not any(name.partition(".")[0] == "sabal" for name in sys.modules)  # noqa: S101

    def run(self, tests: Sequence[str], mutant: Mutant | None = None) -> tuple[str, list[str]]:
        """Run tests; return the outcome and the tests that failed (the first one of a change)."""
        if mutant is None:
            return self._forked(tests, stop_early=False)
        path = self.folder / mutant.file
        before = path.read_text()
        after = mutant.changed(before)
        if after is None:
            return STALE, []
        path.write_text(after)
        try:
            return self._forked(tests, stop_early=True)
        finally:
            path.write_text(before)

    def _forked(self, tests: Sequence[str], *, stop_early: bool) -> tuple[str, list[str]]:
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            self._in_child(tests, answer, stop_early)
        os.waitpid(child, 0)
        if not answer.exists():
            return ENDLESS, []
        code, ran, failed = json.loads(answer.read_text())
        if failed:
            return KILLED, failed
        return (SURVIVED if code == 0 and ran else BROKEN), []

    def _in_child(self, tests: Sequence[str], answer: Path, stop_early: bool) -> None:
        """Run the tests and end the process, whatever happens."""
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(WALL_SECONDS)
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
            log = os.open(self.folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.chdir(self.folder)
            import pytest

            found = Failures()
            options = [
                "-q",
                "-p",
                "no:cacheprovider",
                "--tb=short",
                *(["-x"] if stop_early else []),
            ]
            code = int(pytest.main([*options, *tests], plugins=[found]))
            import sabal

            assert Path(sabal.__file__).is_relative_to(self.folder)  # noqa: S101
            partial = answer.with_suffix(".part")
            partial.write_text(json.dumps([code, found.ran, found.failed]))
            partial.rename(answer)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)


def check_control(workshop: Workshop, mutants: Sequence[Mutant], bar: Progress) -> list[str]:
    """Run every named test on the unchanged code; return the failures."""
    tests = sorted({test for each in mutants for test in each.tests})
    files = sorted({test.partition("::")[0] for test in tests})
    task = bar.add_task("unchanged code", total=len(files))
    wrong: list[str] = []
    for file in files:
        named = [test for test in tests if test.partition("::")[0] == file]
        outcome, failed = workshop.run([file] if file in named else named)
        if outcome != SURVIVED:
            wrong += failed or [f"{file}: {outcome}"]
        bar.advance(task)
    return wrong


class Results:
    """Outcomes by digest, kept in a file, so that a run that was stopped goes on."""

    def __init__(self, path: Path, *, afresh: bool = False) -> None:
        self.path = path
        self.known = json.loads(path.read_text()) if path.exists() and not afresh else {}

    def of(self, mutant: Mutant, compute: Callable[[], tuple[str, list[str]]]) -> tuple[str, list]:
        """Return the outcome of a change, computed unless it is known."""
        key = mutant.digest()
        if key not in self.known:
            self.known[key] = compute()
            self.path.write_text(json.dumps(self.known))
        outcome, failed = self.known[key]
        return outcome, failed


def run_all(mutants: Sequence[Mutant], results: Results, console: Console) -> dict[Mutant, tuple]:
    """Run the control, then every change that has no result yet."""
    missing = [each for each in mutants if each.digest() not in results.known]
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as name,
        Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=console) as bar,
    ):
        workshop = Workshop(Path(name).resolve())
        wrong = check_control(workshop, missing, bar)
        if wrong:
            raise SystemExit("tests that fail on the unchanged code:\n" + "\n".join(wrong))
        found = {}
        for each in bar.track(mutants, description="changes"):
            found[each] = results.of(each, lambda each=each: workshop.run(each.tests, each))
    return found


def narrowed(mutants: Sequence[Mutant], found: dict[Mutant, tuple]) -> list[Mutant]:
    """Return the changes, each with the first test that failed as its named one."""
    kept = []
    for each in mutants:
        outcome, failed = found.get(each, (SURVIVED, []))
        tests = tuple(failed[:1]) if outcome == KILLED else each.tests
        kept.append(Mutant(**{**asdict(each), "tests": tests}))
    return kept


def table(found: dict[Mutant, tuple]) -> tuple[str, float]:
    """Return a table of kills by area, and the share over all of them."""
    lines = ["| area | changes | killed | |", "|---|---|---|---|"]
    count: Counter[tuple[str, str]] = Counter((m.area, found[m][0]) for m in found)
    total = killed = 0
    for area in dict.fromkeys([*AREAS, *(each.area for each in found)]):
        if not any(each.area == area for each in found):
            continue
        of_area = sum(number for (name, _), number in count.items() if name == area)
        lines.append(_row(area, of_area, count[area, KILLED]))
        total, killed = total + of_area, killed + count[area, KILLED]
    lines.append(_row("all", total, killed))
    return "\n".join(lines), killed / max(1, total)


def _row(name: str, total: int, killed: int) -> str:
    return f"| {name} | {total} | {killed} | {killed / max(1, total):.0%} |"


def write_block(path: Path, text: str) -> None:
    """Replace what is between the two marks of a page."""
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--area", choices=AREAS)
    parser.add_argument("--file", help="only the changes of files whose path contains this")
    parser.add_argument("--mutants", type=Path, default=MUTANTS)
    parser.add_argument("--state", type=Path, default=STATE)
    parser.add_argument("--afresh", action="store_true", help="forget earlier results")
    parser.add_argument("--narrow", action="store_true", help="name the first test that failed")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    return parser.parse_args()


def main() -> None:
    """Run the changes, and print what the tests noticed."""
    given, console = arguments(), Console()
    every = read_mutants(given.mutants)
    chosen = [
        each
        for each in every
        if not each.reason
        and given.area in (None, each.area)
        and (given.file is None or given.file in each.file)
    ]
    found = run_all(chosen, Results(given.state, afresh=given.afresh), console)
    if given.narrow:
        write_mutants(given.mutants, narrowed(every, found))
    text, share = table(found)
    for each, (outcome, _) in found.items():
        if outcome != KILLED:
            console.print(f"{outcome}: {each.file}\n  {each.line}\n  {each.to}", markup=False)
    print(text)
    if given.write:
        write_block(PAGE, text)
    if share < GOAL:
        raise SystemExit(f"{share:.1%} killed; the goal is {GOAL:.0%}")


if __name__ == "__main__":
    main()
