"""The loop: choose, ask, train, repeat."""

from sabal.learners.learner import Learner
from sabal.loop.journal import Journal
from sabal.loop.oracle import Answers, Oracle, SimulatedOracle
from sabal.loop.plan import Plan, Round
from sabal.loop.rounds import choose_batch, round_seed, run_rounds

__all__ = [
    "Answers", "Journal", "Learner", "Oracle", "Plan", "Round", "SimulatedOracle",
    "choose_batch",
    "round_seed", "run_rounds",
]  # fmt: skip
