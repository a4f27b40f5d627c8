"""What a skorch net says of a pool."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

import sabal
from sabal.integrations import skorch_outputs

skorch = pytest.importorskip("skorch", reason="needs skorch")

X, Y = load_digits(return_X_y=True)
X = (X / 16.0).astype(np.float32)
LABELED, POOL = slice(0, 60), slice(60, 200)


class Net(nn.Module):
    def __init__(self, classes=10, softmax=True):
        super().__init__()
        self.hidden, self.drop = nn.Linear(64, 20), nn.Dropout(0.5)
        self.out, self.softmax = nn.Linear(20, classes), softmax

    def forward(self, x):
        said = self.out(self.drop(torch.relu(self.hidden(x))))
        return torch.softmax(said, dim=1) if self.softmax else said


def trained(**module):
    torch.manual_seed(0)
    names = {f"module__{name}": value for name, value in module.items()}
    criterion = nn.NLLLoss if module.get("softmax", True) else nn.CrossEntropyLoss
    net = skorch.NeuralNetClassifier(
        Net, criterion=criterion, max_epochs=2, train_split=None, verbose=0, **names
    )
    return net.fit(X[LABELED], Y[LABELED])


def hidden_of(net, x):
    net.module_.eval()
    with torch.no_grad():
        return torch.relu(net.module_.hidden(torch.from_numpy(x))).numpy()


@pytest.mark.parametrize("softmax", [True, False])
def test_features_logits_and_what_is_labelled(softmax):
    net = trained(softmax=softmax)
    outputs = skorch_outputs(net, X[POOL], last_layer="out", X_labeled=X[LABELED])
    assert outputs.size == 140
    np.testing.assert_allclose(outputs.probs, net.predict_proba(X[POOL]), atol=1e-6)
    np.testing.assert_allclose(outputs.features, hidden_of(net, X[POOL]), rtol=1e-5)
    np.testing.assert_allclose(outputs.labeled_features, hidden_of(net, X[LABELED]), rtol=1e-5)
    batch = sabal.select(
        10,
        features=outputs.features,
        logits=outputs.logits,
        labeled_features=outputs.labeled_features,
        random_state=0,
    )
    assert batch.evidence["labeled"] == 60
    whole = sabal.select(10, outputs, random_state=0)
    assert whole.indices.tolist() == batch.indices.tolist()


def test_one_pass_gives_everything_and_none_is_made_in_vain():
    net, calls = trained(), []
    whole = net.predict_proba
    net.predict_proba = lambda x: calls.append(len(x)) or whole(x)
    outputs = skorch_outputs(net, X[POOL], last_layer="out")
    assert not calls
    _ = outputs.features, outputs.logits, outputs.probs
    assert calls == [140]


def test_two_classes_with_one_output():
    class Single(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(64, 1)

        def forward(self, x):
            return self.out(x)[:, 0]

    torch.manual_seed(0)
    net = skorch.NeuralNetBinaryClassifier(Single, max_epochs=1, train_split=None, verbose=0)
    net.fit(X[LABELED], (Y[LABELED] > 4).astype(np.float32))
    outputs = skorch_outputs(net, X[POOL], last_layer="out")
    assert outputs.given() == ["features", "probs"]
    np.testing.assert_allclose(outputs.probs, net.predict_proba(X[POOL]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: skorch_outputs(skorch.NeuralNetClassifier(Net), X, last_layer="out"), "call fit"),
        (lambda: skorch_outputs(trained(), X, last_layer="fc"), "pick one of hidden, out"),
        (lambda: skorch_outputs(trained(), X, last_layer="hidden").features, "gives the logits"),
    ],
)
def test_mistakes_are_sabal_errors(call, message):
    with pytest.raises(sabal.SabalError, match=message):
        call()
