"""Data sets: every source comes out in one shape, and what cannot be used is refused by name."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import sys
import tarfile
import threading
from dataclasses import FrozenInstanceError, replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat
from sklearn.datasets import load_digits

from sabal.errors import FileError, InputError, MissingPackageError, SabalError, UnknownNameError
from sabal.experiments import data_download, data_files, data_formats
from sabal.experiments.data_core import PARTS, as_labels, stratified_split
from sabal.experiments.datasets import NAMES, load

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own, so that nothing is found in the user's."""
    monkeypatch.setenv("SABAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def random_images(n, *shape):
    return RNG.integers(0, 256, size=(n, *shape), dtype=np.uint8)


def some_parts(**changes):
    parts = {
        "x_train": RNG.normal(size=(6, 3)),
        "y_train": np.array([0, 1, 2, 0, 1, 2]),
        "x_test": RNG.normal(size=(3, 3)),
        "y_test": np.array([0, 1, 2]),
    }
    return parts | changes


def saved(path, arrays):
    np.savez(path, **arrays)
    return path


def loaded(tmp_path, arrays, **options):
    return load(f"npz:{saved(tmp_path / 'data.npz', arrays)}", **options)


# Splits and labels


@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    share=st.sampled_from([0.2, 0.3, 0.5]),
    seed=st.integers(0, 1000),
)
def test_a_split_takes_its_share_of_every_class(counts, share, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    if max(counts) == 1:
        with pytest.raises(InputError, match="enough items"):
            stratified_split(y, share, seed)
        return
    train, test = stratified_split(y, share, seed)
    assert sorted([*train, *test]) == list(range(y.size))
    assert test.size > 0
    for code, count in enumerate(counts):
        taken = np.count_nonzero(y[test] == code)
        assert abs(taken - share * count) < 1
        assert taken < count
    if min(counts) > 1:
        assert test.size == max(1, round(share * y.size))


def test_a_split_follows_its_seed_and_hides_the_order_of_the_classes():
    y = np.repeat([0, 1], 50)
    again = [stratified_split(y, 0.2, seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(again[0][0], again[1][0])
    np.testing.assert_array_equal(again[0][1], again[1][1])
    assert set(again[0][1]) != set(again[2][1])
    assert 0 < np.count_nonzero(y[again[0][0]][:40]) < 40


def test_labels_read_as_text_are_numbers_only_if_all_are():
    assert as_labels(["10", "9"]).tolist() == [10, 9]
    assert as_labels(["-1", "1"]).tolist() == [-1, 1]
    for words in (["10", "b"], ["01", "1"], ["1.5", "2"], ["9" * 30, "1"]):
        assert as_labels(words).tolist() == words


# Digits


def test_digits_are_the_same_images_whatever_the_seed():
    digits, again = load("digits"), load("digits", seed=5)
    for part in PARTS:
        np.testing.assert_array_equal(getattr(digits, part), getattr(again, part))
    assert digits.x_train.shape == (1258, 8, 8)
    assert digits.x_test.shape == (539, 8, 8)
    assert (digits.classes, digits.kind) == (10, "images")
    assert digits.class_names == tuple("0123456789")
    assert digits.x_train.dtype == np.uint8
    assert digits.x_train.max() == 255

    def rows(x, y):
        return sorted(map(tuple, np.column_stack([x.reshape(len(x), -1), y]).tolist()))

    x = np.concatenate([digits.x_train, digits.x_test])
    y = np.concatenate([digits.y_train, digits.y_test])
    original = load_digits()
    assert rows(np.round(x / (255 / 16)), y) == rows(original.data, original.target)


def test_a_data_set_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        load("digits").classes = 3


# Arrays


def test_four_arrays_stay_as_they_are(tmp_path):
    parts = some_parts()
    data = loaded(tmp_path, parts)
    np.testing.assert_allclose(data.x_train, parts["x_train"], rtol=1e-6)
    np.testing.assert_array_equal(data.y_test, parts["y_test"])
    assert (data.x_test.dtype, data.y_train.dtype) == (np.float32, np.int64)
    assert (data.classes, data.class_names, data.kind) == (3, ("0", "1", "2"), "features")


@pytest.mark.parametrize(
    ("train", "test", "names"),
    [
        (["cat", "ant", "cat", "dog", "dog", "ant"], ["bee", "ant", "cat"],
         ("ant", "bee", "cat", "dog")),
        ([5, 2, 5, 10, 10, 2], [2, 5, 3], ("2", "3", "5", "10")),
        ([1.0, -1.0] * 3, [1.0, 1.0, -1.0], ("-1", "1")),
        ([True, False] * 3, [True, True, False], ("0", "1")),
        ([b"b", b"a"] * 3, [b"a", b"b", b"b"], ("a", "b")),
        ([[1], [0]] * 3, [[0], [1], [1]], ("0", "1")),
    ],
)  # fmt: skip
def test_classes_are_the_sorted_labels_of_both_parts(tmp_path, train, test, names):
    data = loaded(tmp_path, some_parts(y_train=np.array(train), y_test=np.array(test)))
    assert (data.classes, data.class_names) == (len(names), names)
    numbers = data.y_train.tolist() + data.y_test.tolist()
    meant = [np.ravel(label)[0] for label in (*train, *test)]
    texts = [x.decode() if isinstance(x, bytes) else x for x in meant]
    assert [names[i] for i in numbers] == [x if isinstance(x, str) else str(int(x)) for x in texts]


def test_x_and_y_are_split_by_the_seed(tmp_path):
    y = np.repeat([0, 1, 2, 3], 10)
    arrays = {"x": np.arange(40.0)[:, None], "y": y}
    data, again, other = (loaded(tmp_path, arrays, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(np.bincount(data.y_test), [2, 2, 2, 2])
    np.testing.assert_array_equal(y[data.x_train[:, 0].astype(int)], data.y_train)
    np.testing.assert_array_equal(data.x_test, again.x_test)
    assert set(data.x_test[:, 0]) != set(other.x_test[:, 0])


def test_whole_numbers_on_three_or_four_axes_are_images(tmp_path):
    for shape in ((5, 4), (5, 4, 3)):
        x = random_images(9, *shape)
        parts = some_parts(x_train=x[:6].astype(np.int64), x_test=x[6:])
        data = loaded(tmp_path, parts)
        assert (data.kind, data.x_train.dtype) == ("images", np.uint8)
        np.testing.assert_array_equal(data.x_train, x[:6])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"y_test": np.array([0, 1])}, "x_test with 3 rows, y_test with 2 rows"),
        ({"y_train": np.zeros(6), "y_test": np.zeros(3)}, "at least two classes"),
        ({"y_train": np.eye(6)}, "one label per item"),
        ({"y_train": np.array([0.5, 1, 2, 0, 1, 2])}, "whole numbers or strings"),
        ({"y_train": np.array([np.nan, 1, 2, 0, 1, 2])}, "whole numbers or strings"),
        ({"y_train": np.array([np.inf, 1, 2, 0, 1, 2])}, "whole numbers or strings"),
        ({"y_train": np.array(list("abcabc"))}, "of one kind"),
        ({"x_test": np.ones((3, 4))}, "items of one shape"),
        ({"x_train": np.full((6, 3), np.nan)}, "without NaN"),
        ({"x_train": np.full((6, 3), 1e300)}, "without NaN or infinity"),
        ({"x_train": np.ones(6)}, "2 axes"),
        ({"x_train": np.array([["a"] * 3] * 6)}, "real numbers"),
        ({"x_train": np.ones((6, 4, 4))}, "from 0 to 255"),
        ({"x_train": np.full((6, 4, 4), 256)}, "from 0 to 255"),
        ({"x_train": np.ones((6, 3, 32, 32), dtype=np.uint8)}, "channels to the last axis"),
        ({"x_train": np.ones((0, 4, 4), dtype=np.uint8)}, "some items"),
    ],
)  # fmt: skip
def test_arrays_that_are_no_data_set_are_refused(tmp_path, changes, said):
    with pytest.raises(InputError, match=said):
        loaded(tmp_path, some_parts(**changes))


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"x": np.ones((3, 2))}, "only x"),
        ({"images": np.ones((3, 2))}, "none of these"),
        ({"x_train": np.ones((3, 2)), "y_train": np.ones(3)}, "only x_train, y_train"),
    ],
)
def test_arrays_by_other_names_are_refused(tmp_path, arrays, said):
    with pytest.raises(FileError, match=said):
        loaded(tmp_path, arrays)


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (np.ones((4, 2)), np.array([0, 1, 0]), "x with 4 rows, y with 3 rows"),
        (np.array(1.0), np.array([0, 1]), "one row per item"),
        (np.ones((2, 2)), np.array([0, 1]), "enough items"),
    ],
)
def test_arrays_that_cannot_be_split_are_refused(tmp_path, x, y, said):
    with pytest.raises(InputError, match=said):
        loaded(tmp_path, {"x": x, "y": y})


