"""`scripts/mutants.py` counts a change only if a named test fails, and its changes are in order."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def mutants():
    found = importlib.util.spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
    module = importlib.util.module_from_spec(found)
    sys.modules["mutants"] = module
    found.loader.exec_module(module)
    yield module
    del sys.modules["mutants"]


@pytest.fixture
def mutant(mutants):
    return mutants.Mutant("sparse", "a.py", "return x + 1", "return x - 1", ("tests/a.py::t",))


def test_the_set_is_large_and_names_tests_of_this_tree(mutants):
    every = mutants.read_mutants(mutants.MUTANTS)
    counted = [each for each in every if not each.reason]
    assert len(counted) >= 150
    assert {each.area for each in counted} == set(mutants.AREAS)
    assert len({(e.file, e.line, e.nth, e.to) for e in every}) == len(every)
    for each in every:
        assert each.tests, each
        assert each.line != each.to, each
        assert all((ROOT / test.partition("::")[0]).exists() for test in each.tests), each


def test_one_line_is_changed_or_none(mutant):
    text = "def f(x):\n    return x + 1\n\ndef g(x):\n    return x + 1\n"
    assert mutant.changed(text) == text.replace("+", "-", 1)
    assert replace(mutant, nth=1).changed(text) == text[:-7] + text[-7:].replace("+", "-")
    assert replace(mutant, nth=2).changed(text) is None


def test_only_kills_are_counted(mutants, mutant):
    outcomes = (mutants.KILLED, mutants.SURVIVED, mutants.BROKEN, mutants.ENDLESS, mutants.STALE)
    found = {replace(mutant, nth=k): (each, []) for k, each in enumerate(outcomes)}
    text, share = mutants.table(found)
    assert share == pytest.approx(0.2)
    assert "| sparse | 5 | 1 | 20% |" in text


def test_the_first_test_that_failed_is_named(mutants, mutant, tmp_path):
    other = replace(mutant, nth=1, reason="the same")
    kept = mutants.narrowed([mutant, other], {mutant: (mutants.KILLED, ["tests/b.py::u", "v"])})
    assert [each.tests for each in kept] == [("tests/b.py::u",), mutant.tests]
    mutants.write_mutants(tmp_path / "m.jsonl", kept)
    assert mutants.read_mutants(tmp_path / "m.jsonl") == kept


def test_the_table_replaces_the_one_before(mutants, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{mutants.BEGIN}\nold\n{mutants.END}\nafter\n")
    mutants.write_block(page, "new")
    assert page.read_text() == f"before\n{mutants.BEGIN}\n\nnew\n\n{mutants.END}\nafter\n"
