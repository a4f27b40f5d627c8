"""The formats of the public image data sets, read without pickle and without unpacking to disk."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sabal.errors import FileError
from sabal.simulate.datasets.dataset import PARTS, Arrays

IDX_BYTES = 0x08  # the code for unsigned bytes in the third byte of an idx file
CIFAR_IMAGE = (3, 32, 32)


def read_mnist(files: Sequence[Path]) -> Arrays:
    """Read MNIST or a data set in its format: four idx files, in the order of `PARTS`."""
    return {part: read_idx(file) for part, file in zip(PARTS, files, strict=True)}


def read_idx(path: Path) -> np.ndarray:
    """Read a gzipped idx file: two zeros, the type, the number of axes, their lengths, the data."""
    try:
        raw = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise _broken(path, "a gzipped idx file", str(error)) from None
    if len(raw) < 4 or raw[:3] != bytes([0, 0, IDX_BYTES]):
        raise _broken(path, "an idx file of bytes", f"one that starts with {raw[:4].hex()}")
    start = 4 + 4 * raw[3]
    shape = [int.from_bytes(raw[at : at + 4], "big") for at in range(4, start, 4)]
    size = 1
    for length in shape:
        size *= length
    if len(raw) - start != size:
        raise _broken(path, f"{size} entries", f"{len(raw) - start}")
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape).copy()


def read_cifar10(files: Sequence[Path]) -> Arrays:
    """Read the binary archive of CIFAR-10: records of a label and an image."""
    folder = "cifar-10-batches-bin"
    train = [f"{folder}/data_batch_{i}.bin" for i in range(1, 6)]
    return _read_cifar(files[0], train, f"{folder}/test_batch.bin", label_bytes=1)


def read_cifar100(files: Sequence[Path]) -> Arrays:
    """Read the binary archive of CIFAR-100: records of a coarse label, a fine label, an image."""
    folder = "cifar-100-binary"
    return _read_cifar(files[0], [f"{folder}/train.bin"], f"{folder}/test.bin", label_bytes=2)


def read_svhn(files: Sequence[Path]) -> Arrays:
    """Read the cropped digits of SVHN: a training and a test file in the format of MATLAB."""
    (x_train, y_train), (x_test, y_test) = (_read_mat(file) for file in files)
    return dict(zip(PARTS, (x_train, y_train, x_test, y_test), strict=True))


def _read_cifar(path: Path, train: list[str], test: str, label_bytes: int) -> Arrays:
    members = _tar_members(path, {*train, test})
    parts = {}
    for names, x, y in ((train, *PARTS[:2]), ([test], *PARTS[2:])):
        raw = b"".join(members[name] for name in names)
        length = label_bytes + int(np.prod(CIFAR_IMAGE))
        if not raw or len(raw) % length:
            raise _broken(path, f"records of {length} bytes", f"{len(raw)} bytes in {names[0]}")
        records = np.frombuffer(raw, np.uint8).reshape(-1, length)
        images = records[:, label_bytes:].reshape(-1, *CIFAR_IMAGE).transpose(0, 2, 3, 1)
        # The last label byte is the fine one.
        parts[x], parts[y] = np.ascontiguousarray(images), records[:, label_bytes - 1].copy()
    return parts


def _tar_members(path: Path, names: set[str]) -> dict[str, bytes]:
    """Return the contents of the members `names` in one pass; nothing is unpacked to disk."""
    contents = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                # A link is not a regular file, so nothing outside the archive is read.
                if member.name in names and member.isreg():
                    file = archive.extractfile(member)
                    contents[member.name] = file.read() if file else b""
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise _broken(path, "a .tar.gz archive", str(error)) from None
    if missing := sorted(names - contents.keys()):
        raise _broken(path, f"an archive with {', '.join(sorted(names))}", f"no {missing[0]}")
    return contents


def _read_mat(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from scipy.io import loadmat

    try:
        content = loadmat(path, variable_names=("X", "y"))
        x, y = content["X"], content["y"].reshape(-1)
        # Stored as (height, width, channels, items), with the digit 0 as label 10.
        return np.ascontiguousarray(x.transpose(3, 0, 1, 2)), y % 10
    except Exception as error:  # the reader fails in many ways on a broken file
        raise _broken(path, "a .mat file with X (h, w, 3, n) and y", repr(error)) from None


def _broken(path: Path, expected: str, got: str) -> FileError:
    return FileError(f"{expected} in {path}", got, "delete the file, to download it again")
