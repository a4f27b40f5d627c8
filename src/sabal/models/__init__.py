"""PyTorch networks, their training, and posteriors whose samples the whole pool shares."""

try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    from sabal.core.extras import missing_package

    raise missing_package(error.name or "torch", "torch", "for sabal.models", error) from None

from sabal.models.architectures import MLP, VGG16, LeNet5, Network, ResNet18, build
from sabal.models.dropout import Dropout
from sabal.models.forward_passes import pool_atoms, pool_outputs
from sabal.models.laplace import Laplace
from sabal.models.posteriors import Draw, Ensemble, ModelPosterior, Variational
from sabal.models.storage import load, save
from sabal.models.training import Training, TrainingSettings, fit
from sabal.models.variational import VariationalLinear
from sabal.models.wrappers import Wrapped

__all__ = [
    "MLP", "VGG16", "Draw", "Dropout", "Ensemble", "Laplace", "LeNet5", "ModelPosterior",
    "Network", "ResNet18", "Training", "TrainingSettings", "Variational", "VariationalLinear",
    "Wrapped", "build", "fit", "load", "pool_atoms", "pool_outputs", "save",
]  # fmt: skip
