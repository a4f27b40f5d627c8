"""The suite that guards the speed and the memory of a selection."""

from sabal.bench.suite.plan import chosen_parts
from sabal.bench.suite.report import sheets
from sabal.bench.suite.run import run_suite
from sabal.bench.suite.scales import PARTS, SCALES, Scale
from sabal.bench.suite.verdicts import Verdict, verdicts

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
