"""Data sets of the user's own files: folders of images, and tables of texts."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from sabal.errors import FileError, InputError, SabalError
from sabal.simulate.datasets import own_files as data_files
from sabal.simulate.datasets.catalog import load
from sabal.simulate.datasets.dataset import stratified_split

pytestmark = pytest.mark.usefixtures("cache")


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
