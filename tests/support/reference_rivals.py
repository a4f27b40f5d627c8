"""Slow, obvious twins of herding, ProbCover and DropQuery, in plain NumPy."""

from __future__ import annotations

import numpy as np


def unit(features):
    x = np.asarray(features, dtype=float)
    lengths = np.sqrt((x**2).sum(axis=1, keepdims=True))
    return np.where(lengths > 0, x / np.where(lengths > 0, lengths, 1.0), 0.0)


def distances(x, y):
    return np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2))


# -- herding --------------------------------------------------------------------------------------


def herding(features, labeled, uncertainty, sigma, budget):
    """The kernel of all pairs, and every gain at every pick: picks and mean gains."""
    x, known = unit(features), unit(labeled)
    kernel = np.exp(-((distances(x, x) / sigma) ** 2))
    covered = np.zeros(len(x))
    if len(known):
        covered = np.exp(-((distances(known, x) / sigma) ** 2)).max(axis=0)
    picks, gains = [], []
    for _ in range(budget):
        gain = (uncertainty * np.maximum(kernel - covered, 0.0)).sum(axis=1)
        gain[picks] = -np.inf
        picks.append(int(np.argmax(gain)))
        gains.append(gain[picks[-1]] / uncertainty.sum())
        covered = np.maximum(covered, kernel[picks[-1]])
    return np.array(picks), np.array(gains)


def smallest_distance(labeled):
    """The smallest positive distance of two labelled items."""
    x = unit(labeled)
    pairs = [np.linalg.norm(a - b) for i, a in enumerate(x) for b in x[:i]]
    return min((d for d in pairs if d > 1e-6), default=1.0)


# -- ProbCover ------------------------------------------------------------------------------------


def purity(points, clusters, delta):
    """The share of the balls in which all points have the cluster of the centre."""
    pure = [
        all(c == clusters[i] for c in clusters[distances(p[None], points)[0] < delta])
        for i, p in enumerate(points)
    ]
    return np.mean(pure)


def prob_cover(features, labeled, delta, budget):
    """A graph of all pairs; picks of the highest out-degree, until all are covered."""
    x, known = unit(features), unit(labeled)
    edges = distances(x, x) < delta
    if len(known):
        edges &= ~(distances(known, x) < delta).any(axis=0)
    picks, degrees = [], []
    for _ in range(budget):
        degree = edges.sum(axis=1)
        best = int(np.argmax(degree))
        if degree[best] == 0:
            break
        picks.append(best)
        degrees.append(int(degree[best]))
        edges &= ~edges[best]
    return picks, degrees


# -- DropQuery ------------------------------------------------------------------------------------


def disagreements(features, weights, bias, samples, dropout, rng):
    """Predictions item by item; masks in the order in which they are drawn."""
    changed = np.zeros(len(features), dtype=int)
    for _ in range(samples):
        for i, h in enumerate(np.asarray(features, dtype=float)):
            kept = h * (rng.random(len(h)) < 1 - dropout) / (1 - dropout)
            changed[i] += np.argmax(kept @ weights + bias) != np.argmax(h @ weights + bias)
    return changed


def central(points, clusters):
    """The point nearest to the mean of each cluster."""
    found = []
    for c in sorted(set(clusters)):
        members = np.flatnonzero(clusters == c)
        middle = points[members].mean(axis=0)
        found.append(members[np.argmin(((points[members] - middle) ** 2).sum(axis=1))])
    return found
