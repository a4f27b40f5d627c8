"""What a newcomer meets first: names, warnings, completion, and one unit in a summary."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import typing
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

import sabal
from sabal.cli import app
from sabal.simulate.curves import Point, summarise
from sabal.simulate.terminal_report import print_results
from sabal.simulate.verdict import verdict
from sabal.strategies.registry import BUILT_IN, StrategyName

X = np.random.default_rng(0).normal(size=(40, 3))


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: sabal.select(3, features=X, seed=3), "random_state"),
        (lambda: sabal.select(3, X=X), "features"),
        (lambda: sabal.select(3, features=X, labelled_features=X), "labeled_features"),
        (lambda: sabal.select_pool({"features": X}, 3, seed=3), "random_state"),
        (lambda: sabal.query(model(), X, 3, X_labelled=X), "X_labeled"),
        (lambda: sabal.query(model(), X, 3, y_labelled=X), "y_labeled"),
        (lambda: sabal.select(3, features=X, batch_size=3), "budget"),
        (lambda: sabal.select(3, features=X, method="badge"), "strategy"),
        (lambda: sabal.select(3, embeddings=X), "features"),
        (lambda: sabal.select(3, features=X, radus=3), "radius"),
    ],
)
def test_other_names_are_understood(call, meant):
    with pytest.raises(sabal.SabalError, match=f"did you mean '{meant}'"):
        call()


def model():
    return GaussianNB().fit(X, np.arange(40) % 2)


HALVES = np.full((40, 2), 0.5)
LOOP = sabal.Loop(LogisticRegression(), np.ones((40, 3)))
LOOP.tell(range(10), np.arange(10) % 2)
LOOP.fit()


def here():
    return inspect.currentframe().f_back.f_lineno


@pytest.mark.parametrize(
    "call",
    [
        lambda: sabal.select(3, probs=np.eye(2)[np.arange(40) % 2]),
        lambda: sabal.select_pool({"features": np.ones((40, 3))}, 3),
        lambda: sabal.query(model(), np.ones((40, 3)), 3),
        lambda: sabal.gradient_problem(X, HALVES, HALVES, 3, alpha=1.0, beta=1.0),
        lambda: LOOP.ask(3),
    ],
    ids=["select", "select_pool", "query", "gradient_problem", "Loop"],
)
def test_a_warning_points_at_the_line_of_the_caller(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    line = inspect.getsourcelines(call)[1]
    assert caught, "these inputs have nothing to choose by"
    for each in caught:
        assert (each.filename, each.lineno) == (__file__, line)
        assert each.category is sabal.SabalWarning


def test_a_strategy_of_ones_own_warns_at_the_line_of_the_caller():
    from dataclasses import dataclass
    from typing import ClassVar

    from sabal.strategies import make_selection

    @dataclass(frozen=True)
    class First(sabal.Strategy):
        name: ClassVar[str] = "first"
        needs: ClassVar[tuple[str, ...]] = ()
        paper: ClassVar[str] = "none"
        cost: ClassVar[str] = "O(1)"

        def select(self, pool, budget, rng):
            rows = np.arange(budget)
            return make_selection(self, pool, rows, rows, warnings=("as they come",))

    line = here() + 2
    with pytest.warns(sabal.SabalWarning, match="as they come") as caught:
        sabal.select(3, features=X, strategy=First())
    assert [(each.filename, each.lineno) for each in caught] == [(__file__, line)]


def test_the_names_of_strategies_are_a_type():
    assert typing.get_args(StrategyName) == tuple(cls.name for cls in BUILT_IN)
    for function in (sabal.select, sabal.select_pool, sabal.query):
        assert StrategyName in typing.get_args(typing.get_type_hints(function)["strategy"])


def points():
    curves = {"sabal": [0.5, 0.8, 0.9], "random": [0.5, 0.6, 0.8]}
    return [
        Point(name, seed, number, 20 * (number + 1), accuracy + 0.001 * seed, 0.1, None)
        for name, curve in curves.items()
        for seed in range(4)
        for number, accuracy in enumerate(curve)
    ]


def test_the_verdict_says_how_many_labels_are_saved():
    assert "with 40 labels instead of 60." in verdict(summarise(points()))


def test_a_summary_as_json_has_one_unit(tmp_path, capsys):
    print_results(points(), tmp_path, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["unit"] == "percent"
    for summary in said["summaries"]:
        assert 50 < summary["auc"] < summary["final_accuracy"] <= 100
        assert summary["labels"] == 60


@pytest.mark.parametrize(
    ("words", "expected"),
    [("sabal sel", ["select"]), ("sabal select p --strategy prob", ["prob-cover"])],
)
def test_shells_complete_commands_and_strategies(words, expected):
    settings = {
        "_SABAL_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    program = "import sys; sys.argv = ['sabal']; from sabal.__main__ import main; main()"
    answer = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | settings,
    )
    assert answer.stdout.split() == expected, answer.stderr


def test_the_title_of_the_evidence_names_what_is_shown(tmp_path):
    np.savez(tmp_path / "pool.npz", features=X)
    said = CliRunner().invoke(app, ["select", str(tmp_path / "pool.npz"), "-b3"]).stdout
    assert "objective: lower is better" in " ".join(said.split())
    assert "variance" not in said
