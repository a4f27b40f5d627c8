"""What the suite makes of its rows: exponents, verdicts, tables and pictures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_tiny import DISK, KERNEL, LARGER, SHAPE, SLOW, TINY, made_row
from research.bench.suite import SCALES, default_figures, sheets, verdicts
from research.bench.suite.figures import times_as_fast
from research.bench.suite.measurement import MeasurementIndex
from research.bench.suite.power_law import fit_exponent
from research.bench.suite.suite_plots import draw_pictures

# -- exponents -----------------------------------------------------------------------------------


@given(
    exponent=st.floats(-2.0, 3.0),
    factor=st.floats(1e-3, 1e3),
    noise=st.lists(st.floats(-0.3, 0.3), min_size=3, max_size=6),
)
def test_the_exponent_and_its_error_are_those_of_a_straight_line(exponent, factor, noise):
    sizes = 100.0 * 2.0 ** np.arange(len(noise))
    seconds = factor * sizes**exponent * np.exp(noise)
    fit = fit_exponent(sizes, seconds)
    (slope, level), covariance = np.polyfit(np.log(sizes), np.log(seconds), 1, cov=True)
    assert fit.exponent == pytest.approx(slope, abs=1e-9)
    assert fit.error == pytest.approx(np.sqrt(covariance[0, 0]), abs=1e-6)
    assert fit.at(200.0) == pytest.approx(np.exp(level + slope * np.log(200.0)))


def test_a_line_needs_two_points_and_has_an_error_from_three_on():
    assert fit_exponent([], []) is None
    assert fit_exponent([10, 10], [1.0, 2.0]) is None
    two = fit_exponent([10, 100], [1.0, 100.0])
    assert (two.exponent, two.error, str(two)) == (pytest.approx(2.0), None, "2.00")
    assert str(fit_exponent([1, 10, 100], [3.0, 30.0, 300.0])) == "1.00 ± 0.00"


# -- verdicts ------------------------------------------------------------------------------------


def measured(method, seconds=1.0, shape=SHAPE, **facts):
    facts = {"input_bytes": 1000, "passes": 2, "objective": -100.0, "random_objective": 0.0} | facts
    return made_row(method=method, shape=shape, seconds=seconds, peak_bytes=200, facts=facts)


def answers(rows, *words, scale=TINY):
    """Verdict and figures of the lines that have all `words` in them."""
    lines = [line for line in verdicts(rows, scale) if all(word in line.what for word in words)]
    return [(line.answer, line.measured) for line in lines]


def test_nothing_is_met_that_was_not_measured():
    for scale in (TINY, *SCALES.values()):
        lines = verdicts([], scale)
        assert {line.answer for line in lines} == {"not measured"}
        assert {line.measured for line in lines} == {"nothing"}
        assert len(lines) == len({line.what for line in lines})


@pytest.mark.parametrize(
    ("objective", "answer"), [(-99.1, "met"), (-101.0, "met"), (-98.9, "not met")]
)
@pytest.mark.parametrize(("method", "other"), [("sabal-greedy", KERNEL), (KERNEL, "sabal-greedy")])
def test_the_objective_is_judged_beside_a_pass_per_pick(method, other, objective, answer):
    rows = [measured(method, objective=objective), measured(f"{method}{SLOW}", passes=19)]
    share = f"{100 + objective:.2f} %"
    assert answers(rows, f"{method}: objective") == [(answer, share)]
    assert answers(rows, f"{method}: passes") == [("not met", "9.5 times fewer")]
    assert answers(rows, f"{other}: objective") == [("not measured", "nothing")]
    (sheet,) = [each for each in sheets(rows, TINY) if each.title.startswith("Objective")]
    (line,) = [line for line in sheet.rows if line[2] == method]
    assert line[3:7] == [share.removesuffix(" %"), "2", "19", "9.5"]


def test_a_cover_is_not_compared_with_a_pass_per_pick():
    rows = [measured("sabal", passes=1, objective=0.4, random_objective=0.6)]
    assert answers(rows, "sabal: objective") == answers(rows, "sabal: passes") == []
    (sheet,) = [each for each in sheets(rows, TINY) if each.title.startswith("Objective")]
    assert [line[2] for line in sheet.rows] == ["sabal-greedy", KERNEL]


def test_one_shape_decides_against_and_only_all_of_them_decide_for():
    scale = replace(TINY, shapes=(SHAPE, LARGER))
    good = [measured("sabal-greedy"), measured(f"sabal-greedy{SLOW}", passes=20)]
    told = "0.00 % on 1 of 2 shapes"
    assert answers(good, "sabal-greedy: objective", scale=scale) == [("not measured", told)]
    bad = [measured(each.method, shape=LARGER, objective=-90.0) for each in good[:1]]
    bad += [measured(each.method, shape=LARGER) for each in good[1:]]
    told = "10.00 % at worst"
    assert answers(good + bad, "sabal-greedy: objective", scale=scale) == [("not met", told)]
    assert answers(bad, "sabal-greedy: objective", scale=scale)[0][0] == "not met"
    fine = [measured(each.method, shape=LARGER, passes=20) for each in good]
    assert answers(good + fine, "sabal-greedy: objective", scale=scale)[0][0] == "met"


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (measured("sabal", 2.0), measured("badge", 8.0), ("met", "4 times")),
        (measured("sabal", 2.0), measured("badge", 7.0), ("not met", "3.5 times")),
        # Killed at the limit, the rival took longer than that, nobody knows how much.
        (
            measured("sabal", 2.0),
            made_row(method="badge", status="over the limit", limit=10.0),
            ("met", "> 5 times"),
        ),
        (
            measured("sabal", 5.0),
            made_row(method="badge", status="over the limit", limit=10.0),
            ("not measured", "> 2 times"),
        ),
        (
            made_row(method="sabal", status="over the limit", limit=10.0),
            measured("badge", 5.0),
            ("not met", "< 0.5 times"),
        ),
        (
            made_row(method="sabal", status="over the limit", limit=1.0),
            measured("badge", 5.0),
            ("not measured", "< 5 times"),
        ),
        (measured("sabal"), made_row(method="badge", status="failed"), ("not measured", "nothing")),
    ],
)
def test_speed_is_judged_beside_badge(ours, theirs, expected):
    assert answers([ours, theirs], "sabal beside BADGE with a pass")[0][0] == "not measured"
    again = replace(theirs, method=f"badge{SLOW}")
    assert answers([ours, again], "sabal beside BADGE with a pass per pick") == [expected]
    over = [made_row(method=m, status="over the limit", limit=1.0) for m in ("sabal", "badge")]
    assert times_as_fast(MeasurementIndex(over), SHAPE, "sabal", "badge") is None


@pytest.mark.parametrize(("seconds", "answer"), [(2.6, "met"), (2.7, "not met")])
def test_iterations_are_judged_beside_their_passes(seconds, answer):
    facts = {"passes": 10, "bare_seconds": 0.2, "pass_bytes": 100, "stream_rate": 1000.0}
    rows = [made_row("passes", "sabal-iht", seconds=seconds, facts=facts)]
    assert answers(rows, "sabal-iht: time") == [(answer, f"{seconds / 2:.2f} times")]
    (sheet,) = [each for each in sheets(rows, TINY) if each.title == "Passes"]
    assert sheet.rows[0][8:11] == [f"{200 / seconds:.1f}", "50.0", f"{seconds / 2:.3g}"]


@pytest.mark.parametrize(("peak", "answer"), [(250, "met"), (251, "not met")])
def test_memory_is_judged_beside_the_inputs(peak, answer):
    rows = [replace(measured("sabal-iht"), peak_bytes=peak)]
    assert answers(rows, "sabal-iht: memory") == [(answer, f"{peak / 10:.1f} %")]


@pytest.mark.parametrize(("peak", "answer"), [(384_000_000, "met"), (384_000_001, "not met")])
def test_the_default_may_keep_its_kernel(peak, answer):
    rows = [replace(measured("sabal"), peak_bytes=peak)]
    assert answers(rows, "sabal: memory") == [(answer, f"{peak / 10:.1f} %")]


@pytest.mark.parametrize(("seconds", "answer"), [(2.0, "met"), (2.1, "not met")])
def test_the_default_is_judged_beside_one_kernel_matrix(seconds, answer):
    (shape,) = TINY.kernel
    facts = {"kernel_seconds": 1.0, "badge_seconds": 0.4, "read_seconds": 0.1, "sampled": 9}
    rows = [made_row("kernel", "sabal", shape, seconds=seconds, facts=facts)]
    assert answers(rows, "sabal: time of a selection") == [(answer, f"{seconds:.2f} times")]
    beside = ("met" if seconds <= 2.0 else "not met", f"{seconds / 0.4:.2f} times")
    assert answers(rows, "sabal: time beside BADGE") == [beside]
    assert answers(rows, "labelled: time of a selection") == [("not measured", "nothing")]
    (sheet,) = [each for each in sheets(rows, TINY) if "kernel matrix" in each.title]
    assert sheet.rows[0][8:11] == [
        f"{seconds:.2f}",
        f"{seconds / 0.4:.2f}",
        f"{seconds / 0.1:.1f}",
    ]


def test_the_wait_the_command_the_baselines_and_the_sample_are_judged():
    rows = [
        made_row("kernel", "sabal", TINY.interactive[0], seconds=0.31),
        made_row("baselines", "kcenter", TINY.baselines[0], seconds=2.5),
        made_row("command", "parquet", TINY.command[0], facts={"command_bytes": 451_000_000}),
        made_row(
            "sample", "sabal", TINY.sample[0], facts={"covered": 0.596, "exactly_covered": 0.6}
        ),
    ]
    assert answers(rows, "wait") == [("not met", "0.310 s")]
    assert answers(rows, "kcenter") == [("met", "2.50 s")]
    assert answers(rows, "typiclust") == [("not measured", "nothing")]
    assert answers(rows, "as parquet") == [("not met", "451 MB")]
    assert answers(rows, "covered share") == [("not met", "0.67 %")]


def on_disk(method, n, seconds=1.0, gibibytes=1.0):
    facts = {"highest_bytes": int(gibibytes * 2**30)}
    return made_row("disk", method, DISK.shape(n), seconds=seconds, facts=facts)


def test_a_pool_on_disk_is_judged_by_its_memory_and_its_growth():
    small, large = (on_disk("sabal-greedy", n, n / 1000) for n in DISK.rows)
    linear = ("met", "an exponent of 1.00")
    assert answers([small, large], "sabal-greedy", "disk") == [
        ("met", "1 GiB at 4,000 rows"),
        linear,
    ]
    assert answers([small, replace(large, seconds=9.0)], "greedy: growth")[0][0] == "not met"
    assert answers([small], "greedy: growth") == [("not measured", "nothing")]
    rows = [on_disk("sabal", n, n / 1000) for n in DISK.rows]
    assert answers(rows, "sabal: growth") == [linear]
    # What is below 2 GiB at fewer rows says nothing of more; what is above it does.
    below, above = on_disk("sabal", 2_000), on_disk("sabal", 2_000, gibibytes=2.0)
    assert answers([below], "sabal: whole") == [("not measured", "1 GiB at 2,000 rows")]
    assert answers([above], "sabal: whole") == [("not met", "2 GiB at 2,000 rows")]


@pytest.mark.parametrize(
    ("same", "traffic", "expected"),
    [
        ((True, True), (100, 105), [("met", "the same at worst"), ("met", "100 and 105")]),
        ((True, False), (100, 200), [("not met", "another at worst"), ("not met", "100 and 200")]),
        ((True,), (100,), [("not measured", "the same on 1 of 2 shapes"), ("not measured", "100")]),
    ],
)
def test_a_cluster_is_judged_by_its_batch_and_its_traffic(same, traffic, expected):
    rows = [
        made_row(
            "cluster",
            "sabal-greedy",
            DISK.shape(n),
            facts={"same_as_memory": equal, "same_as_disk": True, "bytes_per_pass": nbytes},
        )
        for n, equal, nbytes in zip(DISK.rows, same, traffic, strict=False)
    ]
    assert answers(rows, "Ray") == expected


def test_the_goals_are_those_that_were_agreed():
    full = SCALES["full"]
    goals = {(g.shape.n, g.shape.b, g.method): g.times for g in full.speed}
    assert goals == {
        (47_000, 3_000, "sabal-greedy"): 8.0,
        (47_000, 3_000, "sabal"): 15.0,
        (1_000_000, 1_000, "sabal-greedy"): 15.0,
        (1_000_000, 1_000, "sabal"): 40.0,
    }
    assert {goal.shape for goal in full.speed} <= set(full.shapes)
    assert full.kernel == full.shapes
    assert (default_figures.KERNELS, default_figures.BADGES) == (2.0, 5.0)
    assert (default_figures.WAIT_SECONDS, default_figures.COMMAND_BYTES) == (0.3, 450e6)
    assert all(len(points) == 4 for points in full.growth.points.values())
    assert all(n % full.disk.file_rows == 0 for n in full.disk.rows)


def test_pictures_and_tables_stand_gaps(tmp_path):
    rows = [
        made_row(status="over the limit", limit=9.0, note="over 9 s"),
        made_row(method="badge", status="failed", note="no such thing"),
        measured("kcenter"),
        made_row("growth", "badge", status="failed"),
        made_row("passes", KERNEL, status="failed"),
        made_row("disk", "sabal", DISK.shape(2_000), "failed"),
        made_row("cluster", "sabal-greedy", DISK.shape(2_000), "failed"),
    ]
    assert "badge: failed, no such thing." in sheets(rows, TINY)[0].note
    for some in (rows, rows[1:2], rows[3:]):
        for sheet in sheets(some, TINY):
            assert sheet.table().row_count == len(sheet.rows)
            assert all(len(line) == len(sheet.columns) for line in sheet.rows)
        drawn = draw_pictures(some, TINY, tmp_path)
        # Those of an earlier run do not stay.
        assert {path.name for path in tmp_path.glob("*.png")} == set(drawn)
        for name in drawn:
            assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
