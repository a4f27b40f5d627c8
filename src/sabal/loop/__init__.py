"""The loop: choose, ask, train, and again."""

from sabal.loop.journal import Journal
from sabal.loop.oracle import Answers, Oracle, SimulatedOracle
from sabal.loop.rounds import Learner, Plan, Round, choose_batch, round_seed, run_rounds

__all__ = [
    "Answers",
    "Journal",
    "Learner",
    "Oracle",
    "Plan",
    "Round",
    "SimulatedOracle",
    "choose_batch",
    "round_seed",
    "run_rounds",
]
