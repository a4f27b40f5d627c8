"""The people who label: how fast they are, how far they agree, and which classes come out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import combinations, pairwise
from statistics import median

from sabal.labeling.store.records import LABEL, Agreement, Answer, LabelRow, Pace, PersonPace

BREAK_SECONDS = 300.0
"""Whoever answers nothing for longer than this is not at work."""


def class_balance(labels: Iterable[str], classes: Sequence[str]) -> dict[str, int]:
    """How many items each class has, the classes without any among them."""
    counts = Counter(labels)
    return {name: counts[name] for name in classes}


def pace(history: Iterable[Answer]) -> Pace:
    """Seconds per label as the pages measured them, else between answers; breaks are left out."""
    by_person: defaultdict[str, list[Answer]] = defaultdict(list)
    for answer in history:
        if answer.action == LABEL:
            by_person[answer.annotator].append(answer)
    taken = {name: _seconds(answers) for name, answers in by_person.items()}
    people = {
        name: PersonPace(len(answers), _median(taken[name]), _per_hour(taken[name]))
        for name, answers in sorted(by_person.items())
    }
    everyone = [seconds for each in taken.values() for seconds in each]
    return Pace(_median(everyone), _per_hour(everyone), people)


def agreement(rows: Iterable[LabelRow]) -> Agreement | None:
    """How far people agree where two of them labelled the same item; None where none did."""
    labels: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        if row.label is not None:
            labels[row.annotator][row.id] = row.label
    equal, pairs, weighted, weight = 0, 0, 0.0, 0
    for one, two in combinations(labels.values(), 2):
        both = [(one[item], two[item]) for item in one.keys() & two.keys()]
        if not both:
            continue
        same = sum(first == second for first, second in both)
        equal, pairs = equal + same, pairs + len(both)
        kappa = _kappa(both, same)
        if kappa is not None:
            weighted, weight = weighted + kappa * len(both), weight + len(both)
    if not pairs:
        return None
    return Agreement(equal / pairs, weighted / weight if weight else None, pairs)


def _kappa(both: Sequence[tuple[str, str]], same: int) -> float | None:
    """Cohen's kappa of two people; None where chance alone would make them agree."""
    first, second = Counter(a for a, _ in both), Counter(b for _, b in both)
    by_chance = sum(first[label] * second[label] for label in first) / len(both) ** 2
    return None if by_chance == 1 else (same / len(both) - by_chance) / (1 - by_chance)


def _seconds(answers: Sequence[Answer]) -> list[float]:
    measured = [answer.seconds for answer in answers if answer.seconds is not None]
    if not measured:
        times = sorted(datetime.fromisoformat(answer.answered_at) for answer in answers)
        measured = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    return [seconds for seconds in measured if seconds <= BREAK_SECONDS]


def _median(seconds: Sequence[float]) -> float | None:
    return median(seconds) if seconds else None


def _per_hour(seconds: Sequence[float]) -> float | None:
    total = sum(seconds)
    return 3600 * len(seconds) / total if total > 0 else None
