"""Smaller presets: what changes, field by field, and the expected running time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from research.reproduce.paper_tables import SCALES
from research.reproduce.preset import Preset
from sabal.core.checks import check_choice
from sabal.errors import UnknownNameError
from sabal.simulate.datasets.catalog import Dataset
from sabal.simulate.experiment import Experiment

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

TRAINED_PER_SECOND = {
    ("lenet5", 1.0): 10_800.0,
    ("vgg16", 1.0): 57.0,
    ("vgg16", 0.25): 450.0,
    ("resnet18-variational", 1.0): 33.0,
    ("resnet18-variational", 0.25): 400.0,
}
"""Images per second in training on two cores, by model and width, as measured.

A LeNet-5 takes one thread and 5.9 ms for a step of 32, so two runs go in parallel.
"""

FORWARD = 3.0
"""How many times faster prediction is than training."""

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
            leaves[prefix + name] = list(value) if isinstance(value, tuple) else value
    return leaves


def fitted(preset: Preset, dataset: Dataset) -> Preset:
    """Return the preset for the data at hand: a pool larger than the data becomes all of it.

    A note says so if this copy of the data set is truncated.
    """
    items = len(dataset.x_train)
    published, _ = SIZES[preset.dataset]
    if items == published:
        return preset
    pool = preset.pool
    if pool is not None and pool + preset.validation > items:
        pool = None
    cut = f"this copy has {items:,} training items, the published data set {published:,}"
    return replace(preset, pool=pool, notes=(*preset.notes, cut))


def notes_of(paper: Preset, here: Preset) -> tuple[str, ...]:
    """Return the notes of the preset, and what changed sizes mean for its results."""
    sizes = ("pool", "batch")
    resized = any(getattr(paper, name) != getattr(here, name) for name in sizes)
    return (*here.notes, LITERAL_UNITS) if resized else here.notes


def experiment_of(preset: Preset, data_dir: str | None) -> Experiment:
    """Return the experiment that a preset describes."""
    return Experiment(
        dataset=preset.dataset,
        strategies=preset.strategies,
        seeds=preset.seeds,
        initial=preset.initial,
        batch=preset.batch,
        rounds=preset.rounds,
        model=preset.model,
        options=preset.options,
        data_dir=data_dir,
        recipe=preset.recipe,
        validation=preset.validation,
        pool=preset.pool,
    )


def expected_hours(preset: Preset, *, timed: bool = False) -> float | None:
    """Return the hours that a preset takes on two cores, without selection; None if unknown.

    Parameters
    ----------
    preset : Preset
        The experiment.
    timed : bool
        Whether only the first query is run, for which the strategies share the training.
    """
    width = preset.recipe.get("network_options", {}).get("width")
    rate = TRAINED_PER_SECOND.get((preset.model, width))
    if rate is None:
        return None
    train, test = SIZES[preset.dataset]
    pool = preset.pool or train - preset.validation
    rounds, strategies = preset.rounds, len(preset.strategies)
    if timed:
        trained = preset.initial * preset.recipe["epochs"]
        predicted = test + strategies * pool
        return preset.seeds * (trained + predicted / FORWARD) / rate / 3600
    labels = sum(preset.initial + r * preset.batch for r in range(rounds + 1))
    predicted = rounds * pool + (rounds + 1) * test
    seconds = (labels * preset.recipe["epochs"] + predicted / FORWARD) / rate
    return preset.seeds * strategies * seconds / 3600
