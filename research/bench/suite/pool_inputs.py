"""The inputs of a measurement: an .npz file, or a Parquet folder that grows and shrinks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from research.bench.suite.methods import LABELED
from research.bench.suite.scales import ParquetSizes, PoolShape
from research.bench.synthetic_inputs import SyntheticData, write_inputs
from sabal.core.files import write_whole
from sabal.errors import FileError

ROW_GROUP = 65_536


class ArrayFile:
    """The .npz file of the shape requested last."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._path = folder / "inputs.npz"
        self._seed = seed
        self._made: tuple[int, ...] | None = None

    def hold(self, shape: PoolShape) -> Path:
        """Write the file for `shape`, unless it is there; the size of the batch does not matter."""
        wanted = (shape.n, shape.dimensions, shape.classes)
        if wanted != self._made:
            # A file half written by an interruption must not pass for the previous one.
            self._made = None
            write_inputs(
                self._path,
                shape.n,
                dimensions=shape.dimensions,
                classes=shape.classes,
                seed=self._seed,
                posterior=False,
                labeled=LABELED,
            )
            self._made = wanted
        return self._path

    def remove(self) -> None:
        """Delete the files."""
        self._path.unlink(missing_ok=True)
        self._made = None


class ParquetFolder:
    """A pool in files with equal numbers of rows; a smaller pool is the beginning of a larger one.

    Parameters
    ----------
    folder : Path
        Where the files are.
    files : ParquetSizes
        Their sizes.
    seed : int
        Seed of the data.
    workers : int
        Number of workers of a cluster that reads it.
    """

    def __init__(self, folder: Path, files: ParquetSizes, seed: int, workers: int) -> None:
        self._folder = folder
        self._files = files
        self._seed = seed
        self._workers = workers

    def hold(self, shape: PoolShape) -> Path:
        """Write a pool with `shape.n` rows; return a small file that describes it."""
        pool = self._folder / "pool"
        pool.mkdir(parents=True, exist_ok=True)
        # A killed job leaves its unpacked files behind.
        shutil.rmtree(self._folder / "scratch", ignore_errors=True)
        wanted = [pool / f"part-{k:05d}.parquet" for k in range(shape.n // self._files.file_rows)]
        for path in set(pool.iterdir()) - set(wanted):
            path.unlink()
        for k, path in enumerate(wanted):
            if not path.exists():
                self._write(path, k)
        described = {
            "path": str(pool.resolve()),
            "scratch": str((self._folder / "scratch").resolve()),
            "memory": self._files.memory,
            "workers": self._workers,
            "bytes": shape.n * self._files.row_bytes,
        }
        description = self._folder / "pool.json"
        description.write_text(json.dumps(described))
        return description

    def remove(self) -> None:
        """Delete the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, path: Path, number: int) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        size = [self._seed, self._files.dimensions, self._files.classes]
        maker = SyntheticData.draw(np.random.default_rng(size), *size[1:])
        features = maker.features(np.random.default_rng([*size, number]), self._files.file_rows)
        columns = {"features": features, **maker.predictions(features)}
        table = pa.table(
            {
                name: pa.FixedSizeListArray.from_arrays(array.reshape(-1), array.shape[1])
                for name, array in columns.items()
            }
        )

        def write(temporary: Path) -> None:
            # Noise has no repeated values to put into a dictionary.
            pq.write_table(table, temporary, row_group_size=ROW_GROUP, use_dictionary=False)

        write_whole(path, write)


def described(path: str, rows: int | None = None) -> Mapping[str, Any]:
    """Read the description of a `ParquetFolder`, the inputs of the jobs that read one."""
    if rows is not None:
        # Caught by job.py: a warm-up is negligible next to reading files or starting a cluster.
        raise NotImplementedError("a pool in files has no few rows to warm up on")
    facts: Mapping[str, Any] = json.loads(Path(path).read_text())
    return facts


def check_room(folder: Path, needed: int) -> None:
    """Raise an error if the disk has no room for the inputs."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise FileError(
            f"room for {needed / 1e9:.1f} GB of made-up inputs in {folder}",
            f"{free / 1e9:.1f} GB free",
            "choose another --out, or leave large parts (disk, shapes) out of --parts",
        )
