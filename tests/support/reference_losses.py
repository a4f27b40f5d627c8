"""Slow, obvious twins of the formulas of each loss: every label, or very many of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import torch
from scipy.special import ellipe, gammaln

import reference


def all_labels(q):
    """Every outcome of independent labels as a vector, with its probability."""
    for y in product((0.0, 1.0), repeat=len(q)):
        vector = np.array(y)
        yield vector, np.prod(np.where(vector > 0, q, 1.0 - q))


def sigmoid_atoms(features, probs, label_probs, bias=True):
    """Atom, variance and deviation of every item from its gradient under every set of labels."""
    rows = []
    for h, p, q in zip(reference.with_constant(features, bias), probs, label_probs, strict=True):
        outcomes = [(np.outer(p - y, h).ravel(), weight) for y, weight in all_labels(q)]
        rows.append(reference.expand([g for g, _ in outcomes], [w for _, w in outcomes]))
    return tuple(map(np.array, zip(*rows, strict=True)))


def squared_atoms(features, means, variances, label_means, bias=True, draws=200_000, seed=0):
    """The same from labels drawn from their normal distribution."""
    z = np.random.default_rng(seed).standard_normal((draws, means.shape[1]))
    rows = []
    for j, h in enumerate(reference.with_constant(features, bias)):
        labels = label_means[j] + np.sqrt(variances[j]) * z
        # g(y) = (m - y) (x) h: norms of the factors are all that is needed.
        atom = np.outer((means[j] - labels).mean(axis=0), h).ravel()
        away = np.linalg.norm(label_means[j] - labels, axis=1) * np.linalg.norm(h)
        rows.append((atom, np.mean(away**2), np.mean(away)))
    return tuple(map(np.array, zip(*rows, strict=True)))


def normal_length(variances):
    """E sqrt(sum_o s2_o z_o^2) in closed form: equal variances, or two of any size."""
    variances = np.sort(variances)
    count = len(variances)
    if variances[0] == variances[-1]:
        log_length = gammaln((count + 1) / 2) - gammaln(count / 2)
        return np.sqrt(2.0 * variances[0]) * np.exp(log_length)
    assert count == 2
    # In polar coordinates: the mean length of (z_1, z_2), times the mean over the angles.
    small, large = variances
    return np.sqrt(np.pi / 2) * np.sqrt(large) * ellipe(1.0 - small / large) * 2 / np.pi


def loss_value(name, outputs, label):
    """The loss of one item in torch, from what its last layer puts out."""
    if name == "softmax":
        return -torch.sum(label * torch.log_softmax(outputs, dim=0))
    if name == "sigmoid":
        return torch.nn.functional.binary_cross_entropy_with_logits(outputs, label, reduction="sum")
    return 0.5 * torch.sum((outputs - label) ** 2)


def gradient(name, weights, bias, h, label):
    """The gradient of the loss in the last layer's weights and bias, by automatic means."""
    parameters = [torch.tensor(array, requires_grad=True) for array in (weights, bias)]
    outputs = parameters[0] @ torch.tensor(h) + parameters[1]
    value = loss_value(name, outputs, torch.tensor(label))
    of_weights, of_bias = torch.autograd.grad(value, parameters)
    return torch.cat([of_weights, of_bias[:, None]], dim=1).numpy().ravel()


def hessian(name, outputs, label):
    """The Hessian of the loss in what the last layer puts out."""
    return torch.autograd.functional.hessian(
        lambda values: loss_value(name, values, torch.tensor(label)), torch.tensor(outputs)
    ).numpy()


def margin(p):
    return sum(1.0 - abs(2.0 * each - 1.0) for each in p) / len(p)


def entropy(p):
    return sum(reference.entropy(np.array([each, 1.0 - each])) for each in p)


def predictive_variance(variances):
    columns = [column / column.mean() for column in variances.T if column.any()]
    return sum(columns) if columns else np.zeros(len(variances))
