"""A Label Studio of our own for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from running_server import LabelStudio


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelStudio]:
    """A running server with nothing in it."""
    running = LabelStudio(tmp_path_factory.mktemp("label-studio"))
    try:
        running.start()
        yield running
    finally:
        running.stop()