def test_nothing_is_unpickled(tmp_path):
    x = np.array([{"a": 1}] * 6, dtype=object)
    with pytest.raises(FileError, match="allow_pickle=False"):
        loaded(tmp_path, some_parts(x_train=x))
    (tmp_path / "data.npz").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(FileError, match=r"no \.npz archive"):
        load(f"npz:{tmp_path / 'data.npz'}")


def test_a_damaged_archive_is_refused(tmp_path):
    path = tmp_path / "data.npz"
    np.savez_compressed(path, **some_parts(x_train=RNG.normal(size=(6, 500))))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match="part of one"):
        load(f"npz:{path}")
    path.write_bytes(whole[:300] + bytes(200) + whole[500:])
    with pytest.raises(FileError, match="readable arrays"):
        load(f"npz:{path}")


# Names


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mnits", "did you mean mnist"),
        ("Fashion_MNIST", "did you mean fashion-mnist"),
        ("cifar-100", "did you mean cifar100"),
        ("some/data.npz", "did you mean npz:some/data.npz"),
        ("no/such/folder", "check the name or the path"),
        ("", "check the name or the path"),
    ],
)
def test_unknown_names_come_with_a_suggestion(name, said):
    with pytest.raises(UnknownNameError, match=said):
        load(name)


def test_missing_files_and_bad_seeds_are_refused(tmp_path):
    for name in ("npz:nowhere.npz", "nowhere.csv", f"npz:{tmp_path}"):
        with pytest.raises(FileError, match="check the path"):
            load(name)
    with pytest.raises(InputError, match="seed"):
        load("digits", seed=-1)
    with pytest.raises(FileError, match="no folder at"):
        load("mnist", data_dir=tmp_path / "nowhere")


