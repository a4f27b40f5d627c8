"""The array libraries under test."""

from __future__ import annotations

import numpy as np
import torch

LIBRARIES = {"numpy": np.asarray, "torch": torch.as_tensor}
"""Functions that turn a NumPy array into one of the library, by its name."""
