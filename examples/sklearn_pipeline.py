"""Active learning with a scikit-learn pipeline, round after round.

`sabal.query` takes a fitted pipeline, the pool, and the labelled items. Sabal, margin sampling and
random sampling start from the same 20 labels. Runs in seconds on data from scikit-learn:

    python examples/sklearn_pipeline.py
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sabal

START = 20
BATCH = 20
ROUNDS = 3
SEEDS = 3
STRATEGIES = ("sabal", "margin", "random")


def curve(strategy: str, seed: int) -> list[float]:
    """Return the test accuracy after every round."""
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=0.3, random_state=seed, stratify=labels
    )
    known, _ = train_test_split(
        np.arange(len(train_y)), train_size=START, random_state=seed, stratify=train_y
    )
    accuracies = []
    for round_number in range(ROUNDS + 1):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
        model.fit(train_x[known], train_y[known])
        accuracies.append(float(model.score(test_x, test_y)))
        pool = np.setdiff1d(np.arange(len(train_y)), known)
        batch = sabal.query(
            model,
            train_x[pool],
            BATCH,
            X_labeled=train_x[known],
            y_labeled=train_y[known],
            strategy=strategy,
            random_state=seed * 100 + round_number,
        )
        # Here a person would label train_x[pool[batch.indices]].
        known = np.append(known, pool[batch.indices])
    return accuracies


def main() -> None:
    """Run every strategy, and print the curves."""
    table = Table(title=f"Test accuracy by number of labels, mean over {SEEDS} seeds")
    table.add_column("strategy")
    for round_number in range(ROUNDS + 1):
        table.add_column(str(START + BATCH * round_number), justify="right")
    for strategy in STRATEGIES:
        curves = np.array([curve(strategy, seed) for seed in range(SEEDS)])
        table.add_row(strategy, *(f"{accuracy:.1%}" for accuracy in curves.mean(axis=0)))
    Console().print(table)


if __name__ == "__main__":
    main()
