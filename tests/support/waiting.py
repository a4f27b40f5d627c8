"""Waiting for something that happens in another process or page."""

from __future__ import annotations

import time


def until(condition, seconds=60):
    """Wait until a condition holds, and fail if it takes too long."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)
