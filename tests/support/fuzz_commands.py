"""Command lines, and what they read, that are not what they should be."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzz_arrays import outputs_of
from fuzz_oracle import ANSWERED, REFUSED, Answer, Kind, check_refusal, run_cli, snapshot
from fuzz_pools import NAMES, SEEN, Write, damaged, write_npy_folder, write_npz, write_parquet

ENDINGS = (".csv", ".jsonl", ".parquet", ".CSV", ".txt", "")
LONG = "a" * 300


def select_case(write: Write) -> Kind:
    """`sabal select` on a file: a batch on disk, or exit code 2, one line, and no file."""

    def run(rng: Random, folder: Path) -> str:
        path, out = write(rng, folder), folder / f"out 批{rng.choice(ENDINGS)}"
        if rng.random() < 0.1:
            out.write_text("what was there")
        before, budget = snapshot(folder), rng.choice((1, 1, 2, 5))
        arguments: list[object] = ["--budget", budget, "--strategy", rng.choice(SEEN), "--out", out]
        if rng.random() < 0.3:
            arguments += ["--memory", rng.choice(("2kB", "4kB", "1MB"))]
        as_json = rng.random() < 0.5
        answer = run_cli("select", *arguments, *(["--json"] if as_json else []), "--", path)
        if answer.code:
            check_refusal(answer)
            assert snapshot(folder) == before
            return REFUSED
        assert not answer.err, answer.err
        after = snapshot(folder)
        assert after.pop(out.name)
        before.pop(out.name, None)
        assert after == before
        if as_json:
            assert len({str(row["id"]) for row in json.loads(answer.out)["items"]}) == budget
        return ANSWERED

    return run


WORDS = (
    "", " ", "0", "-1", "1", "2", "2.0", "1e3", "nan", "inf", "true", "null", "x", "ü", "1" * 5000,
    "99999999999999999999", "[]", "{}", '"a"', "=", "a=b", "1,2", "\t", "--json", "-", "\\", "'",
    "[" * 3000,
)  # fmt: skip
PATHS = (
    "nowhere.npz", "", ".", "..", "pool.npz/x", f"{LONG}.npz", "pool", "pool.NPZ", "pool.npz\n",
    "loop.npz", "dangling.parquet", "pipe.npz", "empty",
)  # fmt: skip
OUTS = (
    "b.csv", "b.jsonl", "b.parquet", "none/b.csv", "b.xlsx", "", "b.csv/", "é b.csv", f"{LONG}.csv",
    f"{LONG}/b.csv", "pool.npz/b.csv", "loop.npz/b.csv", "empty", "empty.csv",
)  # fmt: skip
SCRATCHES = ("scratch", "pool.npz", "pool.npz/x", LONG)
OPTIONS = ("alpha", "beta", "candidates", "refresh", "width", "radius", "uncertainty", "refit", "")


def arguments_case(rng: Random, folder: Path) -> str:
    """`sabal select` on a good pool with bad arguments, or on a path that is no pool."""
    parts = outputs_of(rng, n=6)
    np.savez(folder / "pool.npz", features=parts["features"], probs=parts["probs"])
    (folder / "loop.npz").symlink_to("loop.npz")
    (folder / "dangling.parquet").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.npz")
    (folder / "empty").mkdir()
    (folder / "empty.csv").mkdir()
    pool, values = (
        folder / "pool.npz",
        {"--budget": "2", "--seed": "1", "--strategy": "sabal-kernel"},
    )
    others = ("pool", "--option", "--out", "--scratch", "--memory", "--engine", "--workers")
    for name in rng.sample((*others, *values), rng.choice((1, 1, 2))):
        if name == "pool":
            pool = folder / rng.choice(PATHS)
        elif name == "--option":
            values[name] = rng.choice(("", f"{rng.choice(OPTIONS)}=")) + rng.choice(WORDS)
        elif name == "--out":
            values[name] = str(folder / rng.choice(OUTS))
        elif name == "--scratch":
            values[name] = str(folder / rng.choice(SCRATCHES))
        else:
            values[name] = rng.choice(WORDS)
    before = snapshot(folder)
    answer = run_cli("select", *(f"{name}={value}" for name, value in values.items()), "--", pool)
    return judged(answer, folder, before)


def judged(answer: Answer, folder: Path, before: dict[str, bytes | None]) -> str:
    """Whether it was refused, which leaves every file as it was, or answered without complaint."""
    if answer.code:
        check_refusal(answer)
        assert snapshot(folder) == before
        return REFUSED
    assert not answer.err, answer.err
    return ANSWERED


REPORTS = ("bytes", "row", "column", "no column", "config", "no config", "json", "missing", "empty")
TEXTS = (b"[]", b"", b"\xff\xfe", b"[" * 5000, b'{"dataset": NaN}', b"\xef\xbb\xbf{}")


def report_case(rng: Random, folder: Path) -> str:
    """`sabal report` on a run folder whose files are damaged, missing, or say something else."""
    run, kind = folder / rng.choice(NAMES), rng.choice((*REPORTS, "none"))
    run.mkdir()
    rows: list[dict[str, Any]] = [
        {"strategy": name, "seed": seed, "round": k, "labels": 10 * (k + 1),
         "accuracy": 0.5 + k / 10, "select_seconds": 0.1, "select_mb": None}
        for name in ("random", "sabal") for seed in range(2) for k in range(2)
    ]  # fmt: skip
    name = rng.choice(sorted(rows[0]))
    if kind == "row":
        rng.choice(rows)[name] = rng.choice((None, float("nan"), float("inf"), -1, 10**12, 0))
    elif kind == "column":
        value = rng.choice(("x", None, [1.0], True, 2**62, "$x_{$", "_x"))
        rows = [{**row, name: value} for row in rows]
    elif kind == "no column":
        rows = [{key: value for key, value in row.items() if key != name} for row in rows]
    elif kind == "empty":
        rows = []
    config: dict[str, Any] = {"dataset": "digits", "model": "logistic", "seeds": 2}
    if kind == "config":
        key = rng.choice(sorted(config))
        config[key] = rng.choice((None, [1], {"a": 1}, "<b>", 1e300, "$x_{$", "\ud800", "数据 🐍"))
    elif kind == "no config":
        config.pop(rng.choice(sorted(config)))
    text, file = json.dumps(config).encode(), io.BytesIO()
    try:
        pq.write_table(pa.Table.from_pylist(rows), file)
    except (pa.ArrowException, TypeError, OverflowError):
        file.write(b"PAR1")
    data = file.getvalue()
    if kind == "json":
        text = rng.choice((damaged(text, rng), *TEXTS))
    (run / "config.json").write_bytes(text)
    (run / "results.parquet").write_bytes(damaged(data, rng) if kind == "bytes" else data)
    if kind == "missing":
        (run / rng.choice(("config.json", "results.parquet"))).unlink()
    before = snapshot(folder)
    answer = run_cli("report", *(["--json"] if rng.random() < 0.5 else []), "--", run)
    return judged(answer, folder, before)


KINDS: dict[str, Kind] = {
    "sabal select npz": select_case(write_npz),
    "sabal select npy": select_case(write_npy_folder),
    "sabal select parquet": select_case(write_parquet),
    "sabal select arguments": arguments_case,
    "sabal report": report_case,
}
