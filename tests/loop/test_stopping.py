"""Projected learning curves: exact ones are continued, and little is not made into much."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabal.errors import InputError
from sabal.loop.stopping import first_stop, project

LABELS = np.arange(20, 201, 20)


def power_law(labels, floor, scale, exponent, offset=0.0):
    return 1 - floor - scale * (np.asarray(labels, dtype=float) + offset) ** -exponent


@pytest.mark.parametrize(
    ("floor", "scale", "exponent", "offset"),
    [(0.1, 2.0, 0.5, 0.0), (0.0, 1.0, 0.3, 0.0), (0.05, 20.0, 1.0, 20.0), (0.2, 0.0, 1.0, 0.0)],
)
def test_a_power_law_is_continued(floor, scale, exponent, offset):
    law = floor, scale, exponent, offset
    found = project(LABELS, power_law(LABELS, *law), 100)
    now, then = power_law([200, 300], *law)
    assert found.low <= then - now <= found.high
    assert found.gain == pytest.approx(then - now, abs=0.006)


def projected(labels, accuracies, more):
    """The gains and weights of all curves of the grid, one after the other."""
    n, errors = np.asarray(labels, dtype=float), 1 - np.asarray(accuracies)
    first, last = max(errors.max(), 0.015), errors[-1]
    share = n / n[-1]
    reductions, likelihoods = [], []
    for floor in [*np.linspace(0, last, 11), last + 0.015]:
        for scale in np.linspace(0, 1.5 * first, 40):
            for offset, exponent in itertools.product([0, 1, 3, 10], np.linspace(0.1, 1.5, 8)):
                at = np.append(n, n[-1] + more)
                curve = floor + scale * ((at / n[0] + offset) / (1 + offset)) ** -exponent
                residuals = errors - curve[:-1]
                likelihoods.append(
                    [share @ student(residuals / wobble, wobble) for wobble in WOBBLES]
                )
                reductions.append(1 - curve[-1] / curve[-2] if curve[-2] else 0.0)
    weights = np.exp(np.asarray(likelihoods) - np.max(likelihoods)).sum(axis=1)
    likely = weights > 1e-4 * weights.max()
    return np.asarray(reductions)[likely], weights[likely] / weights[likely].sum()


WOBBLES = 0.00375, 0.0075, 0.015, 0.03


def student(z, scale):
    """The log density of Student's t with four degrees of freedom, up to a constant."""
    return -2.5 * np.log1p(z**2 / 4) - np.log(scale)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_projection_is_the_mixture_of_all_likely_curves(noise):
    labels = np.array([30, 40, 70, 100, 160])
    curve = power_law(labels, 0.1, 2.0, 0.5) + noise * np.array([1, -1, 0, 1, -1])
    reductions, weights = projected(labels, curve, 90)
    # Real curves are off by a factor: nine equally likely ones, whose logarithms are normal.
    factors = np.exp(0.5 * np.array([-1.59, -0.97, -0.59, -0.28, 0, 0.28, 0.59, 0.97, 1.59]))
    gains = np.outer(factors, (1 - curve[-1]) * reductions).ravel()
    weights = np.tile(weights, 9) / 9
    found = project(labels, curve, 90, worthwhile=0.02)
    assert found.chance == pytest.approx(weights[gains >= 0.02].sum(), abs=1e-6)
    for value, level in ((found.low, 0.05), (found.gain, 0.5), (found.high, 0.95)):
        assert weights[gains < value - 1e-9].sum() <= level + 1e-6
        assert weights[gains <= value + 1e-9].sum() >= level - 1e-6
    assert found.verdict == ("helping" if found.chance >= 0.8 else "unclear")