# Public data sets


@pytest.mark.parametrize("name", NAMES[1:])
@pytest.mark.parametrize("separator", ["-", "_"])
def test_the_data_folder_comes_first(tmp_path, name, separator, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    x = random_images(9, 6, 6)
    parts = some_parts(x_train=x[:6], x_test=x[6:])
    saved(tmp_path / f"{name.replace('-', separator)}.npz", parts)
    data = load(name, data_dir=tmp_path)
    np.testing.assert_array_equal(data.x_train, x[:6])
    np.testing.assert_array_equal(data.y_train, parts["y_train"])
    # Three classes are there, but what there is to tell apart does not change with the cut.
    assert data.classes == len(set(data.class_names)) == (100 if name == "cifar100" else 10)


def test_the_data_folder_is_checked(tmp_path):
    saved(tmp_path / "mnist.npz", {"x_train": np.ones((2, 2))})
    with pytest.raises(FileError, match="no y_train"):
        load("mnist", data_dir=tmp_path)
    saved(tmp_path / "mnist.npz", some_parts(y_test=np.array([1, 2, 10])))
    with pytest.raises(InputError, match="labels from 0 to 9"):
        load("mnist", data_dir=tmp_path)


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
        sums = {
            file: hashlib.md5(content, usedforsecurity=False).hexdigest()
            for file, content in files.items()
        }
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
    with pytest.raises(MissingPackageError, match=r'pooch.*pip install "sabal\[data\]"'):
        load("mnist", data_dir=tmp_path)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingPackageError, match=r'pillow.*pip install "sabal\[data\]"'):
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
        data_formats.read_idx(tmp_path / "file.gz")


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
            data_formats.read_cifar100([path])


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    path = tmp_path / "cifar.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("train", "test"):
            entry = tarfile.TarInfo(f"cifar-100-binary/{name}.bin")
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(entry)
    with pytest.raises(FileError, match=r"no cifar-100-binary/test\.bin"):
        data_formats.read_cifar100([path])


def test_broken_mat_files_are_refused(tmp_path):
    path = tmp_path / "train.mat"
    path.write_bytes(bytes(200))
    with pytest.raises(FileError, match=r"a \.mat file"):
        data_formats.read_svhn([path, path])
    savemat(path, {"X": np.zeros((4, 4))})
    with pytest.raises(FileError, match=r"a \.mat file"):
        data_formats.read_svhn([path, path])


# Folders of images


