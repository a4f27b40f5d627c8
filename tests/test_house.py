"""The folder tree is the design: imports point up the list of rooms only."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sabal

PACKAGE = Path(sabal.__file__).parent

ROOMS = [
    "errors",
    "core",
    "selection",
    "predictions",
    "pools",
    "sparse",
    "strategies",
    "api",
    "models",
    "learners",
    "integrations",
    "loop",
    "simulate",
    "labeling",
    "__init__",
    "cli",
    "__main__",
]
HEAVY = {"torch", "ray", "fastapi", "sqlalchemy"}
ALLOWED_HEAVY = {
    "models": {"torch"},
    "integrations": {"torch"},
    "labeling": {"fastapi", "sqlalchemy"},
}
RAY = PACKAGE / "pools" / "ray" / "session.py"
"""The one file that may import ray."""
SLOW_TO_IMPORT = {"scipy", "sklearn", "pyarrow", "matplotlib", "rich", "pandas"}
TERMINAL = {PACKAGE / "core" / "terminal.py", PACKAGE / "simulate" / "terminal_report.py"}
"""Modules for a terminal, which the library itself does not import."""
MAX_FUNCTION_LINES = 60
ROOT = Path(__file__).parents[1]


PEERS = ROOT / "research" / "bench" / "peers"
"""Scripts that run in the environments of other packages, and know nothing of this one."""


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path, top_level_only=False):
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_up_the_list_of_rooms(path):
    room = room_of(path)
    assert room in ROOMS, f"{room} is not in the list of rooms"
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] == "sabal":
            other = parts[1] if len(parts) > 1 else "__init__"
            assert ROOMS.index(other) <= ROOMS.index(room), f"{room} must not import {other}"
        else:
            allowed = {"ray"} if path == RAY else ALLOWED_HEAVY.get(room, set())
            assert parts[0] not in HEAVY - allowed, f"{room} must not import {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_slow_to_import_is_imported_where_it_is_used(path):
    allowed = {"rich"} if path in TERMINAL or room_of(path) == "cli" else set()
    for name in imports_of(path, top_level_only=True):
        assert name.split(".")[0] not in SLOW_TO_IMPORT - allowed


@pytest.mark.parametrize("path", sorted(PEERS.glob("*.py")), ids=lambda path: path.stem)
def test_the_scripts_of_peers_do_not_import_sabal(path):
    assert not [name for name in imports_of(path) if name.split(".")[0] == "sabal"]


def test_importing_sabal_imports_nothing_heavy():
    code = (
        "import sys, sabal; "
        "print([m for m in ('torch', 'ray', 'matplotlib', 'sklearn', 'pyarrow', "
        "'sqlalchemy', 'fastapi') "
        "if m in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def functions(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_of(function):
    """Lines of a function without its docstring."""
    first = function.body[0]
    documented = ast.get_docstring(function, clean=False) is not None
    docstring = first.end_lineno - first.lineno + 1 if documented else 0
    return function.end_lineno - function.lineno + 1 - docstring


def test_no_function_is_longer_than_sixty_lines():
    paths = [*modules(), *(ROOT / "research").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]
    long = [
        f"{path.relative_to(ROOT)}:{each.name}"
        for path in paths
        # The signature of a command is its documentation.
        if not {"cli", "commands"} & set(path.relative_to(ROOT).parts)
        for each in functions(path)
        if lines_of(each) > MAX_FUNCTION_LINES
    ]
    assert not long


def test_a_module_name_stands_for_one_thing():
    names = [path.stem for path in modules() if path.stem != "__init__"]
    assert sorted(set(names)) == sorted(names)


def test_dir_shows_the_public_names_only():
    assert sorted(dir(sabal)) == sorted([*sabal.__all__, "__version__"])


def test_the_root_has_few_entries():
    entries = [path for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 18


def test_every_public_name_exists_and_is_documented():
    for name in sabal.__all__:
        assert getattr(sabal, name).__doc__
