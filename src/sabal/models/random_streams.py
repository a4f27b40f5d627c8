"""Random numbers that follow from one seed, without changing the global state of torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import numpy as np
import torch

from sabal.core.checks import check_whole


class Stream(IntEnum):
    """The purposes of random numbers; each has a stream of its own.

    The order of the batches, for instance, is the same for all networks trained with one seed.
    """

    WEIGHTS = 0
    BATCHES = 1
    AUGMENTATION = 2
    NOISE = 3
    POSTERIOR = 4


def stream_seed(seed: int, stream: Stream) -> int:
    """Return the seed of one stream, derived from the seed of everything."""
    sequence = np.random.SeedSequence(check_whole(seed, "seed", minimum=0), spawn_key=(stream,))
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def make_generator(seed: int, stream: Stream) -> torch.Generator:
    """Return a generator on the CPU, so that a seed means the same on every device."""
    return torch.Generator().manual_seed(stream_seed(seed, stream))


@contextmanager
def seeded_torch(seed: int, stream: Stream, device: torch.device | None = None) -> Iterator[None]:
    """Seed the global generators of torch, and restore their state afterwards."""
    value = stream_seed(seed, stream)
    cuda = device is not None and device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if cuda else []):
        torch.default_generator.manual_seed(value)
        if cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(value)
        yield
