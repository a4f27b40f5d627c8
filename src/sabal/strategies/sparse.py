"""Sparse approximation: a weighted batch whose loss stands in for the loss of the pool."""

from __future__ import annotations

import warnings as python_warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sabal.arrays import top_k
from sabal.atoms import gradient_spread, posterior_atoms
from sabal.checks import check_choice, check_flag, check_number, check_whole
from sabal.errors import InputError, SabalWarning
from sabal.formulate import (
    ATOMS,
    SCALES,
    UNCERTAINTIES,
    atoms_problem,
    curvature_problem,
    gradient_problem,
    kernel_problem,
    posterior_problem,
    uncertainty_scores,
)
from sabal.labels import apply_temperature, log_probs_of
from sabal.outputs import Outputs
from sabal.problem import Problem
from sabal.selection import Selection
from sabal.solvers import Greedy, ProximalIHT, Solution, Solver, refit
from sabal.strategies.base import selection_of

NO_FEATURES = "there are no features: items are told apart by their predictions alone"

RANDOM_BATCHES = 5
"""How many random batches the evidence compares with."""


@dataclass(frozen=True, kw_only=True)
class Sparse:
    """Builds a Problem from the outputs and lets a solver choose.

    atoms: "gradient", "posterior", "curvature", "kernel", or "auto" for what suits the outputs.
    uncertainty: "variance", "margin", "entropy", "mutual-information"; None for what suits them.
    alpha, beta: the weight of uncertainty, and of weights near 1.
    candidates: look only at the candidates * budget most uncertain items; None for all.
    scale: "free", or "literal" for the paper's units.
    bias: whether gradients include the last layer's bias.
    width: the length of random-feature atoms (curvature 2,048 and kernel 1,024 by default).
    temperature: makes the label distribution from the prediction when `label_probs` is not given.
    refit: whether the weights of the chosen items are optimised at the end (NNLS).
    """

    atoms: str = "auto"
    uncertainty: str | None = None
    alpha: float = 1.0
    beta: float = 1.0
    candidates: float | None = None
    scale: str = "free"
    bias: bool = True
    width: int | None = None
    temperature: float | None = None
    refit: bool = False

    def __post_init__(self) -> None:
        check_choice(self.atoms, "atoms", ("auto", *ATOMS))
        check_choice(self.scale, "scale", SCALES)
        check_number(self.alpha, "alpha")
        check_number(self.beta, "beta")
        check_flag(self.bias, "bias")
        check_flag(self.refit, "refit")
        if self.uncertainty is not None:
            check_choice(self.uncertainty, "uncertainty", UNCERTAINTIES)
        if self.candidates is not None:
            check_number(self.candidates, "candidates", above=0.0)
            if self.candidates < 1:
                raise InputError(
                    "`candidates` of at least 1 (a multiple of the budget)",
                    str(self.candidates),
                    "pass for instance candidates=10",
                )
        if self.width is not None:
            check_whole(self.width, "width", least=2)
        if self.temperature is not None:
            check_number(self.temperature, "temperature", above=0.0)
        self.solver()

    def solver(self) -> Solver:
        """The solver with this strategy's options."""
        raise TypeError("Sparse is a base: use SabalGreedy or SabalIHT")

    def kind_of_atoms(self, outputs: Outputs) -> str:
        """What "auto" means: posterior atoms where there is a posterior, else gradient atoms."""
        return "posterior" if outputs.has("log_probs") else "gradient"

    def select(self, outputs: Outputs, budget: int, rng: np.random.Generator) -> Selection:
        """Formulate, solve, and report."""
        kind = self.kind_of_atoms(outputs) if self.atoms == "auto" else self.atoms
        rows, pool = self._candidates(outputs, budget, kind)
        with python_warnings.catch_warnings():
            # The problem keeps its warnings; they are said once, with the selection.
            python_warnings.simplefilter("ignore", SabalWarning)
            problem = self.problem(pool, budget, kind, rng)
        solution = self.solver().solve(problem)
        if self.refit:
            solution = refit(problem, solution)
        chosen = solution.indices if rows is None else rows[solution.indices]
        return selection_of(
            self,  # type: ignore[arg-type]  # the base has no name; its children do
            outputs,
            chosen,
            solution.scores,
            weights=solution.weights,
            evidence=self._evidence(problem, solution, kind, rng),
            warnings=problem.warnings,
        )

    def problem(
        self, outputs: Outputs, budget: int, kind: str, rng: np.random.Generator
    ) -> Problem:
        """The Problem over all items of `outputs`."""
        common: dict[str, Any] = {"alpha": self.alpha, "beta": self.beta}
        if self.uncertainty == "mutual-information":
            common["uncertainty"] = self._scores(outputs, kind)
        elif self.uncertainty is not None:
            common["uncertainty"] = self.uncertainty
        if kind == "gradient":
            features, probs, q = outputs.features, outputs.probs, self._label_probs(outputs)
            return gradient_problem(
                features, probs, q, budget, scale=self.scale, bias=self.bias, **common
            )
        if kind == "posterior":
            q = outputs.label_probs if outputs.has("label_probs") else None
            if q is None and self.uncertainty in (None, "variance"):
                # The atoms alone will do: a pool that is streamed never holds n x K x C numbers.
                atoms, weights = outputs.posterior_atoms, {"alpha": self.alpha, "beta": self.beta}
                return atoms_problem(atoms, budget, scale=self.scale, **weights)
            return posterior_problem(
                outputs.log_probs, budget, scale=self.scale, label_probs=q, **common
            )
        if self.scale == "literal":
            raise InputError(
                "scale='free' for curvature and kernel atoms (the paper has no units for them)",
                "scale='literal'",
                "leave scale out",
            )
        if self.width is not None:
            common["width"] = self.width
        if kind == "curvature":
            return curvature_problem(
                outputs.features,
                outputs.probs,
                budget,
                bias=self.bias,
                random_state=rng,
                **common,
            )
        probs = outputs.probs if outputs.has("probs") else None
        if outputs.has("features"):
            return kernel_problem(outputs.features, probs, budget, random_state=rng, **common)
        # Without features the prediction is all there is to tell items apart by.
        problem = kernel_problem(probs, probs, budget, random_state=rng, **common)
        return replace(problem, warnings=(*problem.warnings, NO_FEATURES))

    def _label_probs(self, outputs: Outputs) -> Any:
        if outputs.has("label_probs"):
            return outputs.label_probs
        if self.temperature is not None:
            return apply_temperature(log_probs_of(outputs.probs), self.temperature)
        return outputs.probs

    def _candidates(
        self, outputs: Outputs, budget: int, kind: str
    ) -> tuple[np.ndarray | None, Outputs]:
        """The rows of the most uncertain items and their outputs; all of them for None."""
        if self.candidates is None or self.candidates * budget >= outputs.size:
            return None, outputs
        rows = np.sort(top_k(self._scores(outputs, kind), int(self.candidates * budget)))
        return rows, outputs.take(rows)

    def _scores(self, outputs: Outputs, kind: str) -> np.ndarray:
        """The uncertainty of every item, as the problem would use it."""
        default = "margin" if kind in ("curvature", "kernel") else "variance"
        uncertainty = self.uncertainty or default
        variance_N = None
        if uncertainty == "variance" and kind == "posterior":
            q_NC = outputs.label_probs if outputs.has("label_probs") else None
            variance_N = posterior_atoms(outputs.log_probs, q_NC).variance_N
        elif uncertainty == "variance":
            q_NC = self._label_probs(outputs)
            variance_N, _ = gradient_spread(outputs.features, q_NC, self.bias)
        return uncertainty_scores(
            uncertainty,
            probs_NC=outputs.probs if outputs.has("probs") else None,
            log_probs_NKC=outputs.log_probs if outputs.has("log_probs") else None,
            variance_N=variance_N,
        )

    def _evidence(
        self, problem: Problem, solution: Solution, kind: str, rng: np.random.Generator
    ) -> dict[str, Any]:
        return {
            "atoms": kind,
            "candidates": problem.size,
            "objective": solution.objective,
            "bias": solution.bias,
            "variance": solution.variance,
            "regulariser": solution.objective - solution.bias + solution.variance,
            "random_batch": random_batch_figures(problem, rng),
            "zero_weights": int(np.sum(solution.weights == 0)),
            "passes": solution.passes,
            "iterations": solution.iterations,
        }


