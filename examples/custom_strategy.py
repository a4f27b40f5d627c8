"""A strategy of your own, found by name like the built-in ones.

A strategy is a frozen dataclass derived from `sabal.Strategy`: its fields are its options, and
`needs` lists the arrays it uses. In a package of your own, these lines of pyproject.toml register
it:

    [project.entry-points."sabal.strategies"]
    spread-margin = "my_package:SpreadMargin"

Once that package is installed, `sabal.select(..., strategy="spread-margin")`, the command line and
`sabal simulate` find it. This file registers itself while it runs, so that nothing has to be
installed:

    python examples/custom_strategy.py
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from rich.console import Console
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import sabal
from sabal.strategies import make_selection

LABELED = 30
BUDGET = 20
SEED = 0
ENTRY_POINTS = """
[sabal.strategies]
spread-margin = __main__:SpreadMargin
"""


@dataclass(frozen=True)
class SpreadMargin(sabal.Strategy):
    """The most uncertain items, but never two that are near each other.

    Parameters
    ----------
    quantile : float
        The quantile of the distances between items below which two items are near.
    """

    name: ClassVar[str] = "spread-margin"
    needs: ClassVar[tuple[str, ...]] = ("features", "probs")
    paper: ClassVar[str] = "-"
    cost: ClassVar[str] = "O(n d) per pick"

    quantile: float = 0.1

    def select(
        self, pool: sabal.ArrayPool, budget: int, rng: np.random.Generator
    ) -> sabal.Selection:
        """Take the most uncertain item, exclude its neighbours, and repeat."""
        features = np.asarray(pool.features, dtype=np.float64)
        two_best = np.sort(np.asarray(pool.probs, dtype=np.float64), axis=1)[:, -2:]
        undecided = 1.0 - (two_best[:, 1] - two_best[:, 0])
        one, other = rng.integers(len(features), size=(2, 1000))
        near = np.quantile(np.linalg.norm(features[one] - features[other], axis=1), self.quantile)
        picks: list[int] = []
        score = undecided.copy()
        for _ in range(budget):
            if np.all(np.isneginf(score)):  # all items are near a pick: start again with the rest
                score = undecided.copy()
                score[picks] = -np.inf
            picks.append(int(np.argmax(score)))
            score[np.linalg.norm(features - features[picks[-1]], axis=1) <= near] = -np.inf
        indices = np.array(picks)
        return make_selection(
            self, pool, indices, undecided[indices], evidence={"near": float(near)}
        )


def declare(folder: Path) -> None:
    """Write the metadata that `pip install` creates for these entry points."""
    info = folder / "spread_margin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: spread-margin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    sys.path.append(str(folder))


def main() -> None:
    """Compare the strategy with two built-in ones, all by name."""
    console = Console()
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images / 16.0, labels, test_size=0.3, random_state=SEED, stratify=labels
    )
    start_x, pool_x, start_y, pool_y = train_test_split(
        train_x, train_y, train_size=LABELED, random_state=SEED, stratify=train_y
    )
    model = LogisticRegression(max_iter=1000).fit(start_x, start_y)
    console.print(f"Test accuracy with {LABELED} labels: {model.score(test_x, test_y):.1%}")
    tried: dict[str, dict[str, Any]] = {
        "spread-margin": {"quantile": 0.2},
        "margin": {},
        "random": {},
    }
    for strategy, options in tried.items():
        batch = sabal.query(model, pool_x, BUDGET, strategy=strategy, random_state=SEED, **options)
        more = LogisticRegression(max_iter=1000).fit(
            np.vstack([start_x, pool_x[batch.indices]]), np.append(start_y, pool_y[batch.indices])
        )
        console.print(f"  with {BUDGET} more by {batch.strategy}: {more.score(test_x, test_y):.1%}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        declare(Path(folder))
        main()
