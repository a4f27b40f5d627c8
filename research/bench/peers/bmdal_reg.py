"""bmdal-reg (https://github.com/dholzmueller/bmdal_reg): selection methods over kernels.

It is made for regression. Its distance-based methods work on any features, so they do the same job
here. Gradients of a classifier are passed as the product of two linear kernels, like its own
last-layer kernels, which it never multiplies out.
"""

# mypy: ignore-errors
# The packages live in another environment.

import numpy as np

np.Inf = np.inf  # noqa: NPY201  (bmdal-reg 3.0.2 was written for NumPy 1)

import torch  # noqa: E402
from bmdal_reg.bmdal.algorithms import select_batch  # noqa: E402
from bmdal_reg.bmdal.feature_data import ListFeatureData, TensorFeatureData  # noqa: E402
from bmdal_reg.bmdal.feature_maps import IdentityFeatureMap, ProductFeatureMap  # noqa: E402
from bmdal_reg.bmdal.features import Features  # noqa: E402
from bmdal_reg.bmdal.selection import KmeansppSelectionMethod  # noqa: E402

PACKAGE = "bmdal-reg"


def _seed(seed):
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


def _answer(indices, status, remark=""):
    # The methods fill up with random items when they fail, and report it in `status`.
    return indices.tolist(), "; ".join(filter(None, [remark, status]))


def on_features(selection_method, remark="", **options):
    """Use `select_batch` with a linear kernel of the features and the labelled training set."""

    def prepare(inputs):
        data = {
            "pool": TensorFeatureData(torch.from_numpy(inputs["features"])),
            "train": TensorFeatureData(torch.from_numpy(inputs["labeled_features"])),
        }

        def run(budget, seed):
            _seed(seed)
            indices, results = select_batch(
                batch_size=budget,
                models=[torch.nn.Identity()],
                data=dict(data),
                y_train=None,
                base_kernel="linear",
                kernel_transforms=[],
                selection_method=selection_method,
                verbosity=0,
                **options,
            )
            return _answer(indices, results["selection_status"], remark)

        return run

    return prepare


def gradient_kmeanspp(inputs):
    """Use k-means++ over the gradients (p - e_y) (x) h of the last layer, y the likeliest class."""
    features = torch.from_numpy(inputs["features"])
    probs = torch.from_numpy(inputs["probs"])

    def run(budget, seed):
        _seed(seed)
        residuals = probs.clone()
        residuals[torch.arange(len(probs)), probs.argmax(dim=1)] -= 1.0
        parts = [residuals, features]
        gradients = Features(
            ProductFeatureMap([IdentityFeatureMap(n_features=part.shape[1]) for part in parts]),
            ListFeatureData([TensorFeatureData(part) for part in parts]),
        ).precompute()
        method = KmeansppSelectionMethod(gradients, gradients, sel_with_train=False, verbosity=0)
        return _answer(method.select(budget), method.get_status())

    return run


def frank_wolfe(inputs):
    """Use ACS-FW over the expected centred log-likelihoods under the posterior samples."""
    log_probs_NKC = torch.from_numpy(inputs["log_probs"])

    def run(budget, seed):
        _seed(seed)
        centred_NKC = log_probs_NKC - log_probs_NKC.mean(dim=1, keepdim=True)
        mean_NC = log_probs_NKC.exp().mean(dim=1)
        vectors_NK = torch.einsum("nkc,nc->nk", centred_NKC, mean_NC)
        data = {name: TensorFeatureData(vectors_NK) for name in ("pool", "train")}
        indices, results = select_batch(
            batch_size=budget,
            models=[torch.nn.Identity()],
            data=data,
            y_train=None,
            base_kernel="linear",
            kernel_transforms=[],
            selection_method="fw",
            sel_with_train=False,
            verbosity=0,
        )
        return _answer(indices, results["selection_status"])

    return run


METHODS = {
    "random": on_features("random"),
    "maxdist": on_features("maxdist", sel_with_train=True),
    "kmeanspp on gradients": gradient_kmeanspp,
    "bait": on_features("bait", remark="for regression: one output", bait_sigma=1.0),
    "fw": frank_wolfe,
}
