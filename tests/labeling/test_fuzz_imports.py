"""Whatever a file of labels holds, all of it is imported, or nothing, and one line says why."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz_labels import KINDS
from fuzz_oracle import ANSWERED, REFUSED, watched


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where the project is that all cases share."""
    return tmp_path_factory.mktemp("imports")


@pytest.mark.parametrize("kind", KINDS)
def test_labels(kind, home):
    @settings(max_examples=20)
    @given(rng=st.randoms(use_true_random=False))
    def check(rng):
        with tempfile.TemporaryDirectory(dir=home) as folder, watched():
            assert KINDS[kind](rng, Path(folder)) in (ANSWERED, REFUSED)

    check()
