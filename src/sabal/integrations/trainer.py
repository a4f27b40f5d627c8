"""What a model of the Hugging Face Trainer says of a pool."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from sabal.core.arrays import Array
from sabal.core.checks import check_whole
from sabal.errors import InputError
from sabal.pools.outputs import Outputs

LABELS = ("label", "labels", "label_ids")


def trainer_outputs(
    trainer: Any,
    dataset: Any,
    *,
    last_layer: str,
    labeled: Any = None,
    ids: Any = None,
    batch_size: int | None = None,
) -> Outputs:
    """The outputs of a Trainer's model over `dataset`, as CPU tensors, each computed on first use.

    Features and logits come from one pass in the order of the data set, with the trainer's
    collator, on the device where the model is; columns that the model does not take are left out,
    and so are labels.
    last_layer: the name of the model's last linear layer, for instance "classifier" or
        "classifier.out_proj": the features are what reaches it.
    labeled: a data set of what is labelled already; the default strategy covers what that does not.
    batch_size: that of the trainer's evaluation if left out.
    """
    size = batch_size if batch_size is not None else trainer.args.per_device_eval_batch_size
    check_whole(size, "batch_size")
    pool = _Pass(trainer, dataset, last_layer, size)
    known = None if labeled is None else _Pass(trainer, labeled, last_layer, size)
    return Outputs(
        size=pool.size,
        ids=ids,
        features=lambda: pool.seen[0],
        logits=lambda: pool.seen[1],
        labeled_features=None if known is None else lambda: known.seen[0],
    )


class _Pass:
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
        self.network = _answering(self.model, last_layer)

    @cached_property
    def seen(self) -> tuple[Array, Array]:
        """Features and logits of all items."""
        import torch

        from sabal.models.inputs import device_of, evaluating, slices

        taken = set(inspect.signature(self.model.forward).parameters) - set(LABELS)
        where = device_of(self.model)
        features, logits = [], []
        with evaluating(self.network):
            for rows in slices(self.size, self.batch_size):
                items = [self.dataset[row] for row in range(rows.start, rows.stop)]
                batch = self.collate(
                    [{k: v for k, v in each.items() if k in taken} for each in items]
                )
                seen = self.network.features({k: v.to(where) for k, v in batch.items()})
                features.append(seen.cpu())
                logits.append(self.network.head(seen).cpu())
        return torch.cat(features), torch.cat(logits)


def _answering(model: Any, last_layer: str) -> Any:
    """`model` as a network that takes a batch by name and returns its logits."""
    from torch import Tensor, nn

    from sabal.models import Wrapped

    class Answers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
            logits: Tensor = self.model(**batch).logits
            return logits

    network = Wrapped(model, last_layer)
    network.module = Answers()
    return network
