"""The public image data sets: from a folder of the user's, from the cache, or from their source."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.files import read_npz, write_whole
from sabal.errors import FileError
from sabal.simulate.datasets.data_formats import read_cifar10, read_cifar100, read_mnist, read_svhn
from sabal.simulate.datasets.dataset import PARTS, Arrays, needed
from sabal.simulate.datasets.names import CIFAR10, CIFAR100, DIGITS, FASHION

CHUNK_BYTES = 2**16


@dataclass(frozen=True)
class Source:
    """Where a data set is published.

    base: the address that the names of the files are appended to.
    files: their MD5 sums, as published, by name.
    """

    base: str
    files: dict[str, str]
    read: Callable[[Sequence[Path]], Arrays]
    class_names: tuple[str, ...]


SOURCES = {
    "mnist": Source(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        {
            "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
            "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
            "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
        },
        read_mnist,
        DIGITS,
    ),
    "fashion-mnist": Source(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        {
            "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
            "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
            "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
        },
        read_mnist,
        FASHION,
    ),
    "cifar10": Source(
        "https://www.cs.toronto.edu/~kriz/",
        {"cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530"},
        read_cifar10,
        CIFAR10,
    ),
    "cifar100": Source(
        "https://www.cs.toronto.edu/~kriz/",
        {"cifar-100-binary.tar.gz": "03b5dce01913d631647c71ecec9e9cb8"},
        read_cifar100,
        CIFAR100,
    ),
    "svhn": Source(
        "http://ufldl.stanford.edu/housenumbers/",
        {
            "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
            "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
        },
        read_svhn,
        DIGITS,
    ),
}


def public_arrays(name: str, data_dir: str | Path | None, progress: bool) -> Arrays:
    """The four arrays of a public data set, downloaded only if they are nowhere here."""
    cached = cache_folder() / f"{name}.npz"
    for path in (*_in_folder(name, data_dir), cached):
        if path.is_file():
            _, arrays = read_npz(path, PARTS)
            if missing := [part for part in PARTS if part not in arrays]:
                raise FileError(
                    f"{', '.join(PARTS)} in {path}",
                    f"no {missing[0]}",
                    "add the array, or delete the file",
                )
            return arrays
    source = SOURCES[name]
    folder = cached.parent / name
    arrays = source.read([_fetched(name, file, folder, progress) for file in source.files])

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    write_whole(cached, write)
    return arrays


def cache_folder() -> Path:
    """Where downloads are kept: $SABAL_CACHE, or `sabal` in the user's folder of caches."""
    if chosen := os.environ.get("SABAL_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "sabal"


def _in_folder(name: str, data_dir: str | Path | None) -> list[Path]:
    if data_dir is None:
        return []
    folder = Path(data_dir).expanduser()
    if not folder.is_dir():
        raise FileError(
            "the data folder to exist", f"no folder at {folder}", f"put {name}.npz into a folder"
        )
    return [folder / f"{name}.npz", folder / f"{name.replace('-', '_')}.npz"]


def _fetched(name: str, file: str, folder: Path, progress: bool) -> Path:
    """A file of a source in `folder`, downloaded unless it is there with the right MD5 sum."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    pooch = needed("pooch", "pooch", f"download {name}")
    pooch.get_logger().setLevel("WARNING")
    console = Console(stderr=True)
    source = SOURCES[name]
    try:
        with Progress(
            "{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn(),
            console=console, transient=True, disable=not (progress and console.is_terminal),
        ) as bar:  # fmt: skip
            downloader = pooch.HTTPDownloader(
                progressbar=_PoochBar(bar, f"{name}: {file}"),
                chunk_size=CHUNK_BYTES,
                # A server that unpacks on the way would spoil the sum.
                headers={"Accept-Encoding": "identity"},
            )
            return Path(
                pooch.retrieve(
                    source.base + file,
                    known_hash=f"md5:{source.files[file]}",
                    fname=file,
                    path=folder,
                    downloader=downloader,
                )
            )
    except (OSError, ValueError) as error:
        raise FileError(
            f"to download {name} from {source.base}{file}",
            str(error),
            f"check the network, or put {name}.npz (with {', '.join(PARTS)}) into a folder and "
            "name that with --data-dir",
        ) from None


class _PoochBar:
    """What pooch asks of a progress bar, drawn by rich."""

    def __init__(self, bar: Any, description: str) -> None:
        self._bar = bar
        self._task = bar.add_task(description, total=None)

    @property
    def total(self) -> float | None:
        """The bytes to expect."""
        return self._bar.tasks[self._task].total

    @total.setter
    def total(self, size: int) -> None:
        self._bar.update(self._task, total=size or None)

    def update(self, size: int) -> None:
        """So many bytes more."""
        self._bar.advance(self._task, size)

    def reset(self) -> None:
        """Back to the start, from where pooch fills the bar at the end."""
        self._bar.update(self._task, completed=0)

    def close(self) -> None:
        """Nothing: the bar goes when the download is over."""
