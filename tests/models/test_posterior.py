"""Posteriors: shared samples, closed forms, and the Laplace package as referee."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

import reference_models
from sabal.errors import InputError
from sabal.models import (
    Dropout,
    Ensemble,
    Laplace,
    Variational,
    VariationalLinear,
    Wrapped,
    build,
    fit,
    pool_outputs,
)

SAMPLES = 6


def items(n=20, seed=0, shape=(1, 8, 8)):
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(seed))


def make(kind, samples=SAMPLES):
    """A network and a posterior of some kind."""
    options = {"hidden": [12], "dropout": 0.4 if kind == "dropout" else 0.0}
    if kind == "variational":
        network = build("mlp", (1, 8, 8), 4, 0, head="variational", **options)
        # Wide enough for the samples to differ.
        nn.init.constant_(network.head.rho, -1.0)
        return network, Variational(network)
    if kind == "ensemble":
        members = [build("mlp", (1, 8, 8), 4, seed, **options) for seed in range(samples)]
        return members[0], Ensemble(members)
    network = build("mlp", (1, 8, 8), 4, 0, **options)
    if kind == "dropout":
        return network, Dropout(network)
    return network, Laplace(network, items(30, 1), structure=kind)


KINDS = ["variational", "full", "kron", "dropout", "ensemble"]


@pytest.mark.parametrize("kind", KINDS)
def test_identical_items_have_the_same_loss_under_every_sample(kind):
    network, posterior = make(kind)
    x = items()
    x[17] = x[3]
    # Batches of 5 put the twins into different ones.
    outputs = pool_outputs(network, x, posterior=posterior, samples=SAMPLES, batch_size=5)
    losses = -outputs.log_probs.numpy()
    assert losses.shape == (20, SAMPLES, 4)
    for label in range(4):
        assert losses[3, :, label].std() > 1e-3
        assert np.corrcoef(losses[3, :, label], losses[17, :, label])[0, 1] > 1 - 1e-6
    np.testing.assert_allclose(losses[3], losses[17], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_predictive_is_the_mean_softmax(kind):
    network, posterior = make(kind)
    outputs = pool_outputs(network, items(), posterior=posterior, samples=SAMPLES)
    predictive = outputs.label_probs if kind in ("full", "kron") else outputs.probs
    expected = np.exp(outputs.log_probs.numpy()).mean(axis=1)
    np.testing.assert_allclose(predictive.numpy(), expected, rtol=1e-5, atol=1e-7)
    if kind in ("full", "kron"):
        # The network's own prediction stays what it is.
        torch.testing.assert_close(outputs.probs, torch.softmax(network(items()), dim=1).detach())


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides_the_samples_and_the_network_is_left_as_it_was(kind):
    network, posterior = make(kind)
    network.train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()

    def log_probs(seed):
        return pool_outputs(
            network, items(), posterior=posterior, samples=SAMPLES, seed=seed
        ).log_probs

    first = log_probs(1)
    assert torch.equal(first, log_probs(1))
    if kind != "ensemble":
        assert not torch.allclose(first, log_probs(2), atol=1e-3)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(module.training for module in network.modules())
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert not any(module._forward_hooks for module in network.modules())


# -- the variational layer ----------------------------------------------------------------------


def layer(in_features=5, out_features=3, rho=-1.0):
    torch_state = torch.Generator().manual_seed(0)
    head = VariationalLinear(in_features, out_features)
    with torch.no_grad():
        head.mean.normal_(generator=torch_state)
        head.rho.fill_(rho).add_(torch.randn(head.rho.shape, generator=torch_state) * 0.5)
    return head


def test_initial_values_and_prior_are_those_of_pinsler_et_al():
    head = build("mlp", (1, 40, 40), 10, 0, hidden=[], head="variational").head
    assert head.prior_variance == pytest.approx(2 / 10)
    assert float(head.mean.detach().mean()) == pytest.approx(0.0, abs=2e-3)
    assert float(head.mean.detach().std()) == pytest.approx(0.05, rel=0.02)
    assert float(head.rho.detach().mean()) == pytest.approx(-4.0, abs=2e-3)
    assert float(head.rho.detach().std()) == pytest.approx(0.05, rel=0.02)
    assert float(head.std.detach().mean()) == pytest.approx(np.log1p(np.exp(-4.0)), rel=0.01)


@pytest.mark.parametrize("prior_variance", [None, 0.7])
def test_kl_is_the_sum_over_weights(prior_variance):
    head = layer()
    if prior_variance is not None:
        head.prior_variance = prior_variance
    expected = reference_models.gaussian_kl(
        head.mean.detach().numpy(), head.std.detach().numpy(), prior_variance or 2 / 3
    )
    assert float(head.kl().detach()) == pytest.approx(expected, rel=1e-5)


def test_local_reparametrisation_has_the_mean_and_variance_of_the_weights():
    head = layer().train()
    features = torch.randn(2, 5, generator=torch.Generator().manual_seed(1))
    draws = 40_000
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        logits = head(features[:, None].expand(-1, draws, -1))
    mean = head.mean.detach().numpy() @ features.numpy().T + head.bias.detach().numpy()[:, None]
    variance = head.std.detach().numpy() ** 2 @ features.numpy().T ** 2
    # Five standard errors.
    room = 5 * np.sqrt(variance.T / draws)
    assert np.all(np.abs(logits.mean(dim=1).numpy() - mean.T) < room)
    np.testing.assert_allclose(logits.var(dim=1).numpy(), variance.T, rtol=5 * np.sqrt(2 / draws))
    # Noise is fresh for every item in training, and there is none in evaluation.
    assert logits[0, 0].ne(logits[0, 1]).all()
    np.testing.assert_allclose(head.eval()(features).detach().numpy(), mean.T, rtol=1e-5, atol=1e-6)


def test_sampled_weights_have_the_layers_moments():
    head = layer()
    weights, biases = head.sample_weights(20_000, torch.Generator().manual_seed(0))
    assert weights.shape == (20_000, 3, 5)
    assert torch.equal(biases, head.bias.detach().expand(20_000, 3))
    mean, std = head.mean.detach(), head.std.detach()
    assert ((weights.mean(dim=0) - mean).abs() < 5 * std / np.sqrt(20_000)).all()
    torch.testing.assert_close(weights.std(dim=0), std, rtol=5 / np.sqrt(2 * 20_000), atol=0)


def test_features_of_zero_have_a_gradient():
    head = layer().train()
    loss = head(torch.zeros(4, 5)).square().sum() + head.kl()
    loss.backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in head.parameters())


def test_log_probs_are_those_of_the_sampled_heads():
    head = layer()
    network = Wrapped(nn.Sequential(nn.Identity(), head), "1")
    draw = Variational(network).draw(4, seed=0)
    features = torch.randn(7, 5, generator=torch.Generator().manual_seed(2))
    expected = reference_models.head_log_probs(
        features.numpy(), draw.weights_KCD.numpy(), draw.bias_KC.numpy()
    )
    np.testing.assert_allclose(draw.log_probs(features).numpy(), expected, rtol=1e-4, atol=1e-5)


def digits(labels, seed):
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    x, y = (x[order].reshape(-1, 1, 8, 8) / 16).astype(np.float32), y[order]
    return x[:labels], y[:labels], x[labels:], y[labels:]


def test_the_bound_falls_and_the_predictive_beats_the_deterministic_head():
    # 500 labels, trained until the deterministic head is overconfident. With 100 labels, where
    # the prior weighs more, the two are level; with few labels and few epochs the layer is behind.
    gains = []
    for seed in range(3):
        x, y, x_test, y_test = digits(500, seed)
        likelihoods = {}
        for head in ("linear", "variational"):
            network = build("mlp", (1, 8, 8), 10, seed, hidden=[64], head=head)
            training = fit(
                network, x, y, epochs=300, batch_size=50, optimizer="adam", lr=1e-2,
                weight_decay=0.0, seed=seed,
            )  # fmt: skip
            samples = 100 if head == "variational" else 0
            probs = pool_outputs(network, x_test, samples=samples).probs.numpy()
            likelihoods[head] = np.log(probs[np.arange(len(y_test)), y_test]).mean()
        # The last training is the variational one.
        losses = np.array(training.losses)
        assert losses[-20:].mean() < losses[100:120].mean() < losses[:20].mean()
        gains.append(likelihoods["variational"] - likelihoods["linear"])
    assert min(gains) > 0


# -- Laplace ------------------------------------------------------------------------------------


def package_posterior(module, x, structure, prior_precision):
    """The posterior of laplace-torch, in float64."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        laplace = pytest.importorskip("laplace")
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(x, torch.zeros(len(x), dtype=torch.long)), batch_size=7
        )
        fitted = laplace.Laplace(
            module,
            "classification",
            subset_of_weights="last_layer",
            hessian_structure=structure,
            prior_precision=prior_precision,
        )
        fitted.fit(loader)
    return fitted


