"""Strategies of other packages: found by an entry point, in today's form and in that of 0.1."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import sabal
from sabal.cli import app
from sabal.strategies import make_selection, registry

WRITTEN_FOR_0_1 = '''\
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal import Outputs, Selection
from sabal.strategies.base import selection_of


@dataclass(frozen=True, kw_only=True)
class Longest:
    """The items with the longest feature vectors."""

    name: ClassVar[str] = "longest"
    needs: ClassVar[tuple[str, ...]] = ("features",)
    paper: ClassVar[str] = "none"
    cost: ClassVar[str] = "O(n d)"

    power: float = 2.0

    def select(self, outputs: Outputs, budget: int, rng: np.random.Generator) -> Selection:
        """The top of the ranking."""
        lengths = (np.abs(outputs.features) ** self.power).sum(axis=1)
        order = np.argsort(-lengths, kind="stable")[:budget]
        return selection_of(self, outputs, order, lengths[order])


features = np.random.default_rng(0).normal(size=(100, 8))
batch = Longest().select(Outputs(features=features), 5, np.random.default_rng(0))
'''
"""The example of the documentation of 0.1, to the letter."""

TODAY = '''\
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import sabal
from sabal.strategies import make_selection


@dataclass(frozen=True, kw_only=True)
class Longest(sabal.Strategy):
    """The items with the longest feature vectors."""

    name: ClassVar[str] = "longest"
    needs: ClassVar[tuple[str, ...]] = ("features",)
    paper: ClassVar[str] = "none"
    cost: ClassVar[str] = "O(n d)"

    power: float = 2.0

    def select(self, pool, budget, rng):
        lengths = (np.abs(pool.features) ** self.power).sum(axis=1)
        order = np.argsort(-lengths, kind="stable")[:budget]
        return make_selection(self, pool, order, lengths[order])
'''

FEATURES = np.random.default_rng(0).normal(size=(100, 8))
LONGEST = np.argsort(-(FEATURES**2).sum(axis=1), kind="stable")[:5]


@pytest.fixture(params=[WRITTEN_FOR_0_1, TODAY], ids=["0.1", "today"])
def plugin(request, tmp_path, monkeypatch):
    """A package with a strategy, as `pip install` leaves it."""
    (tmp_path / "longest_plugin.py").write_text(request.param)
    info = tmp_path / "longest_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: longest-plugin\nVersion: 1.0\n")
    points = "[sabal.strategies]\nlongest = longest_plugin:Longest\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    registry.strategies.cache_clear()
    yield importlib.import_module("longest_plugin")
    registry.strategies.cache_clear()
    sys.modules.pop("longest_plugin")


def test_select_finds_a_plugin_by_its_name(plugin):
    batch = sabal.select(5, features=FEATURES, strategy="longest", random_state=0)
    np.testing.assert_array_equal(batch.indices, LONGEST)
    assert batch.strategy == "longest"
    again = sabal.select(5, features=FEATURES, strategy="longest", power=4.0, random_state=0)
    assert again.evidence["options"] == {"power": 4.0}
    assert (again.scores > batch.scores).all()


def test_a_plugin_can_be_called_by_hand(plugin):
    pool = sabal.ArrayPool(features=FEATURES)
    batch = plugin.Longest().select(pool, 5, np.random.default_rng(0))
    np.testing.assert_array_equal(batch.indices, LONGEST)
    np.testing.assert_array_equal(batch.weights, np.ones(5))


def test_the_example_of_0_1_runs_as_it_was_printed():
    made = {"__name__": "plugin"}
    sys.modules["plugin"] = type(sys)("plugin")  # where a dataclass looks for its module
    try:
        exec(WRITTEN_FOR_0_1, made)  # noqa: S102
    finally:
        del sys.modules["plugin"]
    np.testing.assert_array_equal(made["batch"].indices, LONGEST)


def test_a_pool_on_disk_is_brought_into_memory_for_a_plugin(plugin, tmp_path):
    (tmp_path / "pool").mkdir()
    np.save(tmp_path / "pool" / "features.npy", FEATURES)
    batch = sabal.select_pool(tmp_path / "pool", 5, strategy="longest", random_state=0)
    np.testing.assert_array_equal(batch.indices, LONGEST)
    with pytest.raises(sabal.SabalError, match="reads a pool in passes"):
        sabal.select_pool(tmp_path / "pool", 5, strategy="longest", memory="8kB")


def test_mistakes_with_a_plugin_are_found(plugin):
    with pytest.raises(sabal.SabalError, match="power"):
        sabal.select(5, features=FEATURES, strategy="longest", powr=2.0)
    with pytest.raises(sabal.SabalError, match="features for the strategy 'longest'"):
        sabal.select(5, probs=np.full((10, 2), 0.5), strategy="longest")


def test_the_command_line_knows_a_plugin(plugin, tmp_path):
    np.savez(tmp_path / "pool.npz", features=FEATURES)
    words = ["select", str(tmp_path / "pool.npz"), "--budget", "5", "--strategy", "longest"]
    answer = CliRunner().invoke(app, [*words, "--json"])
    assert answer.exit_code == 0, answer.output
    assert '"longest"' in answer.stdout
    listed = CliRunner().invoke(app, ["strategies", "--json"])
    names = json.loads(listed.stdout)
    assert "longest" in str(names)


def test_a_plugin_cannot_take_over_a_built_in_name(tmp_path, monkeypatch):
    info = tmp_path / "thief-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thief\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sabal.strategies]\nmargin = thief:Margin\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry.strategies.cache_clear()
    try:
        with pytest.raises(sabal.SabalError, match="a second strategy named 'margin'"):
            sabal.select(5, features=FEATURES, strategy="margin")
    finally:
        registry.strategies.cache_clear()


def test_a_strategy_of_ones_own_is_passed_as_it_is():
    """Without a package and an entry point, in a notebook for instance."""

    @dataclass(frozen=True, kw_only=True)
    class First(sabal.Strategy):
        """The first rows."""

        name: ClassVar[str] = "first"
        needs: ClassVar[tuple[str, ...]] = ("features",)
        paper: ClassVar[str] = "none"
        cost: ClassVar[str] = "O(1)"

        start: int = 0

        def select(self, pool, budget, rng):
            rows = np.arange(self.start, self.start + budget)
            return make_selection(self, pool, rows, np.zeros(budget))

    batch = sabal.select(3, features=np.ones((9, 2)), strategy=First(start=2))
    assert batch.indices.tolist() == [2, 3, 4]
    assert (batch.strategy, batch.evidence["items"]) == ("first", 9)
    with pytest.raises(sabal.SabalError, match="set them where it is made"):
        sabal.select(3, features=np.ones((9, 2)), strategy=First(), start=1)
    with pytest.raises(sabal.SabalError, match=r"derive your own from sabal\.Strategy"):
        sabal.select(3, features=np.ones((9, 2)), strategy=object())
