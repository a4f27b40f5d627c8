"""Lines of the report by scope: labels saved, ranks, leads, goals, and the advice in the docs."""

from __future__ import annotations

from collections.abc import Sequence

from research.study.analysis import ConfigurationRanking, Difference
from research.study.configurations import CHANCE, DEFAULT
from research.study.definitions import FAMILIES
from research.study.goals import Goal, is_first, rank_text, share_text
from research.study.planning import FEW_SEEDS
from research.study.report_lines import as_table, difference_text
from research.study.scopes import LARGE, LARGE_BATCH, ScopeFigures

Scopes = dict[str, ScopeFigures]

TITLES = {
    "all": "all ranked tasks",
    **FAMILIES,
    LARGE: f"batches of {LARGE_BATCH} or more",
    "held out": "held-out tasks",
}


def title_of(figures: ScopeFigures) -> str:
    """Return a scope in words."""
    return TITLES.get(figures.title, figures.title)


def saved_lines(scopes: Scopes) -> list[str]:
    """Return how many of the labels everyone needs, by scope."""
    if not scopes:
        return ["Nothing to compare yet: no task has a seed that all of them share.", ""]
    names = _by_share(next(iter(scopes.values())))
    rows = [
        [
            title_of(each),
            str(each.tasks),
            _seeds(each.by_area),
            *(share_text(each.median_share(name)) for name in names),
            f"{each.best_reached} of {len(each.saved)}",
            share_text(each.median_share_of_best),
        ]
        for each in scopes.values()
    ]
    header = ["", "tasks", "seeds", *names, f"best final reached by {DEFAULT}", "with"]
    return [
        "The share of the labels asked for with which the mean curve reaches the final accuracy of "
        f"`{CHANCE}`, median over tasks (the first labels, the same for all, do not count). The "
        f"last columns are the number of tasks on which `{DEFAULT}` reaches the final accuracy of "
        "the best of all others, chosen after the fact, and the median share of the labels with "
        "which it does.",
        "",
        *as_table(header, rows),
    ]


def _by_share(figures: ScopeFigures) -> list[str]:
    names = [p.configuration for p in figures.by_area.places if p.configuration != CHANCE]
    return sorted(names, key=lambda name: (name != DEFAULT, figures.median_share(name)))


def _seeds(ranking: ConfigurationRanking) -> str:
    seeds = sorted(ranking.tasks.values())
    return str(seeds[0]) if seeds[0] == seeds[-1] else f"{seeds[0]} to {seeds[-1]}"


def goal_lines(goals: Sequence[Goal]) -> list[str]:
    """Return every goal with its figure, met or not."""
    rows = [[goal.what, goal.figure, "yes" if goal.met else "**no**"] for goal in goals]
    met = sum(goal.met for goal in goals)
    table = as_table(["goal", "measured", "met"], rows)
    return [f"{met} of {len(goals)} goals are met.", "", *table] if rows else []


def rank_lines(scopes: Scopes) -> list[str]:
    """Return mean ranks by area and by final accuracy, by scope."""
    lines = []
    for what, rankings in (
        ("area", {title: each.by_area for title, each in scopes.items()}),
        ("final accuracy", {title: each.by_final for title, each in scopes.items()}),
    ):
        names = [place.configuration for place in next(iter(rankings.values())).places]
        rows = []
        for title, ranking in rankings.items():
            ranks = {place.configuration: place.rank for place in ranking.places}
            best = min(ranks.values())
            cells = [_rank(ranks[name], best) for name in names]
            rows.append([title_of(scopes[title]), str(len(ranking.tasks)), *cells])
        table = as_table(["", "tasks", *names], rows)
        lines += [f"Mean ranks by {what}; the best is bold:", "", *table]
    return lines


def _rank(rank: float, best: float) -> str:
    return f"**{rank:.2f}**" if rank == best else f"{rank:.2f}"


def lead_lines(scopes: Scopes) -> list[str]:
    """Return the lead of `sabal` in area over every other, by scope, over tasks and data sets."""
    names = list(next(iter(scopes.values())).lead)
    lines = [
        f"The area of `{DEFAULT}` minus that of the others, mean over tasks. The intervals are "
        f"Student's t at a level of 1 - 0.05 / {len(names)} (Bonferroni), so that all "
        f"{len(names)} in a row hold together with 95 %; bold ones exclude zero.",
        "",
        *as_table(["", "tasks", *names], [_lead_row(e, e.lead, names) for e in scopes.values()]),
        "Tasks of one data set are not independent. The same over data sets, each with the mean of "
        "its tasks:",
        "",
    ]
    rows = [_lead_row(each, each.lead_by_data, names) for each in scopes.values()]
    return [*lines, *as_table(["", "data sets", *names], rows)]


def _lead_row(
    figures: ScopeFigures, lead: dict[str, Difference], names: Sequence[str]
) -> list[str]:
    count = max(each.pairs for each in lead.values())
    return [title_of(figures), str(count), *(difference_text(lead[name]) for name in names)]


