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
    "sparse",
    "pools",
    "strategies",
    "api",
    "estimators",
    "models",
    "learners",
    "integrations",
    "loop",
    "simulate",
    "labeling",
    "cli",
    "__main__",
    "__init__",
]
HEAVY = {"torch", "ray", "fastapi", "sqlalchemy"}
ALLOWED_HEAVY = {"models": {"torch"}, "adapters": {"torch"}, "labeling": {"fastapi", "sqlalchemy"}}
RAY = PACKAGE / "pools" / "cluster" / "ray_engine.py"
"""The one file that may import ray."""
SLOW_TO_IMPORT = {"scipy", "sklearn", "pyarrow", "matplotlib", "rich", "pandas"}


PEERS = PACKAGE / "bench" / "peers"
"""Scripts that run in the environments of other packages, and know nothing of this one."""


def modules():
    return sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PEERS)


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
    # Only the terminal's own rooms, which the library does not import, may import rich up front.
    allowed = {"rich"} if path.stem == "show" or room_of(path) in ("cli", "bench") else set()
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


def test_no_file_has_grown_past_three_hundred_lines():
    long = {str(p): n for p in modules() if (n := len(p.read_text().splitlines())) > 300}
    assert not long


def test_every_public_name_exists_and_is_documented():
    for name in sabal.__all__:
        assert getattr(sabal, name).__doc__
