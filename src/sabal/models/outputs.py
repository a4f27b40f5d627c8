"""What a network says of a pool: one streamed forward pass, and posterior samples in chunks."""

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
    Headed,
    Items,
    batch_of,
    check_headed,
    check_items,
    classes_of,
    device_of,
    evaluating,
    placed,
    slices,
)
from sabal.models.posterior import Draw, Posterior, Variational
from sabal.models.progress import Progress, ticking
from sabal.pools.outputs import Outputs
from sabal.sparse.atoms import Atoms, posterior_atoms
from sabal.sparse.operators import Dense


def pool_outputs(
    network: Headed,
    x: Any,
    *,
    posterior: Posterior | None = None,
    samples: int = 0,
    x_labeled: Any = None,
    ids: Any = None,
    batch_size: int = 256,
    seed: int = 0,
    device: str | torch.device | None = None,
    progress: Progress = False,
) -> Outputs:
    """The network's outputs over the pool `x`, as CPU tensors, each computed on first use.

    Features and logits come from one pass over the pool. With `samples`, `log_probs` has that many
    models from `posterior`, the same for every item; without a posterior given, those of the
    network's variational head. `probs` is then the mean over them; a Laplace posterior leaves
    `probs` to the network and gives its mean as `label_probs`. Strategies that need nothing but the
    atoms of the posterior never have n x K x C numbers in memory at once.

    x: a tensor or NumPy array, in memory or mapped from a file; 8-bit images are scaled to [0, 1].
    x_labeled: what is labelled already, for strategies that look at it.
    Computed on first use: ask before training the network any further.
    """
    pool = _Pool(network, x, posterior, samples, batch_size, seed, device, progress)
    labeled_features = None
    if x_labeled is not None:
        labeled = _Pool(network, x_labeled, None, 0, batch_size, seed, device, progress)
        labeled_features = labeled.features
    mean: dict[str, Any] = {}
    if pool.posterior is not None:
        mean = {"probs" if pool.posterior.is_the_model else "label_probs": pool.predictive}
    return Outputs(
        size=pool.size,
        ids=ids,
        features=pool.features,
        logits=pool.logits,
        log_probs=None if pool.posterior is None else pool.log_probs,
        labeled_features=labeled_features,
        atoms=None if pool.posterior is None else pool.atoms,
        **mean,
    )


def pool_atoms(
    network: Headed,
    x: Any,
    *,
    samples: int,
    posterior: Posterior | None = None,
    batch_size: int = 256,
    seed: int = 0,
    device: str | torch.device | None = None,
    progress: Progress = False,
) -> Atoms:
    """Posterior atoms of the pool, n x K, without n x K x C numbers ever being in memory at once.

    The same as `sabal.sparse.atoms.posterior_atoms` of the outputs' `log_probs`.
    """
    pool = _Pool(network, x, posterior, samples, batch_size, seed, device, progress)
    return pool.atoms()


class _Pool:
    """Passes over a pool; what the first one finds is kept."""

    def __init__(
        self,
        network: Headed,
        x: Any,
        posterior: Posterior | None,
        samples: int,
        batch_size: int,
        seed: int,
        device: str | torch.device | None,
        progress: Progress,
    ) -> None:
        self.network = check_headed(network)
        placed(network, device)
        self.items: Items = check_items(x, network)
        self.size = int(self.items.shape[0])
        self.samples = check_whole(samples, "samples", least=0)
        self.batch_size = check_whole(batch_size, "batch_size")
        self.progress = progress
        self.posterior: Posterior | None = None
        if samples:
            self.posterior = Variational(network) if posterior is None else posterior
            self.draw: Draw = self.posterior.draw(samples, seed)
        self._all_log_probs: Tensor | None = None

    def features(self) -> Tensor:
        return self._seen[0]

    def logits(self) -> Tensor:
        return self._seen[1]

    @cached_property
    def _seen(self) -> tuple[Tensor, Tensor]:
        """Features and logits of all items, from one pass."""
        features_ND = logits_NC = torch.empty(0)
        with evaluating(self.network), ticking(self.progress, self.size, "pool") as tick:
            for rows in slices(self.size, self.batch_size):
                features = self.network.features(batch_of(self.items, rows, self.network))
                logits = self.network.head(features)
                if rows.start == 0:
                    # The first batch shows the width and the dtype.
                    features_ND = torch.empty(self.size, features.shape[1], dtype=features.dtype)
                    logits_NC = torch.empty(self.size, logits.shape[1], dtype=logits.dtype)
                features_ND[rows], logits_NC[rows] = features.cpu(), logits.cpu()
                tick(features.shape[0])
        return features_ND, logits_NC

    def chunks(self) -> Iterator[tuple[slice, Tensor]]:
        """(rows, log-probabilities of the K models) for the whole pool, a chunk at a time."""
        per_item = 8 * self.samples * classes_of(self.network)
        if self.draw.of_features:
            features_ND, where = self.features(), device_of(self.network)
            for rows in row_chunks(self.size, per_item):
                yield rows, self.draw.log_probs(features_ND[rows].to(where)).cpu()
            return
        step = max(1, min(self.batch_size, CHUNK_BYTES // per_item))
        with ticking(self.progress, self.size, "posterior") as tick:
            for rows in slices(self.size, step):
                batch = batch_of(self.items, rows, self.network)
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
        """The atoms of the posterior, from a chunk of its log-probabilities at a time."""
        check_whole(self.samples, "samples", least=2)
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
        """(n, C): the mean probability over the posterior."""
        if self._all_log_probs is not None:
            return self._all_log_probs.exp().mean(dim=1)
        return torch.cat([log_probs_NKC.exp().mean(dim=1) for _, log_probs_NKC in self.chunks()])
