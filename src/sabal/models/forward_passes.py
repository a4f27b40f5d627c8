"""Outputs of a network over a pool: one streamed forward pass, and posterior samples in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from sabal.core.arrays import CHUNK_BYTES, row_chunks
from sabal.core.checks import check_log_probs, check_whole
from sabal.models.inputs import (
    HeadedNetwork,
    InputArray,
    check_items,
    check_network,
    count_classes,
    device_of,
    evaluation_mode,
    move_to_device,
    row_slices,
    take_batch,
)
from sabal.models.posteriors import Draw, ModelPosterior, Variational
from sabal.models.progress import Progress, report_progress
from sabal.pools import ArrayPool
from sabal.sparse.atoms import Atoms, posterior_atoms
from sabal.sparse.operators import Dense


def pool_outputs(
    network: HeadedNetwork,
    x: Any,
    *,
    posterior: ModelPosterior | None = None,
    samples: int = 0,
    x_labeled: Any = None,
    ids: Any = None,
    batch_size: int = 256,
    seed: int = 0,
    device: str | torch.device | None = None,
    progress: Progress = False,
) -> ArrayPool:
    """Return the outputs of a network over a pool, as CPU tensors, each computed on first use.

    Parameters
    ----------
    network : HeadedNetwork
        The trained network; use the outputs before training it further.
    x : array
        The pool: a tensor or NumPy array, in memory or mapped from a file. 8-bit images are scaled
        to [0, 1].
    posterior : ModelPosterior, optional
        The posterior to draw `samples` from; that of the variational head if left out.
    samples : int
        With samples, `log_probs` has that many models, the same for every item, and `probs` is
        their mean. A Laplace posterior leaves `probs` to the network; its mean is `label_probs`.
    x_labeled : array, optional
        The items that are labelled already, for strategies that consider them.
    ids : sequence, optional
        Names of the items.
    batch_size, seed, device, progress
        The batches of the forward pass, the seed of the posterior samples, the device to move the
        network to, and whether to show a progress bar.

    Returns
    -------
    ArrayPool
        Features and logits come from one pass over the pool. Strategies that need only the atoms of
        the posterior never have n x K x C numbers in memory at once.
    """
    passes = (batch_size, seed, device, progress)
    pool = _Pool(network, x, posterior, samples, *passes)
    labeled = None if x_labeled is None else _Pool(network, x_labeled, None, 0, *passes)
    mean: dict[str, Any] = {}
    if pool.posterior is not None:
        mean = {"probs" if pool.posterior.is_the_model else "label_probs": pool.predictive}
    return ArrayPool(
        size=pool.size,
        ids=ids,
        features=pool.features,
        logits=pool.logits,
        log_probs=None if pool.posterior is None else pool.log_probs,
        labeled_features=None if labeled is None else labeled.features,
        atoms=None if pool.posterior is None else pool.atoms,
        **mean,
    )


def pool_atoms(
    network: HeadedNetwork,
    x: Any,
    *,
    samples: int,
    posterior: ModelPosterior | None = None,
    batch_size: int = 256,
    seed: int = 0,
    device: str | torch.device | None = None,
    progress: Progress = False,
) -> Atoms:
    """Return the posterior atoms of a pool without holding n x K x C numbers in memory.

    Parameters are those of `pool_outputs`. The result equals that of
    `sabal.sparse.atoms.posterior_atoms` for the `log_probs` of the outputs.

    Returns
    -------
    Atoms
        n x K atoms.
    """
    pool = _Pool(network, x, posterior, samples, batch_size, seed, device, progress)
    return pool.atoms()


class _Pool:
    """Passes over a pool; the results of the first one are kept."""

    def __init__(
        self,
        network: HeadedNetwork,
        x: Any,
        posterior: ModelPosterior | None,
        samples: int,
        batch_size: int,
        seed: int,
        device: str | torch.device | None,
        progress: Progress,
    ) -> None:
        self.network = check_network(network)
        move_to_device(network, device)
        self.items: InputArray = check_items(x, network)
        self.size = int(self.items.shape[0])
        self.samples = check_whole(samples, "samples", minimum=0)
        self.batch_size = check_whole(batch_size, "batch_size")
        self.progress = progress
        self.posterior: ModelPosterior | None = None
        if samples:
            self.posterior = Variational(network) if posterior is None else posterior
            self.draw: Draw = self.posterior.draw(samples, seed)
        self._all_log_probs: Tensor | None = None

    def features(self) -> Tensor:
        return self._first_pass[0]

    def logits(self) -> Tensor:
        return self._first_pass[1]

    @cached_property
    def _first_pass(self) -> tuple[Tensor, Tensor]:
        """The features and logits of all items, from one pass."""
        features_ND = logits_NC = torch.empty(0)
        with (
            evaluation_mode(self.network),
            report_progress(self.progress, self.size, "pool") as tick,
        ):
            for rows in row_slices(self.size, self.batch_size):
                features = self.network.features(take_batch(self.items, rows, self.network))
                logits = self.network.head(features)
                if rows.start == 0:
                    # The first batch shows the width and the dtype.
                    features_ND = torch.empty(self.size, features.shape[1], dtype=features.dtype)
                    logits_NC = torch.empty(self.size, logits.shape[1], dtype=logits.dtype)
                features_ND[rows], logits_NC[rows] = features.cpu(), logits.cpu()
                tick(features.shape[0])
        return features_ND, logits_NC

    def chunks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield rows and their log-probabilities under the K models, one chunk at a time."""
        per_item = 8 * self.samples * count_classes(self.network)
        if self.draw.of_features:
            features_ND, where = self.features(), device_of(self.network)
            for rows in row_chunks(self.size, per_item):
                yield rows, self.draw.log_probs(features_ND[rows].to(where)).cpu()
            return
        step = max(1, min(self.batch_size, CHUNK_BYTES // per_item))
        with report_progress(self.progress, self.size, "posterior") as tick:
            for rows in row_slices(self.size, step):
                batch = take_batch(self.items, rows, self.network)
                yield rows, self.draw.log_probs(batch).cpu()
                tick(batch.shape[0])

    def log_probs(self) -> Tensor:
        if self._all_log_probs is None:
            result = torch.empty(0)
            for rows, log_probs_NKC in self.chunks():
                if rows.start == 0:
                    shape = (self.size, *log_probs_NKC.shape[1:])
                    result = torch.empty(shape, dtype=log_probs_NKC.dtype)
                result[rows] = log_probs_NKC
            self._all_log_probs = result
        return self._all_log_probs

    def atoms(self) -> Atoms:
        """Return the atoms of the posterior, from one chunk of log-probabilities at a time."""
        check_whole(self.samples, "samples", minimum=2)
        atoms_NK = torch.empty(self.size, self.samples)
        variance_N, deviation_N = np.empty(self.size), np.empty(self.size)
        clipped = 0
        for rows, log_probs_NKC in self.chunks():
            name = f"log_probs[{rows.start}:{rows.stop}]"
            part = posterior_atoms(check_log_probs(log_probs_NKC, name), None)
            atoms_NK[rows] = cast(Dense, part.operator).atoms_NM
            variance_N[rows], deviation_N[rows] = part.variance_N, part.deviation_N
            clipped += part.clipped
        return Atoms(Dense(atoms_NK), variance_N, deviation_N, clipped)

    def predictive(self) -> Tensor:
        """Return the mean probabilities over the posterior, (n, C)."""
        if self._all_log_probs is not None:
            return self._all_log_probs.exp().mean(dim=1)
        return torch.cat([log_probs_NKC.exp().mean(dim=1) for _, log_probs_NKC in self.chunks()])
