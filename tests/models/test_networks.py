"""Networks: shapes, sizes, fresh starts, your own modules, files."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from sabal import SabalError
from sabal.core.extras import install_command
from sabal.errors import FileError, InputError, UnknownNameError
from sabal.models import Network, VariationalLinear, Wrapped, build, fit, load, save

SHAPES = [
    ("lenet5", (1, 28, 28), {}, 84),
    ("lenet5", (3, 32, 32), {}, 84),
    ("lenet5", (1, 12, 17), {"width": 0.5, "dropout": 0.2}, 42),
    ("vgg16", (1, 28, 28), {"width": 0.125}, 64),
    ("vgg16", (3, 32, 32), {"width": 0.125, "dropout": 0.5}, 64),
    ("resnet18", (1, 28, 28), {"width": 0.125}, 32),
    ("resnet18", (3, 32, 32), {"width": 0.125, "features": None}, 64),
    ("mlp", (1, 28, 28), {"hidden": [20]}, 20),
    ("mlp", (3, 32, 32), {"hidden": [20, 10], "width": 2.0}, 20),
    ("mlp", (1, 8, 8), {}, 128),
    ("mlp", (7,), {"hidden": []}, 7),
]


@pytest.mark.parametrize("head", ["linear", "variational"])
@pytest.mark.parametrize(("name", "shape", "options", "dimensions"), SHAPES)
def test_shapes_and_forward_is_the_head_of_the_features(name, shape, options, dimensions, head):
    network = build(name, shape, 5, seed=0, head=head, **options)
    x = torch.rand(3, *shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        features, logits = network.features(x), network(x)
        assert features.shape == (3, dimensions)
        assert logits.shape == (3, 5)
        torch.testing.assert_close(network.head(features), logits, rtol=0, atol=0)
    assert isinstance(network.head, VariationalLinear if head == "variational" else nn.Linear)
    assert not any(module.training for module in network.modules())


@pytest.mark.parametrize(
    ("name", "shape", "options", "count"),
    [
        ("lenet5", (1, 28, 28), {}, 61_706),
        ("lenet5", (1, 32, 32), {}, 61_706),
        ("lenet5", (3, 32, 32), {}, 62_006),
        ("vgg16", (3, 32, 32), {}, 14_728_266),
        ("resnet18", (3, 32, 32), {"features": None}, 11_173_962),
        # The head of 5,130 gives way to 512 -> 32 -> 10.
        ("resnet18", (3, 32, 32), {}, 11_173_962 - 5_130 + 32 * 513 + 10 * 33),
        ("mlp", (1, 8, 8), {"hidden": [30]}, 30 * 65 + 10 * 31),
    ],
)
def test_sizes_are_the_known_ones(name, shape, options, count):
    network = build(name, shape, 10, **options)
    assert sum(parameter.numel() for parameter in network.parameters()) == count


@pytest.mark.parametrize(("name", "head"), [("lenet5", "linear"), ("resnet18", "variational")])
def test_a_seed_decides_the_initial_weights(name, head):
    def make(seed, head=head):
        return build(name, (1, 16, 16), 4, seed, width=0.1, head=head)

    first, again, other = make(3), make(3), make(4)
    assert_same_state(first, again)
    assert any(
        not torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True)
    )
    # The head does not disturb the body.
    assert_same_state(first.body, make(3, "linear").body)


def test_training_leaves_no_trace_in_a_fresh_network():
    x = torch.rand(12, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    trained = build("resnet18", (1, 8, 8), 3, 7, width=0.05)
    beside = build("resnet18", (1, 8, 8), 3, 7, width=0.05)
    fit(trained, x, torch.arange(12) % 3, epochs=2, batch_size=5)
    after = build("resnet18", (1, 8, 8), 3, 7, width=0.05)
    assert_same_state(beside, after)
    fresh, used = dict(after.named_buffers()), dict(trained.named_buffers())
    name = next(name for name in fresh if name.endswith("running_var"))
    assert torch.equal(fresh[name], torch.ones_like(fresh[name]))
    assert not torch.equal(used[name], fresh[name])
    assert all(int(v) == 0 for k, v in fresh.items() if k.endswith("num_batches_tracked"))


def test_building_leaves_torchs_generator_alone():
    state = torch.get_rng_state()
    build("mlp", (4,), 3, 0)
    assert torch.equal(torch.get_rng_state(), state)


def test_inputs_are_standardised_by_channel():
    plain = build("mlp", (2, 3, 3), 4, 0)
    standard = build("mlp", (2, 3, 3), 4, 0, mean=[0.5, 1.0], std=[2.0, 0.25])
    x = torch.rand(5, 2, 3, 3, generator=torch.Generator().manual_seed(0))
    by_hand = (x - torch.tensor([0.5, 1.0])[:, None, None]) / torch.tensor([2.0, 0.25])[
        :, None, None
    ]
    torch.testing.assert_close(standard(x), plain(by_hand))


@pytest.mark.parametrize(
    ("arguments", "options", "kind"),
    [
        (("alexnet", (1, 28, 28), 10), {}, UnknownNameError),
        (("mlp", (4,), 3), {"depth": 2}, UnknownNameError),
        (("mlp", (4,), 1), {}, InputError),
        (("mlp", (4,), 3, -1), {}, InputError),
        (("mlp", (4,), 3), {"head": "quadratic"}, InputError),
        (("mlp", (4,), 3), {"dropout": 1.0}, InputError),
        (("mlp", (4,), 3), {"width": 0.0}, InputError),
        (("mlp", (4,), 3), {"mean": [0.0]}, InputError),
        (("mlp", (1, 4, 4), 3), {"std": [0.0]}, InputError),
        (("lenet5", (1, 8, 8), 10), {}, InputError),
        (("vgg16", (784,), 10), {}, InputError),
        (("resnet18", (3, 32, 32), 10), {"features": 0}, InputError),
    ],
)
def test_bad_arguments_are_refused(arguments, options, kind):
    with pytest.raises(kind):
        build(*arguments, **options)


# -- your own modules ---------------------------------------------------------------------------


class Own(nn.Module):
    def __init__(self, after=None):
        super().__init__()
        self.stem = nn.Sequential(nn.Flatten(), nn.Linear(6, 9), nn.Tanh())
        self.fc = nn.Linear(9, 4)
        self.after = after

    def forward(self, x):
        logits = self.fc(self.stem(x))
        return logits if self.after is None else self.after(logits)


def test_wrapped_features_are_what_reaches_the_layer():
    module = Own()
    wrapped = Wrapped(module, last_layer="fc")
    x = torch.rand(5, 2, 3)
    torch.testing.assert_close(wrapped.features(x), module.stem(x), rtol=0, atol=0)
    torch.testing.assert_close(wrapped(x), module(x), rtol=0, atol=0)
    torch.testing.assert_close(wrapped.head(wrapped.features(x)), module(x), rtol=0, atol=0)
    assert len(list(wrapped.parameters())) == len(list(module.parameters()))
    assert not module.fc._forward_hooks


def test_a_layer_inside_a_container_can_be_named():
    module = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)))
    assert Wrapped(module, last_layer="1.2").features(torch.rand(4, 6)).shape == (4, 5)


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("head", UnknownNameError, "fc"),
        ("", UnknownNameError, "fc"),
        ("stem.2", InputError, "Tanh"),
        ("stem", InputError, "Sequential"),
    ],
)
def test_a_wrong_last_layer_is_named(name, kind, says):
    with pytest.raises(kind, match=says):
        Wrapped(Own(), last_layer=name)


@pytest.mark.parametrize(
    ("module", "last_layer", "x"),
    [
        (Own(nn.Softmax(dim=1)), "fc", torch.rand(5, 2, 3)),
        (Own(), "stem.1", torch.rand(5, 2, 3)),
        (nn.Sequential(nn.Linear(3, 3)), "0", torch.rand(5, 2, 3)),
        (nn.Sequential(*[nn.Linear(3, 3)] * 2), "0", torch.rand(5, 3)),
    ],
    ids=["softmax after it", "not the last", "a sequence per item", "called twice"],
)
def test_a_module_that_does_not_end_in_the_layer_is_refused(module, last_layer, x):
    with pytest.raises(InputError):
        Wrapped(module, last_layer=last_layer).features(x)


# -- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_network_comes_back_from_its_file(tmp_path, dtype):
    network = build("resnet18", (1, 8, 8), 3, 5, width=0.05, head="variational", mean=[0.3])
    x = torch.rand(9, 1, 8, 8)
    fit(network, x, torch.arange(9) % 3, epochs=1, batch_size=4)
    network.to(dtype)
    path = save(network.to(memory_format=torch.channels_last), tmp_path / "net.safetensors")
    back = load(path)
    assert isinstance(back, Network)
    assert back.recipe == network.recipe
    assert not back.training
    assert_same_state(network, back)
    torch.testing.assert_close(back(x.to(dtype)), network(x.to(dtype)))
    assert all(parameter.requires_grad for parameter in back.parameters())


def test_your_own_module_comes_back_into_itself(tmp_path):
    wrapped = Wrapped(Own(), "fc")
    path = save(wrapped, tmp_path / "own.safetensors")
    other = Wrapped(Own(), "fc")
    assert load(path, into=other) is other
    assert_same_state(wrapped, other)
    with pytest.raises(FileError, match="into="):
        load(path)


def test_unusable_files_are_refused(tmp_path):
    with pytest.raises(FileError):
        load(tmp_path / "missing.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"not a network")
    with pytest.raises(FileError):
        load(tmp_path / "bad.safetensors")
    path = save(build("mlp", (4,), 3), tmp_path / "mlp.safetensors")
    other = build("mlp", (5,), 3)
    before = {name: value.clone() for name, value in other.state_dict().items()}
    with pytest.raises(FileError):
        load(path, into=other)
    assert all(torch.equal(before[name], value) for name, value in other.state_dict().items())
    with pytest.raises(SabalError):
        save(build("mlp", (4,), 3), tmp_path / "no folder" / "mlp.safetensors")


def test_without_torch_the_import_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import sabal.models"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.returncode == 1
    assert "MissingPackageError" in answer.stderr
    assert install_command("torch") in answer.stderr


def assert_same_state(one, other):
    first, second = one.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value.numpy(), second[name].numpy(), err_msg=name)
        assert value.dtype == second[name].dtype
