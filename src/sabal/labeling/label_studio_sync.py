"""Keeps a project of a running Label Studio fed: reads its annotations, trains, pushes tasks.

Label Studio says which tasks it has, and the store which answers it has; each pass compares the
two, so that it does not matter where the last one was interrupted. Reading an annotation again adds
nothing, and an item is pushed only if it is claimed first (see `task_claims`) and Label Studio has
no task of it after that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from sabal.errors import FileError, SabalError, ServerError
from sabal.labeling.engine import Engine
from sabal.labeling.exchange.exporting import open_rows
from sabal.labeling.exchange.importing import checked_answer, import_answers
from sabal.labeling.exchange.label_studio import (
    CONTROL,
    LOCAL_FILES,
    Interface,
    label_config,
    make_tasks,
    rows_of_task,
)
from sabal.labeling.exchange.label_studio_server import LabelStudioServer, RefusedError
from sabal.labeling.project import Project
from sabal.labeling.store.records import ImportedLabel

TASKS_PER_PASS = 500  # a larger batch is pushed in several passes
Report = Callable[[str], None]


@dataclass(frozen=True)
class SyncReport:
    """What a pass did: answers that it added, and tasks that it pushed or left for later."""

    labels: int = 0
    skips: int = 0
    pushed: int = 0
    delayed: int = 0
    steps: tuple[str, ...] = ()

    @property
    def did_something(self) -> bool:
        """Whether anything changed, so that another pass may find more to do."""
        return bool(self.labels or self.skips or self.pushed or self.steps)

    def __add__(self, other: SyncReport) -> SyncReport:
        return SyncReport(
            labels=self.labels + other.labels,
            skips=self.skips + other.skips,
            pushed=self.pushed + other.pushed,
            delayed=other.delayed,
            steps=self.steps + other.steps,
        )


class LabelStudioSync:
    """Brings a project and one of Label Studio's together, a pass at a time.

    Parameters
    ----------
    project : Project
        The project.
    server : LabelStudioServer
        The project of Label Studio.
    media_url : str
        What comes before the paths of images, so that Label Studio finds them.
    report : callable
        Is called with a line about whatever needs attention; each line once.
    """

    def __init__(
        self,
        project: Project,
        server: LabelStudioServer,
        *,
        media_url: str = LOCAL_FILES,
        report: Report = print,
    ) -> None:
        self.project, self.store, self.server = project, project.store, server
        self.media_url = media_url
        self._report = report
        self._reported: set[str] = set()
        self._engine = Engine(project)
        self._unchanged_at: tuple[Any, ...] | None = None

    def run_pass(self) -> SyncReport:
        """Read annotations, train and choose if it is time to, and push what is missing."""
        revision = (self.server.revision(), self.store.revision(), self.store.classes)
        if revision == self._unchanged_at:
            return SyncReport()
        interface = self._interface()
        done, present = self._read(interface)
        done = replace(done, steps=self._train_and_choose())
        done += self._push(interface, present)
        # What was found out first may have changed meanwhile: then the next pass looks again.
        self._unchanged_at = None if done.did_something or done.delayed else revision
        return done

    def run_until_nothing_is_due(self) -> SyncReport:
        """Run passes until one finds nothing to do; return what all of them did."""
        total = SyncReport()
        while (done := self.run_pass()).did_something:
            total += done
        return total + done

    def run_forever(self, every: float, done: Callable[[SyncReport], None]) -> None:
        """Run a pass every few seconds, and outlive failures of either side.

        A mistake in what was asked for, which shows in the first pass, is raised.
        """
        passed, failure = False, None
        while True:
            try:
                done(self.run_pass())
                passed, failure = True, None
            except SabalError as error:
                if not passed and not _may_pass(error):
                    raise
                # A server that ends, starts and is ready fails in several ways.
                if failure is not type(error):
                    self._report(f"{error}; trying again")
                failure = type(error)
                self._engine = Engine(self.project)
            time.sleep(every)

    def _say(self, line: str) -> None:
        if line not in self._reported:
            self._reported.add(line)
            self._report(line)

    def _interface(self) -> Interface:
        """Return the names in the labelling interface, which is made if there is none."""
        about, classes, kind = self.server.project(), self.store.classes, self.project.settings.kind
        if not about.get("parsed_label_config"):
            config, overlap = label_config(classes, kind), self.store.settings.overlap
            self.server.change(label_config=config, maximum_annotations=overlap)
        elif _is_own(about, kind) and set(classes) - set(_labels(about)):
            # Choices that are no class any more stay: annotations may have them.
            config = label_config(tuple(dict.fromkeys((*_labels(about), *classes))), kind)
            self.server.change(label_config=config)
        else:
            self._check_overlap(about)
            return _fitting(_choices(about), classes, self.server.place)
        about = self.server.project()
        return _fitting(_choices(about), classes, self.server.place)

    def _check_overlap(self, about: dict[str, Any]) -> None:
        wanted = self.store.settings.overlap
        if (about.get("maximum_annotations") or 1) < wanted:
            self._say(
                f"{wanted} people answer every item here, but Label Studio shows a task to fewer: "
                f"set its maximum_annotations to {wanted}"
            )

    def _read(self, interface: Interface) -> tuple[SyncReport, set[str]]:
        """Add the answers in all annotations; return also the items that have a task."""
        tasks, known = _by_item(self.server.tasks()), self.store.known_classes
        answers = [
            answer for _, task in tasks for answer in self._answers(task, interface.control, known)
        ]
        report = import_answers(self.store, answers)
        if report.unknown:
            self._say(f"{len(report.unknown)} tasks are about items that this project has not")
        return SyncReport(labels=report.labels, skips=report.skips), {item for item, _ in tasks}

    def _answers(
        self, task: dict[str, Any], control: str, known: Collection[str]
    ) -> list[ImportedLabel]:
        """Return the answers to a task; one that cannot be used does not hold up the others."""
        answers = []
        for annotation in task.get("annotations") or ():
            alone = {**task, "annotations": [annotation]}
            try:
                rows = list(rows_of_task(alone, task["id"], self.server.place, control))
                found = [checked_answer(row, known) for row in rows]
            except SabalError as error:
                self._say(f"an annotation is left out: {error}")
                continue
            answers += [answer for answer in found if answer is not None]
        return answers

    def _train_and_choose(self) -> tuple[str, ...]:
        steps = []
        while (done := self._engine.step()) is not None:
            steps.append(done)
        return tuple(dict.fromkeys(steps))

    def _push(self, interface: Interface, present: set[str]) -> SyncReport:
        """Push the open items that have no task."""
        rows = [row for row in open_rows(self.store) if row["id"] not in present]
        rows = rows[:TASKS_PER_PASS]
        if not rows:
            return SyncReport()
        place = self.server.place
        claimed = self.store.claim_tasks(place, [row["id"] for row in rows])
        # Only now nobody else adds them: another process may have done so since they were read.
        arrived = {item for item, _ in _by_item(self.server.tasks())}
        due = [row for row in rows if row["id"] in claimed - arrived]
        try:
            if due:
                self.server.add(make_tasks(due, self.media_url, interface))
        except RefusedError:
            self.store.release_tasks(place, claimed)
            raise
        delayed = {row["id"] for row in rows} - claimed - arrived
        return SyncReport(pushed=len(due), delayed=len(delayed))


def _by_item(tasks: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the tasks that have an id of Sabal's, after that id."""
    return [
        (str(task["data"]["sabal_id"]), task)
        for task in tasks
        if isinstance(task.get("data"), dict) and "sabal_id" in task["data"]
    ]


