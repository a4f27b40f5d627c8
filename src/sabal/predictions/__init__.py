"""Predictions of a model for a pool: one type for each loss.

To add a loss, derive a class from `Prediction` in a new file and list it in `BY_LOSS`.
"""

from collections.abc import Collection

from sabal.core.checks import check_choice
from sabal.errors import InputError
from sabal.predictions.gaussian import Gaussian
from sabal.predictions.posterior import Posterior
from sabal.predictions.prediction import Prediction
from sabal.predictions.sigmoid import Sigmoid
from sabal.predictions.softmax import Softmax

BY_LOSS: dict[str, type[Prediction]] = {each.loss: each for each in (Softmax, Sigmoid, Gaussian)}

ARRAYS = tuple(dict.fromkeys((*Posterior.checks, *Sigmoid.checks, *Gaussian.checks)))
"""The array names of all prediction types."""


def prediction_type(loss: str, names: Collection[str]) -> type[Prediction]:
    """Return the type of a prediction with these arrays; raise if `loss` does not support them."""
    kind = BY_LOSS[check_choice(loss, "loss", list(BY_LOSS))]
    if kind is Softmax and "log_probs" in names:
        kind = Posterior
    for name in names:
        if name not in kind.checks:
            other = next((k for k in (Posterior, Sigmoid, Gaussian) if name in k.checks), None)
            known = (Posterior if kind is Softmax else kind).checks
            raise InputError(
                f"outputs that loss={loss!r} knows ({', '.join(('features', *known))})",
                f"`{name}`",
                "leave it out" + ("" if other is None else f", or pass loss={other.loss!r}"),
            )
    if kind.mean_name in names and not set(kind.sources) & set(names):
        raise InputError(
            f"`{kind.dispersion_name}` beside `{kind.mean_name}`",
            " and ".join(names),
            f"pass {kind.dispersion_name}=",
        )
    return kind


__all__ = [
    "ARRAYS",
    "BY_LOSS",
    "Gaussian",
    "Posterior",
    "Prediction",
    "Sigmoid",
    "Softmax",
    "prediction_type",
]
