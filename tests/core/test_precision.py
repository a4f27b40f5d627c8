"""float32 beside its float64 twin, where rounding is worst; one thread beside two.

Differences are shares of the gap between a chosen and a random batch; `pytest -s` prints them.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import sabal
from makers import softmax

N, DIMENSIONS, CLASSES, SAMPLES, BUDGET = 2100, 12, 4, 8, 30
SOLVERS = {"greedy": sabal.Greedy(), "iht": sabal.ProximalIHT(iterations=15)}
ATOMS = ("gradient", "posterior", "curvature", "kernel")

TOLD = 1e-4
"""How far an objective in float32 may be from the same batch's in float64, unless a warning says
that rounding takes part."""

LOST = 0.01
"""How much a batch that was chosen in float32 may lose, or win, by the objective in float64."""

THREADS = 1e-3
"""How far the objectives of one and of two threads may be apart."""

solvers = pytest.mark.parametrize("solver", SOLVERS)
kinds = pytest.mark.parametrize("kind", ATOMS)


def made(n=N):
    """Features, logits and logits of a posterior, in float64."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, DIMENSIONS))
    heads = rng.normal(size=(SAMPLES, DIMENSIONS, CLASSES)) * 0.2
    weights = rng.normal(size=(DIMENSIONS, CLASSES))
    return features, features @ weights, np.einsum("nd,kdc->nkc", features, weights + heads)


def pools():
    """Name, features, logits, temperature of the labels, posterior: where float32 may fail."""
    features, logits, posterior = made()
    yield "plain", features, logits, 1.5, posterior
    skewed = features @ np.diag(np.logspace(0, -6, DIMENSIONS))
    yield "condition number 1e6", skewed, logits, 1.5, posterior
    yield "offset 1e4", features + 1e4, logits, 1.5, posterior
    jitter = 1e-5 * np.random.default_rng(1).normal(size=features.shape)
    twice = [np.concatenate([array[: N // 2]] * 2) for array in (features, logits, posterior)]
    yield "near-duplicates", twice[0] + jitter, twice[1], 1.5, twice[2]
    yield "atoms that nearly vanish", features, logits, 1.001, nearly_equal(posterior, 1e-3)


def nearly_equal(posterior, share):
    """The samples of a posterior, drawn together."""
    point = posterior.mean(axis=1, keepdims=True)
    return point + share * (posterior - point)


def problem_of(kind, dtype, features, logits, temperature, posterior):
    """The Problem over inputs that were rounded to `dtype`."""
    probs, labels = softmax(logits).astype(dtype), softmax(logits / temperature).astype(dtype)
    options = {"alpha": 0.1, "beta": 0.1}
    if kind == "gradient":
        return sabal.gradient_problem(features.astype(dtype), probs, labels, BUDGET, **options)
    if kind == "posterior":
        log_probs = np.log(softmax(posterior)).astype(dtype)
        return sabal.posterior_problem(log_probs, BUDGET, **options)
    options |= {"width": 128, "random_state": 0}
    make = sabal.curvature_problem if kind == "curvature" else sabal.kernel_problem
    return make(features.astype(dtype), probs, BUDGET, **options)


def gap_of(problem, solution):
    """What there is to win over random batches: differences are large or small next to it."""
    rng = np.random.default_rng(5)
    batches = [rng.choice(problem.size, BUDGET, replace=False) for _ in range(5)]
    by_chance = np.mean([problem.objective(batch, np.ones(BUDGET)) for batch in batches])
    assert by_chance > solution.objective
    return float(by_chance) - solution.objective


@solvers
@kinds
def test_float32_is_as_good_as_its_float64_twin(kind, solver):
    for what, *pool in pools():
        wide, narrow = (problem_of(kind, dtype, *pool) for dtype in ("float64", "float32"))
        best, found = SOLVERS[solver].solve(wide), SOLVERS[solver].solve(narrow)
        gap, in_float64 = gap_of(wide, best), wide.objective(found.indices, found.weights)
        told, lost = abs(found.objective - in_float64) / gap, (in_float64 - best.objective) / gap
        warned = any("rounding" in text for text in narrow.warnings)
        print(f"{kind:10} {solver:7} {what:25} told {told:.1e} lost {lost:+.1e} warned {warned}")
        # Losses cancel to first order: what is left of a thousandth is a millionth.
        assert warned == (kind == "posterior" and what == "atoms that nearly vanish"), what
        assert warned or told <= TOLD, what
        assert warned or abs(lost) <= LOST, what
        assert not any("rounding" in text for text in wide.warnings), what


@solvers
@kinds
def test_threads_change_nothing_but_last_digits(kind, solver):
    features, logits, posterior = made(n=4500)
    found = {}
    for threads in (1, 2, 2):
        with threadpool_limits(threads):
            assert max(pool["num_threads"] for pool in threadpool_info()) == threads
            problem = problem_of(kind, "float32", features, logits, 1.5, posterior)
            solution = SOLVERS[solver].solve(problem)
        if threads in found:
            np.testing.assert_array_equal(found[threads].indices, solution.indices)
            np.testing.assert_array_equal(found[threads].weights, solution.weights)
        found[threads] = solution
    gap = gap_of(problem, found[1])
    apart = abs(found[1].objective - found[2].objective) / gap
    same = np.intersect1d(found[1].indices, found[2].indices).size
    print(f"{kind:10} {solver:7} objectives of 1 and 2 threads {apart:.1e}, items {same}/{BUDGET}")
    assert apart <= THREADS


def warned(**inputs):
    """What `select` says of a pool besides choosing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sabal.SabalWarning)
        selection = sabal.select(10, random_state=0, **inputs)
    return [text for text in selection.evidence["warnings"] if "rounding" in text]


def test_features_that_lost_their_digits_to_an_offset_are_told():
    features, logits, _ = made(n=300)
    probs = softmax(logits)

    def said(offset, dtype):
        return warned(features=(features + offset).astype(dtype), probs=probs, atoms="kernel")

    assert said(1e6, "float32")
    assert not said(1e6, "float64")
    assert not said(1e3, "float32")
    assert not warned(features=np.rint(features) + 1e6, probs=probs, atoms="kernel")


def test_predictions_that_differ_by_their_rounding_are_told():
    features, logits, posterior = made(n=300)

    def gradient(temperature, dtype):
        probs, labels = (softmax(logits / t).astype(dtype) for t in (1.0, temperature))
        given = {"features": features.astype(dtype), "probs": probs, "label_probs": labels}
        return warned(**given, strategy="sabal-greedy")

    def samples(share, dtype):
        log_probs = np.log(softmax(nearly_equal(posterior, share))).astype(dtype)
        return warned(log_probs=log_probs, strategy="sabal-greedy")

    assert gradient(1.00001, "float32")
    assert not gradient(1.00001, "float64")
    assert not gradient(1.1, "float32")
    assert samples(1e-5, "float32")
    assert not samples(1e-5, "float64")
    assert not samples(1.0, "float32")


def test_one_item_far_out_takes_no_digits_from_the_others():
    features, logits, _ = made(n=300)
    far = features.copy()
    far[7] = 1e9

    def gram(features):
        problem = problem_of("kernel", "float64", features, logits, 1.5, None)
        return problem.items.gather(np.arange(8, 40)).to_float64_numpy().gram()

    np.testing.assert_allclose(gram(far), gram(features), atol=0.02)
