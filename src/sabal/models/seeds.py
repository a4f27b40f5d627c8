"""Seeds: every random number of this room follows from one, and torch's own state is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import numpy as np
import torch

from sabal.core.checks import check_whole


class Stream(IntEnum):
    """What random numbers are for: each purpose has its own, so that none disturbs another.

    The order of the batches, for instance, is the same for every network trained with one seed.
    """

    WEIGHTS = 0
    BATCHES = 1
    AUGMENTATION = 2
    NOISE = 3
    POSTERIOR = 4


def stream_seed(seed: int, stream: Stream) -> int:
    """A seed for one purpose, from the seed that decides everything."""
    sequence = np.random.SeedSequence(check_whole(seed, "seed", least=0), spawn_key=(stream,))
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def generator_of(seed: int, stream: Stream) -> torch.Generator:
    """A generator on the CPU, so that a seed means the same on every device."""
    return torch.Generator().manual_seed(stream_seed(seed, stream))


@contextmanager
def seeded(seed: int, stream: Stream, device: torch.device | None = None) -> Iterator[None]:
    """Within: torch's global generators are seeded. Afterwards: they are as they were."""
    value = stream_seed(seed, stream)
    cuda = device is not None and device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if cuda else []):
        torch.default_generator.manual_seed(value)
        if cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(value)
        yield
