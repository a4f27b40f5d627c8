"""The suite that guards the speed and the memory of a selection."""

from research.bench.suite.plan import chosen_parts
from research.bench.suite.report import sheets
from research.bench.suite.run import run_suite
from research.bench.suite.scales import PARTS, SCALES, Scale
from research.bench.suite.verdicts import Verdict, verdicts

__all__ = [
    "PARTS",
    "SCALES",
    "Scale",
    "Verdict",
    "chosen_parts",
    "run_suite",
    "sheets",
    "verdicts",
]
