"""Training with and without the weights of a batch.

Each chosen item has an importance weight: how much of the uncertain part of the pool it represents,
1 on average. A classifier can be trained with the weights as `sample_weight` (earlier labels have
weight 1), or without. This example compares both on the same batches, over ten seeds, and tests
whether the difference is more than chance. Runs in seconds on data from scikit-learn:

    python examples/training_weights.py
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import sabal

LABELED = 30
BUDGET = 40
SEEDS = 10


def accuracies(seed: int) -> tuple[float, float, float]:
    """Return the test accuracy before the batch, after it unweighted, and after it weighted."""
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images / 16.0, labels, test_size=0.3, random_state=seed, stratify=labels
    )
    start_x, pool_x, start_y, pool_y = train_test_split(
        train_x, train_y, train_size=LABELED, random_state=seed, stratify=train_y
    )
    model = LogisticRegression(max_iter=1000).fit(start_x, start_y)
    batch = sabal.query(
        model, pool_x, BUDGET, X_labeled=start_x, y_labeled=start_y, random_state=seed
    )
    x = np.vstack([start_x, pool_x[batch.indices]])
    y = np.append(start_y, pool_y[batch.indices])
    weights = np.append(np.ones(LABELED), batch.weights)
    plain = LogisticRegression(max_iter=1000).fit(x, y)
    weighted = LogisticRegression(max_iter=1000).fit(x, y, sample_weight=weights)
    scores = [float(each.score(test_x, test_y)) for each in (model, plain, weighted)]
    return scores[0], scores[1], scores[2]


def main() -> None:
    """Compare on every seed, and relate the differences to their standard error."""
    console = Console()
    before, plain, weighted = np.array([accuracies(seed) for seed in range(SEEDS)]).T
    console.print(f"Test accuracy, mean over {SEEDS} seeds")
    console.print(f"  with {LABELED} labels: {before.mean():.1%}")
    console.print(f"  and {BUDGET} more, weights ignored: {plain.mean():.1%}")
    console.print(f"  and {BUDGET} more, weights as sample_weight: {weighted.mean():.1%}")
    differences = weighted - plain
    mean, error = differences.mean(), differences.std(ddof=1) / np.sqrt(SEEDS)
    console.print(f"Weights change it by {mean:+.2%} (standard error {error:.2%}): ", end="")
    if abs(mean) <= 2 * error:
        console.print("no difference that these seeds could show.")
    else:
        console.print("they help here." if mean > 0 else "they hurt here; leave them out.")
    console.print("One data set and one classifier: on yours, try both.")


if __name__ == "__main__":
    main()
