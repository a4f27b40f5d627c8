"""Statistics of the people who label: their pace, their agreement and the balance of classes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import combinations, pairwise
from statistics import median

from sabal.labeling.store.answers import AnswerStore
from sabal.labeling.store.classes import ClassStore
from sabal.labeling.store.current_answers import CurrentAnswerStore
from sabal.labeling.store.records import LABEL, Agreement, Answer, LabelRow, Pace, PersonPace

BREAK_SECONDS = 300.0  # a longer time between two answers counts as a break


class PeopleStore(AnswerStore, ClassStore, CurrentAnswerStore):
    """The part of the store that describes how people label."""

    def class_balance(self) -> dict[str, int]:
        """Return the number of labelled items of each class."""
        counts = Counter(each.label for each in self.training_labels())
        return {name: counts[name] for name in self.classes}

    def pace(self) -> Pace:
        """Return how fast people label."""
        counts = Counter(row.annotator for row in self.labels())
        return _pace(self.history(), counts)

    def agreement(self) -> Agreement | None:
        """Return how far people agree; None unless two of them labelled the same item."""
        return _agreement(row for row in self.labels() if not row.decides)


def _pace(history: Iterable[Answer], counts: Mapping[str, int]) -> Pace:
    by_person: defaultdict[str, list[Answer]] = defaultdict(list)
    for answer in history:
        if answer.action == LABEL:
            by_person[answer.annotator].append(answer)
    taken = {name: _seconds(answers) for name, answers in by_person.items()}
    people = {
        name: PersonPace(counts.get(name, 0), _median(taken[name]), _per_hour(taken[name]))
        for name in sorted(by_person)
    }
    total = [seconds for each in taken.values() for seconds in each]
    return Pace(_median(total), _per_hour(total), people)


def _agreement(rows: Iterable[LabelRow]) -> Agreement | None:
    labels: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        if row.label is not None:
            labels[row.annotator][row.id] = row.label
    equal, pairs, weighted, weight = 0, 0, 0.0, 0
    for one, two in combinations(labels.values(), 2):
        shared = one.keys() & two.keys()
        first, second = [one[item] for item in shared], [two[item] for item in shared]
        equal += sum(a == b for a, b in zip(first, second, strict=True))
        pairs += len(shared)
        # Kappa is undefined where both people used a single class, and the same one.
        if len({*first, *second}) > 1:
            from sklearn.metrics import cohen_kappa_score

            weighted += float(cohen_kappa_score(first, second)) * len(shared)
            weight += len(shared)
    if not pairs:
        return None
    return Agreement(equal / pairs, weighted / weight if weight else None, pairs)


def _seconds(answers: Sequence[Answer]) -> list[float]:
    """Return the time of each answer as measured by the page, else the times between answers."""
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
