"""What all parts of the store share: the database and the settings that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sabal.core.checks import check_number, check_whole
from sabal.errors import InputError
from sabal.labeling.store.database import Database

MAX_CLASS_LENGTH = 200


@dataclass(frozen=True, kw_only=True)
class StoreSettings:
    """The settings of a project that the store needs.

    An item is reserved for `lease_seconds` for the person who was shown it; `overlap` people answer
    each item, of which `budget` are labelled in all.
    """

    classes: tuple[str, ...]
    budget: int = 500
    lease_seconds: float = 300.0
    overlap: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", check_classes(self.classes))
        check_whole(self.budget, "budget")
        check_whole(self.overlap, "overlap")
        check_number(self.lease_seconds, "lease_seconds", above=0.0)

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values for JSON."""
        return {**asdict(self), "classes": list(self.classes)}

    @classmethod
    def from_record(cls, content: Mapping[str, Any]) -> StoreSettings:
        """Return the part of a project's recorded settings that the store needs."""
        names = ("classes", "budget", "lease_seconds", "overlap")
        return StoreSettings(**{name: content[name] for name in names if name in content})


class StoreBase:
    """Base of the parts of the store, which are split by subject.

    Every public method is one short transaction. Threads may share an instance.
    """

    def __init__(self, database: Database, settings: StoreSettings) -> None:
        self.database = database
        self.settings = settings


def check_classes(classes: Any) -> tuple[str, ...]:
    """Return the names of the classes, which must be at least two distinct texts."""
    names = () if isinstance(classes, str) else tuple(classes)
    if any(not isinstance(name, str) or not name.strip() for name in names):
        raise InputError("every class to have a name", repr(names), "leave no name empty")
    # Names that differ only in surrounding blanks look the same on a button.
    if len(names) < 2 or len({name.strip() for name in names}) < len(names):
        raise InputError(
            "`classes` as at least two distinct names", repr(classes), "list them, for instance a,b"
        )
    if max(map(len, names)) > MAX_CLASS_LENGTH:
        raise InputError(
            f"names of classes of at most {MAX_CLASS_LENGTH} characters",
            f"{max(map(len, names))} characters",
            "shorten it",
        )
    return names
