"""Training: the seed, the weights, the options, and nothing left behind."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import reference_models
from sabal.errors import InputError, SabalError
from sabal.models import Wrapped, build, fit
from sabal.models.random_streams import Stream, make_generator
from sabal.models.training import SCHEDULES
from sabal.models.training_data import TrainingData, crop_flip


def made_up(n=30, shape=(1, 8, 8), classes=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, *shape)).astype(np.float32)
    return x, rng.integers(classes, size=n)


def state_of(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def close(one, other):
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-5, atol=1e-6, msg=name)


# Everything random at once: batch order, augmentation, dropout, noise of the variational layer.
RANDOM = {"epochs": 2, "batch_size": 7, "augment": "crop-flip"}


def trained(seed, network_seed=0, **options):
    network = build(
        "resnet18", (1, 8, 8), 3, network_seed, width=0.05, dropout=0.3, head="variational"
    )
    training = fit(network, *made_up(), seed=seed, **{**RANDOM, **options})
    return state_of(network), training


def test_a_seed_decides_everything_whatever_the_global_generators_say():
    first, training = trained(5)
    torch.manual_seed(123)
    np.random.seed(123)  # noqa: NPY002
    again, training_again = trained(5)
    assert same(first, again)
    assert training == training_again
    assert not same(first, trained(6)[0])


@pytest.mark.parametrize("part", ["order", "augmentation", "noise"])
def test_each_kind_of_randomness_comes_from_the_seed(part):
    body = {"dropout": 0.5} if part == "noise" else {}
    options = {
        "order": {"batch_size": 7},
        "augmentation": {"batch_size": 30, "augment": "crop-flip"},
        "noise": {"batch_size": 30},
    }[part]

    def state(seed):
        network = build("mlp", (1, 8, 8), 3, 0, hidden=[10], **body)
        fit(network, *made_up(), epochs=1, seed=seed, **options)
        return state_of(network)

    assert same(state(1), state(1))
    # Sums in another order differ by rounding; anything else differs by far more.
    differences = [
        (a - b).abs().max() for a, b in zip(state(1).values(), state(2).values(), strict=True)
    ]
    assert max(differences) > 1e-4


def test_each_purpose_has_random_numbers_of_its_own():
    draws = {torch.rand(1, generator=make_generator(0, stream)).item() for stream in Stream}
    assert len(draws) == len(Stream)


def test_the_global_generators_are_left_alone():
    before_torch, before_numpy = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    trained(0)
    after_numpy = np.random.get_state()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before_torch)
    assert np.array_equal(before_numpy[1], after_numpy[1])
    assert before_numpy[2] == after_numpy[2]


def test_the_callers_arrays_are_left_alone_and_every_kind_of_array_gives_the_same():
    x, y = made_up()
    weights = np.linspace(0.0, 2.0, 30)
    copies = [array.copy() for array in (x, y, weights)]

    def state(x, y, weights):
        network = build("mlp", (1, 8, 8), 3, 0, hidden=[10])
        fit(network, x, y, weights=weights, epochs=2, augment="crop-flip")
        return state_of(network)

    numpy = state(x, y, weights)
    tensors = state(*(torch.from_numpy(array) for array in (x, y, weights)))
    double = state(x.astype(np.float64), y.tolist(), weights.tolist())
    assert same(numpy, tensors)
    assert same(numpy, double)
    for array, kept in zip((x, y, weights), copies, strict=True):
        np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize("head", ["linear", "variational"])
def test_evaluation_mode_afterwards_also_after_an_error(head):
    network = build("mlp", (1, 8, 8), 3, 0, dropout=0.5, head=head)
    fit(network.train(), *made_up(), epochs=1)
    assert not any(module.training for module in network.modules())

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(network, *made_up(), epochs=3, progress=stop)
    assert not any(module.training for module in network.modules())


# -- importance weights -------------------------------------------------------------------------


def full_batch_step(x, y, weights=None, **options):
    """Parameters after one full-batch step of plain gradient descent."""
    network = build("mlp", (1, 8, 8), 3, 0, hidden=[10])
    settings = {"epochs": 1, "batch_size": 100, "lr": 0.5, "momentum": 0.0, "weight_decay": 0.0}
    fit(network, x, y, weights=weights, **{**settings, **options})
    return state_of(network)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_weight_two_is_the_item_twice(reduction):
    x, y = made_up()
    rows = np.concatenate([np.arange(30), [4, 9]])
    weights = np.ones(30)
    weights[[4, 9]] = 2.0
    twice = full_batch_step(x[rows], y[rows], reduction=reduction, lr=0.02)
    weighted = full_batch_step(x, y, weights, reduction=reduction, lr=0.02)
    unweighted = full_batch_step(x, y, reduction=reduction, lr=0.02)
    close(twice, weighted)
    with pytest.raises(AssertionError):
        close(twice, unweighted)


def test_the_step_is_the_gradient_of_the_weighted_mean():
    x, y = made_up()
    weights = np.linspace(0.1, 3.0, 30)
    network = build("mlp", (1, 8, 8), 3, 0, hidden=[10])
    losses = functional.cross_entropy(
        network(torch.from_numpy(x)), torch.from_numpy(y), reduction="none"
    )
    (torch.from_numpy(weights).float() @ losses / weights.sum()).backward()
    expected = {name: p.detach() - 0.5 * p.grad for name, p in network.named_parameters()}
    close(expected, full_batch_step(x, y, weights))


def test_batches_add_up_to_the_weighted_mean():
    # With steps too small to matter, the epoch's loss is the full-batch one, however it is cut;
    # dividing each batch by its own weight would count light batches too much.
    x, y = made_up()
    weights = np.linspace(0.1, 3.0, 30) ** 3

    def loss(batch_size):
        network = build("mlp", (1, 8, 8), 3, 0, hidden=[10])
        options = {"epochs": 1, "lr": 1e-12, "momentum": 0.0, "weight_decay": 0.0}
        return fit(network, x, y, weights=weights, batch_size=batch_size, **options).losses[0]

    assert loss(4) == pytest.approx(loss(30), rel=1e-5)


@pytest.mark.parametrize("name", ["mlp", "resnet18"])
def test_weight_zero_is_absence(name):
    x, y = made_up()
    weights = np.ones(30)
    weights[::4] = 0.0
    kept = weights > 0

    def state(*data, weights=None):
        network = build(name, (1, 8, 8), 3, 0, width=0.05, head="variational")
        fit(network, *data, weights=weights, epochs=2, batch_size=6, augment="crop-flip")
        return state_of(network)

    close(state(x, y, weights=weights), state(x[kept], y[kept]))


def test_the_kl_counts_once_over_the_data():
    x, y = made_up()

    def loss(**options):
        network = build("mlp", (1, 8, 8), 3, 0, hidden=[10], head="variational")
        kl = float(network.head.kl().detach())
        nothing = {"epochs": 1, "lr": 1e-12, "momentum": 0.0, "weight_decay": 0.0}
        return fit(network, x, y, **nothing, **options).losses[0], kl

    whole, kl = loss(batch_size=30)
    parts, _ = loss(batch_size=7)
    heavy, _ = loss(batch_size=30, weights=np.full(30, 10.0))
    assert whole - heavy == pytest.approx(kl / 30 - kl / 300, rel=1e-3)
    # Fresh noise per item: the same in expectation only.
    assert parts == pytest.approx(whole, rel=0.05)


# -- options ------------------------------------------------------------------------------------


def test_patience_stops_and_keeps_the_best():
    x, y = made_up()
    x_val, _ = made_up(seed=1)
    # Labels of the validation split that training can only make worse.
    network = build("mlp", (1, 8, 8), 3, 0, hidden=[20])
    reached = network(torch.from_numpy(x_val)).argmin(dim=1)
    training = fit(
        network, x, y, epochs=200, lr=0.05, patience=4, x_val=x_val, y_val=reached, batch_size=8
    )
    assert training.epochs == training.best_epoch + 4 < 200
    assert len(training.val_losses) == training.epochs
    kept = functional.cross_entropy(network(torch.from_numpy(x_val)), reached).item()
    assert kept == pytest.approx(min(training.val_losses), rel=1e-5)
    assert training.val_losses[training.best_epoch - 1] == min(training.val_losses)


def test_watching_a_validation_split_changes_nothing():
    x_val, y_val = made_up(seed=1)
    watched, training = trained(0, x_val=x_val, y_val=y_val)
    alone, _ = trained(0)
    assert same(watched, alone)
    assert len(training.val_losses) == 2
    assert training.best_epoch == 2


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_steps_are_torchs(optimizer):
    x, y = made_up()
    network = build("mlp", (1, 8, 8), 3, 0, hidden=[10])
    twin = copy.deepcopy(network)
    options = {"lr": 0.01, "weight_decay": 0.1}
    fit(network, x, y, epochs=3, batch_size=30, optimizer=optimizer, momentum=0.8, **options)
    if optimizer == "adam":
        steps = torch.optim.Adam(twin.parameters(), **options)
    else:
        steps = torch.optim.SGD(twin.parameters(), momentum=0.8, **options)
    for _ in range(3):
        steps.zero_grad()
        functional.cross_entropy(twin(torch.from_numpy(x)), torch.from_numpy(y)).backward()
        steps.step()
    for a, b in zip(network.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_weight_decay_spares_the_variational_layer():
    x, y = made_up()

    def head(weight_decay):
        network = build("mlp", (1, 8, 8), 3, 0, hidden=[], head="variational")
        fit(network, x, y, epochs=1, batch_size=30, weight_decay=weight_decay)
        return state_of(network)

    assert same(head(0.0), head(10.0))


def test_weight_decay_can_spare_biases():
    """One step apart: what decay adds to a parameter is proportional to the parameter."""
    x, y = made_up()

    def state(**options):
        network = build("resnet18", (1, 8, 8), 3, 0, width=0.05)
        with torch.no_grad():
            for name, parameter in network.named_parameters():
                if name.endswith("bias"):
                    parameter.fill_(1.0)
        step = {"epochs": 1, "batch_size": 30, "lr": 0.1, "momentum": 0.0}
        fit(network, x, y, **step, **options)
        return dict(network.named_parameters())

    without = state(weight_decay=0.0)
    changed = {
        flag: {
            name
            for name, parameter in state(weight_decay=0.5, decay_biases=flag).items()
            if not torch.equal(parameter, without[name])
        }
        for flag in (True, False)
    }
    biases = {name for name in without if name.endswith("bias")}
    assert biases
    assert changed[True] == set(without)
    assert changed[False] == set(without) - biases


@pytest.mark.parametrize(("n", "sizes"), [(30, [7] * 4), (28, [7] * 4), (5, [5]), (8, [7])])
def test_an_incomplete_last_batch_can_be_dropped(n, sizes):
    x, y = made_up()
    network = build("mlp", (1, 8, 8), 3, 0, hidden=[10])
    data = TrainingData(
        network, x[:n], y[:n], None, augment=None, batch_size=7, drop_last=True, seed=0
    )
    for _ in range(3):
        batches = data.batches()
        assert [len(batch) for batch in batches] == sizes
        assert len(set(torch.cat(batches).tolist())) == sum(sizes)
    # The objective is the mean over what was seen.
    nothing = {"epochs": 1, "lr": 1e-12, "momentum": 0.0, "weight_decay": 0.0, "batch_size": 7}
    same = np.zeros_like(x[:n]), np.zeros_like(y[:n])
    losses = [
        fit(copy.deepcopy(network), *same, drop_last=d, **nothing).losses for d in (False, True)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_schedules():
    cosine, step = SCHEDULES["cosine"], SCHEDULES["step"]
    assert cosine(0.0) == 1.0
    assert cosine(0.5) == pytest.approx(0.505)
    assert cosine(1.0) == pytest.approx(0.01)
    assert [step(done) for done in (0.0, 0.49, 0.5, 0.75)] == pytest.approx([1, 1, 0.1, 0.01])
    x, y = made_up()
    decayed = full_batch_step(x, y, epochs=4, schedule="step")
    by_hand = build("mlp", (1, 8, 8), 3, 0, hidden=[10])
    for lr in (0.5, 0.5, 0.05, 0.005):
        fit(by_hand, x, y, epochs=1, batch_size=100, lr=lr, momentum=0.0, weight_decay=0.0)
    close(decayed, state_of(by_hand))


def test_crop_and_flip_make_every_shift_and_nothing_else():
    image = torch.rand(2, 5, 6, generator=torch.Generator().manual_seed(0))
    batch = image.expand(3000, -1, -1, -1)
    copies = {one.numpy().tobytes() for one in crop_flip(batch, torch.Generator().manual_seed(1))}
    assert copies == reference_models.shifted_copies(image.numpy())


@pytest.mark.parametrize("n", [2, 9, 10])
def test_batch_norm_never_meets_a_batch_of_one(n):
    network = build("vgg16", (1, 8, 8), 3, 0, width=0.05)
    assert fit(network, *made_up(n), epochs=1, batch_size=3).epochs == 1


def test_frozen_parameters_stay():
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.ReLU(), nn.Linear(5, 3))
    module[1].requires_grad_(False)
    before = state_of(module)
    fit(Wrapped(module, "3"), *made_up(), epochs=1)
    assert torch.equal(module[1].weight, before["1.weight"])
    assert not torch.equal(module[3].weight, before["3.weight"])


def test_eight_bit_images_are_scaled():
    x = np.random.default_rng(0).integers(256, size=(20, 1, 8, 8), dtype=np.uint8)
    y = np.arange(20) % 3
    close(full_batch_step(x, y), full_batch_step(x.astype(np.float32) / 255, y))


@pytest.mark.parametrize(
    "bad",
    [
        {"x": np.zeros((30, 8, 8))},
        {"x": np.zeros((0, 1, 8, 8))},
        {"x": np.full((30, 1, 8, 8), "a")},
        {"x": np.full((30, 1, 8, 8), np.nan)},
        {"y": np.zeros(29)},
        {"y": np.full(30, 3)},
        {"y": np.full(30, 0.5)},
        {"y": np.full(30, -1)},
        {"weights": np.zeros(30)},
        {"weights": np.ones(29)},
        {"weights": np.full(30, -1.0)},
        {"weights": np.full(30, np.nan)},
        {"epochs": 0},
        {"batch_size": 1},
        {"optimizer": "lbfgs"},
        {"lr": 0.0},
        {"schedule": "linear"},
        {"augment": "mixup"},
        {"reduction": "none"},
        {"patience": 3},
        {"x_val": np.zeros((3, 1, 8, 8))},
        {"seed": -1},
        {"seed": 0.5},
        {"device": "nowhere"},
    ],
    ids=lambda bad: ", ".join(bad),
)
def test_bad_input_is_refused(bad):
    x, y = made_up()
    network = build("vgg16", (1, 8, 8), 3, 0, width=0.02)
    with pytest.raises(SabalError):
        fit(network, **{"x": x, "y": y, "epochs": 1, **bad})


def test_augmentation_is_for_images():
    with pytest.raises(InputError):
        fit(build("mlp", (8,), 3), np.zeros((4, 8)), [0, 1, 2, 0], augment="crop-flip")


def test_a_bare_module_is_told_to_be_wrapped():
    with pytest.raises(InputError, match="Wrapped"):
        fit(nn.Linear(3, 2), np.zeros((4, 3)), [0, 1, 0, 1])


def test_progress_counts_the_epochs():
    seen = []
    fit(build("mlp", (1, 8, 8), 3), *made_up(), epochs=3, progress=lambda *step: seen.append(step))
    assert seen == [(1, 3), (2, 3), (3, 3)]
