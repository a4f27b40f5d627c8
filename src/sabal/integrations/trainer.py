"""The outputs of a model of the Hugging Face Trainer over a pool."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from sabal.core.arrays import Array
from sabal.core.checks import check_whole
from sabal.errors import InputError
from sabal.pools import ArrayPool

LABELS = ("label", "labels", "label_ids")


def trainer_outputs(
    trainer: Any,
    dataset: Any,
    *,
    last_layer: str,
    labeled: Any = None,
    ids: Any = None,
    batch_size: int | None = None,
) -> ArrayPool:
    """Return the outputs of a Trainer's model over a pool, as CPU tensors computed on first use.

    Features and logits come from one pass in the order of the data set, with the trainer's
    collator, on the device of the model. Labels, and columns that the model does not take, are left
    out.

    Parameters
    ----------
    trainer : transformers.Trainer
        The trainer.
    dataset : data set
        The pool.
    last_layer : str
        The name of the last linear layer of the model, for instance "classifier" or
        "classifier.out_proj". The features are its input.
    labeled : data set, optional
        The items that are labelled already; the default strategy covers what these do not.
    ids : sequence, optional
        Names of the items.
    batch_size : int, optional
        The batch size of the trainer's evaluation if left out.

    Returns
    -------
    ArrayPool
    """
    size = batch_size if batch_size is not None else trainer.args.per_device_eval_batch_size
    check_whole(size, "batch_size")
    pool = _TrainerPass(trainer, dataset, last_layer, size)
    known = None if labeled is None else _TrainerPass(trainer, labeled, last_layer, size)
    return ArrayPool(
        size=pool.size,
        ids=ids,
        features=lambda: pool.results[0],
        logits=lambda: pool.results[1],
        labeled_features=None if known is None else lambda: known.results[0],
    )


class _TrainerPass:
    """One pass of a model over a data set, on first use."""

    def __init__(self, trainer: Any, dataset: Any, last_layer: str, batch_size: int) -> None:
        if not hasattr(dataset, "__len__") or not len(dataset):
            raise InputError(
                "a data set of known length, at least one item",
                f"a {type(dataset).__name__}",
                "load what is streamed first",
            )
        self.model, self.collate = trainer.model, trainer.data_collator
        self.dataset, self.size, self.batch_size = dataset, len(dataset), batch_size
        self.network = _network_with_logits(self.model, last_layer)

    @cached_property
    def results(self) -> tuple[Array, Array]:
        """The features and logits of all items."""
        import torch

        from sabal.models.inputs import device_of, evaluation_mode, row_slices

        taken = set(inspect.signature(self.model.forward).parameters) - set(LABELS)
        where = device_of(self.model)
        features, logits = [], []
        with evaluation_mode(self.network):
            for rows in row_slices(self.size, self.batch_size):
                items = [self.dataset[row] for row in range(rows.start, rows.stop)]
                batch = self.collate(
                    [{k: v for k, v in each.items() if k in taken} for each in items]
                )
                inputs = self.network.features({k: v.to(where) for k, v in batch.items()})
                features.append(inputs.cpu())
                logits.append(self.network.head(inputs).cpu())
        return torch.cat(features), torch.cat(logits)


def _network_with_logits(model: Any, last_layer: str) -> Any:
    """Return `model` as a network that takes a batch by name and returns its logits."""
    from torch import Tensor, nn

    from sabal.models import Wrapped

    class Logits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
            logits: Tensor = self.model(**batch).logits
            return logits

    network = Wrapped(model, last_layer)
    network.module = Logits()
    return network