class WithConstant(nn.Module):
    """Appends a 1 to the features: a bias as one of the weights."""

    def forward(self, features):
        return torch.cat([features, features.new_ones(len(features), 1)], dim=1)


@pytest.mark.parametrize("structure", ["full", "kron"])
def test_the_laplace_posterior_is_that_of_the_package(structure):
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(4, 5), nn.Tanh())
    head = nn.Linear(5, 3)
    x = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
    # The package keeps the bias apart from the weights: as a constant feature it cannot.
    flat = nn.Linear(6, 3, bias=False)
    with torch.no_grad():
        flat.weight.copy_(torch.cat([head.weight, head.bias[:, None]], dim=1))
    package = package_posterior(
        nn.Sequential(body, WithConstant(), flat), x, structure, prior_precision=0.7
    )
    ours = Laplace(
        Wrapped(nn.Sequential(body, head), "1"),
        x,
        structure=structure,
        prior_precision=0.7,
        batch_size=11,
    )
    precision = package.posterior_precision
    precision = precision if structure == "full" else precision.to_matrix()
    np.testing.assert_allclose(
        ours.covariance().numpy(), np.linalg.inv(precision.double().numpy()), rtol=2e-4, atol=1e-6
    )
    torch.testing.assert_close(ours.mean_CD.flatten().float(), package.mean)
    # And without any bias the two are the same as they stand.
    bare = Laplace(
        Wrapped(nn.Sequential(body, WithConstant(), flat), "2"),
        x,
        structure=structure,
        prior_precision=0.7,
    )
    torch.testing.assert_close(bare.covariance(), ours.covariance(), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("structure", ["full", "kron"])
def test_the_precision_is_the_sum_over_items(structure):
    network, x = build("mlp", (1, 8, 8), 4, 0, hidden=[6]), items(15, 2)
    weights = np.linspace(0.0, 3.0, 15)
    with torch.no_grad():
        features = network.features(x).double().numpy()
        probs = torch.softmax(network(x).double(), dim=1).numpy()
    twin = getattr(
        reference_models, "gauss_newton" if structure == "full" else "kronecker_gauss_newton"
    )
    h = np.concatenate([features, np.ones((15, 1))], axis=1)
    precision = twin(h, probs, weights) + 0.3 * np.eye(4 * 7)
    ours = Laplace(network, x, weights=weights, structure=structure, prior_precision=0.3)
    np.testing.assert_allclose(
        ours.covariance().numpy(), np.linalg.inv(precision), rtol=1e-5, atol=1e-9
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("structure", ["full", "kron"])
def test_samples_have_the_posteriors_moments(structure, bias):
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.Tanh(), nn.Linear(3, 2, bias=bias))
    posterior = Laplace(Wrapped(module, "3"), items(25, 3), structure=structure)
    draw = posterior.draw(20_000, seed=0)
    theta = draw.weights_KCD
    if bias:
        theta = torch.cat([theta, draw.bias_KC[:, :, None]], dim=2)
    else:
        assert not draw.bias_KC.any()
    theta = theta.flatten(1).double().numpy()
    covariance = posterior.covariance().numpy()
    deviation = np.sqrt(np.diag(covariance))
    assert np.all(
        np.abs(theta.mean(axis=0) - posterior.mean_CD.flatten().numpy())
        < 5 * deviation / np.sqrt(20_000)
    )
    room = 5 * np.sqrt(2 / 20_000) * np.outer(deviation, deviation)
    assert np.all(np.abs(np.cov(theta.T) - covariance) < room)


@pytest.mark.parametrize("structure", ["full", "kron"])
def test_the_evidence_is_at_its_maximum(structure):
    network, x = build("mlp", (1, 8, 8), 4, 0, hidden=[6]), items(60, 4)
    with torch.no_grad():
        network.head.weight.mul_(4.0)
    chosen = Laplace(network, x, structure=structure, prior_precision="evidence").prior_precision

    def evidence(tau):
        posterior = Laplace(network, x, structure=structure, prior_precision=tau)
        _, log_det = np.linalg.slogdet(posterior.covariance().numpy())
        theta = posterior.mean_CD
        return 0.5 * (log_det + theta.numel() * np.log(tau) - tau * float(theta.square().sum()))

    assert 1e-3 < chosen < 1e3
    assert evidence(chosen) > max(evidence(chosen * 1.05), evidence(chosen / 1.05))


def test_small_heads_are_full_and_large_ones_kronecker():
    small, large = (build("mlp", (1, 8, 8), 4, 0, hidden=[width]) for width in (10, 300))
    assert Laplace(small, items()).structure == "full"
    assert Laplace(large, items()).structure == "kron"


# -- dropout ------------------------------------------------------------------------------------


class Images(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.convolution = nn.Conv2d(1, 6, 3)
        self.drop = layer
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        return self.fc(self.drop(self.drop(torch.relu(self.convolution(x)))).mean(dim=(2, 3)))


def test_masks_are_shared_by_all_items_and_batches():
    network = build("mlp", (1, 8, 8), 4, 0, hidden=[12], dropout=0.5)
    draw = Dropout(network).draw(5, seed=0)
    x = items()
    apart = torch.cat([draw.log_probs(x[:3]), draw.log_probs(x[3:])])
    together = Dropout(network).draw(5, seed=0).log_probs(x)
    torch.testing.assert_close(apart, together)
    # By hand: one mask per sample, on the hidden layer.
    with torch.no_grad():
        hidden = network.features(x)
        for k, masks in enumerate(draw._masks):
            assert len(masks.masks) == 1
            mask = masks.masks[0]
            assert set(mask.tolist()) <= {0.0, 2.0}
            expected = functional.log_softmax(network.head(hidden * mask), dim=1)
            torch.testing.assert_close(together[:, k], expected)


def test_the_mean_over_masks_is_the_layer_without_dropout():
    network = build("mlp", (1, 8, 8), 4, 0, hidden=[12], dropout=0.3)
    draw = Dropout(network).draw(3000, seed=0)
    draw.log_probs(items(1))
    masks = torch.stack([sample.masks[0] for sample in draw._masks])
    # Five standard errors of a mean of Bernoulli variables, scaled.
    assert (masks.mean(dim=0) - 1.0).abs().max() < 5 * np.sqrt(0.3 / 0.7 / 3000)


def test_whole_channels_are_dropped_together_and_each_call_has_a_mask():
    network = Wrapped(Images(nn.Dropout2d(0.5)), "fc")
    draw = Dropout(network).draw(2, seed=0)
    draw.log_probs(items(4))
    for sample in draw._masks:
        assert [mask.shape for mask in sample.masks] == [(6, 1, 1), (6, 1, 1)]
    plain = Dropout(Wrapped(Images(nn.Dropout(0.5)), "fc")).draw(1, seed=0)
    plain.log_probs(items(4))
    assert plain._masks[0].masks[0].shape == (6, 6, 6)


# -- what is refused ----------------------------------------------------------------------------


def test_posteriors_that_a_network_does_not_have_are_refused():
    plain = build("mlp", (1, 8, 8), 4)
    with pytest.raises(InputError, match="variational"):
        Variational(plain)
    with pytest.raises(InputError, match="dropout"):
        Dropout(plain)
    with pytest.raises(InputError, match="Variational"):
        Laplace(build("mlp", (1, 8, 8), 4, head="variational"), items())
    with pytest.raises(InputError):
        Ensemble([])
    with pytest.raises(InputError):
        Ensemble([plain, build("mlp", (1, 8, 8), 5)])
    with pytest.raises(InputError, match="samples=2"):
        Ensemble([plain, plain]).draw(5, 0)
    for bad in ({"structure": "diag"}, {"prior_precision": 0.0}, {"prior_precision": "best"}):
        with pytest.raises(InputError):
            Laplace(plain, items(), **bad)
    for posterior in (Laplace(plain, items()), make("dropout")[1], make("variational")[1]):
        with pytest.raises(InputError):
            posterior.draw(0, 0)
