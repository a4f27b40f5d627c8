"""Slow, obvious twins of the posterior strategies: loops, full enumeration, dense matrices."""

from __future__ import annotations

from itertools import product

import numpy as np

from reference import entropy, mutual_information


def bald(log_probs):
    return np.array([mutual_information(item) for item in log_probs])


# -- BatchBALD: every joint outcome of the batch ---------------------------------------------------


def joint_information(log_probs, batch):
    """H(y_1..y_b) - sum_j E_k H(y_j | theta_k), over all C^b outcomes."""
    probs = np.exp(log_probs)
    _, samples, classes = probs.shape
    joint_entropy = 0.0
    for outcome in product(range(classes), repeat=len(batch)):
        p = 0.0
        for k in range(samples):
            p += np.prod([probs[j, k, y] for j, y in zip(batch, outcome, strict=True)]) / samples
        joint_entropy -= p * np.log(p) if p > 0 else 0.0
    conditional = sum(entropy(probs[j, k]) / samples for j in batch for k in range(samples))
    return joint_entropy - conditional


def batchbald(log_probs, budget):
    """Greedy picks, the gain of each, and by how much each beat the second best."""
    picks, gains, leads, reached = [], [], [], 0.0
    while len(picks) < budget:
        values = np.full(len(log_probs), -np.inf)
        for j in range(len(log_probs)):
            if j not in picks:
                values[j] = joint_information(log_probs, [*picks, j]) - reached
        second, best = np.sort(values)[-2:]
        picks.append(int(values.argmax()))
        gains.append(best)
        leads.append(best - second)
        reached += best
    return picks, gains, leads


def gain_given_outcomes(log_likelihood, weights, item):
    """sum_m w_m [H(sum_k r_mk p_k) - sum_k r_mk H(p_k)], and the weighted variance of [ ]."""
    probs = np.exp(item)
    values = []
    for row in log_likelihood:
        r = np.exp(row - row.max())
        r /= r.sum()
        values.append(entropy(r @ probs) - sum(r[k] * entropy(probs[k]) for k in range(len(r))))
    values = np.array(values)
    mean = weights @ values
    return mean, weights @ (values - mean) ** 2


# -- ACS-FW with every vector written out and the n x n Gram -----------------------------------


def frank_wolfe(atoms, budget, most):
    """Algorithm 1 in the weights w themselves: picks, w, iterations, residual."""
    n = len(atoms)
    gram = atoms @ atoms.T
    sigmas = np.sqrt(np.diag(gram))
    sigma = sigmas.sum()
    w, picks, iterations = np.zeros(n), [], 0
    while len(picks) < budget and iterations < most:
        scores = np.array([(1 - w) @ gram[:, j] / sigmas[j] for j in range(n)])
        f = int(scores.argmax())
        vertex = np.zeros(n)
        vertex[f] = sigma / sigmas[f]
        direction = vertex - w
        gamma = direction @ gram @ (1 - w) / (direction @ gram @ direction)
        w = w + min(max(gamma, 0.0), 1.0) * direction
        iterations += 1
        if f not in picks:
            picks.append(f)
    return picks, w, iterations, atoms.sum(axis=0) - w @ atoms
