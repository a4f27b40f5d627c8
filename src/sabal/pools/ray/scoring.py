"""Let a model say what it says of a data set, on a Ray cluster; what it says is a pool."""

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
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.checks import check_whole
from sabal.core.files import make_folder
from sabal.errors import ClusterError, FileError, InputError, SabalError
from sabal.pools.ray.score_parts import Part, Score, different, parts_of, write_scores
from sabal.pools.ray.session import (
    cpus_of_cluster,
    ray_data_module,
    ray_module,
    reason_of,
    session,
)
from sabal.pools.remote import is_remote


def score_with_ray(
    source: str | Path,
    score: Score | type,
    out: str | Path,
    *,
    batch_size: int = 1024,
    workers: int | None = None,
    gpus: float = 0.0,
    address: str | None = None,
) -> Path:
    """Score a data set with a model through Ray Data; `sabal select` reads what comes of it.

    source: a .parquet file, a folder of .parquet or .npy files, or a URL of Parquet files.
    score: a function from a batch, a dict of NumPy arrays by column, to a dict with `features` and
        one of `logits`, `probs` and `log_probs`; or a class whose objects are such functions, made
        once in every worker: the place to load a model. The column `id` passes through.
    out: a new folder of Parquet files, in the order of the source; whole or absent.
    batch_size: rows that `score` sees at a time, at most. workers: processes; by default one for
        every CPU. gpus: for each of them. address: see `sabal.select_pool`.
    """
    check_whole(batch_size, "batch_size")
    if workers is not None:
        check_whole(workers, "workers")
    target = _new_folder(out)
    with session(address, cpus=workers), _quiet(ray_data_module()) as data:
        count = workers or cpus_of_cluster()
        parts = parts_of(source, batch_size, count)
        with _filled(target) as folder:
            # Pickled here, to be unpickled where its module can be found.
            packed = ray_module().cloudpickle.dumps(score)
            scorer = (packed, sys.path, parts, batch_size, str(folder))
            _score(data, scorer, min(count, len(parts)), gpus)
    return target


class PartScorer:
    """In a worker: scores parts by their number, and writes a file for each."""

    def __init__(
        self, score: bytes, paths: list[str], parts: list[Part], batch_size: int, folder: str
    ) -> None:
        sys.path += [path for path in paths if path not in sys.path]
        self._score = score
        self._parts = parts
        self._batch_size = batch_size
        self._folder = Path(folder)

    def __call__(self, numbers: dict[str, np.ndarray]) -> dict[str, Any]:
        """The columns of what was written, or what went wrong, for every part."""
        told = [self._tell(int(number)) for number in numbers["part"]]
        return {"told": np.array([json.dumps(each) for each in told], dtype=object)}

    @cached_property
    def _model(self) -> Score:
        # From our own driver.
        score: Score | type = pickle.loads(self._score)  # noqa: S301  # nosec B301
        return score() if isinstance(score, type) else score

    def _tell(self, number: int) -> dict[str, Any]:
        path = self._folder / f"part-{number:06d}.parquet"
        try:
            rows, schema = write_scores(self._parts[number], self._model, self._batch_size, path)
        except SabalError as error:
            return {"error": [error.expected, error.got, error.fix]}
        except Exception as error:
            # The caller's own code: where it went wrong is for them to see.
            wrong = f"{type(error).__name__}: {error}"
            said = ["a `score` that works on every batch", wrong, "try it on one batch by itself"]
            return {"error": said, "traceback": traceback.format_exc()}
        return {"rows": rows, "schema": schema}


def _score(data: Any, scorer: tuple[Any, ...], workers: int, gpus: float) -> None:
    # The rows of this data set are numbers of parts. Each is written by whoever scores it, to a
    # file that is called by its number: so the order is kept, and a part that is done again when a
    # machine was lost is not there twice.
    numbers = [{"part": number} for number in range(len(scorer[2]))]
    told = (
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
        for row in told:
            about = json.loads(row["told"])
            if "error" in about:
                raise _error(about)
            schema = schema or about["schema"]
            if about["schema"] != schema:
                raise different(schema, about["schema"])
    except ray_module().exceptions.RayError as error:
        raise ClusterError(
            "workers that score the data set",
            reason_of(error),
            "see that the machines have enough memory, or lower batch_size",
        ) from None


def _error(about: dict[str, Any]) -> InputError:
    error = InputError(*about["error"])
    if "traceback" in about:
        error.add_note(f"In a worker:\n{about['traceback']}")
    return error


def _new_folder(out: str | Path) -> Path:
    if is_remote(os.fspath(out)):
        raise FileError(
            "a folder to write to that all machines share",
            f"the URL {out}",
            "write to a folder, then copy it",
        )
    target = Path(out).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileError("a new folder to write to", f"{target}, which exists", "choose another")
    return target


@contextmanager
def _filled(target: Path) -> Iterator[Path]:
    """A folder beside `target` that takes its place once it is complete."""
    folder = target.with_name(f".{target.name}.{os.getpid()}")
    make_folder(folder)
    try:
        yield folder
        try:
            folder.rename(target)
        except OSError as error:
            raise FileError(f"to write {target}", str(error), "choose another folder") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _quiet(data: Any) -> Iterator[Any]:
    """Ray Data without its progress bars, its log, and its warnings about itself."""
    log = logging.getLogger("ray.data")
    level = log.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context = data.DataContext.get_current()
        bars, context.enable_progress_bars = context.enable_progress_bars, False
        log.setLevel(logging.ERROR)
        try:
            yield data
        finally:
            context.enable_progress_bars = bars
            log.setLevel(level)
