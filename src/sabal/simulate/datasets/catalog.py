"""Data sets by name: public ones, arrays, folders of images, tables of texts."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import numpy as np

from sabal.core.checks import check_whole
from sabal.core.files import read_npz
from sabal.errors import FileError, UnknownNameError
from sabal.simulate.datasets.dataset import PARTS, Arrays, Dataset, assemble, split_parts
from sabal.simulate.datasets.downloads import DIGITS, SOURCES, public_arrays
from sabal.simulate.datasets.own_files import TEST_SHARE, image_arrays, text_arrays

__all__ = ["NAMES", "Dataset", "load"]

NAMES = ("digits", *SOURCES)

DIGITS_TEST_SHARE = 0.3


def load(
    name: str,
    *,
    data_dir: str | Path | None = None,
    seed: int = 0,
    progress: bool = True,
    image_size: int = 32,
    text_column: str = "text",
    label_column: str = "label",
) -> Dataset:
    """Load a data set.

    `name` is one of `NAMES`; `npz:FILE` with x_train, y_train, x_test, y_test, or x and y; a folder
    with a sub-folder of images for every class, which are resized to `image_size` pixels a side; or
    a .csv file with a column of texts and a column of labels. `data_dir` is searched for NAME.npz
    before a public data set is downloaded. `seed` determines which fifth of every class is the test
    set, if the data set has none of its own.
    """
    check_whole(seed, "seed", minimum=0)
    if name == "digits":
        return assemble(name, _digits(), class_names=DIGITS)
    if name in SOURCES:
        arrays = public_arrays(name, data_dir, progress)
        return assemble(name, arrays, class_names=SOURCES[name].class_names)
    if name.startswith("npz:"):
        return assemble(name, _npz(Path(name.removeprefix("npz:")).expanduser(), seed))
    path = Path(name).expanduser()
    if name and path.suffix.lower() == ".csv":
        return assemble(name, text_arrays(path, text_column, label_column, seed), kind="texts")
    if name and os.path.isdir(path):
        return assemble(name, image_arrays(path, image_size, seed, progress))
    raise _unknown(name)


def _digits() -> Arrays:
    """Return the 1,797 digits of scikit-learn, 8 x 8 pixels, always split in the same way."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    # Scaled from [0, 16] to [0, 255], as in every other set of images.
    images = np.round(digits.images * (255 / 16)).astype(np.uint8)
    return split_parts(images, digits.target, DIGITS_TEST_SHARE, seed=0)


def _npz(path: Path, seed: int) -> Arrays:
    _, arrays = read_npz(path, (*PARTS, "x", "y"))
    if all(part in arrays for part in PARTS):
        return arrays
    if "x" in arrays and "y" in arrays:
        return split_parts(arrays["x"], arrays["y"], TEST_SHARE, seed)
    raise FileError(
        f"{', '.join(PARTS)}, or x and y, in {path}",
        f"of these only {', '.join(arrays)}" if arrays else "none of these",
        "name the arrays so",
    )


def _unknown(name: str) -> UnknownNameError:
    meant = difflib.get_close_matches(name.lower().replace("_", "-"), NAMES, n=1)
    if Path(name).suffix == ".npz":
        meant = [f"npz:{name}"]
    return UnknownNameError(
        f"a data set out of {', '.join(NAMES)}, npz:FILE, a folder of images or a .csv file",
        f"{name!r}, which is none of these",
        f"did you mean {meant[0]}?" if meant else "check the name or the path",
    )
