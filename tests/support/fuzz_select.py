"""What `sabal.select` makes of arrays, budgets and options that nobody should pass."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import sabal
from fuzz_arrays import ODD, PARTS, as_tensor, changed, outputs_of
from fuzz_oracle import ANSWERED, REFUSED, Kind, check_error, check_selection, same_selection
from sabal.strategies import strategies

NAMES = sorted(strategies())


def copied(value: Any) -> Any:
    if isinstance(value, np.ma.MaskedArray) or not isinstance(value, np.ndarray):
        return None
    return value.copy()


def unchanged(value: Any, before: Any) -> None:
    if before is not None and before.dtype.kind in "biufc":
        assert value.tobytes() == before.tobytes()


def odd_options(name: str, rng: Random) -> dict[str, Any]:
    fields = [field.name for field in dataclasses.fields(strategies()[name])]
    if not fields or rng.random() < 0.1:
        return {rng.choice(("alhpa", "bias ", "x")): rng.choice(ODD)}
    return {rng.choice(fields): rng.choice(ODD) for _ in range(rng.choice((1, 1, 2)))}


def odd_ids(n: int) -> tuple[Any, ...]:
    """Names for n items, good and bad."""
    rows = range(n)
    return (
        rows, ["a"] * n, [f"ü {k}\0" for k in rows], np.arange(n) / 2, [b"x"] * n, [None] * n,
        [2**70 + k for k in rows], [*range(n - 1), "x"], {k: k for k in rows},
    )  # fmt: skip


def labeled_rows(given: dict[str, Any], rng: Random) -> np.ndarray:
    """Features of labelled items, of a scale and a precision of their own."""
    width = given["features"].shape[1]
    rows = np.random.default_rng(rng.randrange(2**32)).normal(size=(rng.choice((1, 3, 9)), width))
    exponent = rng.choice((0, 0, rng.uniform(-5, 5), rng.uniform(-40, 40), rng.uniform(-300, 300)))
    dtype = rng.choice((np.float16, np.float32, np.float64))
    with np.errstate(over="ignore"):
        return (rows * 10.0**exponent).astype(dtype)


def select_case(name: str, rng: Random, options: dict[str, Any]) -> str:
    """One call of `sabal.select` with something wrong, or at least strange, about it."""
    given: dict[str, Any] = outputs_of(rng)
    n = len(given["features"])
    keep = [part for part in PARTS if part not in ("logits", "probs") or rng.random() < 0.7]
    if "logits" in keep and "probs" in keep:
        keep.remove(rng.choice(("logits", "probs")))
    given = {part: given[part] for part in keep if rng.random() < 0.9}
    budget: Any = rng.randint(1, n)
    arguments: dict[str, Any] = {"random_state": rng.randrange(100), **options}
    wrong = rng.choice(
        ("array", "array", "array", "two", "budget", "option", "seed", "ids", "more")
    )
    if wrong in ("array", "two") and given:
        for part in rng.sample(sorted(given), min(len(given), 2 if wrong == "two" else 1)):
            given[part] = changed(given[part], rng)
    elif wrong == "budget":
        budget = rng.choice((*ODD, n + 1, n, np.int64(n), np.int32(1)))
    elif wrong == "option":
        arguments = {**odd_options(name, rng), **arguments}
    elif wrong == "seed":
        arguments["random_state"] = rng.choice((*ODD, np.random.default_rng(1)))
    elif wrong == "ids":
        arguments["ids"] = rng.choice((*ODD, *odd_ids(n)))
    elif wrong == "more" and "features" in given:
        if rng.random() < 0.3:
            scale = 10.0 ** rng.choice((-150, -30, 30, 100))
            given["features"] = np.asarray(given["features"], dtype=np.float64) * scale
        labeled = (
            changed(given["features"], rng) if rng.random() < 0.5 else labeled_rows(given, rng)
        )
        arguments["labeled_features"] = labeled
    if rng.random() < 0.2:
        given = {key: as_tensor(value) for key, value in given.items()}
    before = {key: copied(value) for key, value in given.items()}
    try:
        selection = sabal.select(budget, **given, strategy=name, **arguments)
    except sabal.SabalError as error:
        check_error(error)
        return REFUSED
    finally:
        for key, value in given.items():
            unchanged(value, before[key])
    check_selection(selection, n_of(given, n), int(budget))
    if selection.seed is not None:
        arguments["random_state"] = selection.seed
        same_selection(selection, sabal.select(budget, **given, strategy=name, **arguments))
    return ANSWERED


def n_of(given: dict[str, Any], n: int) -> int:
    """How many rows the pool has after the changes."""
    sizes = [len(value) for value in given.values() if hasattr(value, "__len__")]
    return sizes[0] if sizes else n


def select_kind(name: str, **options: Any) -> Kind:
    def run(rng: Random, folder: Path) -> str:
        return select_case(name, rng, options)

    return run


KINDS: dict[str, Kind] = {
    **{f"select {name}": select_kind(name) for name in NAMES},
    **{
        f"select {name} {atoms}": select_kind(name, atoms=atoms)
        for name, atoms in (("sabal-kernel", "kernel"), ("sabal-kernel", "curvature"))
    },
    "select sabal-iht gradient": select_kind("sabal-iht", atoms="gradient"),
    "select sabal-greedy gradient": select_kind("sabal-greedy", atoms="gradient"),
}
