"""The suite that measures the speed and memory of selections and checks them against goals."""

from research.bench.suite.judging import GoalVerdict
from research.bench.suite.plan import chosen_parts
from research.bench.suite.scales import PARTS, SCALES, SuiteScale
from research.bench.suite.suite_page import sheets
from research.bench.suite.suite_run import run_suite
from research.bench.suite.verdicts import verdicts

__all__ = [
    "PARTS",
    "SCALES",
    "GoalVerdict",
    "SuiteScale",
    "chosen_parts",
    "run_suite",
    "sheets",
    "verdicts",
]
