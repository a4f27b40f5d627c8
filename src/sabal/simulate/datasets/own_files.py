"""Data sets of the user: folders of images and tables of texts."""

from __future__ import annotations

import csv
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.checks import check_whole
from sabal.core.extras import import_optional
from sabal.errors import FileError, InputError
from sabal.simulate.datasets.dataset import PARTS, Arrays, as_labels, split_parts

ENDINGS = (
    ".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp",
)  # fmt: skip
DECODERS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""Pillow's decoders that may open an image, whatever its ending: none that starts a program."""

TEST_SHARE = 0.2
TEXT_DIMENSIONS = 256
VOCABULARY = 50_000


def image_arrays(folder: Path, size: int, seed: int, progress: bool) -> Arrays:
    """Read a folder with a sub-folder of images for every class, resized to `size` x `size` RGB."""
    check_whole(size, "image_size")
    image_module = import_optional("PIL.Image", "data", "to read images")
    files, words = _image_files(folder)
    x = np.empty((len(files), size, size, 3), dtype=np.uint8)
    for index, file in enumerate(_with_progress(files, progress)):
        x[index] = _image(image_module, file, size)
    return split_parts(x, as_labels(words), TEST_SHARE, seed)


def text_arrays(path: Path, text_column: str, label_column: str, seed: int) -> Arrays:
    """Read a .csv of texts and labels as TF-IDF, reduced to 256 dimensions by a truncated SVD.

    Vocabulary, frequencies and directions come from the training part alone. With fewer words than
    dimensions nothing is reduced; there are never more dimensions than texts.
    """
    texts, words = _text_rows(path, text_column, label_column)
    parts = split_parts(np.arange(len(texts)), as_labels(words), TEST_SHARE, seed)
    train, test = ([texts[i] for i in parts[part]] for part in ("x_train", "x_test"))
    parts["x_train"], parts["x_test"] = _text_features(train, test, path, seed)
    return {part: parts[part] for part in PARTS}


def _image_files(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the images in a fixed order, and the class of each."""
    classes = [path for path in _visible(folder) if path.is_dir()]
    if len(classes) < 2:
        raise FileError(
            f"a sub-folder of images for each of at least two classes in {folder}",
            f"{len(classes)} sub-folders",
            "sort the images into folders named after their classes",
        )
    files: list[Path] = []
    words: list[str] = []
    for path in classes:
        found = [file for file in _visible(path) if file.suffix.lower() in ENDINGS]
        if not found:
            raise FileError(
                f"images ({' '.join(ENDINGS)}) in every sub-folder of {folder}",
                f"none in {path.name}",
                "add some, or remove the sub-folder",
            )
        files += found
        words += [path.name] * len(found)
    return files, words


def _visible(folder: Path) -> list[Path]:
    try:
        found = [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError as error:
        raise FileError(f"a readable folder {folder}", str(error), "check its rights") from None
    return sorted(found, key=lambda path: path.name)


def _image(image_module: Any, file: Path, size: int) -> np.ndarray:
    """Read one image; refuse a file that would unpack to an enormous picture before it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", image_module.DecompressionBombWarning)
            with image_module.open(file, formats=DECODERS) as image:
                if image.mode.startswith(("I", "F")):
                    # Pillow would clip the brighter part of these to white.
                    raise ValueError(f"more than 8 bits a channel (mode {image.mode})")
                square = image.convert("RGB").resize((size, size), image_module.Resampling.BILINEAR)
                return np.asarray(square)
    except Exception as error:  # decoders fail in many ways on a broken file
        raise FileError(
            f"an 8-bit image in {file}", str(error) or repr(error), "replace or remove the file"
        ) from None


def _with_progress(files: list[Path], progress: bool) -> Any:
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(
        files,
        "reading images",
        console=console,
        transient=True,
        disable=not (progress and console.is_terminal),
    )


def _text_rows(path: Path, text_column: str, label_column: str) -> tuple[list[str], list[str]]:
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # texts may be long
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file, strict=True)
            columns = rows.fieldnames or []
            for column in (text_column, label_column):
                if column not in columns:
                    raise FileError(
                        f"a column `{column}` in {path}",
                        f"the columns {', '.join(columns) or '(none)'}",
                        f"name the columns {text_column} and {label_column}",
                    )
            texts, words = [], []
            for row in rows:
                text, word = row[text_column], (row[label_column] or "").strip()
                if text is None or not word:
                    raise FileError(
                        f"a text and a label in every row of {path}",
                        f"none in the row that ends on line {rows.line_num}",
                        "complete or remove the row",
                    )
                texts.append(text)
                words.append(word)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileError(
            f"a readable .csv file (UTF-8) in {path}", str(error), "check the path, or save it anew"
        ) from None
    finally:
        csv.field_size_limit(before)
    if not texts:
        raise FileError(f"rows of texts in {path}", "only a header", "add some")
    return texts, words


def _text_features(
    train: list[str], test: list[str], path: Path, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    weigh = TfidfVectorizer(sublinear_tf=True, max_features=VOCABULARY)
    try:
        weighted = weigh.fit_transform(train)
    except ValueError as error:
        raise InputError(f"texts with words in {path}", str(error), "check the column") from None
    weighted_test = weigh.transform(test)
    if weighted.shape[1] <= TEXT_DIMENSIONS:
        x_train, x_test = weighted.toarray(), weighted_test.toarray()
    else:
        reduce = TruncatedSVD(min(TEXT_DIMENSIONS, len(train)), random_state=seed % 2**32)
        with np.errstate(divide="ignore", invalid="ignore"):  # of identical texts
            x_train = reduce.fit_transform(weighted)
        x_test = reduce.transform(weighted_test)
    return x_train.astype(np.float32), x_test.astype(np.float32)