def test_verdicts():
    steep = project(LABELS, power_law(LABELS, 0.0, 3.0, 0.5), 200)
    assert (steep.verdict, steep.chance > 0.9) == ("helping", True)
    flat = project(LABELS, np.full(10, 0.97), 200)
    assert (flat.verdict, flat.high < 0.01) == ("not-helping", True)
    early = project(LABELS[:3], [0.5, 0.6, 0.7], 200)
    assert (early.verdict, early.chance, early.low, early.high) == ("too-early", 0.5, 0.0, 1.0)
    curve = power_law(LABELS, 0.0, 3.0, 0.5)
    # What is as likely as not to be reached.
    unclear = project(LABELS, curve, 200, worthwhile=project(LABELS, curve, 200).gain)
    assert (unclear.verdict, 0.2 < unclear.chance < 0.8) == ("unclear", True)
    strict = project(LABELS, power_law(LABELS, 0.0, 3.0, 0.5), 200, worthwhile=0.5)
    assert strict.verdict == "not-helping"


@pytest.mark.parametrize(
    "curve", [[0.3] + [0.97] * 9, [0.3, 0.35, 0.5] + [0.97] * 7, [0.3] + [0.85] * 9]
)
def test_a_jump_at_the_start_does_not_hide_that_the_curve_is_flat_since(curve):
    found = project(LABELS, curve, 100)
    assert (found.verdict, found.gain < 0.005) == ("not-helping", True)
    assert first_stop(LABELS, curve) is not None
    # After the jump alone, nobody can tell.
    start = curve.index(curve[-1]) + 1
    if start >= 4:
        assert project(LABELS[:start], curve[:start], 100).verdict != "not-helping"


def test_checks_say_how_large_the_error_is():
    """The curve is of harder items: the gain is in proportion to the error of the checks."""
    curve = power_law(LABELS, 0.0, 3.0, 0.5)
    few, many = (project(LABELS, curve, 200, checks=(wrong, 400)) for wrong in (4, 80))
    assert many.gain / few.gain == pytest.approx(80.5 / 4.5, rel=0.1)
    assert few.verdict == "not-helping"
    assert many.verdict == "helping"


def test_more_checks_and_less_wobble_narrow_the_interval():
    curve = power_law(LABELS, 0.0, 3.0, 0.5)
    some, more = (project(LABELS, curve, 200, checks=(k, 10 * k)) for k in (2, 40))
    assert more.high - more.low < some.high - some.low
    loose, tight = (project(LABELS, curve, 200, wobble=wobble) for wobble in (0.05, 0.002))
    assert tight.high / tight.low < loose.high / loose.low


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=12),
    st.integers(1, 10_000),
    st.floats(1e-3, 1),
)
def test_any_curve_has_an_answer_in_range(accuracies, more, worthwhile):
    labels = 10 * (1 + np.arange(len(accuracies)))
    found = project(labels, accuracies, more, worthwhile=worthwhile)
    assert 0 <= found.low <= found.gain <= found.high
    assert 0 <= found.chance <= 1
    assert found == project(labels, accuracies, more, worthwhile=worthwhile)


@pytest.mark.parametrize(
    ("labels", "accuracies"),
    [
        ([1, 2, 3, 4], [0.5, 0.5, 0.5]),
        ([1, 2, 2, 4], [0.5] * 4),
        ([0, 2, 3, 4], [0.5] * 4),
        ([1, 2, 3, 4], [50, 60, 70, 80]),
        ([1, 2, 3, 4], [0.5, 0.5, float("nan"), 0.5]),
    ],
)
def test_what_is_no_curve_is_refused(labels, accuracies):
    with pytest.raises(InputError):
        project(labels, accuracies, 10)


def test_the_first_stop_is_where_a_loop_that_sees_no_further_would_stop():
    curve = np.full(10, 0.97)
    at = first_stop(LABELS, curve)
    assert 3 <= at < 9
    verdicts = [project(LABELS[: k + 1], curve[: k + 1], 100).verdict for k in range(3, at + 1)]
    assert verdicts[-1] == "not-helping"
    assert "not-helping" not in verdicts[:-1]
    assert first_stop(LABELS[: at + 1], curve[: at + 1]) is None  # the end is no early stop
    assert first_stop(LABELS, power_law(LABELS, 0.0, 3.0, 0.5)) is None
