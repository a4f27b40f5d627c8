"""What must come out of bad input, whatever it is: a correct answer, or a SabalError."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np

import sabal

ANSWERED, REFUSED = "answered", "refused"
HANGS_AFTER = 60
"""Seconds; cases take milliseconds, so this is no matter of a slow machine."""

Kind = Callable[[Random, Path], str]
"""A case: draws itself, runs in an empty folder, says what came out, or fails."""


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Fail on any warning but our own, and on a case that does not end."""

    def stop(number: int, frame: object) -> None:
        raise AssertionError(f"no end after {HANGS_AFTER} seconds")

    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, stop) if main else None
    if main:
        signal.alarm(HANGS_AFTER)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", sabal.SabalWarning)
            yield
    finally:
        if main:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


def check_error(error: sabal.SabalError) -> None:
    """One line of three parts."""
    assert error.expected, error
    assert error.got, error
    assert error.fix, error
    assert len(str(error).splitlines()) == 1, str(error)


def check_selection(selection: sabal.Selection, n: int, budget: int) -> None:
    """Exactly b distinct rows of the pool, weights that can be trained with, plain evidence."""
    indices = selection.indices
    assert indices.dtype == np.int64
    assert len(indices) == len(set(indices.tolist())) == budget
    assert indices.min() >= 0
    assert indices.max() < n
    for numbers in (selection.weights, selection.scores):
        assert numbers.shape == (budget,)
        assert np.all(np.isfinite(numbers)), numbers
    assert np.all(selection.weights >= 0)
    assert len(selection.ids) == budget
    json.dumps(selection.evidence, allow_nan=False)


def same_selection(one: sabal.Selection, two: sabal.Selection) -> None:
    """The same seed gave the same answer, to the last digit."""
    assert one.indices.tolist() == two.indices.tolist()
    assert one.weights.tolist() == two.weights.tolist()
    assert one.scores.tolist() == two.scores.tolist()


@dataclass(frozen=True)
class Answer:
    """What a command said: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


def run_cli(*arguments: object) -> Answer:
    """`sabal ...` in this process."""
    from sabal.cli import main

    out, err = _Stream(), _Stream()
    with (
        mock.patch.object(sys, "argv", ["sabal", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            return Answer(int(stop.code or 0), out.text(), err.text())
    raise AssertionError("the command line did not end with an exit code")


class _Stream(io.TextIOWrapper):
    """Text in UTF-8 that is kept."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        return self.buffer.getvalue().decode()


def check_refusal(answer: Answer) -> None:
    """Exit code 2 and one line on standard error."""
    assert answer.code == 2, answer
    assert answer.err.count("\n") == 1, answer
    assert answer.err.startswith("sabal: "), answer
    assert "Traceback" not in answer.out + answer.err, answer


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, byte for byte."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }
