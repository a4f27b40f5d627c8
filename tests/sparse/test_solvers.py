"""Solvers against Algorithms 1 and 2 line by line, and against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_problem import problems

import reference
import sabal
from sabal.sparse import greedy_blocked
from sabal.sparse.greedy import Ranking
from sabal.sparse.greedy_blocked import Schedule, greedy_in_blocks
from sabal.sparse.items import LocalItems, RankedItems
from sabal.sparse.operators import Dense
from sabal.sparse.problem import Problem
from sabal.sparse.refit import best_weights


@pytest.mark.parametrize("kind", ["gradient", "posterior"])
@pytest.mark.parametrize("scale", ["literal", "free"])
@pytest.mark.parametrize("score", ["optimal-step", "first-order"])
@pytest.mark.parametrize("refresh", ["auto", 1])
def test_greedy_is_algorithm_1(kind, scale, score, refresh, library, dtype):
    ours, twin = problems(kind, scale, library, dtype)
    solution = sabal.Greedy(score=score, refresh=refresh).solve(ours)
    indices, weights = reference.greedy(twin, score)
    np.testing.assert_array_equal(solution.indices, indices)
    np.testing.assert_allclose(solution.weights, weights, atol=1e-5)
    assert solution.passes == (1 if refresh == "auto" else 5)


@pytest.mark.parametrize(
    ("alpha", "beta"), [(1e-8, 0.1), (0.1, 0.1), (0.01, 0.1), (2.0, 0.5), (2.0, 1.0), (1.0, 0.5)]
)
def test_greedy_at_the_printed_settings_is_algorithm_1(alpha, beta):
    """Every alpha and beta of the paper's greedy experiments, in literal units."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        atoms, sigma2 = rng.normal(size=(60, 8)), rng.random(60) / 60**2
        ours = Problem.from_atoms(atoms, sigma2, 12, alpha=alpha, beta=beta)
        twin = reference.DenseProblem.literal(atoms, sigma2, 12, alpha, beta)
        solution = sabal.Greedy(score="first-order", refresh=1).solve(ours)
        indices, weights = reference.greedy(twin, "first-order")
        np.testing.assert_array_equal(solution.indices, indices)
        np.testing.assert_allclose(solution.weights, weights, atol=1e-5)


def test_the_step_of_the_printed_score_is_used():
    """Line 3 weighs the gradient by tau: a small one leaves the choice to the bonus."""
    ours, twin = problems("gradient", "free")
    batches = set()
    for tau in (0.001, 1.0, 100.0):
        solution = sabal.Greedy(score="first-order", step=tau, refresh=1).solve(ours)
        assert solution.indices.tolist() == reference.greedy(twin, "first-order", tau)[0].tolist()
        batches.add(tuple(solution.indices.tolist()))
    assert len(batches) > 1


def test_an_atom_that_points_away_from_the_target_gains_nothing():
    atoms = np.array([[1, 0.5], [1, -0.5], [1, 0.5], [1, -0.5], [-1, 0]])
    problem = Problem.from_atoms(atoms, np.zeros(5), 1, alpha=0.0, beta=0.0)
    assert sabal.Greedy().solve(problem).indices.tolist() == [0]


class Reversed(LocalItems):
    """Items whose passes return equal scores with the higher index first."""

    def best(self, *args):
        found = super().best(*args)
        return RankedItems(*(values[::-1] for values in vars(found).values()))


def test_of_equal_items_the_lower_one_is_picked_whatever_order_a_pass_returns():
    atoms = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 2, axis=0)
    problem = Problem.literal(Reversed(Dense(atoms), np.ones(10)), 1, alpha=1.0, beta=0.3)
    (first,) = sabal.Greedy(refresh=1).solve(problem).indices
    assert first % 2 == 0


