"""Public data sets: downloaded once, checked, and read from their formats."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy.io import savemat

from makers import random_images
from sabal.errors import FileError, MissingPackageError
from sabal.simulate.datasets import downloads as data_download
from sabal.simulate.datasets import file_formats
from sabal.simulate.datasets.catalog import NAMES, load
from sabal.simulate.datasets.dataset import PARTS

pytestmark = pytest.mark.usefixtures("cache")


def idx_gz(array):
    """`array` as its format is described: big-endian lengths after a magic number."""
    head = bytes([0, 0, 8, array.ndim])
    lengths = b"".join(length.to_bytes(4, "big") for length in array.shape)
    return gzip.compress(head + lengths + array.tobytes())


def tar_gz(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def cifar_records(images, *labels):
    """Label bytes, then the red, the green and the blue plane, an image after the other."""
    return b"".join(
        bytes(int(label[i]) for label in labels)
        + b"".join(images[i, :, :, channel].tobytes() for channel in range(3))
        for i in range(len(images))
    )


def published(name):
    """The files of a small data set of the same format, and the arrays that they hold."""
    if name in ("mnist", "fashion-mnist"):
        x, y = random_images(9, 28, 28), np.arange(9, dtype=np.uint8)
        contents = [idx_gz(part) for part in (x[:6], y[:6], x[6:], y[6:])]
    else:
        x = random_images(9 if name == "svhn" else 15, 32, 32, 3)
        y = np.arange(len(x), dtype=np.uint8) % 10
    if name == "cifar10":
        folder = "cifar-10-batches-bin"
        batches = {
            f"{folder}/data_batch_{i + 1}.bin": cifar_records(x[rows], y[rows])
            for i, rows in enumerate(slice(2 * i, 2 * i + 2) for i in range(5))
        }
        test = {f"{folder}/test_batch.bin": cifar_records(x[10:], y[10:])}
        contents = [tar_gz({f"{folder}/readme.html": b"hello"} | test | batches)]
    elif name == "cifar100":
        y, coarse = y + 90, y
        folder = "cifar-100-binary"
        train = {f"{folder}/train.bin": cifar_records(x[:10], coarse[:10], y[:10])}
        test = {f"{folder}/test.bin": cifar_records(x[10:], coarse[10:], y[10:])}
        contents = [tar_gz(train | test)]
    elif name == "svhn":
        contents = []
        for rows in (slice(0, 6), slice(6, 9)):
            buffer = io.BytesIO()
            label = np.where(y[rows] == 0, 10, y[rows])[:, None]
            savemat(buffer, {"X": x[rows].transpose(1, 2, 3, 0), "y": label}, do_compression=True)
            contents.append(buffer.getvalue())
    first = 6 if len(x) == 9 else 10
    arrays = dict(zip(PARTS, (x[:first], y[:first], x[first:], y[first:]), strict=True))
    return dict(zip(data_download.SOURCES[name].files, contents, strict=True)), arrays


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        self.server.asked += 1


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """A function that serves small versions of a data set on this machine, in its format."""
    pytest.importorskip("pooch")
    monkeypatch.setenv("NO_PROXY", "*")
    site = tmp_path / "site"
    site.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    server.asked = 0
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

    def serve(name):
        files, arrays = published(name)
        for file, content in files.items():
            (site / file).write_bytes(content)
        sums = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
        address = f"http://127.0.0.1:{server.server_port}/"
        source = replace(data_download.SOURCES[name], base=address, files=sums)
        monkeypatch.setitem(data_download.SOURCES, name, source)
        return server, site, arrays

    yield serve
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_public_data_set_is_downloaded_once(name, publish, monkeypatch, capfd):
    server, _, arrays = publish(name)
    first = load(name)
    assert server.asked == len(data_download.SOURCES[name].files)
    monkeypatch.setitem(sys.modules, "pooch", None)
    for data in (first, load(name)):
        assert data.kind == "images"
        for part in PARTS:
            np.testing.assert_array_equal(getattr(data, part), arrays[part])
            assert getattr(data, part).flags.writeable
    assert server.asked == len(data_download.SOURCES[name].files)
    assert capfd.readouterr() == ("", "")  # no terminal, no bar


@pytest.mark.parametrize("progress", [True, False])
def test_a_terminal_sees_a_bar_if_it_wants_one(publish, monkeypatch, capsys, progress):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    publish("svhn")
    load("svhn", progress=progress)
    assert ("svhn: test_32x32.mat" in capsys.readouterr().err) == progress


def test_a_file_with_another_sum_is_refused(publish, cache):
    _, site, _ = publish("mnist")
    path = site / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(idx_gz(np.array([1, 2, 3], dtype=np.uint8)))
    with pytest.raises(FileError, match=r"hash.*--data-dir"):
        load("mnist")
    assert not (cache / "mnist" / path.name).exists()
    assert not (cache / "mnist.npz").exists()


def test_a_download_that_was_tampered_with_is_fetched_again(publish, cache):
    server, site, arrays = publish("mnist")
    (cache / "mnist").mkdir(parents=True)
    for file in data_download.SOURCES["mnist"].files:
        (cache / "mnist" / file).write_bytes((site / file).read_bytes())
    labels = np.array([1, 2, 3], dtype=np.uint8)
    (cache / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(idx_gz(labels))
    np.testing.assert_array_equal(load("mnist").y_test, arrays["y_test"])
    assert server.asked == 1


def test_a_failed_download_names_the_way_out(publish):
    server, site, _ = publish("cifar10")
    (site / "cifar-10-binary.tar.gz").unlink()
    with pytest.raises(FileError, match=r"404.*cifar10\.npz.*--data-dir"):
        load("cifar10")
    server.shutdown()
    server.server_close()
    with pytest.raises(FileError, match=r"check the network.*cifar10\.npz.*--data-dir"):
        load("cifar10")


def test_a_missing_package_is_named_with_the_command(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingPackageError, match=r"pooch.*pip install .*\[data\]"):
        load("mnist", data_dir=tmp_path)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingPackageError, match=r"pillow.*pip install .*\[data\]"):
        load(str(tmp_path))


def test_the_cache_is_where_caches_are(monkeypatch, tmp_path):
    monkeypatch.delenv("SABAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_download.cache_folder() == tmp_path / "sabal"


# Formats


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"not gzip", "a gzipped idx file"),
        (idx_gz(np.zeros((2, 3), np.uint8))[:-9], "a gzipped idx file"),
        (gzip.compress(b""), "an idx file of bytes"),
        (gzip.compress(bytes([0, 0, 0x0D, 1, 0, 0, 0, 0])), "starts with 00000d01"),
        (gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 7])), "3 entries .*got 2"),
        (gzip.compress(bytes([0, 0, 8, 200, 0, 0, 0, 3])), "entries"),
    ],
    ids=["no gzip", "cut", "empty", "not bytes", "too short", "too many axes"],
)
def test_broken_idx_files_are_refused(tmp_path, content, said):
    (tmp_path / "file.gz").write_bytes(content)
    with pytest.raises(FileError, match=said):
        file_formats.read_idx(tmp_path / "file.gz")


def test_broken_archives_are_refused(tmp_path):
    path = tmp_path / "cifar.tar.gz"
    train, test = "cifar-100-binary/train.bin", "cifar-100-binary/test.bin"
    for content, said in (
        (b"not a tar", "tar.gz archive"),
        (tar_gz({train: bytes(3074), test: bytes(3074)})[:60], "tar.gz archive"),
        (tar_gz({train: bytes(3074)}), f"no {test}"),
        (tar_gz({train: bytes(3074), test: bytes(3073)}), "records of 3074 bytes"),
        (tar_gz({train: b"", test: bytes(3074)}), "records of 3074 bytes"),
    ):
        path.write_bytes(content)
        with pytest.raises(FileError, match=said):
            file_formats.read_cifar100([path])


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    path = tmp_path / "cifar.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("train", "test"):
            entry = tarfile.TarInfo(f"cifar-100-binary/{name}.bin")
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(entry)
    with pytest.raises(FileError, match=r"no cifar-100-binary/test\.bin"):
        file_formats.read_cifar100([path])


def test_broken_mat_files_are_refused(tmp_path):
    path = tmp_path / "train.mat"
    path.write_bytes(bytes(200))
    with pytest.raises(FileError, match=r"a \.mat file"):
        file_formats.read_svhn([path, path])
    savemat(path, {"X": np.zeros((4, 4))})
    with pytest.raises(FileError, match=r"a \.mat file"):
        file_formats.read_svhn([path, path])
