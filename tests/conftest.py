from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from libraries import LIBRARIES

settings.register_profile(
    "sabal",
    deadline=None,  # timing never decides a test
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sabal")


@pytest.fixture(params=["numpy", "torch"])
def library(request):
    """A function that turns a NumPy array into one of the library under test."""
    return LIBRARIES[request.param]


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the test's own, so that nothing is found in the user's."""
    monkeypatch.setenv("SABAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
