"""Seeds and the random number generators made from them."""

from __future__ import annotations

import numpy as np

from sabal.errors import InputError, shown

RandomState = int | np.random.Generator | None  # what a caller may pass as `random_state`
MAX_SEED = 2**63 - 1  # the largest that the files of a selection can hold


def generator(random_state: RandomState) -> np.random.Generator:
    """Return a NumPy generator from a seed, a generator (as it is) or None (fresh entropy)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(seed_of(random_state))


def seed_of(random_state: RandomState) -> int | None:
    """Return the seed behind `random_state`; None for a generator, whose seed is not known.

    A new seed if `random_state` is None: drawing it here rather than inside NumPy lets a result
    name the seed that repeats it.
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(random_state, np.random.Generator):
        return None
    whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not whole or not 0 <= random_state <= MAX_SEED:
        raise InputError(
            "`random_state` as an integer from 0 to 2**63 - 1, a numpy.random.Generator or None",
            shown(random_state),
            "pass for instance random_state=0",
        )
    return int(random_state)
