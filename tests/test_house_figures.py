"""`scripts/house.py` counts what it says."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "house.py"


@pytest.fixture(scope="module")
def house():
    found = importlib.util.spec_from_file_location("house", SCRIPT)
    module = importlib.util.module_from_spec(found)
    sys.modules["house"] = module
    found.loader.exec_module(module)
    yield module
    del sys.modules["house"]


@pytest.fixture
def package(tmp_path):
    """A small package with one of everything that is counted."""
    for folder in ("strategies", "cli", "pools"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    long = "def long():\n" + "    pass\n" * 60
    (tmp_path / "strategies" / "greedy.py").write_text(
        "class Base:\n    def select(self): ...\nclass Greedy(Base): ...\nclass Helper: ...\n"
        "isinstance(1, Greedy)\n"
    )
    (tmp_path / "pools" / "greedy.py").write_text(
        "isinstance(1, int | Greedy)\nisinstance(1, Helper)\n"
        "isinstance(1, (strategies.Base, int))\n"
    )
    (tmp_path / "pools" / "long.py").write_text(long)
    (tmp_path / "cli" / "select.py").write_text(long)
    (tmp_path / "__pycache__").mkdir()
    return tmp_path


def test_files_lines_and_entries_are_counted(house, package):
    values = [figure.value for figure in house.sizes(package)]
    assert values == [7, 5 + 3 + 61 + 61, 3]


def test_checks_of_strategies_names_and_long_functions_are_found(house, package):
    assert house.strategy_classes(package) == {"Strategy", "Base", "Greedy"}
    assert house.strategy_checks(package).details == ("pools/greedy.py:1", "pools/greedy.py:3")
    assert house.same_names(package).details == ("pools/greedy.py = strategies/greedy.py",)
    assert house.long_functions(package).details == ("pools/long.py:long (61)",)


def test_selections_are_traced(house):
    default, greedy = house.selections()
    assert {"api.py", "core/arrays.py"} <= set(default.details)
    assert default.value < greedy.value
    assert not [name for name in default.details if name.startswith(("labeling/", "models/"))]


@pytest.mark.slow
def test_the_table_has_every_figure():
    answer = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True)
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("| Figure | Now |")
    assert len(lines) == 11
    assert any("storing a label" in line for line in lines)
