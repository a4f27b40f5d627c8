"""ProblemSpec: the options that turn a pool with predictions into a Problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sabal.core.checks import check_budget, check_choice, check_flag, check_number, check_whole
from sabal.errors import InputError
from sabal.pools.pool import ArrayPool, Pool, Shard
from sabal.sparse.atoms import (
    Atoms,
    curvature_atoms,
    gradient_atoms,
    kernel_atoms,
    posterior_atoms,
)
from sabal.sparse.items import Items, LocalItems, PoolItems
from sabal.sparse.operators import Operator
from sabal.sparse.problem import Problem
from sabal.sparse.random_features import CurvatureDraws, KernelDraws, draw_curvature, draw_kernel

ATOMS = ("gradient", "posterior", "curvature", "kernel")
SCALES = ("free", "literal")
UNCERTAINTIES = ("variance", "margin", "entropy", "mutual-information", "predictive-variance")
WIDTHS = {"curvature": 2048, "kernel": 1024}
MAX_WIDTH = 2**20
"""The maximum length of random-feature atoms; longer draws take gigabytes."""
NO_FEATURES = "there are no features: items are told apart by their predictions alone"

Draws = CurvatureDraws | KernelDraws | None


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
        if kind is None and self.atoms == "kernel" and not pool.has("probs"):
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
