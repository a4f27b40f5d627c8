"""Slow, obvious twins of the fast paths, written straight from the formulas in plain NumPy."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import nnls

# -- atoms: expand every label, sum over the classes --------------------------------------------


def with_constant(features, bias):
    ones = np.ones((len(features), 1))
    return np.concatenate([features, ones], axis=1) if bias else np.asarray(features)


def gradient_of_label(h, p, y):
    """g(y) = (p - e_y) (x) h, flattened."""
    e = np.zeros(len(p))
    e[y] = 1.0
    return np.outer(p - e, h).ravel()


def expand(vectors_per_label, q):
    """Atom, variance and deviation of one item from its vector under every label."""
    atom = sum(q[y] * g for y, g in enumerate(vectors_per_label))
    variance = sum(q[y] * np.sum((g - atom) ** 2) for y, g in enumerate(vectors_per_label))
    deviation = sum(q[y] * np.linalg.norm(g - atom) for y, g in enumerate(vectors_per_label))
    return atom, variance, deviation


def gradient_atoms(features, probs, label_probs, bias=True):
    rows = []
    for h, p, q in zip(with_constant(features, bias), probs, label_probs, strict=True):
        rows.append(expand([gradient_of_label(h, p, y) for y in range(len(p))], q))
    return _stack(rows)


def posterior_atoms(log_probs, label_probs=None):
    rows = []
    for j, item in enumerate(log_probs):
        samples, classes = item.shape
        q = np.exp(item).mean(axis=0) if label_probs is None else label_probs[j]
        vectors = []
        for y in range(classes):
            losses = np.array([-item[k, y] for k in range(samples)])
            vectors.append((losses - losses.mean()) / np.sqrt(samples))
        rows.append(expand(vectors, q))
    return _stack(rows)


def _stack(rows):
    atoms, variances, deviations = zip(*rows, strict=True)
    return np.array(atoms), np.array(variances), np.array(deviations)


def curvature_inner_product(p_i, h_i, p_j, h_j):
    """1/2 tr(Lam_i Lam_j) (h_i' h_j)^2."""
    lam_i = np.diag(p_i) - np.outer(p_i, p_i)
    lam_j = np.diag(p_j) - np.outer(p_j, p_j)
    return 0.5 * np.trace(lam_i @ lam_j) * (h_i @ h_j) ** 2


# -- Problem 2 with a dense Phi ------------------------------------------------------------------


class DenseProblem:
    """f(w) = ||v - Phi w||^2 - sum_S bonus + beta ||w - 1||^2, with Phi as columns."""

    def __init__(self, v, phi, bonus, beta, budget, outside=True):
        self.v, self.phi, self.bonus = v, phi, bonus
        self.beta, self.budget, self.outside = beta, budget, outside
        self.n = phi.shape[1]

    @classmethod
    def literal(cls, atoms, sigma2, budget, alpha, beta):
        return cls(atoms.mean(axis=0), atoms.T / budget, alpha * sigma2, beta, budget)

    @classmethod
    def free(cls, atoms, uncertainty, budget, alpha, beta):
        s = np.sqrt(np.mean(np.sum(atoms**2, axis=1)))
        v = budget * atoms.mean(axis=0) / s
        bonus = alpha * uncertainty / uncertainty.mean()
        return cls(v, atoms.T / s, bonus, beta, budget, outside=False)

    def f1(self, w):
        return np.sum((self.v - self.phi @ w) ** 2) + self.beta * np.sum((w - 1) ** 2)

    def gradient(self, w):
        return 2 * self.phi.T @ (self.phi @ w - self.v) + 2 * self.beta * (w - 1)

    def objective(self, indices, weights):
        w = np.zeros(self.n)
        w[indices] = weights
        value = self.f1(w) - np.sum(self.bonus[indices])
        return value if self.outside else value - self.beta * (self.n - len(indices))

    def line_search(self, u, w):
        """Algorithm 3."""
        above = (self.phi @ w - self.v) @ (self.phi @ u) + self.beta * (w - 1) @ u
        below = np.sum((self.phi @ u) ** 2) + self.beta * np.sum(u**2)
        return above / below if below > 0 else 0.0

    def debias(self, w, support):
        """Algorithm 4, over the carried support."""
        u = np.zeros(self.n)
        u[support] = self.gradient(w)[support]
        return w - self.line_search(u, w) * u

    def refitted(self, indices):
        """The best objective that a batch can reach, weights refitted over w >= 0."""
        part = self.phi[:, indices]
        rows = np.concatenate([part, np.sqrt(self.beta) * np.eye(len(indices))])
        right = np.concatenate([self.v, np.sqrt(self.beta) * np.ones(len(indices))])
        weights, _ = nnls(rows, right)
        return self.objective(indices, weights), weights


# -- Algorithms 1 and 2, line by line ------------------------------------------------------------


def greedy_scores(problem: DenseProblem, w, score="optimal-step", tau=1.0):
    """Line 3: what every item would bring; the smallest is picked."""
    gradient = problem.gradient(w)
    values = np.empty(problem.n)
    for j in range(problem.n):
        if score == "first-order":
            values[j] = tau * gradient[j] - problem.bonus[j]
        else:
            curvature = np.sum(problem.phi[:, j] ** 2) + problem.beta
            gain = max(-gradient[j], 0.0) ** 2 / (4 * curvature) if curvature > 0 else 0.0
            values[j] = -gain - problem.bonus[j]
    return values


def greedy(problem: DenseProblem, score="optimal-step", tau=1.0):
    w, support = np.zeros(problem.n), []  # line 1
    while len(support) < problem.budget:  # line 2
        values = greedy_scores(problem, w, score, tau)
        best = min((j for j in range(problem.n) if j not in support), key=lambda j: values[j])
        support.append(best)  # line 4
        unit = np.zeros(problem.n)
        unit[best] = 1.0
        mu = problem.line_search(unit, w)  # line 5
        w = problem.debias(w - mu * unit, support)  # line 6
        w = np.maximum(w, 0.0)  # line 7
    return np.array(support), w[support]


def block_greedy(problem: DenseProblem, picks, candidates, picks_per_fit, score="optimal-step"):
    """Greedy in blocks: candidates by two rankings, weights of a block, then all of them.

    Returns the batch, its weights, and the objective after every pick.
    """
    w, support, history = np.zeros(problem.n), [], []
    standing = standing_scores(problem, score)
    while len(support) < problem.budget:
        values = greedy_scores(problem, w, score)
        free = [j for j in range(problem.n) if j not in support]
        fresh = sorted(free, key=lambda j: values[j])[: candidates - candidates // 2]
        others = [j for j in free if j not in fresh]
        few = sorted(fresh + sorted(others, key=lambda j: standing[j])[: candidates // 2])
        left = min(picks, problem.budget - len(support))
        while left:
            block = []
            for _ in range(min(picks_per_fit, left)):
                values = greedy_scores(problem, w, score)
                best = min((j for j in few if j not in support), key=lambda j: values[j])
                block.append(best)
                support.append(best)
                unit = np.zeros(problem.n)
                unit[best] = 1.0
                w = problem.debias(w - problem.line_search(unit, w) * unit, block)
                w = np.maximum(w, 0.0)
                history.append(problem.objective(support, w[support]))
            w = fitted(problem, support)
            history[-1] = problem.objective(support, w[support])
            left -= len(block)
    return np.array(support), w[support], history


def standing_scores(problem: DenseProblem, score: str):
    """`greedy_scores` of items without weight if there were nothing left to represent."""
    nothing = np.zeros_like(problem.v)
    empty = DenseProblem(nothing, problem.phi, problem.bonus, problem.beta, problem.budget)
    return greedy_scores(empty, np.zeros(problem.n), score)


def fitted(problem: DenseProblem, support):
    """The best weights of `support`, clipped at zero; once more adjusted if any was."""
    part = problem.phi[:, support]
    normal = part.T @ part + problem.beta * np.eye(len(support))
    best_weights = np.linalg.solve(normal, part.T @ problem.v + problem.beta)
    w = np.zeros(problem.n)
    w[support] = np.maximum(best_weights, 0.0)
    if best_weights.min() < 0:
        w = np.maximum(problem.debias(w, support), 0.0)
    return w


def prox(s, bonus, mu, budget, rule):
    if rule == "appendix":
        keys = 0.5 * np.maximum(-s, 0.0) ** 2 - bonus
    elif rule == "line-6":
        keys = -0.5 * np.maximum(s, 0.0) ** 2 - bonus
    else:
        keys = -0.5 * np.maximum(s, 0.0) ** 2 - mu * bonus
    return np.argsort(keys, kind="stable")[:budget]


def prox_by_enumeration(s, bonus, mu, budget):
    """min over every S of 1/2 ||w - s||^2 - mu sum_S bonus with w = [s]_+ on S, 0 elsewhere."""
    best, best_value = None, np.inf
    for chosen in combinations(range(len(s)), budget):
        w = np.zeros(len(s))
        w[list(chosen)] = np.maximum(s[list(chosen)], 0.0)
        value = 0.5 * np.sum((w - s) ** 2) - mu * np.sum(bonus[list(chosen)])
        if value < best_value:
            best, best_value = chosen, value
    return np.array(best), best_value


def iht(problem: DenseProblem, rule="exact", iterations=300, tol=1e-5):
    w, z = np.zeros(problem.n), np.zeros(problem.n)  # line 1
    best, best_value = None, np.inf
    for _ in range(iterations):  # line 2
        previous = w  # line 3
        gradient = problem.gradient(z)
        mu = problem.line_search(gradient, z)  # line 4
        s = z - mu * gradient  # line 5
        support = prox(s, problem.bonus, mu, problem.budget, rule)  # line 6
        w = np.zeros(problem.n)
        w[support] = np.maximum(s[support], 0.0)
        w = np.maximum(problem.debias(w, support), 0.0)  # lines 7 and 8
        value = problem.objective(support, w[support])
        if value < best_value:
            best, best_value = (support, w[support]), value
        if np.linalg.norm(w - previous) <= tol * np.linalg.norm(w):
            break
        tau = problem.line_search(w - previous, w)  # line 9
        z = w - tau * (w - previous)  # line 10
    return best


def enumerate_objectives(problem: DenseProblem):
    """The refitted objective of every batch."""
    return np.array(
        [
            problem.refitted(list(chosen))[0]
            for chosen in combinations(range(problem.n), problem.budget)
        ]
    )


# -- uncertainty ----------------------------------------------------------------------------------


def margin(p):
    first, second = sorted(p, reverse=True)[:2]
    return 1 - (first - second)


def entropy(p):
    return -sum(x * np.log(x) for x in p if x > 0)


def mutual_information(log_probs_KC):
    probs = np.exp(log_probs_KC)
    return entropy(probs.mean(axis=0)) - np.mean([entropy(row) for row in probs])
