"""`sabal simulate`: run an experiment and write a folder with its results.

The folder has config.json, results.parquet (a row per strategy, seed and round),
selections.parquet, curves.png and report.html. The journals of the runs are below runs/.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sabal.core.extras import import_optional
from sabal.core.files import write_whole
from sabal.errors import FileError, counted
from sabal.loop import Journal
from sabal.simulate.curves import Point
from sabal.simulate.experiment import Experiment
from sabal.simulate.html_report import write_report
from sabal.simulate.plots import draw_curves
from sabal.simulate.runner import run_experiment, selections_of


def simulate(experiment: Experiment, folder: Path, **how: Any) -> list[Point]:
    """Do the runs that are missing (`how`: see `run_experiment`), then write the results of all."""
    for module in ("pyarrow", "matplotlib"):
        import_optional(module, "simulate", "to write the results of a run")
    points = run_experiment(experiment, folder, **how)
    order = {name: k for k, name in enumerate(experiment.strategies)}
    points.sort(key=lambda p: (order[p.strategy], p.seed, p.round))
    _write_table([asdict(point) for point in points], folder / "results.parquet")
    _write_table(selections_of(experiment, folder), folder / "selections.parquet")
    write_pages(points, read_config(folder), folder)
    return points


def write_pages(points: Sequence[Point], config: dict[str, Any], folder: Path) -> Path:
    """Write the picture and the report."""
    title = f"{config['dataset']}, {config['model']}, {counted(config['seeds'], 'seed')}"
    picture = draw_curves(points, title, folder / "curves.png")
    return write_report(points, config, picture, folder / "report.html")


def read_points(folder: Path) -> list[Point]:
    """Read the results of a run folder; raise a FileError if it has none."""
    pa = import_optional("pyarrow", "simulate", "to read the results of a run")
    pq = import_optional("pyarrow.parquet", "simulate", "to read the results of a run")

    path = folder / "results.parquet"
    if not path.is_file():
        raise FileError(
            f"finished runs at {folder}",
            "no results.parquet in it",
            "start the command again that it was begun with",
        )
    try:
        points = [Point(**row) for row in pq.read_table(path).to_pylist()]
        for point in points:
            point.check()
        if not points:
            raise ValueError("no rows")
    except (OSError, pa.ArrowException, TypeError, ValueError) as error:
        raise FileError(
            f"readable results in {path}", str(error), "run the same `sabal simulate` again"
        ) from None
    return points


def read_config(folder: Path) -> dict[str, Any]:
    """Read and check the configuration of a run folder."""
    config = Journal(folder).config()
    wrong = [name for name in ("dataset", "model") if not _is_text(config.get(name))]
    wrong += ["seeds"] if type(config.get("seeds")) is not int else []
    if wrong:
        raise FileError(
            f"the configuration of a run in {folder / 'config.json'}",
            f"one without a usable {', '.join(wrong)}",
            "run the same `sabal simulate` again, in a new folder",
        )
    return config


def _is_text(value: Any) -> bool:
    # JSON can name halves of characters, which no font has and no file can store.
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _write_table(rows: list[dict[str, Any]], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(rows)
    write_whole(path, lambda target: pq.write_table(table, target))
