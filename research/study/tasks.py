"""The tasks of the study: small and real, at most half a minute a run on one core.

Those that go through `sabal.query` are in `query_tasks`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from research.study.definitions import StudyTask
from research.study.query_tasks import HELD_OUT_DATA, QUERY_TASKS

VALIDATION = 500
"""Labelled items held out to fit the temperature of networks, not counted as labels."""

MANY_LABELS = 200
"""The batch size from which networks are trained with larger minibatches."""

_ADAM: dict[str, Any] = {"optimizer": "adam", "lr": 2e-3}

# The batch size determines the growth: (batch, initial, rounds, epochs of a network).
_GROWTH = {
    10: (10, 20, 8, 60),
    40: (40, 40, 6, 40),
    200: (200, 200, 4, 20),
    1_000: (1_000, 500, 3, 10),
}


def _task(name: str, dataset: str, model: str, batch: int, **more: Any) -> StudyTask:
    batch, initial, rounds, _ = _GROWTH[batch]
    growth = {"initial": initial, "batch": batch, "rounds": rounds}
    return StudyTask(name=f"{name}-b{batch}", dataset=dataset, model=model, **growth | more)


def _network(
    name: str, dataset: str, model: str, batch: int, settings: dict[str, Any], **more: Any
) -> StudyTask:
    steps = {"epochs": _GROWTH[batch][3], "batch_size": 64 if batch >= MANY_LABELS else 32}
    recipe = {**steps, **_ADAM, **settings}
    given = {"recipe": recipe, "validation": VALIDATION, **more}
    return _task(name, dataset, model, batch, **given)


_SMALL: dict[str, Any] = {"pool": 1_000, "cheap": True}
_MLP: dict[str, Any] = {"hidden": [128]}
_BAYES: dict[str, Any] = {"hidden": [64], "lr": 1e-3, "epochs": 60, "samples": 50}

DIGITS = (
    *(_task("digits-logistic", "digits", "logistic", b, **_SMALL) for b in (10, 40)),
    *(_network("digits-mlp", "digits", "mlp", b, _MLP, validation=200, **_SMALL) for b in (10, 40)),
    _task("digits-bayes", "digits", "mlp-variational", 10, recipe=_BAYES, **_SMALL),
)

_MIDDLE: dict[str, Any] = {"pool": 6_000, "test": 2_000}

GREYSCALE = tuple(
    _network(f"{short}-{kind}", dataset, model, batch, settings, **_MIDDLE)
    for short, dataset in (("mnist", "mnist"), ("fashion", "fashion-mnist"))
    for kind, model, settings in (("lenet5", "lenet5", {}), ("mlp", "mlp", _MLP))
    for batch in (40, 200, 1_000)
)
FASHION_BAYES = _task(
    "fashion-bayes", "fashion-mnist", "mlp-variational", 40, recipe=_BAYES, pool=3_000, test=2_000
)

# LeNet-5 with more channels: larger networks take minutes a run without a GPU.
_CONVOLUTIONAL: dict[str, Any] = {"width": 1.5}

COLOUR = tuple(
    _network(f"{dataset}-conv", dataset, "lenet5", batch, _CONVOLUTIONAL, **_MIDDLE)
    for dataset in ("svhn", "cifar10")
    for batch in (200, 1_000)
)

# A linear head on the frozen features of a network for images or sentences.
FROZEN = (
    *(
        _task("cifar10-frozen", "cifar10-efficientnet", "logistic", b, pool=6_000, rotate=True)
        for b in (10, 40, 200)
    ),
    *(_task("agnews-frozen", "agnews-minilm", "logistic", b, pool=5_000) for b in (10, 40)),
    *(
        _task("newsgroups-frozen", "newsgroups20-minilm", "logistic", b, pool=5_000)
        for b in (40, 200)
    ),
)

COLD = tuple(
    StudyTask(
        name=f"newsgroups-cold{each}-b{20 * each}",
        dataset="newsgroups20-minilm",
        model="logistic",
        first="per-class",
        initial=20 * each,
        batch=20 * each,
        rounds=6,
        pool=5_000,
    )
    for each in (1, 2)
)

_PLAIN = {task.name: task for task in (*DIGITS, *GREYSCALE, *FROZEN)}

HARDER = tuple(
    replace(_PLAIN[name], name=f"{name}-{variant}", variant=variant)
    for name in ("fashion-mlp-b40", "cifar10-frozen-b40")
    for variant in ("imbalanced", "near-duplicates")
)

TASKS = (
    *QUERY_TASKS,
    *DIGITS,
    *FROZEN,
    *COLD,
    *GREYSCALE,
    FASHION_BAYES,
    *COLOUR,
    *HARDER,
)

HELD_OUT = (
    *("svhn-conv-b200", "svhn-conv-b1000", "agnews-frozen-b10", "agnews-frozen-b40"),
    *(task.name for task in QUERY_TASKS if task.dataset in HELD_OUT_DATA),
)
"""Tasks reported separately and never ranked: all tasks of some data sets.

A data set is held out completely, since another batch size of it is no new evidence.
"""
