"""Data sets: every source comes out in one shape, and what cannot be used is refused by name."""

from __future__ import annotations

import pickle
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from makers import random_images
from sabal.errors import FileError, InputError, UnknownNameError
from sabal.simulate.datasets.catalog import NAMES, load
from sabal.simulate.datasets.dataset import PARTS, as_labels, stratified_split

pytestmark = pytest.mark.usefixtures("cache")

RNG = np.random.default_rng(0)


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