def random_batch_figures(problem: Problem, rng: np.random.Generator) -> dict[str, float]:
    """Objective, bias and variance of random batches of the same size, weights 1, on average."""
    batches = [
        rng.choice(problem.size, size=problem.budget, replace=False) for _ in range(RANDOM_BATCHES)
    ]
    figures = [problem.figures(batch, np.ones(problem.budget)) for batch in batches]
    return {key: float(np.mean([each[key] for each in figures])) for key in figures[0]}


@dataclass(frozen=True, kw_only=True)
class SabalGreedy(Sparse):
    """The paper's method with greedy selection (gradient atoms, or posterior with log_probs).

    score, step, refresh: see `sabal.Greedy`.
    """

    name: ClassVar[str] = "sabal-greedy"
    needs: ClassVar[tuple[str, ...]] = ("features|log_probs", "probs")
    paper: ClassVar[str] = "Shen et al. 2022, Algorithm 1"
    cost: ClassVar[str] = "O(n m b / 32)"

    score: str = "optimal-step"
    step: float = 1.0
    refresh: int | str = "auto"

    def solver(self) -> Solver:
        """Greedy with this strategy's options."""
        return Greedy(score=self.score, step=self.step, refresh=self.refresh)


@dataclass(frozen=True, kw_only=True)
class SabalIHT(Sparse):
    """The paper's method with proximal iterative hard thresholding.

    prox, iterations, tol: see `sabal.ProximalIHT`.
    """

    name: ClassVar[str] = "sabal-iht"
    needs: ClassVar[tuple[str, ...]] = ("features|log_probs", "probs")
    paper: ClassVar[str] = "Shen et al. 2022, Algorithm 2"
    cost: ClassVar[str] = "O(n m) per iteration"

    prox: str = "exact"
    iterations: int = 300
    tol: float = 1e-5

    def solver(self) -> Solver:
        """ProximalIHT with this strategy's options."""
        return ProximalIHT(prox=self.prox, iterations=self.iterations, tol=self.tol)


@dataclass(frozen=True, kw_only=True)
class Sabal(SabalGreedy):
    """Our best defaults: kernel atoms weighted by margin, greedy selection.

    Posterior atoms when there are log_probs and no features; with features alone (no model yet) a
    batch that represents the pool.
    """

    name: ClassVar[str] = "sabal"
    needs: ClassVar[tuple[str, ...]] = ("features|probs|log_probs",)
    paper: ClassVar[str] = "Shen et al. 2022, with kernel atoms"
    cost: ClassVar[str] = "O(n m b / 32)"

    def kind_of_atoms(self, outputs: Outputs) -> str:
        """Kernel atoms unless a posterior is all there is."""
        only_posterior = outputs.has("log_probs") and not outputs.has("features")
        return "posterior" if only_posterior else "kernel"
