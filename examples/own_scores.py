"""Scores of your own: which pages to annotate next, for a detector and a tagger.

A page has several digits in it, as an image for object detection has several boxes. What is
labelled is a whole page, and a detector says something about every box. So each page gets a score
(the summed uncertainty of its boxes) and features (the mean of its boxes, weighted by uncertainty).
`sabal` covers the pages by these scores, and is compared with the top scores and with random pages.
Prints the share of boxes that are right on held-out pages, averaged over three draws. The detector
is a logistic regression over boxes that are given, so that this runs in seconds:

    python examples/own_scores.py
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import sabal

BOXES, LABELED, BUDGET, ROUNDS, POOL = 5, 4, 4, 4, 250
STRATEGIES = {"sabal, by scores": "sabal", "the top scores": "margin", "random": "random"}


def make_pages(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pages of boxes, (pages, boxes, pixels), and the digit in every box.

    Nearly every page has the same digit in all its boxes: the boxes of one image are often alike.
    """
    images, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(digits))
    order = order[np.argsort(digits[order], kind="stable")]
    pages = order[: len(order) // BOXES * BOXES].reshape(-1, BOXES)
    pages = rng.permutation(pages)
    return images[pages] / 16.0, digits[pages]


def describe_pages(probs_PBC: np.ndarray, boxes_PBD: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a score and features for every page, from the predictions for its boxes."""
    best_PBC = np.sort(probs_PBC, axis=2)
    uncertain_PB = 1.0 - (best_PBC[..., -1] - best_PBC[..., -2])
    scores_P = uncertain_PB.sum(axis=1)
    share_PB = uncertain_PB / np.maximum(scores_P, 1e-12)[:, None]
    return scores_P, np.einsum("pb,pbd->pd", share_PB, boxes_PBD)


def learning_curve(strategy: str, seed: int) -> list[float]:
    """Return the share of correct boxes, before the first batch and after every one."""
    boxes, digits = make_pages(seed)
    pool, test = np.arange(POOL), np.arange(POOL, len(boxes))
    labeled, shares = pool[:LABELED], []
    for _ in range(ROUNDS + 1):
        model = LogisticRegression(max_iter=300)
        model.fit(boxes[labeled].reshape(-1, 64), digits[labeled].ravel())
        right = model.predict(boxes[test].reshape(-1, 64)) == digits[test].ravel()
        shares.append(float(right.mean()))
        left = np.setdiff1d(pool, labeled)
        probs = model.predict_proba(boxes[left].reshape(-1, 64)).reshape(len(left), BOXES, -1)
        scores, features = describe_pages(probs, boxes[left])
        batch = sabal.select(
            BUDGET,
            scores=scores,
            features=features,
            labeled_features=boxes[labeled].mean(axis=1),
            strategy=strategy,
            random_state=seed,
        )
        labeled = np.concatenate([labeled, left[batch.indices]])
    return shares


def main() -> None:
    """Run all strategies, and print a table."""
    table = Table("pages chosen by", title="percent of boxes right, by number of labelled pages")
    for batches in range(ROUNDS + 1):
        table.add_column(str(LABELED + BUDGET * batches), justify="right")
    for name, strategy in STRATEGIES.items():
        curves = [learning_curve(strategy, seed) for seed in range(3)]
        table.add_row(name, *(f"{100 * share:.1f}" for share in np.mean(curves, axis=0)))
    Console().print(table)


if __name__ == "__main__":
    main()
