"""Which images to label next, with a PyTorch classifier of your own.

Any module with a named last linear layer will do: `sabal.models.Wrapped` finds the features that
reach that layer. A small convolutional network starts from 40 labelled digits and gets 40 more,
twice, chosen by Sabal or drawn at random. Needs PyTorch (`pip install ".[torch]"`); runs in
seconds on data from scikit-learn:

    python examples/pytorch_images.py
"""

from __future__ import annotations

import numpy as np
import torch
from rich.console import Console
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

import sabal
from sabal import models

START = 40
BATCH = 40
ROUNDS = 2
SEED = 0


class Digits(nn.Module):
    """Two convolutions and a dense layer, independent of Sabal."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(128, 64),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(64, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits of shape (n, 10)."""
        logits: Tensor = self.classifier(self.body(images))
        return logits


def trained(images: np.ndarray, labels: np.ndarray) -> models.Wrapped:
    """Train a new network on the labelled images; replace it by your own training loop."""
    torch.manual_seed(SEED)
    network = models.Wrapped(Digits(), last_layer="classifier")
    models.fit(
        network, images, labels, epochs=20, batch_size=16, optimizer="adam", lr=3e-3, seed=SEED
    )
    return network


def accuracy(network: models.Wrapped, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of images that the network classifies correctly."""
    with torch.no_grad():
        answers = network(torch.from_numpy(images)).argmax(dim=1).numpy()
    return float(np.mean(answers == labels))


def main() -> None:
    """Label in batches, and print the accuracy of the network after each."""
    torch.set_num_threads(1)
    console = Console()
    digits = load_digits()
    images = (digits.images[:, None] / 16.0).astype(np.float32)  # items, channels, height, width
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits.target, test_size=0.3, random_state=SEED, stratify=digits.target
    )
    start, _ = train_test_split(
        np.arange(len(train_y)), train_size=START, random_state=SEED, stratify=train_y
    )
    console.print("Test accuracy (one run of each: a demonstration, not a result)")
    for strategy in ("sabal", "random"):
        known, accuracies = start, []
        for round_number in range(ROUNDS + 1):
            network = trained(train_x[known], train_y[known])
            accuracies.append(accuracy(network, test_x, test_y))
            if round_number == ROUNDS:
                break
            pool = np.setdiff1d(np.arange(len(train_y)), known)
            outputs = models.pool_outputs(network, train_x[pool], x_labeled=train_x[known])
            batch = sabal.select(
                BATCH,
                features=outputs.features,
                logits=outputs.logits,
                labeled_features=outputs.labeled_features,
                strategy=strategy,
                random_state=SEED + round_number,
            )
            known = np.append(known, pool[batch.indices])
        steps = [
            f"{value:.1%} with {START + BATCH * number} labels"
            for number, value in enumerate(accuracies)
        ]
        console.print(f"  {strategy:>6}: {', '.join(steps)}")


if __name__ == "__main__":
    main()