def image_folder(root, classes, size=(20, 12), mode="RGB", ending="png"):
    """Images of one colour: 40 times the number of the class, plus the number of the image."""
    for number, (name, count) in enumerate(classes.items()):
        (root / name).mkdir(parents=True)
        for index in range(count):
            level = 40 * number + index
            colour = level if mode in ("L", "P") else (level, 0, 255)
            image = Image.new("RGB" if mode == "RGBA" else mode, size, colour)
            image.convert(mode).save(root / name / f"{index}.{ending}")
    return root


def test_a_folder_of_images_has_a_class_for_every_sub_folder(tmp_path):
    root = image_folder(tmp_path / "images", {"cat": 10, "ant": 5, "dog": 5})
    (root / "ant" / "notes.txt").write_text("not an image")
    (root / "ant" / ".hidden.png").write_text("not an image")
    (root / ".git").mkdir()
    data = load(str(root))
    assert (data.kind, data.class_names) == ("images", ("ant", "cat", "dog"))
    assert data.x_train.shape == (16, 32, 32, 3)
    np.testing.assert_array_equal(np.bincount(data.y_test), [1, 2, 1])
    # The classes were made in the order cat, ant, dog.
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        np.testing.assert_array_equal(x[:, 0, 0, 0] // 40, np.array([1, 0, 2])[y])
        assert np.all(x[..., 1] == 0)
        assert np.all(x[..., 2] == 255)


def test_a_folder_of_images_follows_its_options(tmp_path):
    root = image_folder(tmp_path / "images", {"9": 10, "10": 10})
    data, again, other = (load(str(root), seed=seed, image_size=7) for seed in (0, 0, 1))
    assert data.x_train.shape == (16, 7, 7, 3)
    assert data.class_names == ("9", "10")
    np.testing.assert_array_equal(data.x_train, again.x_train)
    assert not np.array_equal(data.x_train, other.x_train)
    with pytest.raises(InputError, match="image_size"):
        load(str(root), image_size=0)


@pytest.mark.parametrize(
    ("mode", "ending"),
    [("L", "png"), ("P", "gif"), ("RGBA", "png"), ("L", "pgm"), ("RGB", "bmp"), ("RGB", "tif")],
)
def test_images_of_every_kind_become_rgb(tmp_path, mode, ending):
    root = image_folder(tmp_path / "images", {"a": 5, "b": 5}, mode=mode, ending=ending)
    data = load(str(root))
    assert data.x_train.shape == (8, 32, 32, 3)
    if mode != "P":
        np.testing.assert_array_equal(data.x_train[:, 0, 0, 0] // 40, data.y_train)


def test_images_that_cannot_be_trusted_are_refused(tmp_path, monkeypatch):
    root = image_folder(tmp_path / "images", {"a": 5, "b": 5})
    good = (root / "a" / "3.png").read_bytes()
    deep = io.BytesIO()
    Image.fromarray(np.full((4, 4), 40_000, dtype=np.uint16)).save(deep, "PNG")
    odd, jpeg = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (4, 4)).save(odd, "PCX")
    Image.new("RGB", (4, 4)).save(jpeg, "JPEG")
    for content in (b"not an image", good[:50], deep.getvalue(), odd.getvalue()):
        (root / "a" / "3.png").write_bytes(content)
        with pytest.raises(FileError, match=r"8-bit image in .*3\.png"):
            load(str(root))
    (root / "a" / "3.png").write_bytes(jpeg.getvalue())
    assert load(str(root)).classes == 2  # only its ending is wrong
    (root / "a" / "3.png").write_bytes(good)
    # 240 pixels: over the limit Pillow warns, over twice the limit it stops by itself.
    for limit in (200, 100):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(FileError, match="decompression bomb"):
            load(str(root))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 240)
    assert load(str(root)).classes == 2


def test_folders_without_classes_are_refused(tmp_path):
    with pytest.raises(FileError, match="0 sub-folders"):
        load(str(tmp_path))
    root = image_folder(tmp_path / "images", {"a": 5})
    with pytest.raises(FileError, match="1 sub-folders"):
        load(str(root))
    # A folder that is split already is no class by itself.
    image_folder(tmp_path / "parts" / "train", {"a": 5, "b": 5})
    image_folder(tmp_path / "parts" / "test", {"a": 5, "b": 5})
    with pytest.raises(FileError, match="none in test"):
        load(str(tmp_path / "parts"))


# Texts


def texts_csv(path, rows, header="text,label", encoding="utf-8"):
    path.write_text("\n".join([header, *rows]) + "\n", encoding=encoding)
    return str(path)


