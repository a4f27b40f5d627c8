"""Measure the size and the structure of the package, and compare them with the goals.

python scripts/house.py            # a Markdown table
python scripts/house.py --check    # the same; exit code 1 if a goal is missed
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import tempfile
import threading
import uuid
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "sabal"
MAX_FUNCTION_LINES = 60
SAME_NAME_ALLOWED = {"__init__", "__main__"}
ITEMS, DIMENSIONS, CLASSES, BUDGET = 3_000, 16, 4, 20
"""The pool of the selections that are traced."""


@dataclass(frozen=True)
class Figure:
    """A measured figure.

    Parameters
    ----------
    name : str
        What is measured.
    value : int
        The measurement.
    goal : int
        The largest value that meets the goal.
    details : tuple of str
        What was counted, where a list helps.
    """

    name: str
    value: int
    goal: int
    details: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        """Whether the goal is met."""
        return self.value <= self.goal


def modules(package: Path = PACKAGE) -> list[Path]:
    """Return the Python files of the package."""
    return sorted(package.rglob("*.py"))


def sizes(package: Path = PACKAGE) -> list[Figure]:
    """Measure files, lines and entries at the root of the package."""
    files = modules(package)
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    root = sorted(path.name for path in package.iterdir() if path.name != "__pycache__")
    return [
        Figure("Python files in the wheel", len(files), 215),
        Figure("Lines of Python in the wheel", lines, 25_000),
        Figure("Entries at the root of `src/sabal`", len(root), 18, tuple(root)),
    ]


def same_names(package: Path = PACKAGE) -> Figure:
    """Count the pairs of modules with the same file name."""
    places = defaultdict(list)
    for path in modules(package):
        if path.stem not in SAME_NAME_ALLOWED:
            places[path.stem].append(str(path.relative_to(package)))
    found = [names for names in places.values() if len(names) > 1]
    pairs = sum(len(names) * (len(names) - 1) // 2 for names in found)
    details = tuple(" = ".join(names) for names in found)
    return Figure("Pairs of modules with the same name", pairs, 0, details)


def long_functions(package: Path = PACKAGE) -> Figure:
    """Count the functions over `MAX_FUNCTION_LINES` lines, docstrings and commands aside."""
    found = []
    for path in modules(package):
        where = path.relative_to(package)
        if where.parts[0] == "cli":
            continue
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                lines = (node.end_lineno or node.lineno) - first + 1 - _docstring_lines(node)
                if lines > MAX_FUNCTION_LINES:
                    found.append(f"{where}:{node.name} ({lines})")
    name = f"Functions over {MAX_FUNCTION_LINES} lines outside `cli`, docstrings aside"
    return Figure(name, len(found), 0, tuple(found))


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    if ast.get_docstring(node, clean=False) is None:
        return 0
    return (node.body[0].end_lineno or 0) - node.body[0].lineno + 1


def strategy_checks(package: Path = PACKAGE) -> Figure:
    """Count the `isinstance` checks on strategy classes outside strategies/."""
    classes = strategy_classes(package)
    found = []
    for path in modules(package):
        where = path.relative_to(package)
        if where.parts[0] == "strategies":
            continue
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {
                "isinstance",
                "issubclass",
            }:
                names = {getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node)}
                if len(node.args) == 2 and names & classes:
                    found.append(f"{where}:{node.lineno}")
    name = "`isinstance` checks on strategies outside `strategies`"
    return Figure(name, len(found), 0, tuple(found))


def strategy_classes(package: Path = PACKAGE) -> set[str]:
    """Return the names of the classes in strategies/ that have `select`, or inherit it."""
    bases: dict[str, set[str]] = {}
    found = {"Strategy"}
    for path in modules(package / "strategies"):
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                if any(getattr(each, "name", "") == "select" for each in node.body):
                    found.add(node.name)
    while new := {name for name, above in bases.items() if above & found} - found:
        found |= new
    return found


def entered(call: Callable[[], object]) -> list[str]:
    """Return the modules of the package in which `call` enters a function.

    Functions that are generated, such as the methods of dataclasses, do not count: they are in no
    file. Neither do the bodies of modules.
    """
    found: set[str] = set()
    inside = f"{PACKAGE}/"

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(inside):
            found.add(code.co_filename.removeprefix(inside))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(found)


def selections() -> Iterator[Figure]:
    """Trace `select` with its defaults, and with the paper's greedy solver."""
    import numpy as np

    import sabal

    rng = np.random.default_rng(0)
    features = rng.normal(size=(ITEMS, DIMENSIONS))
    probs = rng.dirichlet(np.ones(CLASSES), size=ITEMS)
    for strategy, goal in (("sabal", 12), ("sabal-greedy", 15)):

        def choose(strategy: str = strategy) -> None:
            sabal.select(BUDGET, features=features, probs=probs, strategy=strategy, random_state=0)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sabal.SabalWarning)
            choose()  # everything is imported now
            found = entered(choose)
        name = f'Modules entered by `select(..., strategy="{strategy}")`'
        yield Figure(name, len(found), goal, tuple(found))


def stored_label() -> Figure:
    """Trace the request that stores a label in the labelling app."""
    from sabal.labeling import Engine, Project
    from sabal.labeling.web import create_app

    with warnings.catch_warnings():
        # With the older httpx it works as well, but warns.
        warnings.simplefilter("ignore")
        from fastapi.testclient import TestClient

    def post(client: TestClient, item: str) -> None:
        answer = {"submission": str(uuid.uuid4()), "annotator": "ada", "item": item, "label": "cat"}
        client.post("/api/labels", json=answer).raise_for_status()

    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder, "texts.jsonl")
        rows = ({"id": str(row), "text": f"text number {row}"} for row in range(30))
        texts.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        place = Path(folder, "project")
        with Project.create(
            place, data=texts, classes=["cat", "dog"], backbone="tfidf", first="random", initial=10
        ) as project:
            engine = Engine(project)
            while engine.step() is not None:
                pass
            # Outside its context the client starts a thread for each request, which is traced.
            app = create_app(project, worker=False)
            client = TestClient(app, base_url="http://127.0.0.1:8760")
            asked = client.get("/api/next", params={"annotator": "ada", "count": 2}).json()
            first, second = (item["id"] for item in asked["items"])
            post(client, first)
            found = entered(lambda: post(client, second))
    return Figure("Modules entered by storing a label", len(found), 8, tuple(found))


def figures() -> list[Figure]:
    """Measure everything."""
    return [
        *sizes(),
        *selections(),
        stored_label(),
        strategy_checks(),
        same_names(),
        long_functions(),
    ]


def table(measured: list[Figure]) -> str:
    """Return the figures as a Markdown table."""
    lines = ["| Figure | Now | Goal (at most) |", "|---|---:|---:|"]
    lines += [f"| {each.name} | {each.value:,} | {each.goal:,} |" for each in measured]
    return "\n".join(lines)


def main() -> None:
    """Print the table; with `--check`, exit with code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="fail if a goal is missed")
    parser.add_argument("--details", action="store_true", help="list what was counted")
    arguments = parser.parse_args()
    measured = figures()
    print(table(measured))
    missed = [each for each in measured if not each.met]
    for each in measured if arguments.details else missed:
        if each.details:
            print(f"\n{each.name}:", *each.details, sep="\n  ", file=sys.stderr)
    sys.exit(1 if arguments.check and missed else 0)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
