"""A Formulation: the choices that turn what a model says of a pool into a Problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sabal.core.arrays import Array
from sabal.core.checks import check_budget, check_choice, check_flag, check_number, check_whole
from sabal.core.rows import derived
from sabal.errors import InputError
from sabal.pools.outputs import Outputs
from sabal.predictions.uncertainty import mutual_information
from sabal.sparse.atoms import (
    Atoms,
    curvature_atoms,
    feature_norms,
    gradient_atoms,
    gradient_variance,
    kernel_atoms,
    posterior_atoms,
)
from sabal.sparse.items import Items, LocalItems
from sabal.sparse.problem import Problem
from sabal.sparse.random_features import (
    CurvatureDraws,
    KernelDraws,
    PoolFacts,
    draw_curvature,
    draw_kernel,
)

ATOMS = ("gradient", "posterior", "curvature", "kernel")
SCALES = ("free", "literal")
UNCERTAINTIES = ("variance", "margin", "entropy", "mutual-information", "predictive-variance")
WIDTHS = {"curvature": 2048, "kernel": 1024}
MOST_WIDTH = 2**20
"""The longest atoms of random features: the draws alone take gigabytes beyond."""
NO_FEATURES = "there are no features: items are told apart by their predictions alone"

Draws = CurvatureDraws | KernelDraws | None


@dataclass(frozen=True, kw_only=True)
class Formulation:
    """How a Problem is made; the same wherever the pool is, and small enough to send there.

    The options are those of the strategies `sabal`, `sabal-greedy` and `sabal-iht`.
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
            check_whole(self.width, "width", least=2)
            if self.width > MOST_WIDTH:
                raise InputError(
                    f"`width` of at most {MOST_WIDTH:,}", f"{self.width:,}", "use fewer features"
                )
            if self.atoms == "kernel" and self.width % 2:
                raise InputError(
                    "an even `width` (a cosine and a sine each)", str(self.width), "add one to it"
                )
        if self.temperature is not None:
            check_number(self.temperature, "temperature", above=0.0)
        if self.scale == "literal" and self.atoms in WIDTHS:
            raise InputError(
                "scale='free' for curvature and kernel atoms (the paper has no units for them)",
                "scale='literal'",
                "leave scale out",
            )

    def draw(self, facts: PoolFacts, rng: np.random.Generator) -> Draws:
        """What the atoms of all items share, if it is drawn."""
        if self.atoms == "curvature":
            return draw_curvature(facts, self._width, self.bias, rng)
        if self.atoms == "kernel":
            return draw_kernel(facts, self._width, rng)
        return None

    def items(
        self,
        outputs: Outputs,
        draws: Draws,
        *,
        uncertainty_N: np.ndarray | None = None,
        pool_size: int | None = None,
        segments: Sequence[slice] | None = None,
    ) -> LocalItems:
        """The items of `outputs`, which may be a part of a pool of `pool_size`.

        uncertainty_N: an uncertainty of the caller's own, in place of a named one.
        """
        atoms = self._atoms(outputs, draws)
        if self.scale == "literal":
            if uncertainty_N is not None or self.uncertainty not in (None, "variance"):
                raise InputError(
                    "uncertainty='variance' in literal units, as the paper prints them",
                    repr(self.uncertainty),
                    "use scale='free' for other uncertainties",
                )
            assert atoms.deviation_N is not None  # gradient and posterior atoms have it
            uncertainty_N = (atoms.deviation_N / (pool_size or outputs.size)) ** 2
        elif uncertainty_N is None:
            uncertainty_N = self.scores(outputs, atoms.variance_N)
        return LocalItems(
            atoms.operator,
            uncertainty_N,
            variance_N=atoms.variance_N,
            clipped=atoms.clipped,
            input_bytes=self._input_bytes(outputs),
            memory=outputs.memory,
            segments=segments,
        )

    def problem(self, items: Items, budget: int, draws: Draws) -> Problem:
        """The Problem over `items`."""
        warnings = draws.warnings if isinstance(draws, KernelDraws) else ()
        build = Problem.literal if self.scale == "literal" else Problem.scale_free
        budget = check_budget(budget, items.size)
        return build(items, budget, alpha=self.alpha, beta=self.beta, warnings=warnings)

    def scores(self, outputs: Outputs, variance_N: np.ndarray | None = None) -> np.ndarray:
        """The uncertainty of every item; `variance_N` where it is at hand."""
        loss = outputs.loss
        kind = self.uncertainty or (loss.doubt if self.atoms in WIDTHS else "variance")
        if kind == "variance":
            return self._variance(outputs) if variance_N is None else variance_N
        if kind == "mutual-information" and outputs.has("log_probs"):
            return mutual_information(outputs.log_probs)
        if kind in loss.scores and outputs.has("probs"):
            return outputs.doubt if kind == loss.doubt else loss.scores[kind](outputs.spread)
        if self.atoms == "kernel" and self.uncertainty is None:
            # No model yet: nothing is added for uncertainty.
            return np.zeros(outputs.size)
        raise self._without(kind, outputs)

    def features(self, outputs: Outputs) -> Array:
        """What items are told apart by: without features, their predictions."""
        if self.atoms == "kernel" and not outputs.has("features"):
            return outputs.prediction
        return outputs.features

    @property
    def _width(self) -> int:
        return self.width or WIDTHS[self.atoms]

    def _atoms(self, outputs: Outputs, draws: Draws) -> Atoms:
        if self.atoms == "posterior":
            if "log_probs" not in outputs.loss.checks:
                raise InputError(
                    f"atoms='gradient', 'curvature' or 'kernel' with loss={outputs.loss.name!r}",
                    "atoms='posterior'",
                    "pick one of these",
                )
            if outputs.has("label_probs"):
                return posterior_atoms(outputs.log_probs, outputs.label_probs)
            # A pool that is streamed never holds n x K x C numbers.
            return outputs.posterior_atoms
        features_ND = self.features(outputs)
        if isinstance(draws, KernelDraws):
            weight_N = np.ones(outputs.size) if draws.everyone else outputs.doubt
            return kernel_atoms(features_ND, weight_N, draws)
        loss = outputs.loss
        if isinstance(draws, CurvatureDraws):
            return curvature_atoms(features_ND, outputs.spread, draws, self.bias, loss=loss)
        return gradient_atoms(
            features_ND,
            outputs.prediction,
            self._label(outputs),
            self.bias,
            loss=loss,
            spread_NC=None if loss.spread == loss.prediction else outputs.spread,
            deviation=self.scale == "literal",
        )

    def _variance(self, outputs: Outputs) -> np.ndarray:
        """V_j of posterior atoms, or of the gradient (which atoms without labels borrow)."""
        if self.atoms == "posterior":
            variance_N = self._atoms(outputs, None).variance_N
            assert variance_N is not None  # posterior atoms have it
            return variance_N
        norms_N = feature_norms(outputs.features, self.bias)
        loss = outputs.loss
        # For probabilities the mean of a label tells its spread, too.
        spread_NC = self._label(outputs) if loss.spread == loss.prediction else outputs.spread
        return gradient_variance(norms_N, spread_NC, loss)

    def _label(self, outputs: Outputs) -> Array:
        """The mean of the label distribution."""
        loss = outputs.loss
        if outputs.has(loss.label):
            return getattr(outputs, loss.label)
        if self.temperature is None:
            return outputs.prediction
        temperature = self.temperature
        return derived(lambda p: loss.tempered(p, temperature), outputs.prediction)

    def _without(self, kind: str, outputs: Outputs) -> InputError:
        """The error for an uncertainty that cannot be computed from what there is."""
        loss = outputs.loss
        known = ["variance", *(name for name in UNCERTAINTIES if name in loss.scores)]
        if "log_probs" in loss.checks:
            known.append("mutual-information")
        if kind not in known:
            return InputError(
                f"an uncertainty of loss={loss.name!r} ({', '.join(known)})",
                repr(kind),
                "pick one of these",
            )
        return InputError(
            f"what uncertainty={kind!r} is computed from",
            "outputs without it",
            f"pass {'log_probs' if kind == 'mutual-information' else ' or '.join(loss.sources)}",
        )

    def _input_bytes(self, outputs: Outputs) -> int | None:
        """What the arrays take, or would take in memory, that the atoms are made of."""
        if self.atoms == "posterior":
            # A handful of numbers an item: small next to what they were made from.
            return None
        arrays = [self.features(outputs)]
        if outputs.has("probs"):
            arrays.append(outputs.spread)
        return sum(int(np.prod(array.shape)) * array.dtype.itemsize for array in arrays)
