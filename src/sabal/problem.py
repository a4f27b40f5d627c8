"""Problem 2 of the paper in one form that serves both units, and the steps solvers take on it.

    f(w, S) = gamma ||b v - sum_{j in S} w_j a_j||^2 + beta ||w - 1||^2 - sum_{j in S} bonus_j

with v = mean_j a_j and w = 0 outside S. In literal units gamma = 1/b^2 (Phi_j = a_j / b), the bonus
is alpha sigma_j^2, and ||w - 1||^2 runs over all n items. In scale-free units gamma = 1/s^2 with
s^2 = mean ||a_j||^2, the bonus is alpha V_j / mean V, and ||w - 1||^2 runs over S; for |S| = b the
two regularisers differ by a constant, so that solvers need not know which units were asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sabal.arrays import to_host, top_k
from sabal.checks import check_budget, check_features, check_number, check_same_items
from sabal.errors import InputError
from sabal.operators import Dense, HostOperator, Operator

VANISHED = (
    "the atoms vanish (the label distribution equals the prediction, the model is sure of every "
    "item, or losses cancel out): items are ranked by their uncertainty alone; calibrated "
    "`label_probs` bring the representation term back"
)


@dataclass(frozen=True, eq=False)
class Problem:
    """What to minimise over a batch of `budget` items and their weights."""

    atoms: Operator
    norms_squared_N: np.ndarray
    target: np.ndarray
    bonus_N: np.ndarray
    budget: int
    fidelity: float
    beta: float
    beta_outside: float
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_atoms(
        cls, atoms_NM: Any, sigma2_N: Any, budget: int, *, alpha: float, beta: float
    ) -> Problem:
        """Problem 2 as printed, from explicit atoms and sigma_j^2 (literal units)."""
        atoms = check_features(atoms_NM, "atoms")
        sigma2 = check_features(np.reshape(to_host(sigma2_N), (-1, 1)), "sigma2")[:, 0]
        check_same_items(atoms=atoms, sigma2=sigma2)
        if sigma2.min() < 0:
            raise InputError(
                "`sigma2` of at least 0", f"{sigma2.min():.4g}", "pass squared deviations"
            )
        return cls.literal(Dense(atoms), sigma2, budget, alpha=alpha, beta=beta)

    @classmethod
    def literal(
        cls,
        atoms: Operator,
        sigma2_N: np.ndarray,
        budget: int,
        *,
        alpha: float,
        beta: float,
        noise: float = 0.0,
        warnings: tuple[str, ...] = (),
    ) -> Problem:
        """Units as printed: gamma = 1/b^2, bonus alpha sigma_j^2, the norm over all n."""
        budget = check_budget(budget, atoms.size)
        beta = check_number(beta, "beta")
        norms_squared_N = atoms.norms_squared()
        if np.mean(norms_squared_N) <= noise**2:
            warnings = (*warnings, VANISHED)
        return cls(
            atoms=atoms,
            norms_squared_N=norms_squared_N,
            target=_scaled_mean(atoms, budget),
            bonus_N=check_number(alpha, "alpha") * sigma2_N,
            budget=budget,
            fidelity=1.0 / budget**2,
            beta=beta,
            beta_outside=beta,
            warnings=warnings,
        )

    @classmethod
    def scale_free(
        cls,
        atoms: Operator,
        uncertainty_N: np.ndarray,
        budget: int,
        *,
        alpha: float,
        beta: float,
        noise: float = 0.0,
        warnings: tuple[str, ...] = (),
    ) -> Problem:
        """Units that mean the same on every data set: gamma = 1/s^2, bonus alpha u_j / mean u.

        Atoms whose root mean square s is at most `noise` say nothing: the representation term is
        left out, and the uncertainty alone ranks the items.
        """
        budget = check_budget(budget, atoms.size)
        alpha, beta = check_number(alpha, "alpha"), check_number(beta, "beta")
        norms_squared_N = atoms.norms_squared()
        mean_square = float(np.mean(norms_squared_N))
        mean_uncertainty = float(np.mean(uncertainty_N))
        vanished = mean_square <= noise**2
        if vanished:
            warnings = (*warnings, VANISHED)
            alpha = alpha or 1.0
        unit = mean_uncertainty if mean_uncertainty > 0 else 1.0
        return cls(
            atoms=atoms,
            norms_squared_N=norms_squared_N,
            target=_scaled_mean(atoms, budget),
            bonus_N=alpha * (uncertainty_N / unit),
            budget=budget,
            fidelity=0.0 if vanished else 1.0 / mean_square,
            beta=beta,
            beta_outside=0.0,
            warnings=warnings,
        )

    @property
    def size(self) -> int:
        """The number of items in the pool."""
        return self.atoms.size

    @cached_property
    def curvature_N(self) -> np.ndarray:
        """Gamma ||a_j||^2 + beta: half the second derivative of f along each weight."""
        return self.fidelity * self.norms_squared_N + self.beta

    # -- what a batch is worth ---------------------------------------------------------------

    def objective(self, indices: Any, weights: Any) -> float:
        """f(w, S) for the items S = `indices` with their `weights`."""
        return self.figures(indices, weights)["objective"]

    def figures(self, indices: Any, weights: Any) -> dict[str, float]:
        """`objective` of a batch with the two terms that matter in it, `bias` and `variance`."""
        chosen, weights_S = self._checked(indices, weights)
        residual = self.target - self.atoms.take(chosen).combine(weights_S)
        return {
            "objective": self.value(chosen, weights_S, residual),
            "bias": self.bias(residual),
            "variance": self.variance(chosen),
        }

    def value(self, chosen: np.ndarray, weights_S: np.ndarray, residual: np.ndarray) -> float:
        """f(w, S) when the residual b v - sum w_j a_j is at hand."""
        regulariser = self.beta * float(np.sum((weights_S - 1.0) ** 2))
        outside = self.beta_outside * (self.size - chosen.size)
        return self.bias(residual) - self.variance(chosen) + regulariser + outside

    def bias(self, residual: np.ndarray) -> float:
        """The representation term gamma ||b v - sum w_j a_j||^2."""
        return self.fidelity * float(np.sum(residual**2))

    def variance(self, chosen: np.ndarray) -> float:
        """The uncertainty that a batch collects, sum_S bonus_j: what f subtracts."""
        return float(np.sum(self.bonus_N[chosen]))

    # -- the steps of Algorithms 1 to 4; f_1 is f without the bonus --------------------------

    def gradient(
        self, atoms: Operator, weights: np.ndarray | float, residual: np.ndarray
    ) -> np.ndarray:
        """Grad f_1 at `weights` for `atoms` (all, or some): 2 beta (w - 1) - 2 gamma <a, r>."""
        # gamma goes in before the product: with it the result is of order 1 in any dtype.
        return 2.0 * self.beta * (weights - 1.0) - 2.0 * atoms.correlate(self.fidelity * residual)

    def line_search(
        self, residual: np.ndarray, weights: np.ndarray, step: np.ndarray, step_sum: np.ndarray
    ) -> float:
        """Algorithm 3 (LineSearch): the mu that minimises f_1(w - mu u); `step_sum` = sum u_j a_j.

        A direction without curvature (zero atoms, beta = 0) gets mu = 0.
        """
        slope = -self.fidelity * float(np.sum(residual * step_sum))
        slope += self.beta * float(np.dot(weights - 1.0, step))
        curvature = self.fidelity * float(np.sum(step_sum**2))
        curvature += self.beta * float(np.dot(step, step))
        return slope / curvature if curvature > 0 else 0.0

    def debias(
        self, atoms: HostOperator, weights: np.ndarray, residual: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Algorithm 4 (De-bias) over `atoms`, then weights clipped at zero; with the new residual.

        `atoms` are those of S, not of the positive weights as printed: a weight that was clipped
        may come back, and S keeps its b items. With only some atoms of S the other weights stay.
        """
        step = self.gradient(atoms, weights, residual)
        step_sum = atoms.combine(step)
        mu = self.line_search(residual, weights, step, step_sum)
        adjusted = weights - mu * step
        if adjusted.min(initial=0.0) < 0:
            adjusted = np.maximum(adjusted, 0.0)
            return adjusted, residual + atoms.combine(weights - adjusted)
        return adjusted, residual + mu * step_sum

    def prox(
        self, point_N: np.ndarray, step_size: float, rule: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Algorithm 2 line 6: the b items S of min 1/2 ||w - s||^2 + mu f_2(w) over w >= 0.

        "exact": items left out cost 1/2 [s_j]_+^2, so S is the top b of
        1/2 [s_j]_+^2 + mu bonus_j with mu the step just taken. "paper": the b smallest of
        1/2 [-s_j]_+^2 - bonus_j, as the appendix prints it, which forgets that cost and mu.
        Returns S, best first, and what it was ranked by.
        """
        if rule == "paper":
            scores_N = self.bonus_N - 0.5 * np.maximum(-point_N, 0.0) ** 2
        else:
            # Where no step could be taken s is zero, and any mu ranks the same.
            scores_N = 0.5 * np.maximum(point_N, 0.0) ** 2 + (step_size or 1.0) * self.bonus_N
        chosen = top_k(scores_N, self.budget)
        return chosen, scores_N[chosen]

    def _checked(self, indices: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
        chosen, weights_S = np.asarray(indices), to_host(weights)
        valid = chosen.ndim == 1 and chosen.dtype.kind in "iu" and chosen.shape == weights_S.shape
        if not valid or (chosen.size and (chosen.min() < 0 or chosen.max() >= self.size)):
            raise InputError(
                f"`indices` between 0 and {self.size - 1}, each with one weight",
                f"indices of shape {chosen.shape}, dtype {chosen.dtype}, "
                f"weights of shape {weights_S.shape}",
                "pass for instance solution.indices and solution.weights",
            )
        if np.unique(chosen).size != chosen.size:
            raise InputError("distinct `indices`", "a repeated index", "name every item once")
        return chosen.astype(np.int64), weights_S


def _scaled_mean(atoms: Operator, budget: int) -> np.ndarray:
    """B v: what the weighted sum of a batch has to match."""
    return budget * atoms.combine(np.full(atoms.size, 1.0 / atoms.size))
