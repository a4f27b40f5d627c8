"""Several labels per item: which digits to label next.

Is the digit even? Five or more? Does its shape have a hole? Is it prime? A logistic regression for
each of these labels is trained on 20 digits. Sabal chooses 20 more, four times, by the probability
of each label (loss="sigmoid"), and is compared with margin and random sampling. Prints the share of
correct labels on held-out digits, averaged over three draws of the first twenty. Runs in seconds on
data from scikit-learn:

    python examples/multilabel.py
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import sabal

LABELED, BUDGET, ROUNDS, POOL = 20, 20, 4, 1200
STRATEGIES = ("sabal", "margin", "random")


def answers(digits: np.ndarray) -> np.ndarray:
    """Return four labels for every digit: even, large, with a hole, prime."""
    with_hole, prime = np.isin(digits, [0, 6, 8, 9]), np.isin(digits, [2, 3, 5, 7])
    return np.stack([digits % 2 == 0, digits >= 5, with_hole, prime], axis=1).astype(int)


def learning_curve(
    features: np.ndarray, labels: np.ndarray, strategy: str, seed: int
) -> list[float]:
    """Return the share of correct labels, before the first batch and after every one."""
    order = np.random.default_rng(seed).permutation(len(features))
    pool, test = order[:POOL], order[POOL:]
    labeled, shares = pool[:LABELED], []
    for _ in range(ROUNDS + 1):
        model = OneVsRestClassifier(LogisticRegression(max_iter=300))
        model.fit(features[labeled], labels[labeled])
        shares.append(float(np.mean(model.predict(features[test]) == labels[test])))
        left = np.setdiff1d(pool, labeled)
        batch = sabal.select(
            BUDGET,
            loss="sigmoid",
            features=features[left],
            probs=model.predict_proba(features[left]),
            labeled_features=features[labeled],
            strategy=strategy,
            random_state=seed,
        )
        labeled = np.concatenate([labeled, left[batch.indices]])
    return shares


def main() -> None:
    """Run all strategies, and print a table."""
    images, digits = load_digits(return_X_y=True)
    features, labels = images / 16.0, answers(digits)
    table = Table("strategy", title="percent right by number of labels")
    for batches in range(ROUNDS + 1):
        table.add_column(str(LABELED + BUDGET * batches), justify="right")
    for strategy in STRATEGIES:
        curves = [learning_curve(features, labels, strategy, seed) for seed in range(3)]
        table.add_row(strategy, *(f"{100 * share:.1f}" for share in np.mean(curves, axis=0)))
    Console().print(table)


if __name__ == "__main__":
    main()
