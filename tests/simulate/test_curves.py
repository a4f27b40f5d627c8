"""What learning curves say: areas, paired differences, wins and verdicts, on curves made for it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sabal.simulate.curves import Point, area, areas_of, interval, summarise, wins
from sabal.simulate.early_stop import early_stop
from sabal.simulate.recommendation import recommend
from sabal.simulate.verdict import label_at_random, verdict


def curve(strategy, seed, accuracies, start=10, step=10):
    return [
        Point(strategy, seed, k, start + k * step, accuracy, 0.1)
        for k, accuracy in enumerate(accuracies)
    ]


def family(**gains):
    """Five seeds of each strategy: random's curve, moved by a gain that differs a little a seed."""
    rng = np.random.default_rng(0)
    points = []
    for seed in range(5):
        base = 0.5 + 0.1 * np.arange(4) + rng.normal(scale=0.05)
        points += curve("random", seed, base)
        for name, gain in gains.items():
            points += curve(name, seed, base + gain + rng.normal(scale=0.004))
    return points


def test_area_is_the_trapezoid_over_labels_in_percent():
    assert area([10, 20, 40], [0.5, 0.7, 0.9]) == pytest.approx(100 * (6 + 16) / 30)
    assert area([10], [0.5]) == 50.0


def test_differences_are_paired_by_seed_with_students_interval():
    points = family(better=0.05)
    areas = areas_of(points)
    paired = [areas["better"][s] - areas["random"][s] for s in range(5)]
    mean, low, high = interval(paired)
    expected = stats.t.interval(0.95, 4, np.mean(paired), stats.sem(paired))
    assert (low, high) == pytest.approx(expected)
    best = summarise(points)[0]
    assert (best.strategy, best.difference) == ("better", pytest.approx(mean))
    # The seeds differ by far more than the gain: unpaired, nothing could be seen.
    assert np.std(list(areas["random"].values())) > 3 * np.std(paired)


def test_labels_to_match_random_lie_on_the_line_between_points():
    points = curve("random", 0, [0.5, 0.6, 0.7, 0.8]) + curve("fast", 0, [0.5, 0.7, 0.9, 0.9])
    fast = next(s for s in summarise(points) if s.strategy == "fast")
    assert fast.labels_to_match == pytest.approx(25.0)


def test_wins_count_seeds():
    points = family(better=0.05, worse=-0.05)
    names, matrix = wins(points)
    assert names == ["better", "random", "worse"]
    assert matrix[0, 1] == 1.0
    assert matrix[2, 0] == 0.0
    assert np.isnan(matrix[1, 1])


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (family(better=0.05), "helps here: better beats random"),
        (family(same=0.0), "not helping here"),
        (family(worse=-0.05, bad=-0.1), "hurts here"),
        (curve("random", 0, [0.5, 0.6]) + curve("sabal", 0, [0.5, 0.7]), "one seed"),
        (curve("sabal", 0, [0.5, 0.7]), "run `random` beside"),
    ],
)
def test_the_verdict_says_what_the_curves_say(points, words):
    assert words in verdict(summarise(points))


def test_the_verdict_knows_a_ceiling():
    points = []
    for seed in range(3):
        points += curve("random", seed, [0.99, 1.0]) + curve("sabal", seed, [0.99, 1.0])
    said = verdict(summarise(points))
    assert "Random ends at 100.0%" in said
    assert "Label at random" not in said


def test_the_verdict_waits_while_a_worthwhile_gain_is_possible():
    points = []
    for seed, gain in enumerate([0.1, -0.05, 0.02]):
        points += curve("random", seed, [0.5, 0.6]) + curve("sabal", seed, [0.5, 0.6 + gain])
    assert "cannot be told yet" in verdict(summarise(points))


def test_many_strategies_do_not_make_one_of_them_better_by_chance():
    """Without a true gain, one of 20 strategies looks better; the verdict must rarely say so."""
    claimed = 0
    for trial in range(100):
        rng = np.random.default_rng(trial)
        points = []
        for seed in range(5):
            points += curve("random", seed, [0.5, 0.6])
            for name in range(20):
                points += curve(f"s{name}", seed, [0.5, 0.6 + rng.normal(scale=0.02)])
        claimed += "beats random" in verdict(summarise(points))
    assert claimed <= 12


