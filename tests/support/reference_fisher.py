"""BAIT with every matrix written out and inverted: the slow twin of `strategies/fisher.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TIE = 1e-8


@dataclass
class Bait:
    picks: list[int]
    gains: list[float]
    forward: list[int]
    before: float
    after: float


def information(h, p):
    """I(x) = (diag(p) - p p') (x) h h'."""
    return np.kron(np.diag(p) - np.outer(p, p), np.outer(h, h))


def matrices(features, probs, lam, bias=False, labeled=None):
    """M_0, F, and I(x) of every item in the pool."""
    with_constant = [
        np.concatenate([rows, np.ones((len(rows), 1))], axis=1) if bias else np.asarray(rows)
        for rows in (features, np.zeros((0, features.shape[1])) if labeled is None else labeled)
    ]
    pool = [information(h, p) for h, p in zip(with_constant[0], probs, strict=True)]
    mean_curvature = np.mean([np.diag(p) - np.outer(p, p) for p in probs], axis=0)
    known = [np.kron(mean_curvature, np.outer(h, h)) for h in with_constant[1]]
    fisher = np.mean(pool + known, axis=0)
    return lam * np.eye(len(fisher)) + sum(known), fisher, pool


def normalised(probs):
    return probs / probs.sum(axis=1, keepdims=True)


def trace(m, fisher):
    return float(np.trace(np.linalg.inv(m) @ fisher))


def bait(
    features, probs, budget, labeled=None, regularisation=1.0, oversample=2.0, bias=False, only=None
):
    """Algorithm 1; of equal items the first is added, and of the chosen the last is removed.

    only: the candidates; all items if None.
    """
    m, fisher, pool = matrices(features, normalised(probs), regularisation, bias, labeled)
    before = trace(m, fisher)
    candidates = range(len(pool)) if only is None else only
    chosen, gains = [], []
    while len(chosen) < min(int(np.ceil(oversample * budget)), len(candidates)):
        now = trace(m, fisher)
        gain = {j: now - trace(m + pool[j], fisher) for j in candidates if j not in chosen}
        best = max(gain.values())
        j = min(j for j in gain if gain[j] >= best * (1 - TIE))
        chosen.append(j)
        gains.append(gain[j])
        m = m + pool[j]
    kept = list(chosen)
    while len(kept) > budget:
        now = trace(m, fisher)
        loss = [trace(m - pool[j], fisher) - now for j in kept]
        last = max(k for k in range(len(kept)) if loss[k] <= min(loss) * (1 + TIE))
        m = m - pool[kept[last]]
        del kept[last]
    scores = [gains[chosen.index(j)] for j in kept]
    return Bait(kept, scores, chosen, before, trace(m, fisher))
