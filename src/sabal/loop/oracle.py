"""Oracles: who answers when the loop asks for labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sabal.errors import InputError


@dataclass(frozen=True)
class Answers:
    """What came back: labels by item, and items that will never be answered.

    Items in neither are still open; they are asked for again.
    """

    labels: dict[int, int] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()


class Oracle(Protocol):
    """A person, a file or a simulation."""

    def answer(self, items: Sequence[int]) -> Answers:
        """Labels for some, all or none of `items` (rows of the pool), without waiting for more."""


class SimulatedOracle:
    """Knows every label and answers at once."""

    def __init__(self, labels: Any) -> None:
        self.labels_N = np.asarray(labels)
        if self.labels_N.ndim != 1 or self.labels_N.dtype.kind not in "iu":
            raise InputError(
                "`labels` as one whole number per item",
                f"shape {self.labels_N.shape}, dtype {self.labels_N.dtype}",
                "encode the classes as 0, 1, 2, ...",
            )

    def answer(self, items: Sequence[int]) -> Answers:
        """All of them."""
        return Answers({int(item): int(self.labels_N[item]) for item in items})
