"""Oracles: sources of the labels that the loop asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sabal.errors import InputError


@dataclass(frozen=True)
class Answers:
    """The answers of an oracle. Items without an answer are asked for again.

    Attributes
    ----------
    labels : dict
        Labels by item.
    skipped : frozenset of int
        Items that will never be labelled.
    """

    labels: dict[int, Any] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()


class Oracle(Protocol):
    """A person, a file or a simulation."""

    def answer(self, items: Sequence[int]) -> Answers:
        """Return answers for some, all or none of `items`, without waiting for more.

        Parameters
        ----------
        items : sequence of int
            Rows of the pool.

        Returns
        -------
        Answers
        """


class SimulatedOracle:
    """An oracle that knows every label and answers at once.

    Parameters
    ----------
    labels : array of int
        The label of every item of the pool.
    """

    def __init__(self, labels: Any) -> None:
        self.labels_N = np.asarray(labels)
        if self.labels_N.ndim != 1 or self.labels_N.dtype.kind not in "iu":
            raise InputError(
                "`labels` as one whole number per item",
                f"shape {self.labels_N.shape}, dtype {self.labels_N.dtype}",
                "encode the classes as 0, 1, 2, ...",
            )

    def answer(self, items: Sequence[int]) -> Answers:
        """Return the labels of all `items`."""
        return Answers({int(item): int(self.labels_N[item]) for item in items})
