"""Pixels are learnt by a small network where PyTorch is installed, else by a linear head."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import sabal.models as models
from labeling_helpers import answer, settings
from sabal.errors import InputError
from sabal.labeling import learner_choice
from sabal.labeling.engine import Engine
from sabal.labeling.features.feature_files import FeatureFiles
from sabal.labeling.learner_choice import name_of_head
from sabal.labeling.project import Project
from sabal.learners import lenet
from sabal.learners.lenet import LeNetLearner
from sabal.learners.linear import LinearLearner
from sabal.loop import Journal, Plan, SimulatedOracle, run_rounds

CLASSES = ("across", "upright")
COUNT = 150
LABELS = 60


def bar(rng, upright):
    """A bright bar somewhere on dark ground: which way is no matter of single pixels."""
    image = np.full((32, 32, 3), rng.integers(0, 80, 3), dtype=np.uint8)
    along, across = rng.integers(0, 12), rng.integers(2, 26)
    place = (slice(along, along + 20), slice(across, across + 4))
    image[place if upright else place[::-1]] = rng.integers(150, 256, 3)
    return image


@pytest.fixture(scope="module")
def bars(tmp_path_factory):
    """A folder of bars, and what each is."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("bars")
    truth = rng.integers(0, 2, COUNT)
    for row, upright in enumerate(truth):
        Image.fromarray(bar(rng, upright)).save(folder / f"{row:03d}.png")
    return folder, truth


@pytest.fixture(scope="module")
def pixels(bars, tmp_path_factory):
    """The features of that folder, as a project has them."""
    with bar_project(bars, tmp_path_factory.mktemp("pixels")) as project:
        features = FeatureFiles(project)
        while not features.complete:
            features.compute_next()
        return features.load()


def bar_project(bars, folder, **more):
    given = {"initial": 40, "batch": 20, "budget": LABELS, "check_share": 0, "choose_at": 1.0}
    return Project.create(
        folder / "p", data=bars[0], classes=CLASSES, backbone="pixels", first="random",
        **{**given, **more},
    )  # fmt: skip


def test_a_project_of_pixels_is_learnt_by_a_network(bars, pixels, tmp_path):
    """And the engine's rounds are those of the simulation with the same learner."""
    truth = bars[1]
    with bar_project(bars, tmp_path, seed=5) as project:
        engine, store = Engine(project), project.store
        while not store.status().finished:
            while engine.step():
                pass
            for each in store.next_items("ann", 100):
                answer(store, each.item, CLASSES[truth[int(each.item[:3])]])
        while engine.step():
            pass
        batches = [[int(each.item[:3]) for each in store.batch(number)] for number in (0, 1)]
        network = models.load(project.folder / store.trainings()[-1].model)
        assert store.batch(1)[0].why["guess"]["label"] in CLASSES
    held_out = np.setdiff1d(np.arange(COUNT), np.concatenate(batches))
    images = pixels.reshape(COUNT, 28, 28, 3).transpose(0, 3, 1, 2)[held_out]
    said = np.asarray(models.pool_outputs(network, images).probs)
    of_network = np.mean(said.argmax(axis=1) == truth[held_out])

    learner = LeNetLearner(pixels.astype(np.float32), CLASSES)
    plan = Plan(initial=40, batch=20, rounds=1, first="random", seed=5)
    rounds = run_rounds(learner, SimulatedOracle(truth), plan, Journal(tmp_path / "simulation"))
    assert [told.batch.indices.tolist() for told in rounds] == batches
    np.testing.assert_array_equal(learner.probs(held_out), said)

    linear = LinearLearner(pixels, CLASSES)
    known = np.concatenate(batches)
    linear.train(known, truth[known], None, 0)
    of_linear = linear.measure_items(held_out, truth[held_out])["accuracy"]
    assert of_network > 0.9
    assert of_network > of_linear + 0.1


def test_the_seed_decides_and_the_steps_are_bounded(bars, pixels, monkeypatch):
    monkeypatch.setattr(lenet, "MAX_STEPS", 20)
    known, truth = np.arange(32), bars[1][:32]
    said = []
    for seed in (1, 1, 2):
        head = LeNetLearner(pixels, CLASSES)
        assert not head.trained
        assert head.space(known).shape == (32, 28 * 28 * 3)
        head.train(known, truth, None, seed)
        assert head.recipe.epochs == 5  # four steps each
        assert head.space(known).shape == (32, 84)
        said.append(head.probs(known))
    np.testing.assert_array_equal(said[0], said[1])
    assert not np.array_equal(said[0], said[2])
    assert head.measure_items(known, truth).keys() == {"accuracy", "log_loss"}


def test_a_single_class_so_far_can_be_learnt(pixels):
    head = LeNetLearner(pixels, CLASSES)
    head.train(np.arange(3), np.ones(3, dtype=np.int64), None, 0)
    assert (head.probs(np.arange(9)).argmax(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("head", "backbone", "torch", "got"),
    [
        ("auto", "pixels", True, "lenet"),
        ("auto", "pixels", False, "linear"),
        ("auto", "efficientnet_lite0", True, "linear"),
        ("auto", "own", True, "linear"),
        ("linear", "pixels", True, "linear"),
        ("lenet", "pixels", True, "lenet"),
    ],
)
def test_which_head_a_project_gets(monkeypatch, head, backbone, torch, got):
    monkeypatch.setattr(learner_choice, "find_spec", lambda name: True if torch else None)
    assert name_of_head(settings(head=head), backbone) == got


def test_a_network_for_other_features_than_pixels_is_refused():
    with pytest.raises(InputError, match="pixels as features"):
        name_of_head(settings(head="lenet"), "own")
    with pytest.raises(InputError, match="head"):
        replace(settings(), head="forest")


def test_pixels_stay_as_they_were_begun(bars, tmp_path):
    """A project that was begun without PyTorch keeps its small pixels when there is PyTorch."""
    with bar_project(bars, tmp_path, head="linear") as project:
        FeatureFiles(project).compute_next()
        assert FeatureFiles(project).load().shape == (COUNT, 16 * 16 * 3)
        plan = project.folder / "features" / "features.json"
        content = json.loads(plan.read_text())
        plan.write_text(json.dumps({k: v for k, v in content.items() if k != "side"}))
        assert FeatureFiles(project).side == 16
    with bar_project(bars, tmp_path / "other", size=128) as project:
        assert FeatureFiles(project).side == 32
