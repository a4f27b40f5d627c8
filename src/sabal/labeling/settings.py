"""The settings of a project, in sabal.toml."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from sabal.core.checks import check_choice, check_flag, check_number, check_whole
from sabal.core.files import write_text_whole
from sabal.errors import (
    FileError,
    InputError,
    SabalError,
    SabalWarning,
    UnknownNameError,
    did_you_mean,
)
from sabal.labeling.store import StoreSettings
from sabal.loop import Plan
from sabal.strategies import make_strategy, option_names, strategies

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

FORMER_OPTIONS = {
    "atoms": "auto", "alpha": 1.0, "beta": 1.0, "bias": True, "candidates": None,
    "temperature": None, "refit": False, "scale": "free", "width": None, "score": "optimal-step",
    "step": 1.0, "refresh": "auto", "prox": "exact", "iterations": 300, "tol": 1e-5,
}  # fmt: skip
"""Options of the strategies named sabal... in version 0.1, with the defaults they had."""
MEANT_BY_ATOMS = {
    None: "sabal", "auto": "sabal", "coverage": "sabal", "kernel": "sabal-kernel",
    "curvature": "sabal-kernel", "gradient": "sabal-greedy", "posterior": "sabal-greedy",
}  # fmt: skip
"""The present names of what version 0.1 called `sabal`, by its option `atoms`."""


@dataclass(frozen=True, kw_only=True)
class Settings(StoreSettings):
    """All settings in sabal.toml, in one flat record; docs/labeling.md describes each of them."""

    name: str
    kind: str
    data: str
    text_column: str | None = None
    id_column: str | None = None
    database_url: str | None = None
    strategy: str = "sabal"
    first: str = "typiclust"
    initial: int = 20
    batch: int = 20
    seed: int = 0
    choose_at: float = 0.8
    check_share: float = 0.1
    weighted: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    backbone: str = "auto"
    size: int = 64
    head: str = "auto"
    show_guess: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.kind, "kind", KINDS)
        check_choice(self.head, "head", HEADS)
        check_choice(self.first, "first", ("random", "typiclust"))
        # Checked now, and not when the first batch is labelled and the second is due.
        make_strategy(self.strategy, dict(self.options))
        for name in ("initial", "batch", "size"):
            check_whole(getattr(self, name), name)
        check_whole(self.seed, "seed", minimum=0)
        _check_share(self.choose_at, "choose_at", above=0.0)
        _check_share(self.check_share, "check_share")
        check_flag(self.weighted, "weighted")
        check_flag(self.show_guess, "show_guess")

    @property
    def plan(self) -> Plan:
        """The settings as a plan of the loop; the budget ends it, so rounds are not counted."""
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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Return settings from plain values; refuse a name that is not a setting."""
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


def read_settings(path: Path) -> Settings:
    """Read and check sabal.toml."""
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
        return Settings.from_dict(_migrated(values, path))
    except SabalError as error:
        raise FileError(f"{error.expected} in {path}", error.got, error.fix) from None


def write_settings(path: Path, settings: Settings) -> None:
    """Write sabal.toml section by section, without settings that have no value."""
    import tomli_w

    values = settings.as_dict()
    document = {
        section: {name: values[name] for name in names if values[name] not in (None, {})}
        for section, names in SECTIONS.items()
    }
    write_text_whole(path, tomli_w.dumps(document))


def write_classes(path: Path, classes: tuple[str, ...]) -> None:
    """Replace the classes in sabal.toml, and nothing else: it may have comments."""
    import tomli_w

    settings = replace(read_settings(path), classes=classes)
    text = path.read_text(encoding="utf-8")
    start, end = _place_of_classes(text)
    value = tomli_w.dumps({"classes": list(classes)}).removeprefix("classes = ").rstrip()
    changed = text[:start] + value + text[end:]
    if end and tomllib.loads(changed)["project"]["classes"] == list(classes):
        write_text_whole(path, changed)
    else:
        write_settings(path, settings)


def _place_of_classes(text: str) -> tuple[int, int]:
    """Return where the list of classes begins and ends in a file; (0, 0) if that is not clear."""
    found = re.search(r"^[ \t]*classes[ \t]*=[ \t]*(?=\[)", text, re.MULTILINE)
    if not found:
        return 0, 0
    end = found.end()
    while end := text.find("]", end) + 1:
        try:
            tomllib.loads(f"classes = {text[found.end() : end]}")
        except tomllib.TOMLDecodeError:
            continue  # a bracket in a name or a comment
        return found.end(), end
    return 0, 0


def _migrated(values: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return settings of version 0.1 with the strategy and options that they mean today."""
    strategy, given = values.get("strategy", "sabal"), values.get("options", {})
    if not isinstance(given, dict):
        return values
    meant, kept = _meant_today(strategy, _with_new_names(strategy, given))
    if (meant, kept) == (strategy, given):
        return values
    warnings.warn(
        f"{path} has a strategy of version 0.1: {strategy!r} with {given} is read as "
        f"{meant!r} with {kept}; to say so, set strategy = {meant!r} and these options in [loop]",
        SabalWarning,
        stacklevel=3,
    )
    return {**values, "strategy": meant, "options": kept}


def _meant_today(strategy: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return what version 0.1 meant by a strategy and its options."""
    atoms = options.get("atoms")
    meant = MEANT_BY_ATOMS.get(atoms) if atoms is None or isinstance(atoms, str) else None
    if strategy not in ("sabal", "sabal-greedy", "sabal-iht") or meant is None:
        return strategy, options
    if strategy != "sabal" and meant != "sabal-kernel":
        return strategy, options
    former = {name: value for name, value in options.items() if name in FORMER_OPTIONS}
    if meant == "sabal":
        former.pop("atoms", None)
        # In version 0.1 these options meant kernel atoms, unless they had their default values.
        if any(value != FORMER_OPTIONS[name] for name, value in former.items()):
            meant = "sabal-kernel"
    known = option_names(strategies()[meant])
    kept = {
        name: value
        for name, value in options.items()
        if name not in FORMER_OPTIONS or (name in former and name in known)
    }
    return meant, kept


def _with_new_names(strategy: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return options of version 0.1 with the names that they and a value have today."""
    if strategy == "bayesian-coreset" and "most_iterations" in options:
        options = dict(options)
        options["max_iterations"] = options.pop("most_iterations")
    if options.get("prox") == "paper":
        options = {**options, "prox": "appendix"}
    return options


def _check_share(value: Any, name: str, *, above: float | None = None) -> None:
    if check_number(value, name, above=above) > 1:
        raise InputError(f"`{name}` of at most 1", repr(value), f"pass for instance {name}=0.5")
