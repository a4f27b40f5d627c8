"""One batch in detail: which 20 digits to label next, and how much they improve the model.

A classifier is trained on 20 labelled digits. Sabal and a random draw each choose 20 more from the
pool. The evidence is printed as a table, and a figure shows the chosen digits, their weights, and
their positions in the pool. Runs in seconds on data from scikit-learn:

    python examples/digits_batch.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import TSNE
from sklearn.model_selection import train_test_split

import sabal
from sabal.cli.tables import evidence_table

LABELED = 20
BUDGET = 20
SEED = 0
PICTURE = Path("demo") / "digits.png"


def train(features: np.ndarray, labels: np.ndarray) -> LogisticRegression:
    """Train the classifier of this example."""
    return LogisticRegression(max_iter=1000).fit(features, labels)


def main() -> None:
    """Choose batches, print the evidence, and draw the figure."""
    console = Console()
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images / 16.0, labels, test_size=0.3, random_state=SEED, stratify=labels
    )
    # The first labels are a stratified draw, so that every digit is represented.
    start_x, pool_x, start_y, pool_y = train_test_split(
        train_x, train_y, train_size=LABELED, random_state=SEED, stratify=train_y
    )
    model = train(start_x, start_y)
    probs = model.predict_proba(pool_x)

    chosen = sabal.query(model, pool_x, BUDGET, random_state=SEED)
    drawn = sabal.query(model, pool_x, BUDGET, strategy="random", random_state=SEED)

    # The objective is the share of the uncertainty that a batch leaves uncovered.
    by_chance_covered = chosen.evidence["random_batch"]
    console.print(evidence_table({"sabal": chosen.evidence, "random": by_chance_covered}))

    def accuracy_with(batch: np.ndarray) -> float:
        more = train(np.vstack([start_x, pool_x[batch]]), np.append(start_y, pool_y[batch]))
        return float(more.score(test_x, test_y))

    rng = np.random.default_rng(SEED)
    random_batches = [rng.choice(len(pool_x), BUDGET, replace=False) for _ in range(20)]
    by_chance = [accuracy_with(batch) for batch in random_batches]
    console.print(f"Test accuracy with {LABELED} labels: {model.score(test_x, test_y):.1%}")
    console.print(f"  with {BUDGET} more chosen by Sabal: {accuracy_with(chosen.indices):.1%}")
    console.print(
        f"  with {BUDGET} more drawn at random: {np.mean(by_chance):.1%} on average over "
        f"{len(by_chance)} draws ({min(by_chance):.1%} to {max(by_chance):.1%})"
    )

    draw(pool_x, probs, {"sabal": chosen, "random": drawn})
    console.print(f"The picture is at {PICTURE.resolve()}", soft_wrap=True)


def draw(pool_x: np.ndarray, probs: np.ndarray, batches: dict[str, sabal.Selection]) -> None:
    """Plot the chosen digits with their weights, and their positions in the pool."""
    plane = TSNE(init="pca", random_state=SEED).fit_transform(pool_x)
    two_best = np.sort(probs, axis=1)[:, -2:]
    uncertainty = 1 - (two_best[:, 1] - two_best[:, 0])
    figure = plt.figure(figsize=(13, 9.5), layout="constrained")
    halves: Any = figure.subfigures(1, 2, wspace=0.04)
    for half, (name, batch) in zip(halves, batches.items(), strict=True):
        half.suptitle(f"{BUDGET} digits chosen by {name}", fontsize=14, fontweight="bold")
        top, bottom = half.subfigures(2, 1, height_ratios=(1.25, 1))
        axes = top.subplots()
        dots = axes.scatter(*plane.T, c=uncertainty, s=9, cmap="viridis", vmin=0, vmax=1)
        size = 60 * np.maximum(batch.weights, 0.3)
        axes.scatter(
            *plane[batch.indices].T, s=size, facecolors="none", edgecolors="crimson", linewidths=2
        )
        axes.set(xticks=[], yticks=[])
        axes.set_title("where they lie in the pool (circle size: weight)", fontsize=10)
        top.colorbar(dots, ax=axes, label="how undecided the model is", shrink=0.7)
        for panel, item, weight in zip(
            bottom.subplots(4, 5).flat, batch.indices, batch.weights, strict=True
        ):
            panel.imshow(pool_x[item].reshape(8, 8), cmap="gray_r")
            panel.set_title(f"weight {weight:.2f}", fontsize=8)
            panel.axis("off")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
