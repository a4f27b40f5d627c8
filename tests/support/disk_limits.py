"""A disk that is full, in the sense of RLIMIT_FSIZE."""

from __future__ import annotations

import resource
from contextlib import contextmanager


@contextmanager
def no_file_above(size):
    """No file of this process grows above `size` bytes. (Python ignores the signal for it.)"""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
