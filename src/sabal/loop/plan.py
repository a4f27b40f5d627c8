"""The plan of a run, and the record of a round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sabal.core.checks import check_choice, check_number, check_whole
from sabal.errors import InputError, counted
from sabal.selection import Selection


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The course of a run, from its first batch to its end.

    Parameters
    ----------
    initial, batch, rounds : int
        The size of the first batch, the size of every later one, and the number of later ones.
    strategy, options
        How later batches are chosen, as in `sabal.select`.
    first : str
        The strategy of the first batch, when there is no model: "random" or "typiclust".
    weighted : bool
        Whether the weights of a batch count in training.
    target_accuracy : float, optional
        Stop once the accuracy on the test data reaches it.
    stable_rounds : int, optional
        Stop once this many rounds in a row have changed less than 1 % of the predictions.
    min_gain : float, optional
        Stop once five more batches would probably bring less accuracy on the test data than this
        share, by a power law that is fitted to the curve so far; see `sabal.loop.stopping`.
    seed : int
        Determines every random number of the run.
    """

    initial: int
    batch: int
    rounds: int
    strategy: str = "sabal"
    options: dict[str, Any] = field(default_factory=dict)
    first: str = "random"
    weighted: bool = False
    target_accuracy: float | None = None
    stable_rounds: int | None = None
    min_gain: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole(self.initial, "initial")
        check_whole(self.batch, "batch")
        check_whole(self.rounds, "rounds", minimum=0)
        check_choice(self.first, "first", ("random", "typiclust"))
        check_whole(self.seed, "seed", minimum=0)
        if self.target_accuracy is not None:
            check_number(self.target_accuracy, "target_accuracy")
        if self.stable_rounds is not None:
            check_whole(self.stable_rounds, "stable_rounds")
        if self.min_gain is not None:
            check_number(self.min_gain, "min_gain", above=0.0)

    def check_pool(self, size: int) -> None:
        """Raise an InputError if a pool of `size` items has fewer labels than the plan asks for."""
        wanted = self.initial + self.batch * self.rounds
        if wanted > size:
            raise InputError(
                f"initial + batch * rounds of at most {size}, the size of the pool",
                str(wanted),
                "ask for fewer labels",
            )


@dataclass(frozen=True, repr=False)
class Round:
    """The outcome of one round; round 0 is the first batch.

    Attributes
    ----------
    number : int
        The round.
    batch : Selection
        The batch that was chosen, as rows of the pool.
    labels : int
        The number of labels after this round.
    metrics : dict
        `accuracy` and `log_loss` on the test data; empty without these.
    select_seconds, train_seconds : float
        The time of the selection and of the training.
    select_mb : float or None
        The peak growth of memory during the selection; None where the system does not report it.
    open_items : tuple of int
        Items without an answer so far. The run has ended and continues here when started again.
    changed : float or None
        The share of the predictions that this round changed; None in the first round, and in plans
        without `stable_rounds`.
    """

    number: int
    batch: Selection
    labels: int
    metrics: dict[str, float]
    select_seconds: float
    select_mb: float | None
    train_seconds: float
    open_items: tuple[int, ...] = ()
    changed: float | None = None

    def __repr__(self) -> str:
        metrics = "".join(f", {name} {value:.3f}" for name, value in self.metrics.items())
        changed = "" if self.changed is None else f", {self.changed:.1%} of predictions changed"
        asked = f"{counted(len(self.batch), 'item')} by {self.batch.strategy!r}"
        return f"Round {self.number}: {asked}, {counted(self.labels, 'label')}{metrics}{changed}"