@pytest.mark.parametrize("score", ["optimal-step", "first-order"])
@pytest.mark.parametrize("budget", [3, 4, 9, 13, 14])
@pytest.mark.parametrize("seed", range(3))
def test_block_greedy_is_its_plain_twin(seed, budget, score, library, dtype, monkeypatch):
    """With conjugate gradients run to their end, and float32 atoms that float64 holds exactly."""
    monkeypatch.setattr(greedy_blocked, "SETTLED", 1e-14)
    schedule = Schedule(
        fit_steps=500, last_fit_steps=500, min_candidates=20, per_pick=2, picks_per_fit=4
    )
    rng = np.random.default_rng(seed)
    atoms = (rng.normal(size=(60, 7)) + rng.normal()).astype(dtype)
    sigma2 = rng.random(60) / 60
    ours = Problem.from_atoms(library(atoms), sigma2, budget, alpha=1.0, beta=0.3)
    twin = reference.DenseProblem.literal(atoms.astype("float64"), sigma2, budget, 1.0, 0.3)
    ranking = Ranking(ours.terms, score, 1.0)
    solution = greedy_in_blocks(ours, ranking, 8, schedule=schedule)
    indices, weights, history = reference.block_greedy(twin, 8, 20, 4, score)
    assert solution.indices.tolist() == indices.tolist()
    np.testing.assert_allclose(solution.weights, weights, atol=1e-5)
    assert solution.passes == -(-budget // 8)
    np.testing.assert_allclose(solution.history, history, atol=1e-5)


def test_a_pool_over_2048_items_is_solved_in_blocks_as_its_plain_twin(monkeypatch):
    """The plan that "auto" makes for such a pool, with fits that run to their end."""
    monkeypatch.setattr(greedy_blocked, "SETTLED", 1e-14)
    schedule = Schedule(fit_steps=500, last_fit_steps=500)
    rng = np.random.default_rng(0)
    atoms, sigma2 = rng.normal(size=(2_100, 5)) + 0.3, rng.random(2_100) / 50
    ours = Problem.from_atoms(atoms, sigma2, 40, alpha=1.0, beta=0.3)
    twin = reference.DenseProblem.literal(atoms, sigma2, 40, 1.0, 0.3)
    ranking = Ranking(ours.terms, "optimal-step", 1.0)
    assert schedule.plan(ours, "auto", None) == (32, 2_048)
    solution = greedy_in_blocks(ours, ranking, schedule=schedule)
    indices, weights, history = reference.block_greedy(twin, 32, 2_048, 8)
    assert solution.indices.tolist() == indices.tolist()
    np.testing.assert_allclose(solution.weights, weights, atol=1e-6)
    np.testing.assert_allclose(solution.history, history, atol=1e-6)
    # What a user gets: the same picks, for one step more or less of the fits.
    usual = sabal.Greedy().solve(ours)
    assert usual.passes == 2
    exact = sabal.Greedy(refresh=1).solve(ours)
    assert usual.objective <= exact.objective + 0.01 * abs(exact.objective)


@pytest.mark.parametrize(("size", "passes"), [(2_048, 1), (2_049, 2)])
def test_blocks_begin_above_2048_items(size, passes):
    atoms = np.random.default_rng(0).normal(size=(size, 3))
    problem = Problem.from_atoms(atoms, np.ones(size), 33, alpha=1.0, beta=0.3)
    assert sabal.Greedy().solve(problem).passes == passes


def test_a_fit_that_clips_adjusts_the_other_weights():
    """beta = 0 and dependent atoms: the best weights without a bound are partly negative."""
    schedule, clipped = Schedule(fit_steps=500, last_fit_steps=500, picks_per_fit=4), 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        atoms = rng.normal(size=(30, 12)) * rng.choice([0.1, 3.0], size=(30, 1))
        ours = Problem.from_atoms(atoms, rng.random(30), 8, alpha=10.0, beta=1e-3)
        twin = reference.DenseProblem.literal(atoms, rng.random(30), 8, 10.0, 1e-3)
        ranking = Ranking(ours.terms, "optimal-step", 1.0)
        solution = greedy_in_blocks(ours, ranking, 8, schedule=schedule)
        expected = reference.fitted(twin, solution.indices)[solution.indices]
        np.testing.assert_allclose(solution.weights, expected, atol=1e-4)
        part = twin.phi[:, solution.indices]
        normal = part.T @ part + 1e-3 * np.eye(8)
        clipped += np.linalg.solve(normal, part.T @ twin.v + 1e-3).min() < 0
    assert clipped


@pytest.mark.parametrize("kind", ["gradient", "posterior"])
@pytest.mark.parametrize("scale", ["literal", "free"])
@pytest.mark.parametrize("rule", ["exact", "line-6", "appendix"])
def test_iht_is_algorithm_2(kind, scale, rule, library, dtype):
    ours, twin = problems(kind, scale, library, dtype)
    solution = sabal.ProximalIHT(prox=rule).solve(ours)
    indices, weights = reference.iht(twin, rule)
    assert set(solution.indices.tolist()) == set(indices.tolist())
    order, expected_order = np.argsort(solution.indices), np.argsort(indices)
    np.testing.assert_allclose(
        solution.weights[order], weights[expected_order], atol=1e-4 if dtype == "float32" else 1e-6
    )


def test_iht_clips_before_it_debiases():
    """The printed prox may take items whose s is negative: line 6 gives them weight 0."""
    below = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        atoms, sigma2 = rng.normal(size=(12, 6)), rng.random(12)
        ours = Problem.from_atoms(atoms, sigma2, 5, alpha=5.0, beta=0.01)
        twin = reference.DenseProblem.literal(atoms, sigma2, 5, 5.0, 0.01)
        point = -twin.line_search(twin.gradient(np.zeros(12)), np.zeros(12)) * twin.gradient(
            np.zeros(12)
        )
        below += np.any(point[reference.prox(point, twin.bonus, 1.0, 5, "appendix")] < 0)
        solution = sabal.ProximalIHT(prox="appendix", iterations=1).solve(ours)
        indices, weights = reference.iht(twin, "appendix", iterations=1)
        assert solution.indices.tolist() == indices.tolist()
        np.testing.assert_allclose(solution.weights, weights, atol=1e-9)
    assert below


@pytest.mark.parametrize("solver", [sabal.Greedy(), sabal.Greedy(refresh=2), sabal.ProximalIHT()])
def test_a_solution_reports_its_own_figures(solver):
    problem, _ = problems("gradient", "free")
    solution = solver.solve(problem)
    assert solution.objective == pytest.approx(
        problem.objective(solution.indices, solution.weights), rel=1e-12
    )
    regulariser = problem.beta * np.sum((solution.weights - 1) ** 2)
    assert solution.objective == pytest.approx(
        solution.bias - solution.variance + regulariser, rel=1e-12
    )
    assert solution.iterations == len(solution.history)
    assert solution.objective == pytest.approx(solution.history.min(), rel=1e-9) or isinstance(
        solver, sabal.Greedy
    )


def tiny_problems(count=50, n=13, budget=4):
    """Random problems at the default alpha and beta, over widths and both units."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        atoms, u = rng.normal(size=(n, (3, 5, 10, 20)[seed % 4])), rng.random(n)
        if seed % 2:
            ours = Problem.from_atoms(atoms, u, budget, alpha=1.0, beta=1.0)
            yield ours, reference.DenseProblem.literal(atoms, u, budget, 1.0, 1.0)
        else:
            ours = Problem.scale_free(LocalItems(Dense(atoms), u), budget, alpha=1.0, beta=1.0)
            yield ours, reference.DenseProblem.free(atoms, u, budget, 1.0, 1.0)


def test_the_gap_to_the_enumerated_optimum_is_small(capsys):
    """0 is the optimum, 1 the median batch; weights refitted."""
    solvers = {
        "optimal-step greedy": sabal.Greedy(),
        "first-order greedy": sabal.Greedy(score="first-order"),
        "exact-prox IHT": sabal.ProximalIHT(),
        "printed-prox IHT": sabal.ProximalIHT(prox="appendix"),
    }
    gaps = {name: [] for name in solvers}
    for ours, twin in tiny_problems():
        values = reference.enumerate_objectives(twin)
        best, median = values.min(), np.median(values)
        for name, solver in solvers.items():
            reached, _ = twin.refitted(solver.solve(ours).indices)
            gaps[name].append((reached - best) / (median - best))
    means = {name: float(np.mean(values)) for name, values in gaps.items()}
    with capsys.disabled():
        print("\nmean gap to the optimum:", {name: round(gap, 3) for name, gap in means.items()})
    assert means["optimal-step greedy"] <= 0.10
    assert means["exact-prox IHT"] <= 0.15
    assert means["exact-prox IHT"] < means["printed-prox IHT"]


def test_refitted_weights_are_the_best_for_their_batch():
    for ours, twin in tiny_problems(10):
        solution = sabal.Greedy().solve(ours)
        refitted = sabal.refit(ours, solution)
        np.testing.assert_array_equal(refitted.indices, solution.indices)
        assert refitted.objective == pytest.approx(twin.refitted(solution.indices)[0], rel=1e-9)
        assert refitted.objective <= solution.objective + 1e-12


def test_refit_holds_for_dependent_atoms_without_a_regulariser():
    atoms = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 3, axis=0)
    problem = Problem.from_atoms(atoms, np.ones(12), 9, alpha=1.0, beta=0.0)
    weights = best_weights(problem, np.arange(9))
    assert np.all(weights >= 0)
    assert np.isfinite(problem.objective(np.arange(9), weights))


def test_block_greedy_stays_close_to_a_pass_per_pick():
    """On average: on one problem, either may be ahead of the other by a percent or two."""
    short = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, budget = 12_000, 200
        features = rng.normal(size=(n, 24)).astype("float32")
        logits = features @ rng.normal(size=(24, 6)).astype("float32") * 0.5
        problem = sabal.gradient_problem(
            features,
            sabal.apply_temperature(logits, 1.0),
            sabal.apply_temperature(logits, 2.0),
            budget,
            alpha=1.0,
            beta=1.0,
        )
        exact, block = sabal.Greedy(refresh=1).solve(problem), sabal.Greedy().solve(problem)
        random_batch = rng.choice(n, size=budget, replace=False)
        gap = problem.objective(random_batch, np.ones(budget)) - exact.objective
        short.append((block.objective - exact.objective) / gap)
        assert exact.passes == budget
        assert block.passes <= exact.passes / 10
    assert np.mean(short) <= 0.01
    assert max(short) <= 0.05


@given(
    n=st.integers(1, 12),
    width=st.integers(1, 4),
    data=st.data(),
    alpha=st.sampled_from([0.0, 1e-8, 1.0]),
    beta=st.sampled_from([0.0, 1e-6, 1.0]),
)
def test_every_solver_returns_b_distinct_items_whatever_the_atoms(n, width, data, alpha, beta):
    budget = data.draw(st.integers(1, n))
    value = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-30, 1e8])
    atoms = np.array(
        data.draw(st.lists(st.lists(value, min_size=width, max_size=width), min_size=n, max_size=n))
    )
    sigma2 = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 1.0, 1e-9]), min_size=n, max_size=n))
    )
    problem = Problem.from_atoms(atoms, sigma2, budget, alpha=alpha, beta=beta)
    for solver in (
        sabal.Greedy(),
        sabal.Greedy(score="first-order"),
        sabal.Greedy(refresh=1),
        sabal.Greedy(refresh=3),
        sabal.ProximalIHT(iterations=20),
        sabal.ProximalIHT(prox="appendix", iterations=20),
    ):
        solution = solver.solve(problem)
        assert len(set(solution.indices.tolist())) == budget
        assert solution.indices.min() >= 0
        assert solution.indices.max() < n
        assert np.all(solution.weights >= 0)
        assert np.all(np.isfinite(solution.weights))
        assert np.isfinite(solution.objective)
