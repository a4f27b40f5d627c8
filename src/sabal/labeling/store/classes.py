"""Changes of the classes and their guidelines, as events; answers stay as they were given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sqlalchemy as sa

from sabal.errors import InputError, UnknownNameError, did_you_mean
from sabal.labeling.store import schema
from sabal.labeling.store.class_history import class_history, current_classes, recorded_settings
from sabal.labeling.store.records import ClassChange, Guidelines
from sabal.labeling.store.store_base import StoreBase, check_classes

MAX_GUIDELINE_LENGTH = 20_000
WriteClasses = Callable[[tuple[str, ...]], None]


class ClassStore(StoreBase):
    """The part of the store that holds the classes.

    `write` stores new classes elsewhere, too, before the change is committed; if it fails, nothing
    has changed.
    """

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes now, also after another process changed them."""
        with self.database.read() as connection:
            return current_classes(connection)

    @property
    def known_classes(self) -> tuple[str, ...]:
        """The classes now, and the names that some of them had before."""
        with self.database.read() as connection:
            earlier = [each.name for each in class_history(connection).changes if each.target]
            return (*current_classes(connection), *earlier)

    def class_changes(self) -> list[ClassChange]:
        """Return all changes of the classes in order."""
        with self.database.read() as connection:
            return list(class_history(connection).changes)

    def add_class(self, name: str, *, person: str = "", write: WriteClasses) -> None:
        """Add a class after the others."""
        with self.database.write() as connection:
            classes = current_classes(connection)
            _check_new(name, classes, "leave it out")
            self._change(connection, ("add", name, None, person), (*classes, name), write)

    def rename_class(self, name: str, new: str, *, person: str = "", write: WriteClasses) -> None:
        """Give a class another name, under which its labels are found from now on."""
        with self.database.write() as connection:
            classes = current_classes(connection)
            _check_known(name, classes)
            others = tuple(each for each in classes if each != name)
            _check_new(new, others, f"merge {name!r} into it instead")
            renamed = tuple(new if each == name else each for each in classes)
            self._change(connection, ("rename", name, new, person), renamed, write)
            _move_guideline(connection, name, new, self.database.now_text())

    def merge_class(self, name: str, into: str, *, person: str = "", write: WriteClasses) -> None:
        """Remove a class; its labels count as labels of another from now on."""
        with self.database.write() as connection:
            classes = current_classes(connection)
            for each in (name, into):
                _check_known(each, classes)
            if name == into:
                raise InputError("two classes to merge", f"{name!r} twice", "name another one")
            left = tuple(each for each in classes if each != name)
            self._change(connection, ("merge", name, into, person), left, write)

    def _change(
        self,
        connection: sa.Connection,
        change: tuple[str, str, str | None, str],
        classes: Sequence[str],
        write: WriteClasses,
    ) -> None:
        classes = check_classes(classes)
        now, s, a = self.database.now_text(), schema.settings, schema.answers
        last = connection.scalar(sa.select(sa.func.max(a.c.id))) or 0
        values = dict(zip(("action", "name", "target", "person"), change, strict=True))
        connection.execute(
            schema.class_changes.insert().values(**values, after_answer=last, recorded_at=now)
        )
        content = {**recorded_settings(connection), "classes": list(classes)}
        connection.execute(s.insert().values(content=content, recorded_at=now))
        write(classes)

    def guidelines(self) -> Guidelines:
        """Return the guidelines in Markdown; those of classes without any are empty."""
        with self.database.read() as connection:
            found = _guidelines(connection)
            classes = current_classes(connection)
        return Guidelines(found.get(None, ""), {name: found.get(name, "") for name in classes})

    def set_guideline(self, text: str, class_name: str | None = None, *, person: str = "") -> None:
        """Replace the guideline of the project, or of a class; earlier ones are kept."""
        if len(text) > MAX_GUIDELINE_LENGTH or "\0" in text:
            raise InputError(
                f"a text of at most {MAX_GUIDELINE_LENGTH} characters, without NUL",
                f"{len(text)} characters",
                "shorten it, or link to a longer one",
            )
        with self.database.write() as connection:
            if class_name is not None:
                _check_known(class_name, current_classes(connection))
            now = self.database.now_text()
            _add_guideline(connection, class_name, text, person, now)


def _guidelines(connection: sa.Connection) -> dict[str | None, str]:
    g = schema.guidelines
    rows = connection.execute(sa.select(g.c.class_name, g.c.text).order_by(g.c.id))
    return {row.class_name: row.text for row in rows}


def _add_guideline(
    connection: sa.Connection, class_name: str | None, text: str, person: str, now: str
) -> None:
    values = {"class_name": class_name, "text": text, "person": person, "recorded_at": now}
    connection.execute(schema.guidelines.insert().values(values))


def _move_guideline(connection: sa.Connection, name: str, new: str, now: str) -> None:
    text = _guidelines(connection).get(name, "")
    if text:
        _add_guideline(connection, new, text, "", now)
        _add_guideline(connection, name, "", "", now)


def _check_known(name: str, classes: Sequence[str]) -> None:
    if name not in classes:
        raise UnknownNameError(
            f"a class out of {', '.join(classes)}", repr(name), did_you_mean(name, classes)
        )


def _check_new(name: str, classes: Sequence[str], fix: str) -> None:
    if name in classes:
        raise InputError("a class that does not exist yet", repr(name), fix)