def behind_lines(scopes: Scopes) -> list[str]:
    """Return where `sabal` is behind the best of the others, and what chance would give."""
    rows = [
        [
            title_of(each),
            str(each.tested),
            f"{len(each.behind)}{_named(each.behind)}",
            f"{each.least_chance:.1f} to {each.chance:.1f}",
            f"{len(each.behind_adjusted)}{_named(each.behind_adjusted)}",
            f"{each.least_chance:.1f}",
        ]
        for each in scopes.values()
    ]
    header = ["", "tasks", "behind the best", "by chance", "allowing for all", "by chance"]
    return [
        f"Tasks with at least {FEW_SEEDS} seeds on which `{DEFAULT}` is significantly behind the "
        "best of the others by area. The "
        "best is chosen after the fact, which favours the others: by chance alone, half of 5 % of "
        "the tasks would be expected if there were one other, and as many as in the right figure "
        "if all were equally good (permutations of the names within every seed). Allowing for all "
        "comparisons on a task (Bonferroni), chance gives at most half of 5 %.",
        "",
        *as_table(header, rows),
    ]


def _named(tasks: Sequence[str]) -> str:
    return f": {', '.join(tasks)}" if tasks else ""


def oracle_lines(scopes: Scopes) -> list[str]:
    """Return gains as shares of what an oracle gains."""
    known = {title: each for title, each in scopes.items() if each.oracle_tasks}
    if not known:
        return []
    names = sorted(
        next(iter(known.values())).oracle_share,
        key=lambda name: -next(iter(known.values())).oracle_share[name],
    )
    rows = [
        [
            title_of(each),
            str(each.oracle_tasks),
            *(share_text(each.oracle_share[name]) for name in names),
        ]
        for each in known.values()
    ]
    return [
        "## What was possible",
        "",
        "The gain in area over drawing at random, as a share of the gain of a greedy oracle that "
        "knows all labels and the test set (Werner et al. 2024; for every fifth of a batch the "
        "best of 20 random candidates by test accuracy). Median over tasks, on the seeds that the "
        "oracle was run with.",
        "",
        *as_table(["", "tasks", *names], rows),
    ]


# -- blocks for other pages ---------------------------------------------------------------------


def summary_lines(scopes: Scopes) -> list[str]:
    """Return the block of the README: labels saved, ranks and leads, with what failed."""
    if not scopes:
        return []
    rows = [
        [
            title_of(each),
            str(each.tasks),
            share_text(each.median_share(DEFAULT)),
            next_share(each),
            rank_text(each.by_area),
            rank_text(each.by_final),
        ]
        for each in scopes.values()
    ]
    header = ["", "tasks", f"`{DEFAULT}`", "next", "mean rank by area", "by final accuracy"]
    everything = next(iter(scopes.values()))
    return [
        f"Labels that `{DEFAULT}` needs to be as accurate as drawing at random is at the end, as a "
        "share of the labels that random asks for: "
        f"**{share_text(everything.median_share(DEFAULT))}** in the median over "
        f"{everything.tasks} tasks.",
        "",
        *as_table(header, rows),
        *_failures(scopes),
        "From `python -m research study`; every figure, task by task, is in "
        "[the study](docs/results/study.md).",
    ]


def next_share(figures: ScopeFigures) -> str:
    """Return the smallest median share of labels of any other, with its name."""
    best = next(name for name in _by_share(figures) if name != DEFAULT)
    return f"{share_text(figures.median_share(best))} `{best}`"


def _failures(scopes: Scopes) -> list[str]:
    """Return where `sabal` is not first, or behind."""
    parts = []
    for what in ("area", "final accuracy"):
        lost = [
            title_of(each)
            for each in scopes.values()
            if not is_first(each.by_area if what == "area" else each.by_final)
        ]
        if lost:
            parts.append(f"not first by {what}: {'; '.join(lost)}")
    everything = next(iter(scopes.values()))
    if everything.behind:
        parts.append(
            f"significantly behind the best of all others on {len(everything.behind)} of "
            f"{everything.tasks} tasks ({', '.join(everything.behind)})"
        )
    unreached = len(everything.saved) - everything.best_reached
    if unreached:
        parts.append(
            f"the best final accuracy of all others is not reached on {unreached} of "
            f"{len(everything.saved)} tasks"
        )
    return [f"**Where it does not win:** {'. '.join(map(_sentence, parts))}.", ""] if parts else []


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def advice_lines(scopes: Scopes) -> list[str]:
    """Return the block of the docs: which strategy for which family of tasks."""
    rows = []
    for title in (*FAMILIES, LARGE):
        if title in scopes:
            each = scopes[title]
            best = DEFAULT if is_first(each.by_area) else each.by_area.places[0].configuration
            rows.append(
                [
                    title_of(each),
                    str(each.tasks),
                    _advice(each, best),
                    share_text(each.median_share(DEFAULT)),
                    next_share(each),
                ]
            )
    header = ["what you have", "tasks", "use", f"labels `{DEFAULT}` needs", "next"]
    return as_table(header, rows)


def _advice(figures: ScopeFigures, best: str) -> str:
    """Return the default, unless another is significantly ahead of it in the mean over tasks."""
    if best == DEFAULT:
        return f"`{DEFAULT}`"
    lead = figures.lead[best]
    if lead.worse:
        return f"`{best}`"
    return f"`{DEFAULT}` (`{best}` ranks first; no difference found)"