# -- the strategy to use ------------------------------------------------------------------------


def noisy(seeds, scale=0.01, **gains):
    """Curves of strategies that gain so much over random, with noise of their own."""
    rng = np.random.default_rng(0)
    points = []
    for seed in range(seeds):
        base = 0.5 + 0.1 * np.arange(4)
        points += curve("random", seed, base)
        for name, gain in gains.items():
            points += curve(name, seed, base + gain + rng.normal(scale=scale))
    return points


@pytest.mark.parametrize(
    ("points", "strategy", "words"),
    [
        (noisy(8, sabal=0.05, margin=0.01), "sabal", "ahead of margin, random (8 paired seeds)"),
        (noisy(8, sabal=0.05, margin=0.044), "sabal", "no difference was found to margin"),
        (noisy(8, sabal=0.05, margin=0.1), "margin", "ahead of sabal by +"),
        (noisy(8, sabal=0.05, margin=0.054, scale=0.03), "sabal", "no difference was found"),
        (noisy(4, sabal=0.05, margin=0.1), "sabal", "4 paired seeds cannot tell"),
        (noisy(8, sabal=-0.02, margin=-0.05), "random", "nothing was gained"),
        (noisy(8, margin=0.05), "margin", "the default, sabal, was not run"),
        (noisy(8, margin=-0.01, scale=0.03), "sabal", "no difference was found"),
        ([p for p in noisy(8, margin=0.05) if p.strategy == "margin"], "sabal", "was not run"),
        (curve("sabal", 0, [0.5, 0.6]), "sabal", "1 paired seed cannot tell"),
    ],
)
def test_the_strategy_to_use_is_the_default_unless_another_is_ahead(points, strategy, words):
    found = recommend(points)
    assert found.strategy == strategy
    assert words in found.reason
    assert found.text.startswith(f"Use {strategy} on these data: ")


def test_the_interval_of_a_recommendation_allows_for_all_comparisons():
    points = noisy(8, sabal=0.03, margin=0.05, badge=0.0)
    areas = areas_of(points)
    paired = [areas["margin"][seed] - areas["sabal"][seed] for seed in range(8)]
    low, high = stats.t.interval(1 - 0.05 / 3, 7, np.mean(paired), stats.sem(paired))
    assert f"({low:+.2f} to {high:+.2f}, 8 paired seeds)" in recommend(points).reason


def test_another_strategy_is_rarely_recommended_by_chance():
    """With ten strategies that are all alike, one of them looks better than the default."""
    lured = 0
    for trial in range(100):
        rng = np.random.default_rng(trial)
        points = []
        for seed in range(5):
            points += curve("random", seed, [0.5, 0.6])
            for name in ("sabal", *(f"s{k}" for k in range(9))):
                points += curve(name, seed, [0.5, 0.65 + rng.normal(scale=0.02)])
        lured += recommend(points).strategy != "sabal"
    assert lured <= 10


def test_random_is_advised_where_it_was_shown_and_not_at_a_ceiling():
    assert label_at_random(summarise(noisy(8, sabal=0.0)))
    assert not label_at_random(summarise(noisy(8, sabal=0.05)))
    assert not label_at_random(summarise(curve("sabal", 0, [0.5, 0.6])))
    full = [p for s in range(5) for name in ("random", "sabal") for p in curve(name, s, [0.99, 1])]
    assert not label_at_random(summarise(full))
    assert recommend(full).strategy == "sabal"


def test_where_the_advice_would_have_stopped_and_what_that_costs():
    flat = [0.97] * 8 + [0.98]
    steep = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    points = curve("sabal", 0, flat) + curve("sabal", 1, steep) + curve("random", 0, steep)
    found = early_stop(points, "sabal")
    assert (found.runs, found.stopped) == (2, 1)
    assert found.labels + found.labels_saved == 90
    assert 40 <= found.labels < 90
    assert found.points_lost == pytest.approx(1.0)
    assert f"at {found.labels:.0f} labels on average" in found.text
    never = early_stop(points, "random")
    assert (never.stopped, never.labels, never.points_lost) == (0, None, None)
    assert "no run of random" in never.text
    assert early_stop(points, "margin") is None
