"""sabal.toml: what a project is about and how its loop goes on."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from sabal.core.checks import check_choice, check_flag, check_number, check_whole
from sabal.core.files import write_text_whole
from sabal.errors import FileError, InputError, SabalError, UnknownNameError, did_you_mean
from sabal.loop import Plan
from sabal.strategies import make_strategy

KINDS = ("image", "text")
HEADS = ("auto", "linear", "lenet")
SECTIONS: dict[str, tuple[str, ...]] = {
    "project": ("name", "classes", "kind", "data", "text_column", "id_column", "database_url"),
    "loop": (
        "strategy", "first", "initial", "batch", "budget", "seed", "choose_at", "check_share",
        "weighted", "options",
    ),
    "features": ("backbone", "size", "head"),
    "people": ("lease_seconds", "overlap", "show_guess"),
}  # fmt: skip
LONGEST_CLASS = 200


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything in sabal.toml, in one flat record.

    data: the absolute path of the folder of images, or of the .csv, .jsonl or .parquet file.
    choose_at: the share of a batch that must be answered before the next one is chosen.
    check_share: of every batch, so many more items are drawn at random, labelled like the others
        and never trained on: the learning curve is measured on them.
    head: what learns from the features; see `sabal.labeling.learner_choice`.
    overlap: how many people answer an item.
    """

    name: str
    classes: tuple[str, ...]
    kind: str
    data: str
    text_column: str | None = None
    id_column: str | None = None
    database_url: str | None = None
    strategy: str = "sabal"
    first: str = "typiclust"
    initial: int = 20
    batch: int = 20
    budget: int = 500
    seed: int = 0
    choose_at: float = 0.8
    check_share: float = 0.1
    weighted: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    backbone: str = "auto"
    size: int = 64
    head: str = "auto"
    lease_seconds: float = 300.0
    overlap: int = 1
    show_guess: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", check_classes(self.classes))
        check_choice(self.kind, "kind", KINDS)
        check_choice(self.head, "head", HEADS)
        check_choice(self.first, "first", ("random", "typiclust"))
        # Now, and not when the first batch is labelled and the second is due.
        make_strategy(self.strategy, dict(self.options))
        for name in ("initial", "batch", "budget", "size", "overlap"):
            check_whole(getattr(self, name), name)
        check_whole(self.seed, "seed", least=0)
        _check_share(self.choose_at, "choose_at", above=0.0)
        _check_share(self.check_share, "check_share")
        check_number(self.lease_seconds, "lease_seconds", above=0.0)
        check_flag(self.weighted, "weighted")
        check_flag(self.show_guess, "show_guess")

    @property
    def plan(self) -> Plan:
        """The same as a plan of the loop; the budget ends it, so the rounds are not counted."""
        return Plan(
            initial=self.initial,
            batch=self.batch,
            rounds=0,
            strategy=self.strategy,
            options=self.options,
            first=self.first,
            weighted=self.weighted,
            seed=self.seed,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "classes": list(self.classes)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Back from plain values; a name that is no setting is refused."""
        known = {each.name for each in fields(cls)}
        for name in values:
            if name not in known:
                raise UnknownNameError(
                    f"a setting out of {', '.join(sorted(known))}",
                    repr(name),
                    did_you_mean(name, known, "take it out"),
                )
        missing = {"name", "classes", "kind", "data"} - set(values)
        if missing:
            raise InputError("name, classes, kind and data", f"no {min(missing)}", "set it")
        return cls(**values)


def check_classes(classes: Any) -> tuple[str, ...]:
    """At least two distinct names; anything that can be written may be in them."""
    names = () if isinstance(classes, str) else tuple(classes)
    if any(not isinstance(name, str) or not name.strip() for name in names):
        raise InputError("every class to have a name", repr(names), "leave no name empty")
    # Names that differ in blanks around them look the same on a button.
    if len(names) < 2 or len({name.strip() for name in names}) < len(names):
        raise InputError(
            "`classes` as at least two distinct names", repr(classes), "list them, for instance a,b"
        )
    if max(map(len, names)) > LONGEST_CLASS:
        raise InputError(
            f"names of classes of at most {LONGEST_CLASS} characters",
            f"{max(map(len, names))} characters",
            "shorten it",
        )
    return names


def read_settings(path: Path) -> Settings:
    """Settings out of sabal.toml."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"a readable {path}", str(error), "repair the file") from None
    values: dict[str, Any] = {}
    for section, content in document.items():
        if section not in SECTIONS or not isinstance(content, dict):
            raise FileError(
                f"the sections {', '.join(SECTIONS)} in {path}",
                f"[{section}]",
                did_you_mean(section, SECTIONS, "take it out"),
            )
        for name in content:
            if name not in SECTIONS[section]:
                raise FileError(
                    f"{', '.join(SECTIONS[section])} in [{section}] of {path}",
                    repr(name),
                    did_you_mean(name, SECTIONS[section], "take it out"),
                )
        values.update(content)
    try:
        return Settings.from_dict(values)
    except SabalError as error:
        raise FileError(f"{error.expected} in {path}", error.got, error.fix) from None


def write_settings(path: Path, settings: Settings) -> None:
    """Settings into sabal.toml, section by section; what is not set is left out."""
    import tomli_w

    values = settings.as_dict()
    document = {
        section: {name: values[name] for name in names if values[name] not in (None, {})}
        for section, names in SECTIONS.items()
    }
    write_text_whole(path, tomli_w.dumps(document))


def _check_share(value: Any, name: str, *, above: float | None = None) -> None:
    if check_number(value, name, above=above) > 1:
        raise InputError(f"`{name}` of at most 1", repr(value), f"pass for instance {name}=0.5")
