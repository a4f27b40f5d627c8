"""The advice when to stop, on the curves of the study: mostly right when it decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.study.stop_advice import AdviceRecord, advice_record, record_lines
from sabal.errors import FileError

RUNS = Path(__file__).parents[2] / "docs" / "results" / "study" / "runs.csv"


def test_the_advice_is_mostly_right_on_the_curves_of_the_study():
    found = advice_record(RUNS, every=23)
    assert found.projections > 100
    assert found.helping > 0.3 * found.projections
    assert found.helping_right > 0.85 * found.helping
    assert found.stop > 0
    assert found.stop_right > 0.7 * found.stop
    assert found.covered > 0.7 * found.projections


def test_a_run_by_hand(tmp_path):
    runs = tmp_path / "runs.csv"
    flat, steep = "90 90 90 90 90 90", "10 30 50 60 70 80"
    head = "task,configuration,digest,seed,labels,curve\n"
    runs.write_text(f"{head}a-b10,random,x,0,60,{flat}\nb-b10,random,x,0,60,{steep}\n")
    found = advice_record(runs)
    assert (found.projections, found.helping, found.helping_right) == (4, 2, 2)
    assert found.stop == found.stop_right
    assert len(record_lines(found)) == 3
    assert len(record_lines(AdviceRecord(1, 0, 0, 0, 0, 0, 0.0))) == 3
    with pytest.raises(FileError, match="run the study"):
        advice_record(tmp_path / "none.csv")