def _may_pass(error: SabalError) -> bool:
    """Return whether an error may go away by itself, as that of a server which is starting."""
    return isinstance(error, ServerError) and not isinstance(error, RefusedError)


def _choices(about: dict[str, Any]) -> dict[str, Any]:
    """Return the choices in the labelling interface of a project, by name."""
    controls = about.get("parsed_label_config") or {}
    return {
        name: control
        for name, control in controls.items()
        if control.get("type") == "Choices" and control.get("inputs")
    }


def _labels(about: dict[str, Any]) -> tuple[str, ...]:
    return tuple(_choices(about).get(CONTROL, {}).get("labels", ()))


def _is_own(about: dict[str, Any], kind: str) -> bool:
    """Return whether an interface was made by `label_config`, and nobody has changed it."""
    labels = _labels(about)
    return bool(labels) and about["label_config"].split() == label_config(labels, kind).split()


def _fitting(controls: dict[str, Any], classes: tuple[str, ...], place: str) -> Interface:
    """Return the names in an interface whose choices have all classes."""
    for name, control in sorted(controls.items(), key=lambda entry: entry[0] != CONTROL):
        missing = [each for each in classes if each not in control["labels"]]
        if not missing:
            return Interface(name, control["to_name"][0], control["inputs"][0]["value"])
    raise FileError(
        f"choices of all classes in the labelling interface of {place}",
        f"no {missing[0]!r}" if controls else "no choices",
        "add them there, or paste the one that `sabal export --config FILE` writes",
    )
