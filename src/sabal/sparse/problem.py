"""Problem 2 of the paper, the steps that its solvers take, and how it is made from a pool.

    f(w, S) = gamma ||b v - sum_{j in S} w_j a_j||^2 + beta ||w - 1||^2 - sum_{j in S} bonus_j

with v = mean_j a_j and w = 0 outside S. In literal units gamma = 1/b^2 (Phi_j = a_j / b), the bonus
is alpha sigma_j^2, and ||w - 1||^2 runs over all n items. In scale-free units gamma = 1/s^2 with
s^2 = mean ||a_j||^2, the bonus is alpha V_j / mean V, and ||w - 1||^2 runs over S; for |S| = b the
two regularisers differ by a constant, so that solvers do not depend on the units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sabal.core.arrays import row_chunks, to_float64_numpy
from sabal.core.checks import (
    check_budget,
    check_choice,
    check_features,
    check_flag,
    check_number,
    check_same_items,
    check_square,
    check_whole,
)
from sabal.errors import InputError
from sabal.pools.pool import UNCERTAINTIES, ArrayPool, Pool, Shard
from sabal.sparse.atoms import (
    VANISHING,
    Atoms,
    clipped_warning,
    curvature_atoms,
    gradient_atoms,
    kernel_atoms,
    posterior_atoms,
)
from sabal.sparse.items import Items, LocalItems, PoolItems, Terms
from sabal.sparse.operators import Dense, Operator
from sabal.sparse.random_features import CurvatureDraws, KernelDraws, draw_curvature, draw_kernel

ATOMS = ("gradient", "posterior", "curvature", "kernel")
SCALES = ("free", "literal")
WIDTHS = {"curvature": 2048, "kernel": 1024}
MAX_WIDTH = 2**20  # the maximum length of random-feature atoms; longer draws take gigabytes

Draws = CurvatureDraws | KernelDraws | None

VANISHED = (
    "the atoms vanish (the label distribution equals the prediction, the model is certain of every "
    "item, losses cancel out, or features are so small that their squares do): items are ranked by "
    "their uncertainty alone; calibrated `label_probs` (`label_means` of a regression) bring the "
    "representation term back"
)


ROUNDED = (
    "predictions, or samples of them, are so alike that rounding makes {:.0%} of the atoms, which "
    "are their differences: it takes part in the choice; compute and pass them in float64"
)
SMALLEST_SQUARE = 1e-280
"""The smallest mean square of atoms; smaller ones have no reciprocal in float64."""

ROUNDED_SHARE = 0.01  # the share of rounding errors in atoms above which a warning is issued


@dataclass(frozen=True, eq=False)
class Problem:
    """The objective over a batch of `budget` items and their weights.

    Attributes
    ----------
    items : Items
        The items of the pool.
    target : array
        b v, the scaled mean of the atoms.
    budget : int
        b, the size of the batch.
    terms : Terms
        gamma, beta and the bonus.
    beta_outside : float
        beta for the items outside S: beta in literal units, else 0.
    warnings : tuple of str
        Warnings about the data.
    """

    items: Items
    target: np.ndarray
    budget: int
    terms: Terms
    beta_outside: float
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_atoms(
        cls, atoms_NM: Any, sigma2_N: Any, budget: int, *, alpha: float, beta: float
    ) -> Problem:
        """Return Problem 2 as printed, from explicit atoms and sigma_j^2 (literal units).

        Parameters
        ----------
        atoms_NM : array of shape (n, m)
            The atoms a_j.
        sigma2_N : array of shape (n,)
            The variances sigma_j^2.
        budget : int
            The size of the batch.
        alpha, beta : float
            The weight of uncertainty, and of weights near 1.
        """
        atoms = check_features(atoms_NM, "atoms")
        sigma2 = check_features(np.reshape(to_float64_numpy(sigma2_N), (-1, 1)), "sigma2")[:, 0]
        check_same_items(atoms=atoms, sigma2=sigma2)
        if sigma2.min() < 0:
            raise InputError(
                "`sigma2` of at least 0", f"{sigma2.min():.4g}", "pass squared deviations"
            )
        return cls.literal(LocalItems(Dense(atoms), sigma2), budget, alpha=alpha, beta=beta)

    @classmethod
    def literal(
        cls, items: Items, budget: int, *, alpha: float, beta: float, warnings: tuple[str, ...] = ()
    ) -> Problem:
        """Return a problem in units as printed: gamma = 1/b^2, bonus alpha sigma_j^2, norm over n.

        The uncertainty of `items` is sigma_j^2.
        """
        budget = check_budget(budget, items.size)
        beta = check_number(beta, "beta")
        terms = Terms(1.0 / budget**2, beta, check_number(alpha, "alpha"), 1.0)
        _, vanished, found = _diagnostics(items)
        warnings = (*warnings, *found, *((VANISHED,) if vanished else ()))
        return cls(items, _scaled_mean(items, budget), budget, terms, beta, warnings)

    @classmethod
    def scale_free(
        cls, items: Items, budget: int, *, alpha: float, beta: float, warnings: tuple[str, ...] = ()
    ) -> Problem:
        """Return a problem in scale-free units: gamma = 1/s^2, bonus alpha u_j / mean u.

        These units are comparable between data sets. If the root mean square s of the atoms is a
        rounding error, the representation term is left out, and only uncertainty ranks the items.
        """
        budget = check_budget(budget, items.size)
        alpha, beta = check_number(alpha, "alpha"), check_number(beta, "beta")
        mean_square, vanished, found = _diagnostics(items)
        warnings = (*warnings, *found)
        if vanished:
            warnings = (*warnings, VANISHED)
            alpha = alpha or 1.0
        mean_uncertainty = float(items.sums().uncertainty.sum()) / items.size
        terms = Terms(
            fidelity=0.0 if vanished else 1.0 / mean_square,
            beta=beta,
            alpha=alpha,
            unit=mean_uncertainty if mean_uncertainty > 0 else 1.0,
        )
        return cls(items, _scaled_mean(items, budget), budget, terms, 0.0, warnings)

    @property
    def size(self) -> int:
        """The number of items in the pool."""
        return self.items.size

    @property
    def fidelity(self) -> float:
        """Gamma, the weight of the representation term."""
        return self.terms.fidelity

    @property
    def beta(self) -> float:
        """The weight of the regulariser."""
        return self.terms.beta

    # -- the objective of a batch ------------------------------------------------------------

    def objective(self, indices: Any, weights: Any) -> float:
        """Return f(w, S) for the items S = `indices` with their `weights`."""
        return self.figures(indices, weights)["objective"]

    def figures(self, indices: Any, weights: Any) -> dict[str, float]:
        """Return the `objective` of a batch with its main terms, `bias` and `variance`."""
        chosen, weights_S = self._checked(indices, weights)
        residual = self.target.copy()
        # A few atoms at a time, as a batch in float64 may be larger than the rest of the selection.
        for rows in row_chunks(chosen.size, 2 * self.items.atom_bytes):
            atoms = self.items.gather(chosen[rows]).to_float64_numpy()
            residual -= atoms.combine(weights_S[rows])
        collected = self.collected(self.items.norms_and_uncertainty(chosen)[1])
        return {
            "objective": self.value(weights_S, residual, collected),
            "bias": self.bias(residual),
            "variance": collected,
        }

    def value(self, weights_S: np.ndarray, residual: np.ndarray, collected: float) -> float:
        """Return f(w, S) from the residual b v - sum w_j a_j and the sum of the bonuses."""
        regulariser = self.beta * float(np.sum((weights_S - 1.0) ** 2))
        outside = self.beta_outside * (self.size - weights_S.size)
        return self.bias(residual) - collected + regulariser + outside

    def bias(self, residual: np.ndarray) -> float:
        """Return the representation term gamma ||b v - sum w_j a_j||^2."""
        return self.fidelity * float(np.sum(residual**2))

    def collected(self, uncertainty_S: np.ndarray) -> float:
        """Return the uncertainty term of a batch, sum_S bonus_j."""
        return float(np.sum(self.terms.bonus(uncertainty_S)))

    # -- the steps of Algorithms 1 to 4; f_1 is f without the bonus --------------------------

    def gradient(
        self, atoms: Operator, weights: np.ndarray | float, residual: np.ndarray
    ) -> np.ndarray:
        """Return grad f_1 at `weights` for some atoms: 2 beta (w - 1) - 2 gamma <a, r>."""
        # gamma is applied before the product, so that the result is of order 1 in any dtype.
        return 2.0 * self.beta * (weights - 1.0) - 2.0 * atoms.correlate(self.fidelity * residual)

    def line_search(
        self, residual: np.ndarray, step_sum: np.ndarray, slope: float, square: float
    ) -> float:
        """Return the mu that minimises f_1(w - mu u): Algorithm 3 (LineSearch).

        `step_sum` = sum u_j a_j, `slope` = sum (w_j - 1) u_j, `square` = sum u_j^2. A direction
        without curvature (zero atoms, beta = 0) gets mu = 0.
        """
        falling = self.beta * slope - self.fidelity * float(np.sum(residual * step_sum))
        curvature = self.fidelity * float(np.sum(step_sum**2)) + self.beta * square
        return falling / curvature if curvature > 0 else 0.0

    def debias(
        self, atoms: Operator, weights: np.ndarray, residual: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return adjusted weights and their residual: Algorithm 4 (De-bias), then clipped at zero.

        `atoms` are those of S, not of the positive weights as printed: a clipped weight may become
        positive again, and S keeps its b items. With some atoms of S the other weights are fixed.
        """
        step = self.gradient(atoms, weights, residual)
        step_sum = atoms.combine(step)
        slope, square = float((weights - 1.0) @ step), float(step @ step)
        mu = self.line_search(residual, step_sum, slope, square)
        adjusted, residual = weights - mu * step, residual + mu * step_sum
        below = np.flatnonzero(adjusted < 0)
        if below.size:
            # The residual is updated for the weights that were clipped.
            residual = residual + atoms.gather(below).combine(adjusted[below])
            adjusted = np.maximum(adjusted, 0.0)
        return adjusted, residual

    def _checked(self, indices: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
        chosen, weights_S = np.asarray(indices), to_float64_numpy(weights)
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


def _diagnostics(items: Items) -> tuple[float, bool, tuple[str, ...]]:
    """Return mean ||a_j||^2, whether it is only rounding error, and warnings."""
    sums = items.sums()
    mean_square = float(sums.norms_squared.sum()) / items.size
    variance = float(sums.variance.sum()) / items.size
    check_square(mean_square + variance, "atoms")
    if not np.all(np.isfinite(sums.atoms)):
        raise InputError("atoms that are finite numbers", "NaN or infinity", "scale the features")
    vanished = mean_square <= max(VANISHING**2 * variance, SMALLEST_SQUARE)
    warnings = clipped_warning(sums.clipped)
    share = 0.0 if vanished else sums.rounding * float(np.sqrt(variance / mean_square))
    if share > ROUNDED_SHARE:
        warnings = (*warnings, ROUNDED.format(share))
    return mean_square, vanished, warnings


def _scaled_mean(items: Items, budget: int) -> np.ndarray:
    """Return b v, the target of the weighted sum of a batch."""
    return budget * (items.sums().atoms.sum(axis=0) / items.size)


@dataclass(frozen=True, eq=False)
class Solution:
    """Exactly b distinct items with their weights.

    Attributes
    ----------
    indices, weights, scores : array of shape (b,)
        The items, their weights, and the scores they were picked by.
    objective, bias, variance : float
        objective = bias - variance + the regulariser of the weights.
    passes, iterations : int
        The number of reads of the whole pool, and of picks or iterations.
    history : array
        The objective after every pick or iteration.
    """

    indices: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    objective: float
    bias: float
    variance: float
    passes: int
    iterations: int
    history: np.ndarray


class Solver(Protocol):
    """Minimises a Problem."""

    def solve(self, problem: Problem) -> Solution:
        """Return a batch of `problem.budget` items."""


def make_solution(
    problem: Problem,
    indices: np.ndarray,
    weights: np.ndarray,
    scores: np.ndarray,
    *,
    passes: int,
    history: list[float],
) -> Solution:
    """Return a Solution with figures computed from its items and weights."""
    return Solution(
        indices=indices,
        weights=weights,
        scores=scores,
        **problem.figures(indices, weights),
        passes=passes,
        iterations=len(history),
        history=np.asarray(history),
    )


# -- from a pool to a problem ------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ProblemSpec:
    """The options of a Problem; small enough to be sent to the shards of a pool.

    The options are those of `sabal.strategies.sparse_approximation.SparseApproximation`.
    """

    atoms: str
    uncertainty: str | None = None
    alpha: float = 1.0
    beta: float = 1.0
    scale: str = "free"
    bias: bool = True
    width: int | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        check_choice(self.atoms, "atoms", ATOMS)
        check_choice(self.scale, "scale", SCALES)
        check_number(self.alpha, "alpha")
        check_number(self.beta, "beta")
        check_flag(self.bias, "bias")
        if self.uncertainty is not None:
            check_choice(self.uncertainty, "uncertainty", UNCERTAINTIES)
        if self.width is not None:
            self._check_width(self.width)
        if self.temperature is not None:
            check_number(self.temperature, "temperature", above=0.0)
        if self.scale == "literal" and self.atoms in WIDTHS:
            raise InputError(
                "scale='free' for curvature and kernel atoms (the paper has no units for them)",
                "scale='literal'",
                "leave scale out",
            )

    def _check_width(self, width: int) -> None:
        check_whole(width, "width", minimum=2)
        if width > MAX_WIDTH:
            raise InputError(
                f"`width` of at most {MAX_WIDTH:,}", f"{width:,}", "use fewer features"
            )
        if self.atoms == "kernel" and width % 2:
            raise InputError(
                "an even `width` (a cosine and a sine each)", str(width), "add one to it"
            )

    @property
    def depends_on_block(self) -> bool:
        """Whether the rounding of an atom depends on its block, as in matrix products."""
        return self.atoms in WIDTHS

    def problem(
        self,
        pool: Pool,
        budget: int,
        rng: np.random.Generator,
        *,
        uncertainty_N: np.ndarray | None = None,
    ) -> Problem:
        """Return the Problem of choosing `budget` items of a pool.

        Parameters
        ----------
        pool : Pool
            The pool.
        budget : int
            The size of the batch.
        rng : numpy.random.Generator
            Draws random features.
        uncertainty_N : array of shape (n,), optional
            A custom uncertainty in place of a named one, for a pool in this process.
        """
        draws = self.draw(pool, rng)
        items: Items
        if uncertainty_N is None:
            items = PoolItems(pool, self, draws)
        else:
            here, rows = pool.rows_here(np.arange(pool.size))
            items = self.local_items(here.shard, draws, uncertainty_N=uncertainty_N[rows])
        return self.problem_over(items, budget, draws)

    def problem_over(self, items: Items, budget: int, draws: Draws) -> Problem:
        """Return the Problem of choosing `budget` of these items."""
        warnings = draws.warnings if isinstance(draws, KernelDraws) else ()
        build = Problem.literal if self.scale == "literal" else Problem.scale_free
        budget = check_budget(budget, items.size)
        return build(items, budget, alpha=self.alpha, beta=self.beta, warnings=warnings)

    def draw(self, pool: Pool, rng: np.random.Generator) -> Draws:
        """Draw the random features of all items, if the atoms use any."""
        width = self.width or WIDTHS.get(self.atoms, 0)
        if self.atoms == "curvature":
            if not pool.has("features"):
                raise InputError("`features`", "outputs without it", "pass features=")
            return draw_curvature(pool, width, self.bias, rng)
        if self.atoms == "kernel":
            return draw_kernel(pool, width, rng)
        return None

    def local_items(
        self, shard: Shard, draws: Draws, *, uncertainty_N: np.ndarray | None = None
    ) -> LocalItems:
        """Return the items of a shard."""
        pool = shard.pool
        atoms = self._atoms(pool, draws)
        if self.scale == "literal":
            if uncertainty_N is not None or self.uncertainty not in (None, "variance"):
                raise InputError(
                    "uncertainty='variance' in literal units, as the paper prints them",
                    repr(self.uncertainty),
                    "use scale='free' for other uncertainties",
                )
            assert atoms.deviation_N is not None  # gradient and posterior atoms have it
            uncertainty_N = (atoms.deviation_N / shard.pool_size) ** 2
        elif uncertainty_N is None:
            uncertainty_N = self.scores(pool, atoms.variance_N)
        return LocalItems(
            atoms.operator,
            uncertainty_N,
            variance_N=atoms.variance_N,
            clipped=atoms.clipped,
            input_bytes=self._input_bytes(pool),
            memory=pool.memory,
            segments=shard.segments,
        )

    def operator(self, pool: ArrayPool, draws: Draws) -> Operator:
        """Return the atoms of a pool in this process."""
        return self._atoms(pool, draws).operator

    def scores(self, pool: ArrayPool, variance_N: np.ndarray | None = None) -> np.ndarray:
        """Return the uncertainty of every item; `variance_N` avoids computing it again."""
        by_gradient = self.atoms not in WIDTHS
        kind = self.uncertainty or ("variance" if by_gradient else None)
        if kind == "variance" and variance_N is not None:
            return variance_N
        if kind == "variance" and self.atoms == "posterior":
            variance_N = self._atoms(pool, None).variance_N
            assert variance_N is not None  # posterior atoms have it
            return variance_N
        known = pool.has("probs") or pool.has("scores")
        if kind is None and self.atoms == "kernel" and not known:
            # Without a model there is no uncertainty term.
            return np.zeros(pool.size)
        return pool.uncertainty(kind, bias=self.bias, temperature=self.temperature)

    def _atoms(self, pool: ArrayPool, draws: Draws) -> Atoms:
        if self.atoms == "posterior":
            return self._posterior_atoms(pool)
        if isinstance(draws, KernelDraws):
            weight_N = np.ones(pool.size) if draws.uniform_weights else pool.uncertainty()
            return kernel_atoms(pool.coordinates, weight_N, draws)
        kind = pool.prediction_type
        if isinstance(draws, CurvatureDraws):
            dispersion_NC = pool.prediction.dispersion
            return curvature_atoms(pool.features, dispersion_NC, draws, self.bias, kind=kind)
        prediction, by_mean = pool.prediction, kind.dispersion_name == kind.mean_name
        return gradient_atoms(
            pool.features,
            prediction.mean,
            prediction.label_mean(self.temperature),
            self.bias,
            kind=kind,
            dispersion_NC=None if by_mean else prediction.dispersion,
            deviation=self.scale == "literal",
        )

    def _posterior_atoms(self, pool: ArrayPool) -> Atoms:
        if pool.prediction.loss != "softmax":
            raise InputError(
                f"atoms='gradient', 'curvature' or 'kernel' with loss={pool.prediction.loss!r}",
                "atoms='posterior'",
                "pick one of these",
            )
        if pool.has("label_probs"):
            return posterior_atoms(pool.log_probs, pool.label_probs)
        return pool_posterior_atoms(pool)

    def _input_bytes(self, pool: ArrayPool) -> int | None:
        """Return the size in memory of the arrays that the atoms are computed from."""
        if self.atoms == "posterior":
            # A few numbers per item: small compared to the log-probabilities.
            return None
        arrays = [pool.coordinates]
        if pool.has("probs"):
            arrays.append(pool.prediction.dispersion)
        return sum(int(np.prod(array.shape)) * array.dtype.itemsize for array in arrays)


def pool_posterior_atoms(pool: ArrayPool) -> Atoms:
    """Return the posterior atoms of a pool, with its predictive mean as the label distribution.

    A pool with its own `make_atoms` never holds n x K x C numbers. The atoms are cached.
    """

    def make() -> Atoms:
        if pool.make_atoms is None:
            return posterior_atoms(pool.log_probs, None)
        atoms: Atoms = pool.make_atoms()
        if atoms.operator.size != pool.size:
            raise InputError(
                f"an atom for each of the {pool.size} items",
                f"{atoms.operator.size} atoms",
                "compute them for the whole pool",
            )
        return atoms

    found: Atoms = pool.shard.keep("posterior atoms", None, make)
    return found
