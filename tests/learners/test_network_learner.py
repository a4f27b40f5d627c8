"""Networks as learners of the loop: what they are made from, trained on and asked."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import sabal
from sabal import models
from sabal.errors import InputError, SabalError, UnknownNameError
from sabal.learners.network_learner import NetworkLearner, channel_statistics
from sabal.learners.network_recipes import NETWORK_OPTIONS, RECIPES, recipe_of
from sabal.models.architectures import NETWORKS, Network
from sabal.models.forward_passes import _Pool
from sabal.pools import ArrayPool
from sabal.predictions.calibration import apply_temperature, fit_temperature
from sabal.simulate.datasets.catalog import load
from sabal.sparse.problem import pool_posterior_atoms

DIGITS = load("digits")
X, Y = DIGITS.x_train[:300], DIGITS.y_train[:300]
TEST = DIGITS.x_test, DIGITS.y_test
HELD_OUT = DIGITS.x_train[300:400], DIGITS.y_train[300:400]
TINY = recipe_of("mlp", {"hidden": [16], "epochs": 6, "lr": 0.01})
BAYES = recipe_of("mlp-variational", {"hidden": [16], "epochs": 6, "lr": 0.01, "samples": 8})
FIRST, MORE = np.arange(40), np.arange(60, 130)


def learner(recipe=TINY, validation=None):
    return NetworkLearner(recipe, X, 10, validation=validation)


def trained(recipe=TINY, validation=None, items=FIRST, weights=None, seed=5):
    made = learner(recipe, validation)
    made.train(items, Y[items], weights, seed)
    return made


def state(made):
    return {name: value.clone() for name, value in made.network.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def rest(items=FIRST):
    return np.setdiff1d(np.arange(len(X)), items)


# -- recipes ------------------------------------------------------------------------------------


def test_recipes_know_the_options_of_the_networks():
    decided_by_data = {"mean", "std"}
    assert {
        name: {*kind.options, *Network.common_options} - decided_by_data
        for name, kind in NETWORKS.items()
    } == {name: set(options) for name, options in NETWORK_OPTIONS.items()}


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_builds_and_trains(name):
    small = {"width": 0.05, "epochs": 1}
    if name.startswith("mlp"):
        small = {"hidden": [4], "epochs": 1}
    recipe = recipe_of(name, small)
    x = np.random.default_rng(0).integers(256, size=(24, 16, 16), dtype=np.uint8)
    y = np.arange(24) % 3
    made = NetworkLearner(recipe, x, 3)
    made.train(np.arange(12), y[:12], None, 0)
    assert 0 <= made.measure(x, y)["accuracy"] <= 1
    assert made.outputs(np.arange(12, 24), np.arange(12), 0).has("log_probs") == bool(
        recipe.samples
    )


def test_the_papers_settings():
    lenet = RECIPES["lenet5"]
    assert (lenet.epochs, lenet.batch_size, lenet.optimizer, lenet.lr) == (150, 32, "sgd", 0.01)
    assert (lenet.momentum, lenet.weight_decay, lenet.augment) == (0.9, 5e-4, None)
    bayes = RECIPES["resnet18-variational"]
    assert (bayes.epochs, bayes.batch_size, bayes.optimizer, bayes.lr) == (200, 256, "adam", 1e-3)
    assert (bayes.weight_decay, bayes.augment, bayes.samples) == (5e-4, "crop-flip", 100)


def test_overrides_change_what_they_name_and_keep_the_rest():
    recipe = recipe_of("resnet18-variational", {"width": 0.25, "epochs": 3})
    assert recipe.network_options == {"head": "variational", "width": 0.25}
    assert (recipe.epochs, recipe.lr) == (3, 1e-3)
    spelt_out = {"network_options": {"width": 0.25}, "epochs": 3}
    assert recipe == recipe_of("resnet18-variational", spelt_out)
    assert RECIPES["resnet18-variational"].network_options == {"head": "variational"}


@pytest.mark.parametrize(
    ("name", "overrides", "error"),
    [
        ("lenet", {}, UnknownNameError),
        ("lenet5", {"epoch": 3}, UnknownNameError),
        ("lenet5", {"hidden": [3]}, UnknownNameError),
        ("lenet5", {"network_options": {"mean": [0.0]}}, UnknownNameError),
        ("lenet5", {"network_options": 3}, InputError),
        ("lenet5", {"network": "alexnet"}, InputError),
        ("lenet5", {"epochs": 0}, InputError),
        ("lenet5", {"batch_size": 1.5}, InputError),
        ("lenet5", {"optimizer": "lbfgs"}, InputError),
        ("lenet5", {"lr": 0}, InputError),
        ("lenet5", {"momentum": -1}, InputError),
        ("lenet5", {"weight_decay": math.nan}, InputError),
        ("lenet5", {"schedule": "linear"}, InputError),
        ("lenet5", {"augment": "mixup"}, InputError),
        ("lenet5", {"reduction": "none"}, InputError),
        ("lenet5", {"patience": 0}, InputError),
        ("lenet5", {"samples": 10}, InputError),
        ("mlp-variational", {"samples": 1}, InputError),
        ("mlp-variational", {"samples": -1}, InputError),
        ("mlp", {"hidden": {1, 2}}, InputError),
    ],
    ids=str,
)
def test_bad_recipes_are_refused(name, overrides, error):
    with pytest.raises(error):
        recipe_of(name, overrides)


# -- training -----------------------------------------------------------------------------------


def test_re_initialisation_leaves_no_trace():
    used = trained(items=FIRST)
    used.outputs(rest(), FIRST, 1).check()
    used.train(MORE, Y[MORE], None, 9)
    fresh = trained(items=MORE, seed=9)
    assert same(state(used), state(fresh))
    assert used.measure(*TEST) == fresh.measure(*TEST)
    assert not same(state(used), state(trained(items=MORE, seed=8)))


def test_inputs_are_standardised_by_the_pool_whatever_is_labelled():
    mean, std = channel_statistics(X[:, None])
    np.testing.assert_allclose(mean, [np.mean(X / 255)], rtol=1e-6)
    np.testing.assert_allclose(std, [np.std(X / 255)], rtol=1e-6)
    for items in (FIRST, MORE):
        scale = trained(items=items).network.scale
        assert scale.mean.item() == pytest.approx(mean[0])
        assert scale.std.item() == pytest.approx(std[0])


def test_channels_are_told_apart_and_a_constant_one_is_left_alone():
    x = np.random.default_rng(0).normal(3.0, 2.0, size=(50, 4, 4, 3)).astype(np.float32)
    x[..., 1] = 0.1
    mean, std = channel_statistics(np.moveaxis(x, 3, 1))
    np.testing.assert_allclose(mean, x.mean(axis=(0, 1, 2)), rtol=1e-5)
    np.testing.assert_allclose(std[[0, 2]], x[..., [0, 2]].std(axis=(0, 1, 2)), rtol=1e-5)
    assert std[1] == 1.0


def test_weights_count():
    plain = state(trained())
    assert same(plain, state(trained(weights=np.ones(40))))
    weights = np.ones(40)
    weights[:10] = 0.0
    assert not same(plain, state(trained(weights=weights)))
    assert same(state(trained(weights=weights)), state(trained(items=FIRST[10:])))


def test_patience_watches_the_held_out_items(monkeypatch):
    seen = []
    fit = models.fit
    monkeypatch.setattr(models, "fit", lambda *a, **k: seen.append(k) or fit(*a, **k))
    trained(recipe_of("mlp", {"hidden": [4], "epochs": 2, "patience": 1}), HELD_OUT)
    trained(TINY, HELD_OUT)
    np.testing.assert_array_equal(seen[0]["x_val"][:, 0], HELD_OUT[0])
    np.testing.assert_array_equal(seen[0]["y_val"], HELD_OUT[1])
    assert "x_val" not in seen[1]
    with pytest.raises(InputError, match="validation"):
        learner(recipe_of("mlp", {"patience": 1}))


def test_a_stored_network_comes_back_with_what_it_learnt_from(tmp_path):
    made = trained()
    assert made.save(tmp_path / "model.safetensors")
    again = learner()
    again.load(tmp_path / "model.safetensors", FIRST, Y[FIRST], None)
    assert same(state(made), state(again))
    assert made.measure(*TEST) == again.measure(*TEST)
    for part in ("features", "logits", "label_probs"):
        one, other = (getattr(each.outputs(rest(), FIRST, 2), part) for each in (made, again))
        assert torch.equal(one, other)


def test_an_untrained_network_says_so(tmp_path):
    with pytest.raises(InputError, match="train"):
        learner().save(tmp_path / "model.safetensors")


# -- outputs ------------------------------------------------------------------------------------


def test_before_training_items_are_their_pixels():
    outputs = learner().outputs(np.array([3, 8]), np.empty(0, int), 0)
    np.testing.assert_allclose(outputs.features, X[[3, 8]].reshape(2, -1) / 255, rtol=1e-6)
    assert outputs.given() == ["features"]


def test_one_pass_over_the_pool_gives_features_and_logits():
    made = trained()
    rows = []
    made.network.body.register_forward_hook(lambda m, inputs, output: rows.append(len(output)))
    outputs = made.outputs(rest(), FIRST, 0)
    assert rows == []
    features, logits = outputs.features, outputs.logits
    assert sum(rows) == 260
    direct = models.pool_outputs(made.network, X[rest()][:, None])
    torch.testing.assert_close(features, direct.features)
    torch.testing.assert_close(logits, direct.logits)
    labeled = models.pool_outputs(made.network, X[FIRST][:, None])
    torch.testing.assert_close(outputs.labeled_features, labeled.features)


def test_the_temperature_comes_from_the_held_out_items():
    made = trained(validation=HELD_OUT)
    outputs = made.outputs(rest(), FIRST, 0)
    held_out = models.pool_outputs(made.network, HELD_OUT[0][:, None])
    temperature = fit_temperature(held_out.logits, HELD_OUT[1])
    assert abs(math.log(temperature)) > 0.05
    torch.testing.assert_close(outputs.label_probs, apply_temperature(outputs.logits, temperature))


def test_without_held_out_items_folds_are_trained_when_the_strategy_asks(monkeypatch):
    made = trained(items=MORE)
    sizes = []
    fit = models.fit
    monkeypatch.setattr(
        models, "fit", lambda n, x, y, **k: sizes.append(len(x)) or fit(n, x, y, **k)
    )
    outputs = made.outputs(rest(MORE), MORE, 0)
    sabal.api.choose(outputs, 5, "sabal", 0, {})
    assert sizes == []
    q = outputs.label_probs
    assert len(sizes) >= 2
    assert sum(len(MORE) - size for size in sizes) == len(MORE)
    ratio = torch.log(q[:, :1] / q[:, 1:]) / (outputs.logits[:, :1] - outputs.logits[:, 1:])
    assert float(ratio.std()) < 1e-3
    assert abs(math.log(float(ratio.mean()))) > 0.01


@pytest.mark.parametrize(
    "items", [np.arange(3), np.flatnonzero(Y == 4)[:9]], ids=["few", "one class"]
)
def test_with_too_few_labels_the_prediction_stands_for_itself(items):
    outputs = trained(items=items).outputs(rest(items), items, 0)
    assert torch.equal(outputs.label_probs, outputs.probs)


def test_metrics_are_those_of_the_given_data():
    made = trained(recipe_of("mlp", {"hidden": [32], "epochs": 60}), items=np.arange(300))
    metrics = made.measure(*TEST)
    probs = models.pool_outputs(made.network, DIGITS.x_test[:, None]).probs.numpy()
    of_label = probs[np.arange(len(DIGITS.y_test)), DIGITS.y_test]
    assert metrics["accuracy"] == np.mean(probs.argmax(axis=1) == DIGITS.y_test) > 0.85
    assert metrics["log_loss"] == pytest.approx(-np.log(of_label).mean(), rel=1e-4)
    np.testing.assert_array_equal(made.predict(DIGITS.x_test), probs.argmax(axis=1))


# -- posteriors ---------------------------------------------------------------------------------


def test_a_posterior_predicts_by_its_mean_softmax():
    made = trained(BAYES)
    outputs = made.outputs(rest(), FIRST, 3)
    assert outputs.log_probs.shape == (260, 8, 10)
    torch.testing.assert_close(outputs.probs, outputs.log_probs.exp().mean(dim=1))
    assert not outputs.has("label_probs")
    test = models.pool_outputs(made.network, DIGITS.x_test[:, None], samples=8, seed=0)
    mean = test.log_probs.exp().mean(dim=1).numpy()
    np.testing.assert_array_equal(made.predict(DIGITS.x_test), mean.argmax(axis=1))
    of_label = mean[np.arange(len(DIGITS.y_test)), DIGITS.y_test]
    assert made.measure(*TEST)["log_loss"] == pytest.approx(-np.log(of_label).mean(), rel=1e-4)


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("sabal-greedy", {}),
        ("sabal-iht", {"scale": "literal"}),
        ("bayesian-coreset", {}),
        ("sabal", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_strategies_on_atoms_never_hold_the_whole_posterior(strategy, options, monkeypatch):
    made = trained(BAYES)
    whole = made.outputs(rest(), FIRST, 3)
    names = ("features", "probs", "log_probs", "labeled_features")
    parts = {name: getattr(whole, name) for name in names}
    expected = sabal.select(12, strategy=strategy, random_state=0, **parts, **options)

    def refuse(self):
        raise AssertionError("n x K x C numbers at once")

    monkeypatch.setattr(_Pool, "log_probs", refuse)
    chosen = sabal.api.choose(made.outputs(rest(), FIRST, 3), 12, strategy, 0, options)
    np.testing.assert_array_equal(chosen.indices, expected.indices)
    np.testing.assert_allclose(chosen.weights, expected.weights, rtol=1e-3, atol=1e-4)


def test_other_strategies_still_get_the_whole_posterior():
    outputs = trained(BAYES).outputs(rest(), FIRST, 3)
    for strategy, options in (
        ("bald", {}),
        ("sabal-greedy", {"uncertainty": "mutual-information"}),
    ):
        assert len(sabal.api.choose(outputs, 5, strategy, 0, options)) == 5


def test_atoms_must_be_those_of_the_pool():
    posterior = trained(BAYES).outputs(FIRST, FIRST, 3)
    outputs = ArrayPool(size=39, atoms=lambda: pool_posterior_atoms(posterior))
    with pytest.raises(SabalError, match="39"):
        pool_posterior_atoms(outputs)


def test_a_broken_posterior_is_refused_chunk_by_chunk():
    made = trained(BAYES)
    with torch.no_grad():
        made.network.head.mean[0, 0] = math.nan
    with pytest.raises(InputError, match="log_probs"):
        sabal.api.choose(made.outputs(rest(), FIRST, 3), 5, "sabal-greedy", 0, {})
