"""Seeds: what repeats a draw, and what is no seed."""

from __future__ import annotations

import numpy as np
import pytest

from sabal.core.checks import MAX_SEED, generator, seed_of
from sabal.errors import InputError


def test_a_seed_repeats_and_a_generator_goes_on():
    assert generator(3).random() == generator(np.int64(3)).random()
    rng = np.random.default_rng(0)
    assert generator(rng) is rng
    assert seed_of(rng) is None


def test_without_a_seed_one_is_drawn_that_can_be_told():
    first, second = seed_of(None), seed_of(None)
    assert first != second
    assert 0 <= first <= MAX_SEED


@pytest.mark.parametrize("wrong", [-1, MAX_SEED + 1, True, 1.0, "0", [0]])
def test_what_is_no_seed_is_refused(wrong):
    with pytest.raises(InputError, match="random_state"):
        seed_of(wrong)


def test_the_largest_seed_is_one():
    assert seed_of(MAX_SEED) == MAX_SEED
