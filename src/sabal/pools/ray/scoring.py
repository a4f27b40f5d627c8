"""Score a data set with a model on a Ray cluster, and write the predictions as a pool."""

from __future__ import annotations

import json
import logging
import os
import pickle
import shutil
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

import numpy as np

from sabal.core.checks import check_whole
from sabal.core.files import make_folder, move_into_place
from sabal.core.urls import file_system, is_url, join_url, local_path, url_errors
from sabal.errors import ClusterError, FileError, InputError, SabalError
from sabal.pools.ray.score_parts import (
    DataPart,
    ScoreFunction,
    parts_of,
    schema_mismatch,
    write_scores,
)
from sabal.pools.ray.session import (
    cpus_of_cluster,
    ray_data_module,
    ray_module,
    reason_of,
    session,
)
from sabal.pools.remote import files_at


def score_with_ray(
    source: str | Path,
    score: ScoreFunction | type,
    out: str | Path,
    *,
    batch_size: int = 1024,
    workers: int | None = None,
    gpus: float = 0.0,
    address: str | None = None,
) -> str | Path:
    """Score a data set with a model through Ray Data, and write a pool for `sabal select`.

    Parameters
    ----------
    source : path or str
        A .parquet file, a folder of .parquet or .npy files, or a URL of Parquet files.
    score : callable or type
        A function from a batch (a dict of NumPy arrays by column) to a dict with `features` and one
        of `logits`, `probs` and `log_probs`. Or a class of such callables, which is instantiated
        once per worker, for instance to load a model. The column `id` passes through.
    out : path or URL
        A new folder of Parquet files, in the order of the source. It is complete or absent; at a
        URL, where folders cannot be renamed, its files are moved there one by one when all are
        complete.
    batch_size : int
        The maximum number of rows per call of `score`.
    workers : int, optional
        The number of processes; one per CPU by default.
    gpus : float
        GPUs per worker.
    address : str, optional
        See `sabal.select_pool`.
    """
    check_whole(batch_size, "batch_size")
    if workers is not None:
        check_whole(workers, "workers")
    target = _new_folder(out)
    filled = _filled_url(target) if isinstance(target, str) else _filled(target)
    with session(address, cpus=workers), _quiet(ray_data_module()) as data:
        count = workers or cpus_of_cluster()
        parts = parts_of(source, batch_size, count)
        with filled as folder:
            # Unpickled by the worker only after `sys.path` has been extended.
            packed = ray_module().cloudpickle.dumps(score)
            scorer = (packed, sys.path, parts, batch_size, str(folder))
            _score(data, scorer, min(count, len(parts)), gpus)
    return target


class PartScorer:
    """Scores parts by number in a worker, and writes a file for each."""

    def __init__(
        self, score: bytes, paths: list[str], parts: list[DataPart], batch_size: int, folder: str
    ) -> None:
        sys.path += [path for path in paths if path not in sys.path]
        self._score = score
        self._parts = parts
        self._batch_size = batch_size
        self._folder = folder

    def __call__(self, numbers: dict[str, np.ndarray]) -> dict[str, Any]:
        """Return a report for every part: the schema that was written, or the error."""
        reports = [self._score_part(int(number)) for number in numbers["part"]]
        return {"report": np.array([json.dumps(each) for each in reports], dtype=object)}

    @cached_property
    def _model(self) -> ScoreFunction:
        # From our own driver.
        score: ScoreFunction | type = pickle.loads(self._score)  # noqa: S301  # nosec B301
        return score() if isinstance(score, type) else score

    def _score_part(self, number: int) -> dict[str, Any]:
        name = f"part-{number:06d}.parquet"
        path = join_url(self._folder, name) if is_url(self._folder) else Path(self._folder, name)
        try:
            rows, schema = write_scores(self._parts[number], self._model, self._batch_size, path)
        except SabalError as error:
            return {"error": [error.expected, error.got, error.fix]}
        except Exception as error:
            # An error in the caller's code is reported with its traceback.
            got = f"{type(error).__name__}: {error}"
            message = ["a `score` that works on every batch", got, "try it on one batch by itself"]
            return {"error": message, "traceback": traceback.format_exc()}
        return {"rows": rows, "schema": schema}


def _score(data: Any, scorer: tuple[Any, ...], workers: int, gpus: float) -> None:
    # The rows of this data set are part numbers. A worker writes each part to a file named by its
    # number, which keeps the order and makes retries after a lost machine idempotent.
    numbers = [{"part": number} for number in range(len(scorer[2]))]
    reports = (
        data.from_items(numbers, override_num_blocks=len(numbers))
        .map_batches(
            PartScorer,
            fn_constructor_args=scorer,
            compute=data.ActorPoolStrategy(size=workers),
            batch_size=1,
            batch_format="numpy",
            num_cpus=1,
            num_gpus=gpus or None,
        )
        .iter_rows()
    )
    schema = None
    try:
        for row in reports:
            report = json.loads(row["report"])
            if "error" in report:
                raise _error(report)
            schema = schema or report["schema"]
            if report["schema"] != schema:
                raise schema_mismatch(schema, report["schema"])
    except ray_module().exceptions.RayError as error:
        raise ClusterError(
            "workers that score the data set",
            reason_of(error),
            "see that the machines have enough memory, or lower batch_size",
        ) from None


def _error(report: dict[str, Any]) -> InputError:
    error = InputError(*report["error"])
    if "traceback" in report:
        error.add_note(f"In a worker:\n{report['traceback']}")
    return error


def _new_folder(out: str | Path) -> str | Path:
    if isinstance(out, str) and is_url(out):
        here = local_path(out)
        if here is None:
            _check_empty(out)
            return out
        out = here
    target = Path(out).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileError("a new folder to write to", f"{target}, which exists", "choose another")
    return target


def _check_empty(url: str) -> None:
    system, path = file_system(url)
    with url_errors(url, f"to write {url}"):
        info = system.get_file_info(path.rstrip("/"))
        if info.is_file or (info.type.name == "Directory" and files_at(url)[1]):
            raise FileError("a new folder to write to", f"{url}, which exists", "choose another")


@contextmanager
def _filled_url(url: str) -> Iterator[str]:
    """Yield the URL of a temporary folder whose files are moved to `url` at the end."""
    name = f".partial-{uuid4().hex}"
    system, target = file_system(url)
    target = target.rstrip("/")
    folder = f"{target}/{name}"
    with url_errors(url, f"to write {url}"):
        system.create_dir(folder)
    try:
        yield join_url(url, name)
        with url_errors(url, f"to write {url}"):
            for path in files_at(join_url(url, name))[1]:
                system.move(path, f"{target}/{PurePosixPath(path).name}")
    finally:
        with url_errors(url, f"to remove temporary files at {url}"):
            system.delete_dir(folder)


@contextmanager
def _filled(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that is moved to `target` when the block succeeds."""
    folder = target.with_name(f".{target.name}.{os.getpid()}")
    make_folder(folder)
    try:
        yield folder
        move_into_place(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _quiet(data: Any) -> Iterator[Any]:
    """Silence the progress bars, the log and the warnings of Ray Data."""
    log = logging.getLogger("ray.data")
    log_level = log.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context = data.DataContext.get_current()
        bars, context.enable_progress_bars = context.enable_progress_bars, False
        log.setLevel(logging.ERROR)
        try:
            yield data
        finally:
            context.enable_progress_bars = bars
            log.setLevel(log_level)
