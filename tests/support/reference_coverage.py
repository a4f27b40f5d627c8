"""Coverage as its formulas say it: the whole kernel, and every gain at every pick."""

from __future__ import annotations

import numpy as np


def kernel(points, others, radius):
    squares = ((points[:, None, :] - others[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-squares / (2.0 * radius**2))


def on_sphere(points, labeled=None):
    """Both, as the default metric compares them: (x, c) / ||(x, c)|| with x = h - mean."""
    mean = np.mean(points, axis=0)
    lengths = [np.linalg.norm(h - mean) for h in points]
    c = np.percentile(lengths, 75) - np.percentile(lengths, 25)
    c = c if c > 0 else np.std(lengths)

    def unit(h):
        x = np.append(h - mean, c)
        return x / np.linalg.norm(x) if np.any(x) else x

    mapped = np.array([unit(h) for h in points])
    return mapped, None if labeled is None else np.array([unit(h) for h in labeled])


def greedy(points, mass, labeled, radius, budget):
    """Picks, gains (as shares of the mass) and what is covered of every point in the end."""
    mass = mass / mass.sum()
    k = kernel(points, points, radius)
    covered = np.zeros(len(points))
    if labeled is not None:
        covered = kernel(labeled, points, radius).max(axis=0)
    picks, gains = [], []
    for _ in range(budget):
        gain = np.maximum(k - covered, 0.0) @ mass
        gain[picks] = -np.inf
        best = int(np.argmax(gain))
        picks.append(best)
        gains.append(gain[best])
        covered = np.maximum(covered, k[best])
    return np.array(picks), np.array(gains), covered


def weights(points, mass, labeled, radius, picks):
    """The mass of the points that are nearer to a pick than to anything labelled, 1 on average."""
    k = kernel(points, points[picks], radius)
    nearest = k.argmax(axis=1)
    own = np.ones(len(points), dtype=bool)
    if labeled is not None:
        own = k.max(axis=1) > kernel(labeled, points, radius).max(axis=0)
    total = np.bincount(nearest[own], weights=mass[own], minlength=len(picks))
    return total * len(picks) / total.sum()
