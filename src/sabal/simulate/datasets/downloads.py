"""Public image data sets, from a folder of the user, from the cache, or from their source."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.extras import import_optional
from sabal.core.files import read_npz, write_whole
from sabal.errors import FileError
from sabal.simulate.datasets.dataset import PARTS, Arrays
from sabal.simulate.datasets.file_formats import read_cifar10, read_cifar100, read_mnist, read_svhn

CHUNK_BYTES = 2**16

DIGITS = tuple("0123456789")

FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip

CIFAR10 = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip

CIFAR100 = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle",
    "bottle", "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle",
    "caterpillar", "cattle", "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch",
    "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox",
    "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion",
    "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom",
    "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree",
    "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road",
    "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake",
    "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone",
    "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale",
    "willow_tree", "wolf", "woman", "worm",
)  # fmt: skip


@dataclass(frozen=True)
class PublicSource:
    """Where a data set is published: the SHA-256 sums of `files` by name, and how to read them."""

    base: str
    files: dict[str, str]
    read: Callable[[Sequence[Path]], Arrays]
    class_names: tuple[str, ...]


SOURCES = {
    "mnist": PublicSource(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        {
            "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
        read_mnist,
        DIGITS,
    ),
    "fashion-mnist": PublicSource(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        {
            "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        },
        read_mnist,
        FASHION,
    ),
    "cifar10": PublicSource(
        "https://www.cs.toronto.edu/~kriz/",
        {
            "cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
        },
        read_cifar10,
        CIFAR10,
    ),
    "cifar100": PublicSource(
        "https://www.cs.toronto.edu/~kriz/",
        {
            "cifar-100-binary.tar.gz": "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"
        },
        read_cifar100,
        CIFAR100,
    ),
    "svhn": PublicSource(
        "https://ufldl.stanford.edu/housenumbers/",
        {
            "train_32x32.mat": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            "test_32x32.mat": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        },
        read_svhn,
        DIGITS,
    ),
}


def public_arrays(name: str, data_dir: str | Path | None, progress: bool) -> Arrays:
    """Return the arrays of a public data set from `data_dir`, the cache, or else its source."""
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
    arrays = source.read([_fetch(name, file, folder, progress) for file in source.files])

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    write_whole(cached, write)
    return arrays


def cache_folder() -> Path:
    """Return the folder of downloads: $SABAL_CACHE, or `sabal` in the user's cache folder."""
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


def _fetch(name: str, file: str, folder: Path, progress: bool) -> Path:
    """Download a file into `folder`, unless it is there with the right SHA-256 sum."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    pooch = import_optional("pooch", "data", f"to download {name}")
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
                # A server that unpacks the file on the way would change its sum.
                headers={"Accept-Encoding": "identity"},
            )
            return Path(
                pooch.retrieve(
                    source.base + file,
                    known_hash=f"sha256:{source.files[file]}",
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
    """The progress bar that pooch expects, drawn by rich."""

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
        """Advance by `size` bytes."""
        self._bar.advance(self._task, size)

    def reset(self) -> None:
        """Return to the start, from where pooch fills the bar at the end."""
        self._bar.update(self._task, completed=0)

    def close(self) -> None:
        """Do nothing: the bar disappears when the download ends."""
