"""Tests with packages that are too heavy for `make test`: run by `make test-integrations`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
