"""Slow, obvious twins of the strategies by distances and clusters, in plain NumPy."""

from __future__ import annotations

from itertools import combinations

import numpy as np

# -- furthest first -------------------------------------------------------------------------------


def squared_distance(a, b):
    return float(np.sum((np.asarray(a, dtype=float) - np.asarray(b, dtype=float)) ** 2))


def furthest_first(features, labelled, first, budget):
    """A pass over the pool per pick: picks, distances when picked, covering radius."""
    x = np.asarray(features, dtype=float)
    nearest = np.full(len(x), np.inf)
    chosen, scores = [], []

    def compare_with(centre):
        np.minimum(nearest, np.sum((x - centre) ** 2, axis=1), out=nearest)

    for centre in labelled:
        compare_with(np.asarray(centre, dtype=float))
    while len(chosen) < budget:
        free = [j for j in range(len(x)) if j not in chosen]
        j = first if not chosen and len(labelled) == 0 else max(free, key=lambda i: nearest[i])
        chosen.append(j)
        scores.append(np.sqrt(nearest[j]))
        compare_with(x[j])
    free = [j for j in range(len(x)) if j not in chosen]
    return np.array(chosen), np.array(scores), np.sqrt(max(nearest[free], default=0.0))


def best_covering_radius(features, budget):
    """The least radius that any `budget` items reach, by enumeration."""
    x = np.asarray(features, dtype=float)
    between = np.sqrt(((x[:, None] - x[None]) ** 2).sum(axis=2))
    return min(between[:, list(c)].min(axis=1).max() for c in combinations(range(len(x)), budget))


# -- BADGE ----------------------------------------------------------------------------------------


def guessed_gradients(features, probs, bias=False):
    """(p - e_yhat) (x) h for every item, multiplied out."""
    rows = []
    for h, p in zip(np.asarray(features, float), np.asarray(probs, float), strict=True):
        e = np.zeros(len(p))
        e[np.argmax(p)] = 1.0
        rows.append(np.outer(p - e, np.append(h, 1.0) if bias else h).ravel())
    return np.array(rows)


def d2(gradients, chosen):
    """Squared distance of every item to the nearest of `chosen`."""
    return np.array([min(squared_distance(g, gradients[c]) for c in chosen) for g in gradients])


def badge(gradients, budget, rng):
    """k-means++ seeding with a pass per pick; draws in the order of `refresh=1`."""
    chosen = [int(np.argmax(np.sum(gradients**2, axis=1)))]
    while len(chosen) < budget:
        cumulative = np.cumsum(d2(gradients, chosen))
        chosen.append(int(np.searchsorted(cumulative, rng.random() * cumulative[-1], "right")))
        rng.random()  # the acceptance test, which a fresh draw always passes
    return np.array(chosen)


def second_and_third_pick(gradients, power=2):
    """The exact probability of every (second, third) pick; power 2 is D^2 sampling."""
    n = len(gradients)
    first = int(np.argmax(np.sum(gradients**2, axis=1)))
    joint = np.zeros((n, n))
    second = d2(gradients, [first]) ** (power / 2)
    for j in np.flatnonzero(second):
        third = d2(gradients, [first, j]) ** (power / 2)
        joint[j] = second[j] / second.sum() * third / third.sum()
    return joint


# -- TypiClust ------------------------------------------------------------------------------------


def typicality(points, i, neighbours):
    others = sorted(
        np.sqrt(squared_distance(points[i], p)) for j, p in enumerate(points) if j != i
    )[:neighbours]
    return 1.0 / np.mean(others) if others else 0.0


def typiclust(features, labelled, clusters, budget, min_size=5, neighbours=20):
    """`clusters` holds the cluster of every pool item, then of every labelled one."""
    points = [*np.asarray(features, float), *np.asarray(labelled, float)]
    n = len(features)
    members = {c: [i for i, k in enumerate(clusters) if k == c] for c in set(clusters)}
    used = {c: [i for i in items if i >= n] for c, items in members.items()}
    chosen, scores = [], []
    for _ in range(budget):
        able = [c for c in members if set(members[c]) - set(used[c])]
        c = min(able, key=lambda c: (len(members[c]) < min_size, len(used[c]), -len(members[c]), c))
        rows = [points[i] for i in members[c]]
        value = {i: typicality(rows, k, neighbours) for k, i in enumerate(members[c])}
        j = max((i for i in members[c] if i not in used[c]), key=lambda i: value[i])
        used[c].append(j)
        chosen.append(j)
        scores.append(value[j])
    return np.array(chosen), np.array(scores)


# -- Cluster-Margin -------------------------------------------------------------------------------


def least_certain(probs, count):
    """The items of the smallest margin, smallest first."""
    ordered = np.sort(np.asarray(probs, dtype=float), axis=1)
    return np.argsort(ordered[:, -1] - ordered[:, -2], kind="stable")[:count]


def round_robin(candidates, clusters, budget):
    """Clusters from the smallest to the largest give an item each, round after round."""
    queues = {}
    for item, c in zip(candidates, clusters, strict=True):
        queues.setdefault(c, []).append(item)  # insertion order breaks ties of size
    ordered = sorted(queues.values(), key=len)
    chosen = []
    while len(chosen) < budget:
        for queue in ordered:
            if queue and len(chosen) < budget:
                chosen.append(queue.pop(0))
    return np.array(chosen)


def average_linkage(points, clusters):
    """Merge the two groups with the least mean distance until `clusters` are left."""
    groups = [[i] for i in range(len(points))]

    def apart(a, b):
        return np.mean([np.sqrt(squared_distance(points[i], points[j])) for i in a for j in b])

    while len(groups) > clusters:
        a, b = min(combinations(groups, 2), key=lambda pair: apart(*pair))
        groups = [g for g in groups if g is not a and g is not b] + [a + b]
    return {frozenset(g) for g in groups}