def animal_rows(n=40):
    words = {"cat": ["purr", "meow", "whiskers"], "dog": ["bark", "fetch", "growl"]}
    rng = np.random.default_rng(0)
    return [
        f'"{" ".join(rng.choice(words[label], size=4))}, said\none day {i % 7}x",{label}'
        for i, label in enumerate(["cat", "dog"] * (n // 2))
    ]


def test_texts_become_features(tmp_path):
    path = texts_csv(tmp_path / "texts.csv", animal_rows())
    data, again, other = (load(path, seed=seed) for seed in (0, 0, 1))
    assert (data.kind, data.class_names) == ("texts", ("cat", "dog"))
    assert data.x_train.shape[0] == 32
    assert data.x_train.shape[1:] == data.x_test.shape[1:]
    assert data.x_train.shape[1] <= data_files.TEXT_DIMENSIONS
    assert data.x_train.dtype == data.x_test.dtype == np.float32
    np.testing.assert_array_equal(data.x_test, again.x_test)
    assert not np.array_equal(data.x_train, other.x_train)
    # The features say what the texts say: the nearest text is of the same class.
    nearest = np.argmax(data.x_test @ data.x_train.T, axis=1)
    np.testing.assert_array_equal(data.y_train[nearest], data.y_test)


def test_many_words_are_reduced(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{' '.join(f'w{i}' for i in rng.integers(0, 900, 20))},{i % 3}" for i in range(400)]
    data = load(texts_csv(tmp_path / "texts.csv", rows))
    assert data.x_train.shape == (320, 256)
    assert data.x_test.shape == (80, 256)


@pytest.mark.parametrize("dimensions", [256, 5])
def test_the_features_of_texts_know_nothing_of_the_test_set(tmp_path, monkeypatch, dimensions):
    monkeypatch.setattr(data_files, "TEXT_DIMENSIONS", dimensions)
    rows = animal_rows()
    before = load(texts_csv(tmp_path / "texts.csv", rows))
    marked = [row.replace('"', f'"mark{i} ', 1) for i, row in enumerate(rows)]
    # Which rows are in the test set follows from the labels and the seed alone.
    labels = np.array([row.rsplit(",", 1)[1] for row in rows])
    _, test = stratified_split(labels, 0.2, 0)
    for i in range(len(rows)):
        if i not in test:
            marked[i] = rows[i]
    after = load(texts_csv(tmp_path / "texts.csv", marked))
    np.testing.assert_array_equal(before.x_train, after.x_train)
    assert before.x_test.shape == after.x_test.shape
    assert before.x_test.shape[1] <= dimensions


def test_columns_have_names_of_choice_and_texts_any_length(tmp_path):
    rows = [f"{i},{'purr ' * 40_000 if i % 2 else 'bark bark'},{i % 2}" for i in range(10)]
    path = texts_csv(tmp_path / "t.csv", rows, header="id,body,class", encoding="utf-8-sig")
    data = load(path, text_column="body", label_column="class")
    assert data.class_names == ("0", "1")
    with pytest.raises(FileError, match=r"column `text` in .*the columns id, body, class"):
        load(path)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "only a header"),
        (["purr,cat", "bark,"], "line 3"),
        (["purr,cat", "bark"], "line 3"),
        (["purr,cat", '"bark,dog'], "readable .csv"),
        (["a,cat", "b,dog", "c,cat", "d,dog"], "texts with words"),
        (["purr,cat", "meow,cat"], "at least two classes"),
    ],
)
def test_tables_that_are_no_texts_are_refused(tmp_path, rows, said):
    with pytest.raises(SabalError, match=said):
        load(texts_csv(tmp_path / "texts.csv", rows))


def test_tables_of_other_encodings_and_of_nothing_are_refused(tmp_path):
    path = texts_csv(tmp_path / "texts.csv", ["Käse,a", "Brot,b"], encoding="latin-1")
    with pytest.raises(FileError, match="UTF-8"):
        load(path)
    (tmp_path / "texts.csv").write_text("")
    with pytest.raises(FileError, match=r"the columns \(none\)"):
        load(path)


@pytest.mark.parametrize("words", [1, 2, 300])
def test_texts_that_are_all_alike_have_features_too(tmp_path, words):
    text = " ".join(f"word{i}" for i in range(words))
    data = load(texts_csv(tmp_path / "texts.csv", [f"{text},a", f"{text},b"] * 5))
    assert data.x_train.shape == (8, min(words, 8))
    assert np.isfinite(data.x_train).all()
    assert np.ptp(data.x_train, axis=0).max() < 1e-6
