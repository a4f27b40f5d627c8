"""Arrays, numbers and words that nobody should pass."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pandas as pd
import torch

from makers import softmax

PARTS = ("features", "logits", "probs", "label_probs", "log_probs")


def scaled(factor):
    def change(array, rng):
        with np.errstate(over="ignore", under="ignore"):
            return array * factor

    return change


def with_entry(value):
    def change(array, rng):
        copy = np.array(array, dtype=np.float64)
        if copy.size:
            copy.flat[rng.randrange(copy.size)] = value
        return copy

    return change


def of_type(dtype):
    def change(array, rng):
        with np.errstate(all="ignore"):
            return array.astype(dtype)

    return change


def repeated_rows(array, rng):
    return array[np.array([rng.randrange(max(1, len(array) // 2)) for _ in array], dtype=int)]


VALUES = {
    "NaN": with_entry(np.nan),
    "infinity": with_entry(np.inf),
    "minus infinity": with_entry(-np.inf),
    "minus zero": with_entry(-0.0),
    "all minus zero": lambda a, rng: a * -0.0,
    "a subnormal": with_entry(5e-324),
    "a large entry": with_entry(1e300),
    "the largest entry": with_entry(np.finfo(np.float64).max),
    "a small entry": with_entry(1e-160),
    "a negative entry": with_entry(-1.0),
    "huge": scaled(1e300),
    "hardly there": scaled(1e-300),
    "subnormal": scaled(1e-320),
    "beyond float32": scaled(1e60),
    "at the end of float32": scaled(1e38),
    "subnormal in float32": scaled(1e-40),
    "squares that vanish": scaled(1e-170),
    "squares that overflow": scaled(1e160),
    "an offset": lambda a, rng: a + 1e8,
    "a lost offset": lambda a, rng: a + 1e17,
    "zero": lambda a, rng: a * 0.0,
    "constant": lambda a, rng: np.full(a.shape, 0.25),
    "duplicates": repeated_rows,
    "nine tenths": scaled(0.9),
    "almost normalised": scaled(1.0 + 9e-4),
    "opposite signs": scaled(-1.0),
    "one-hot": lambda a, rng: np.eye(max(1, a.shape[-1]))[a.argmax(-1)] if a.size else a,
}


def unaligned(array, rng):
    raw = bytearray(array.nbytes + 1)
    view = np.frombuffer(raw, dtype=array.dtype, count=array.size, offset=1)
    view[:] = array.reshape(-1)
    return view.reshape(array.shape)


def read_only(array, rng):
    copy = np.array(array)
    copy.setflags(write=False)
    return copy


LAYOUTS = {
    "Fortran": lambda a, rng: np.asfortranarray(a),
    "backwards": lambda a, rng: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "every other": lambda a, rng: np.repeat(np.repeat(a, 2, axis=0), 2, axis=1)[::2, ::2],
    "read-only": read_only,
    "byte-swapped": lambda a, rng: a.astype(a.dtype.newbyteorder()),
    "unaligned": unaligned,
    "a list": lambda a, rng: a.tolist(),
    "a tensor": lambda a, rng: torch.tensor(a),
    "a transposed tensor": lambda a, rng: torch.tensor(a.T.copy()).permute(
        *reversed(range(a.ndim))
    ),
}
"""The same numbers in another form: the answer must be the same, too."""

DTYPE_NAMES = (
    "float16", "float32", "longdouble", "bool", "int8", "uint8", "int16", "uint16", "int32",
    "uint32", "int64", "uint64", "complex64", "complex128", "datetime64[s]", "timedelta64[s]",
    "U8", "S8", "object", "V8",
)  # fmt: skip
DTYPES = {name: of_type(name) for name in DTYPE_NAMES}


def drop_row(array, rng):
    return array[: max(0, len(array) - 1)]


FORMS = {
    "masked": lambda a, rng: np.ma.masked_array(a, mask=np.asarray(a) > 0),
    "a mask of nothing": lambda a, rng: np.ma.masked_array(a),
    "a matrix": lambda a, rng: a.view(np.matrix) if a.ndim == 2 else a,
    "a frame": lambda a, rng: pd.DataFrame(a) if a.ndim == 2 else a,
    "a frame of words": lambda a, rng: pd.DataFrame(a).astype(str) if a.ndim == 2 else a,
    "objects with None": lambda a, rng: np.where(a > 0, a.astype(object), None),
    "structured": lambda a, rng: np.zeros(len(a), dtype=[("x", float), ("y", int)]),
    "a half tensor": lambda a, rng: torch.tensor(a).half(),
    "a bfloat16 tensor": lambda a, rng: torch.tensor(a).bfloat16(),
    "a tensor with gradient": lambda a, rng: torch.tensor(a, requires_grad=True),
    "a tensor on no device": lambda a, rng: torch.tensor(a, device="meta"),
    "a boolean tensor": lambda a, rng: torch.tensor(a) > 0,
    "no rows": lambda a, rng: a[:0],
    "no columns": lambda a, rng: a[..., :0],
    "one row": lambda a, rng: a[:1],
    "one column": lambda a, rng: a[..., :1],
    "a row fewer": drop_row,
    "a column fewer": lambda a, rng: a[..., :-1],
    "transposed": lambda a, rng: a.T,
    "flat": lambda a, rng: a.reshape(-1),
    "one more axis": lambda a, rng: a[None],
    "a single number": lambda a, rng: a.sum(),
    "ragged": lambda a, rng: [*a.tolist(), [1.0, [2.0]]],
    "a word": lambda a, rng: "features",
    "bytes": lambda a, rng: b"\x00\x01",
    "a dictionary": lambda a, rng: {"features": a},
    "a generator": lambda a, rng: (row for row in a),
    "a set": lambda a, rng: {1.0, 2.0},
    "an object": lambda a, rng: object(),
    "a type": lambda a, rng: float,
}
CHANGES = {**VALUES, **LAYOUTS, **DTYPES, **FORMS}

ODD = (
    None, True, False, 0, -1, 1, 2, 3.0, 2.5, 1e308, 1e-320, float("nan"), float("inf"), 10**400,
    2**70, "", "two", "1", [], [1], {}, (1, 2), b"x", 1j, np.int64(3), np.uint8(2), np.float32(0.5),
    np.bool_(True), np.array(2), np.array([1, 2]), np.datetime64("2026-01-01"), torch.tensor(2),
    object(), "auto", "kernel", "margin",
)  # fmt: skip
"""What comes where a number, a flag, a word or a seed should."""


def outputs_of(rng: Random, n: int | None = None) -> dict[str, np.ndarray]:
    """Every part of a small pool, of any shape; few distinct values now and then, for ties."""
    draws = np.random.default_rng(rng.randrange(2**32))
    n = rng.choice((1, 2, 3, 7, 20)) if n is None else n
    d, classes, samples = rng.choice((1, 2, 5)), rng.choice((1, 2, 4)), rng.choice((1, 2, 4))
    features = draws.normal(size=(n, d))
    logits = draws.normal(size=(n, samples, classes)) * rng.choice((0.1, 1.0, 30.0))
    if rng.random() < 0.2:
        features, logits = np.round(features), np.round(logits)
    log_probs = np.log(np.maximum(softmax(logits), 1e-300))
    return {
        "features": features,
        "logits": logits[:, 0],
        "probs": softmax(logits[:, 0]),
        "label_probs": softmax(logits[:, 0] / 2.0),
        "log_probs": log_probs,
    }


def changed(array: np.ndarray, rng: Random) -> Any:
    """`array` after one or two changes that make sense one after the other."""
    array = CHANGES[rng.choice(tuple(CHANGES))](array, rng)
    plain = type(array) is np.ndarray and array.ndim > 1 and array.dtype.kind == "f"
    if plain and array.dtype != np.longdouble and rng.random() < 0.3:
        with np.errstate(all="ignore"):
            array = np.ascontiguousarray(array, dtype=rng.choice(("float32", "float64")))
        array = LAYOUTS[rng.choice(tuple(LAYOUTS))](array, rng)
    return array


def as_tensor(value: Any) -> Any:
    """A tensor in place of an array, where PyTorch has one."""
    plain = type(value) is np.ndarray and value.dtype.kind in "biuf" and value.dtype.isnative
    return torch.tensor(value.copy()) if plain and value.dtype != np.longdouble else value
