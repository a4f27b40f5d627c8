"""Smaller presets: what changes, field by field, and the expected running time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from research.reproduce.paper_tables import SCALES
from research.reproduce.preset import Preset
from sabal.core.checks import check_choice
from sabal.errors import UnknownNameError

CHANGEABLE = (
    "model",
    "recipe",
    "initial",
    "batch",
    "rounds",
    "seeds",
    "strategies",
    "options",
    "validation",
    "pool",
    "image",
    "test",
)
"""The fields of a preset that determine a result; the others describe the paper."""

SIZES = {
    "mnist": (60_000, 10_000),
    "fashion-mnist": (60_000, 10_000),
    "svhn": (73_257, 26_032),
    "cifar10": (50_000, 10_000),
    "cifar100": (50_000, 10_000),
}
"""Training and test items of the published data sets."""

SPEEDS = {
    ("lenet5", 1.0, None): (13_500.0, 29_800.0),
    ("lenet5", 0.5, 16): (17_000.0, 50_000.0),
    ("vgg16", 1.0, None): (104.0, 310.0),
    ("vgg16", 1.0, 16): (288.0, 1_376.0),
    ("vgg16", 0.25, 16): (2_970.0, 12_800.0),
    ("resnet18-variational", 1.0, None): (33.0, 100.0),
    ("resnet18-variational", 1.0, 32): (33.0, 100.0),
    ("resnet18-variational", 0.25, 16): (1_900.0, 10_500.0),
    ("resnet18-variational", 0.125, 16): (3_400.0, 24_900.0),
}
"""Images per second in training and in prediction on one core, by model, width and side of the
resized images, as measured."""

CORES = 2

LITERAL_UNITS = (
    "in the paper's units alpha and beta depend on the size of the pool and of the batch: with "
    "these changed, the printed values weigh variance and weights differently"
)


@dataclass(frozen=True)
class PresetChange:
    """A field that differs from the paper."""

    field: str
    paper: Any
    here: Any


def scaled(preset: Preset, scale: str) -> Preset:
    """Return the preset at a scale: that of the paper, or for a small machine."""
    check_choice(scale, "scale", SCALES)
    return preset if scale == "paper" else changed(preset, preset.laptop)


def changed(preset: Preset, changes: Mapping[str, Any]) -> Preset:
    """Return the preset with some fields changed; a dot in a name leads into a dictionary."""
    fields: dict[str, Any] = {name: getattr(preset, name) for name in CHANGEABLE}
    for name, value in changes.items():
        if name.split(".")[0] not in CHANGEABLE:
            raise UnknownNameError(
                f"a field of a preset out of {', '.join(CHANGEABLE)}",
                repr(name),
                "pick one of these",
            )
        fields = _with(fields, name.split("."), value)
    return replace(preset, **fields)


def _with(tree: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    """Return a copy of nested dictionaries with one leaf changed."""
    first, *rest = path
    return {**tree, first: _with(tree.get(first, {}), rest, value) if rest else value}


def differences(paper: Preset, here: Preset) -> list[PresetChange]:
    """Return every field in which two presets differ."""
    before, now = _leaves(paper), _leaves(here)
    return [
        PresetChange(name, before.get(name), now.get(name))
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]


def _leaves(preset: Preset) -> dict[str, Any]:
    fields = asdict(preset)
    return _flat({name: fields[name] for name in CHANGEABLE}, "")


def _flat(tree: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            leaves.update(_flat(value, f"{prefix}{name}."))
        else:
            leaves[prefix + name] = value
    return leaves


def notes_of(paper: Preset, here: Preset) -> tuple[str, ...]:
    """Return the notes of the preset, and what changed sizes mean for its results."""
    sizes = ("pool", "batch")
    resized = any(getattr(paper, name) != getattr(here, name) for name in sizes)
    return (*here.notes, LITERAL_UNITS) if resized else here.notes


def expected_hours(
    preset: Preset, *, timed: bool = False, shared: Collection[str] = ()
) -> float | None:
    """Return the hours that a preset takes on two cores, without selection; None if unknown.

    Parameters
    ----------
    preset : Preset
        The experiment.
    timed : bool
        Whether only the first query is run; that is done on one core.
    shared : collection of str
        Rows that are the runs of another table.
    """
    width = preset.recipe.get("network_options", {}).get("width")
    kind = (preset.model, width, preset.image[0] if preset.image else None)
    if kind not in SPEEDS:
        return None
    trained_per_second, predicted_per_second = SPEEDS[kind]
    train, all_test = SIZES[preset.dataset]
    test = preset.test or all_test
    pool = preset.pool or train - preset.validation
    rows = len(set(preset.strategies) - set(shared))
    epochs, rounds = preset.recipe["epochs"], preset.rounds
    # The strategies of a seed share the first model.
    trained = 0 if shared else preset.initial * epochs
    predicted = 0 if shared else test
    if timed:
        predicted += rows * pool
    else:
        labels = sum(preset.initial + r * preset.batch for r in range(1, rounds + 1))
        trained += rows * labels * epochs
        predicted += rows * rounds * (pool + test)
    seconds = trained / trained_per_second + predicted / predicted_per_second
    return preset.seeds * seconds / 3600 / (1 if timed else CORES)
