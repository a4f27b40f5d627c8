"""The package knows nothing of research, and a name in research stands for one thing."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import research
import sabal

PACKAGE = Path(sabal.__file__).parent
RESEARCH = Path(research.__file__).parent
MODULES = sorted(RESEARCH.rglob("*.py"))


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module).split(".")[0]


def test_sabal_never_imports_research():
    assert not [path for path in PACKAGE.rglob("*.py") if "research" in imported(path)]


@pytest.mark.parametrize(
    "path", sorted((RESEARCH / "bench" / "peers").glob("*.py")), ids=lambda path: path.stem
)
def test_the_scripts_of_other_libraries_import_neither(path):
    assert not {"sabal", "research"} & set(imported(path))


def test_modules_have_names_of_their_own():
    names = Counter(path.stem for path in MODULES if path.stem != "__init__")
    assert [name for name, count in names.items() if count > 1] == []


def test_public_classes_have_names_of_their_own():
    names = Counter(
        node.name
        for path in MODULES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []
