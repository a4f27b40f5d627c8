"""Draws changes of single lines at random, for `scripts/mutants.py` to try.

    python scripts/draw_mutants.py --count 60 --seed 3 --out drawn.jsonl
    python scripts/mutants.py --mutants drawn.jsonl --state drawn.json

An operator, a bound, a constant or a condition is exchanged. Every area has the same share; within
an area each line that can be changed is as likely as any other, and on a line each change. The
tests of a change are those of its area. Changes that `scripts/mutants.jsonl` has are left out.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from mutants import AREAS, MUTANTS, ROOT, Mutant, read_mutants, write_mutants

COVERAGE = ("coverage.py", "greedy_cover.py", "unit_features.py")
FOLDERS = {
    "predictions": "predictions",
    "sparse": "sparse",
    "strategies": "strategies",
    "loop": "loop",
    "store": "labeling/store",
}
TESTS = {
    "predictions": (
        "predictions",
        "strategies/test_other_losses.py",
        "test_query_kinds.py",
        "sparse/test_atoms.py",
    ),
    "sparse": ("sparse", "pools/test_shards.py"),
    "coverage": (
        "strategies/test_coverage.py",
        "strategies/test_rivals.py",
        "pools/test_sampling.py",
        "golden/test_golden.py",
    ),
    "strategies": ("strategies", "test_select.py"),
    "loop": ("loop",),
    "store": tuple(
        f"labeling/test_{name}.py"
        for name in ("store", "classes", "personal_links", "item_pages", "adding", "exchange")
    ),
}
"""Tests by area, below `tests`."""
OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "in": "not in",
    "not in": "in", "is": "is not", "is not": "is", "+": "-", "-": "+", "*": "/", "/": "*",
    "//": "*", "**": "*", "%": "*", "&": "|", "and": "or", "or": "and",
}  # fmt: skip
NAMES = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all",
    "all": "any", "argmin": "argmax", "argmax": "argmin", "zeros": "ones", "ones": "zeros",
    "floor": "ceil", "ceil": "floor", "sum": "max", "mean": "sum",
}  # fmt: skip
Change = tuple[int, int, int, str]
"""A line (from 1), the columns from and to, and what replaces them."""


class Changes(ast.NodeVisitor):
    """Finds what can be changed in a file."""

    def __init__(self, text: str) -> None:
        self.lines, self.found = text.splitlines(), []
        self.visit(ast.parse(text))

    def _note(self, line: int, start: int, end: int, to: str) -> None:
        # Columns count bytes; lines with other characters are left out.
        if self.lines[line - 1].isascii():
            self.found.append((line, start, end, to))

    def _between(self, left: ast.expr, right: ast.expr) -> None:
        """Exchange the operator between two expressions on one line."""
        if left.end_lineno != right.lineno:
            return
        start = left.end_col_offset or 0
        gap = self.lines[right.lineno - 1][start : right.col_offset]
        sign = re.fullmatch(r"\)*\s*(.*?)\s*\(*", gap)
        if sign and (to := OPERATORS.get(sign[1])):
            self._note(right.lineno, start + sign.start(1), start + sign.end(1), to)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Exchange comparisons."""
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            self._between(left, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Exchange `and` and `or`."""
        self._between(*node.values[:2])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Exchange arithmetic."""
        self._between(node.left, node.right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Drop a sign or a `not`."""
        if node.operand.lineno == node.lineno:
            self._note(node.lineno, node.col_offset, node.operand.col_offset, "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change a number by one, and turn a truth value round."""
        if isinstance(node.value, bool | int | float):
            to = not node.value if isinstance(node.value, bool) else node.value + 1
            self._note(node.lineno, node.col_offset, node.end_col_offset or 0, repr(to))

    def visit_Call(self, node: ast.Call) -> None:
        """Exchange a function for its opposite."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name in NAMES and node.func.end_lineno == node.lineno:
            end = node.func.end_col_offset or 0
            self._note(node.lineno, end - len(name), end, NAMES[name])
        self.generic_visit(node)

    def _condition(self, node: ast.If | ast.IfExp) -> None:
        test = node.test
        if test.lineno == test.end_lineno and isinstance(test, ast.Name | ast.Attribute | ast.Call):
            line = self.lines[test.lineno - 1]
            start, end = test.col_offset, test.end_col_offset or 0
            self._note(test.lineno, start, end, f"not {line[start:end]}")
        self.generic_visit(node)

    visit_If = visit_IfExp = _condition

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Leave annotations as they are."""
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Leave annotations and decorators as they are."""
        for each in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(each)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Leave decorators as they are."""
        for each in node.body:
            self.visit(each)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Leave messages as they are."""


def area_files(area: str) -> Iterator[Path]:
    """Return the files of an area."""
    source = ROOT / "src" / "sabal"
    if area == "coverage":
        yield from (source / "strategies" / name for name in COVERAGE)
        yield source / "pools" / "sampling.py"
        return
    for path in sorted((source / FOLDERS[area]).glob("*.py")):
        if path.name not in COVERAGE:
            yield path


def area_tests(area: str) -> Iterator[Path]:
    """Return the files of tests of an area."""
    for each in TESTS[area]:
        path = ROOT / "tests" / each
        yield from sorted(path.glob("test_*.py")) if path.is_dir() else [path]


def mutants_of(area: str) -> dict[tuple[Path, int], list[Mutant]]:
    """Return all changes of an area by file and line."""
    found = defaultdict(list)
    tests = tuple(str(path.relative_to(ROOT)) for path in area_tests(area))
    for path in area_files(area):
        text = path.read_text()
        lines = text.splitlines()
        stripped = [line.strip() for line in lines]
        for number, start, end, to in Changes(text).found:
            line = lines[number - 1]
            changed = (line[:start] + to + line[end:]).strip()
            nth = stripped[: number - 1].count(line.strip())
            name = str(path.relative_to(ROOT))
            found[path, number].append(Mutant(area, name, line.strip(), changed, tests, nth))
    return found


def drawn(count: int, seed: int) -> list[Mutant]:
    """Draw changes, equally many of every area."""
    known = {(each.file, each.line, each.to) for each in read_mutants(MUTANTS)}
    generator, chosen = random.Random(seed), []  # noqa: S311  # nosec B311
    for area in AREAS:
        lines = mutants_of(area)
        places = generator.sample(sorted(lines), len(lines))
        picked = (generator.choice(lines[place]) for place in places)
        new = [each for each in picked if (each.file, each.line, each.to) not in known]
        chosen += new[: count // len(AREAS)]
    return chosen


def main() -> None:
    """Draw, and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    chosen = drawn(given.count, given.seed)
    write_mutants(given.out, chosen)
    print(f"{len(chosen)} changes in {given.out}")


if __name__ == "__main__":
    main()
