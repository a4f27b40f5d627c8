"""Sparse approximation: a weighted batch whose loss stands in for the loss of the pool."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from sabal.core.checks import check_choice, check_flag, check_number
from sabal.errors import InputError
from sabal.pools.outputs import Outputs
from sabal.selection import Selection
from sabal.sparse.formulate import ATOMS, NO_FEATURES, Formulation, LocalPool, Pool
from sabal.sparse.problem import Problem
from sabal.sparse.solvers import Greedy, ProximalIHT, Solution, Solver, refit
from sabal.strategies.base import selection_of
from sabal.strategies.covering import RANDOM_BATCHES, cover_pool

COVERAGE = "coverage"

SMALLEST_RADIUS = 1e-6
"""As a multiple of the measured one: far below it, an item covers nothing but itself."""


@dataclass(frozen=True, kw_only=True)
class Sparse:
    """Builds a Problem from the outputs and lets a solver choose.

    atoms: "gradient", "posterior", "curvature", "kernel", or "auto" for what suits the outputs.
    uncertainty: "variance", "margin", "entropy", "mutual-information", "predictive-variance"; None
        for what suits them and the loss.
    alpha, beta: the weight of uncertainty, and of weights near 1.
    candidates: look only at the candidates * budget most uncertain items; None for all.
    scale: "free", or "literal" for the paper's units.
    bias: whether gradients include the last layer's bias.
    width: the length of random-feature atoms (curvature 2,048 and kernel 1,024 by default).
    temperature: makes the label distribution from the prediction when `label_probs` is not given.
    refit: whether the weights of the chosen items are optimised at the end (NNLS).
    """

    streams: ClassVar[bool] = True
    losses: ClassVar[tuple[str, ...]] = ("softmax", "sigmoid", "squared")
    kinds: ClassVar[tuple[str, ...]] = ("auto", *ATOMS)

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
        check_choice(self.atoms, "atoms", self.kinds)
        check_flag(self.refit, "refit")
        if self.candidates is not None:
            check_number(self.candidates, "candidates", above=0.0)
            if self.candidates < 1:
                raise InputError(
                    "`candidates` of at least 1 (a multiple of the budget)",
                    str(self.candidates),
                    "pass for instance candidates=10",
                )
        self.formulation(self.atoms if self.atoms in ATOMS else "gradient")
        self.solver()

    def formulation(self, kind: str) -> Formulation:
        """How the Problem is made with atoms of `kind`."""
        return Formulation(
            atoms=kind,
            uncertainty=self.uncertainty,
            alpha=self.alpha,
            beta=self.beta,
            scale=self.scale,
            bias=self.bias,
            width=self.width,
            temperature=self.temperature,
        )

    def solver(self) -> Solver:
        """The solver with this strategy's options."""
        raise TypeError("Sparse is a base: use SabalGreedy or SabalIHT")

    def kind_of_atoms(self, pool: Outputs | Pool) -> str:
        """What "auto" means: posterior atoms where there is a posterior, else gradient atoms."""
        return "posterior" if pool.has("log_probs") else "gradient"

    def select(self, outputs: Outputs, budget: int, rng: np.random.Generator) -> Selection:
        """Formulate, solve, and report."""
        return self.select_from(LocalPool(outputs), budget, rng)

    def select_from(self, pool: Pool, budget: int, rng: np.random.Generator) -> Selection:
        """The same from a pool that need not be here."""
        kind = self.kind_of_atoms(pool) if self.atoms == "auto" else self.atoms
        formulation = self.formulation(kind)
        rows, part = None, pool
        if self.candidates is not None and self.candidates * budget < pool.size:
            rows = pool.most_uncertain(formulation, int(self.candidates * budget))
            part = LocalPool(pool.take(rows))
        draws = formulation.draw(part.facts(formulation), rng)
        problem = formulation.problem(part.items(formulation, draws), budget, draws)
        if kind == "kernel" and not pool.has("features"):
            problem = replace(problem, warnings=(*problem.warnings, NO_FEATURES))
        solution = self.solver().solve(problem)
        if self.refit:
            solution = refit(problem, solution)
        return selection_of(
            self,  # type: ignore[arg-type]  # the base has no name; its children do
            pool,
            solution.indices if rows is None else rows[solution.indices],
            solution.scores,
            weights=solution.weights,
            evidence=self._evidence(problem, solution, kind, rng),
            warnings=problem.warnings,
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
    cost: ClassVar[str] = "O(n m) a pass, about 12 passes"

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
    """Our best defaults: the undecided part of the pool, covered item by item.

    atoms: "auto" is "coverage" (see `sabal.strategies.coverage`), unless options of another kind are given:
        then it is "kernel". Posterior atoms when there are log_probs and no features; with
        features alone (no model yet) a batch that covers the whole pool.
    uncertainty: of coverage, what makes an item count; "margin" by default.
    radius: of what an item covers, as a multiple of what the labels to come can tell apart (1).
    """

    name: ClassVar[str] = "sabal"
    needs: ClassVar[tuple[str, ...]] = ("features|probs|log_probs",)
    paper: ClassVar[str] = "Shen et al. 2022, bounded item by item"
    cost: ClassVar[str] = "one pass, then O(m^2 d) for a sample of m (at most 8,192, or 3 b)"
    kinds: ClassVar[tuple[str, ...]] = (*Sparse.kinds, COVERAGE)

    radius: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius is not None:
            check_number(self.radius, "radius", above=SMALLEST_RADIUS)
        foreign = self._options_of_atoms()
        if self.atoms == COVERAGE and foreign:
            raise InputError(
                "atoms='coverage' with the options uncertainty and radius alone",
                f"{foreign[0]}={getattr(self, foreign[0])!r}",
                "leave it out, or ask for atoms='kernel'",
            )
        if self.radius is not None and (foreign or self.atoms not in ("auto", COVERAGE)):
            raise InputError(
                "`radius` with atoms='coverage' only",
                f"radius={self.radius} and {foreign[0] if foreign else 'other atoms'}",
                "leave one of them out",
            )

    def kind_of_atoms(self, pool: Outputs | Pool) -> str:
        """Coverage unless a posterior is all there is, or options say otherwise."""
        if pool.has("log_probs") and not pool.has("features"):
            return "posterior"
        return "kernel" if self._options_of_atoms() else COVERAGE

    def select_from(self, pool: Pool, budget: int, rng: np.random.Generator) -> Selection:
        """Cover the pool, or solve the Problem that was asked for."""
        kind = self.kind_of_atoms(pool) if self.atoms == "auto" else self.atoms
        if kind != COVERAGE:
            return super().select_from(pool, budget, rng)
        covered = cover_pool(pool, self.formulation("kernel"), budget, self.radius or 1.0, rng)
        return selection_of(
            self,
            pool,
            covered.rows,
            covered.cover.gains,
            weights=covered.cover.weights,
            evidence=covered.evidence,
            warnings=covered.warnings,
        )

    def _options_of_atoms(self) -> list[str]:
        """The options that were given and say nothing to coverage."""
        return [
            each.name
            for each in fields(self)
            if each.name not in ("atoms", "uncertainty", "radius")
            and getattr(self, each.name) != each.default
        ]
