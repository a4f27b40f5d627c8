"""Outputs of a pool: one pass, any batch size, any kind of array."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import sabal
from sabal.errors import InputError
from sabal.models import Dropout, Ensemble, Laplace, Wrapped, build, pool_atoms, pool_outputs
from sabal.models import forward_passes as outputs_module
from sabal.sparse.atoms import posterior_atoms

N = 23


def pool(dtype=np.float32):
    x = np.random.default_rng(0).random((N, 1, 8, 8))
    return (x * 255).astype(np.uint8) if dtype == np.uint8 else x.astype(dtype)


def network_of(name="mlp", **options):
    return build(name, (1, 8, 8), 4, 0, **{"width": 0.1, **options})


def count_calls(network):
    """Rows that the body has seen, batch by batch."""
    seen = []
    network.body.register_forward_hook(lambda m, inputs, output: seen.append(len(output)))
    return seen


def test_nothing_is_computed_before_it_is_asked_for_and_then_once():
    network = network_of("resnet18")
    seen = count_calls(network)
    outputs = pool_outputs(network, pool(), batch_size=10)
    assert seen == []
    assert outputs.size == N
    assert not outputs.has("log_probs")
    assert outputs.features.shape == (N, 32)
    assert outputs.probs.shape == (N, 4)
    assert seen == [10, 10, 3]


def test_posteriors_of_the_head_cost_no_further_pass():
    network = network_of(head="variational")
    seen = count_calls(network)
    outputs = pool_outputs(network, pool(), samples=5, batch_size=30)
    _ = outputs.log_probs, outputs.probs, outputs.features
    assert seen == [N]


@given(batch_size=st.integers(1, 30), name=st.sampled_from(["mlp", "resnet18"]))
def test_streaming_equals_all_at_once(batch_size, name):
    network = network_of(name, head="variational")
    whole = network.features(torch.from_numpy(pool())).detach()
    outputs = pool_outputs(network, pool(), samples=3, batch_size=batch_size)
    at_once = pool_outputs(network, pool(), samples=3, batch_size=N)
    torch.testing.assert_close(outputs.features, whole, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(outputs.log_probs, at_once.log_probs, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(outputs.probs, at_once.probs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["variational", "laplace", "dropout", "ensemble"])
def test_small_chunks_of_the_posterior_change_nothing(kind, monkeypatch):
    network, posterior = with_posterior(kind)
    asked = {"posterior": posterior, "samples": 3, "seed": 4}
    whole = pool_outputs(network, pool(), **asked)
    expected, mean = whole.log_probs, predictive(whole, kind)
    # Two items of 3 samples and 4 classes in 8 bytes.
    limit = 2 * 8 * 3 * 4
    monkeypatch.setattr(outputs_module, "CHUNK_BYTES", limit)
    chunks = outputs_module.row_chunks
    monkeypatch.setattr(outputs_module, "row_chunks", lambda n, size: chunks(n, size, limit))
    parts = pool_outputs(network, pool(), **asked)
    torch.testing.assert_close(predictive(parts, kind), mean)
    torch.testing.assert_close(parts.log_probs, expected)


def with_posterior(kind):
    network = network_of(
        head="variational" if kind == "variational" else "linear",
        dropout=0.5 if kind == "dropout" else 0.0,
    )
    if kind == "laplace":
        return network, Laplace(network, pool())
    if kind == "dropout":
        return network, Dropout(network)
    if kind == "ensemble":
        members = [network, network_of("mlp", hidden=[50]), network_of("resnet18")]
        return network, Ensemble(members)
    return network, None


def predictive(outputs, kind):
    return outputs.label_probs if kind == "laplace" else outputs.probs


@pytest.mark.parametrize("kind", ["variational", "laplace", "dropout", "ensemble"])
def test_atoms_in_chunks_are_the_atoms_of_the_whole(kind):
    network, posterior = with_posterior(kind)
    asked = {"posterior": posterior, "samples": 3, "seed": 4}
    expected = posterior_atoms(pool_outputs(network, pool(), **asked).log_probs, None)
    atoms = pool_atoms(network, pool(), batch_size=5, **asked)
    torch.testing.assert_close(
        atoms.operator.atoms_NM, expected.operator.atoms_NM, atol=1e-6, rtol=1e-4
    )
    np.testing.assert_allclose(atoms.variance_N, expected.variance_N, rtol=1e-4, atol=1e-10)
    np.testing.assert_allclose(atoms.deviation_N, expected.deviation_N, rtol=1e-4, atol=1e-10)
    assert atoms.clipped == expected.clipped == 0


def test_every_kind_of_array_gives_the_same(tmp_path):
    network = network_of()
    reference = pool_outputs(network, pool()).features
    path = tmp_path / "pool.npy"
    np.save(path, pool())
    for x in (
        torch.from_numpy(pool()),
        np.load(path, mmap_mode="r"),
        pool().astype(">f4"),
        torch.from_numpy(pool()).requires_grad_(),
        pool().tolist(),
    ):
        outputs = pool_outputs(network, x, batch_size=7)
        torch.testing.assert_close(outputs.features, reference)
        assert outputs.features.device.type == "cpu"
        assert not outputs.features.requires_grad


def test_eight_bit_images_are_scaled_per_batch():
    network = network_of()
    scaled = pool(np.uint8).astype(np.float32) / 255
    for x in (pool(np.uint8), torch.from_numpy(pool(np.uint8))):
        torch.testing.assert_close(
            pool_outputs(network, x, batch_size=4).features, pool_outputs(network, scaled).features
        )


def test_whole_numbers_reach_an_embedding_as_they_are():
    module = torch.nn.Sequential(
        torch.nn.Embedding(10, 3), torch.nn.Flatten(), torch.nn.Linear(12, 2)
    )
    tokens = np.random.default_rng(0).integers(10, size=(6, 4), dtype=np.int32)
    outputs = pool_outputs(Wrapped(module, "2"), tokens)
    torch.testing.assert_close(outputs.features, module[:2](torch.from_numpy(tokens)).detach())


def test_networks_are_asked_in_evaluation_mode_and_left_in_their_own():
    network = network_of("resnet18", dropout=0.5)
    expected = pool_outputs(network, pool()).features
    network.train()
    network.body[1].eval()
    modes = [module.training for module in network.modules()]
    buffers = [buffer.clone() for buffer in network.buffers()]
    torch.testing.assert_close(pool_outputs(network, pool()).features, expected)
    assert [module.training for module in network.modules()] == modes
    assert all(torch.equal(a, b) for a, b in zip(buffers, network.buffers(), strict=True))
    assert torch.is_grad_enabled()


def test_labelled_items_and_ids_come_along():
    network = network_of()
    outputs = pool_outputs(network, pool()[5:], x_labeled=pool()[:5], ids=list(range(5, N)))
    torch.testing.assert_close(outputs.labeled_features, pool_outputs(network, pool()).features[:5])
    assert outputs.ids.tolist() == list(range(5, N))


@pytest.mark.parametrize(
    ("strategy", "samples"), [("sabal", 0), ("kcenter", 0), ("bald", 4), ("sabal-greedy", 4)]
)
def test_strategies_choose_from_them(strategy, samples):
    network = network_of(head="variational")
    outputs = pool_outputs(network, pool(), samples=samples)
    parts = {"features": outputs.features, "probs": outputs.probs}
    if samples:
        parts["log_probs"] = outputs.log_probs
    chosen = sabal.select(5, strategy=strategy, random_state=0, **parts).indices
    assert len(set(chosen.tolist())) == 5


def test_progress_counts_the_items():
    seen = []
    network, posterior = with_posterior("dropout")
    outputs = pool_outputs(
        network, pool(), posterior=posterior, samples=2, batch_size=10,
        progress=lambda *step: seen.append(step),
    )  # fmt: skip
    _ = outputs.features
    assert seen == [(10, N), (20, N), (N, N)]
    _ = outputs.log_probs
    assert seen[3:] == [(10, N), (20, N), (N, N)]


@pytest.mark.parametrize(
    "bad",
    [
        {"samples": 3},
        {"samples": -1},
        {"batch_size": 0},
        {"seed": -1, "samples": 3, "head": "variational"},
        {"x": np.zeros((4, 8, 8))},
        {"x": np.zeros((0, 1, 8, 8))},
        {"ids": [1, 2]},
        {"device": "nowhere"},
    ],
    ids=str,
)
def test_bad_input_is_refused(bad):
    network = network_of(head=bad.pop("head", "linear"))
    with pytest.raises(InputError):
        pool_outputs(network, **{"x": pool(), **bad})


def test_a_bare_module_is_told_to_be_wrapped():
    with pytest.raises(InputError, match="Wrapped"):
        pool_outputs(torch.nn.Linear(3, 2), np.zeros((4, 3)))


def test_a_pool_with_nan_is_refused_when_it_is_looked_at():
    x = pool()
    x[7] = np.nan
    outputs = pool_outputs(network_of(), x)
    with pytest.raises(InputError, match="row 7"):
        _ = outputs.features
