"""What the loss of a model says about atoms and uncertainty: a file for each loss.

A fourth loss is a fourth file with a class derived from `Loss`, listed in `LOSSES`.
"""

from collections.abc import Collection

from sabal.core.checks import check_choice
from sabal.errors import InputError
from sabal.predictions.gaussian import Squared
from sabal.predictions.prediction import Loss
from sabal.predictions.sigmoid import Sigmoid
from sabal.predictions.softmax import Softmax

SOFTMAX = Softmax()
SIGMOID = Sigmoid()
SQUARED = Squared()
LOSSES: dict[str, Loss] = {loss.name: loss for loss in (SOFTMAX, SIGMOID, SQUARED)}


def loss_named(name: str) -> Loss:
    """The loss called `name`."""
    return LOSSES[check_choice(name, "loss", list(LOSSES))]


def check_parts(loss: Loss, names: Collection[str]) -> None:
    """Refuse outputs that mean nothing to the loss, or nothing without others."""
    for name in names:
        if name != "features" and name not in loss.checks:
            other = next(each.name for each in LOSSES.values() if name in each.checks)
            raise InputError(
                f"outputs that loss={loss.name!r} knows ({', '.join(('features', *loss.checks))})",
                f"`{name}`",
                f"leave it out, or pass loss={other!r}",
            )
    if loss.prediction in names and not set(loss.sources) & set(names):
        raise InputError(
            f"`{loss.spread}` beside `{loss.prediction}`",
            " and ".join(names),
            f"pass {loss.spread}=",
        )


__all__ = ["LOSSES", "SIGMOID", "SOFTMAX", "SQUARED", "Loss", "check_parts", "loss_named"]
