"""A Bayesian network: label the items that posterior samples disagree about.

A trained network gets a Laplace posterior over its last layer. `log_probs` are the predictions of
50 networks drawn from it, the same 50 for every item of the pool, for strategies that need a
posterior. Needs PyTorch (`pip install ".[torch]"`); runs in seconds on data from scikit-learn:

    python examples/bayesian_network.py
"""

from __future__ import annotations

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import sabal
from sabal import models

LABELED = 40
BUDGET = 40
SAMPLES = 50
SEED = 0
STRATEGIES = ("sabal", "sabal-greedy", "bald", "random")


def trained(x: np.ndarray, y: np.ndarray) -> models.Network:
    """Train a small dense network, always from the same initial weights."""
    network = models.build("mlp", (64,), 10, seed=SEED, hidden=(64,))
    models.fit(network, x, y, epochs=50, optimizer="adam", lr=1e-2, seed=SEED)
    return network


def figures(network: models.Network, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return accuracy and mean negative log-likelihood on held-out items."""
    log_probs = torch.log_softmax(models.pool_outputs(network, x).logits, dim=1).numpy()
    right = float(np.mean(log_probs.argmax(axis=1) == y))
    return right, float(-log_probs[np.arange(len(y)), y].mean())


def main() -> None:
    """Draw the posterior once, and train on the batch of every strategy."""
    torch.set_num_threads(1)
    console = Console()
    images, labels = load_digits(return_X_y=True)
    pixels = (images / 16.0).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        pixels, labels, test_size=0.3, random_state=SEED, stratify=labels
    )
    start_x, pool_x, start_y, pool_y = train_test_split(
        train_x, train_y, train_size=LABELED, random_state=SEED, stratify=train_y
    )
    network = trained(start_x, start_y)
    posterior = models.Laplace(network, start_x, prior_precision="evidence")
    outputs = models.pool_outputs(
        network, pool_x, posterior=posterior, samples=SAMPLES, x_labeled=start_x, seed=SEED
    )
    n, samples, classes = outputs.log_probs.shape
    console.print(f"log_probs: {n} items, {samples} networks of the posterior, {classes} classes")
    right, loss = figures(network, test_x, test_y)
    console.print(f"With {LABELED} labels: test accuracy {right:.1%}, log loss {loss:.3f}")

    table = Table(title=f"With {BUDGET} more (one run of each: a demonstration, not a result)")
    for name in ("strategy", "test accuracy", "log loss"):
        table.add_column(name, justify="left" if name == "strategy" else "right")
    for strategy in STRATEGIES:
        batch = sabal.select(
            BUDGET,
            features=outputs.features,
            log_probs=outputs.log_probs,
            labeled_features=outputs.labeled_features,
            strategy=strategy,
            random_state=SEED,
        )
        chosen = batch.indices
        more = trained(np.vstack([start_x, pool_x[chosen]]), np.append(start_y, pool_y[chosen]))
        right, loss = figures(more, test_x, test_y)
        table.add_row(strategy, f"{right:.1%}", f"{loss:.3f}")
    console.print(table)


if __name__ == "__main__":
    main()
