"""Time and memory of Sabal's strategies and of the same jobs in other libraries.

Jobs run one after another, each in a new process (see `research.bench.job` for what is measured and
how), on the same synthetic inputs (`research.bench.synthetic_inputs`).
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.bench.catalogue import Peer, chosen_peers
from research.bench.environments import NotInstalled, default_folder, interpreter
from research.bench.machine import machine_facts
from research.bench.process import NOT_INSTALLED, Job, JobOutcome, import_path, run_job
from research.bench.progress_bar import progress
from research.bench.strategy_plots import draw
from research.bench.strategy_rows import OURS, StrategyMeasurement, beaten_before
from research.bench.strategy_tables import peers_page
from research.bench.synthetic_inputs import JOINT_SAMPLES, POSTERIOR_SAMPLES, write_inputs
from sabal.core.checks import check_number, check_whole
from sabal.core.files import make_folder, write_text_whole
from sabal.errors import InputError
from sabal.strategies import make_strategy
from sabal.strategies import strategies as known_strategies

if TYPE_CHECKING:
    from rich.progress import Progress

SIZES = (10_000, 50_000, 200_000)
BUDGETS = (100, 1_000, 3_000)
LIMIT = 600.0
MEMORY = 16 * 2**30
RESULTS = "bench.json"
PICTURE = "bench.png"
PAGE = "bench.md"
OURS_SCRIPT = Path(__file__).parent / "sabal_methods.py"


@dataclass(frozen=True)
class BenchSettings:
    """The sizes and the limits of a benchmark."""

    sizes: tuple[int, ...]
    budgets: tuple[int, ...]
    dimensions: int
    classes: int
    limit: float
    memory: int | None
    seed: int


@dataclass(frozen=True)
class Contender:
    """A method for a job, and the Python that runs it.

    Attributes
    ----------
    job, tool, method : str
        The job, the library and its method.
    script : Path
        The file that drives the library.
    python : Path or None
        The interpreter; None if its environment could not be created.
    python_path : str
        PYTHONPATH of the process.
    reason : str
        Why there is no interpreter.
    """

    job: str
    tool: str
    method: str
    script: Path
    python: Path | None
    python_path: str = ""
    reason: str = ""

    def row(self, n: int, b: int, outcome: JobOutcome) -> StrategyMeasurement:
        """Return the measurement that records `outcome`."""
        figures = {name: value for name, value in vars(outcome).items() if name != "facts"}
        return StrategyMeasurement(
            job=self.job, tool=self.tool, method=self.method, n=n, b=b, **figures
        )


def run_strategies(
    *,
    sizes: Sequence[int] = SIZES,
    budgets: Sequence[int] = BUDGETS,
    dimensions: int = 512,
    classes: int = 10,
    strategies: Sequence[str] | None = None,
    peers: Sequence[str | Peer] | None = None,
    limit: float = LIMIT,
    memory: int | None = MEMORY,
    envs: str | Path | None = None,
    out: str | Path | None = None,
    seed: int = 0,
) -> list[StrategyMeasurement]:
    """Measure every strategy and its equivalents in other libraries at each size and budget.

    Parameters
    ----------
    sizes, budgets : sequence of int
        Sizes of the pools and batches; budgets above the size of a pool are left out.
    dimensions, classes : int
        Shape of the synthetic features and predictions.
    strategies : sequence of str, optional
        Names out of `sabal strategies`; all registered ones by default.
    peers : sequence of str or Peer, optional
        Names out of `research.bench.catalogue.PEERS`; all by default, () for none.
    limit, memory : float, int or None
        Seconds for one selection, and bytes of address space for its process. A method that
        exceeds a limit is not tried at larger sizes.
    envs : path, optional
        The folder of the libraries' environments; ~/.cache/sabal/bench by default.
    out : path, optional
        A folder for bench.json, bench.md and bench.png.
    seed : int
        Seed of the inputs and the selections.

    Returns
    -------
    list of StrategyMeasurement
    """
    settings = _checked(sizes, budgets, dimensions, classes, limit, memory, seed)
    jobs = list(known_strategies()) if strategies is None else list(dict.fromkeys(strategies))
    for job in jobs:
        make_strategy(job, {})
    rivals = chosen_peers(peers)
    facts = _facts(settings, jobs, rivals)
    if out is not None:
        make_folder(Path(out))
    rows: list[StrategyMeasurement] = []
    environments = default_folder() if envs is None else Path(envs)
    with progress() as bar:
        for row in _measured(_contenders(jobs, rivals, environments, bar), settings, bar):
            rows.append(row)
            if out is not None:
                results = json.dumps(document(rows, facts), indent=1)
                write_text_whole(Path(out) / RESULTS, results + "\n")
    if out is not None and rows:
        draw(rows, Path(out) / PICTURE)
        page = peers_page(rows, machine_facts(), facts, PICTURE)
        write_text_whole(Path(out) / PAGE, page)
    return rows


def _facts(settings: BenchSettings, jobs: Sequence[str], rivals: Sequence[Peer]) -> dict[str, Any]:
    """Return the settings as they are written next to the results."""
    return {
        **asdict(settings),
        "posterior_samples": POSTERIOR_SAMPLES,
        "joint_samples": JOINT_SAMPLES,
        "coverage": {job: {peer.name: peer.coverage(job) for peer in rivals} for job in jobs},
    }


def _checked(
    sizes: Sequence[int],
    budgets: Sequence[int],
    dimensions: int,
    classes: int,
    limit: float,
    memory: int | None,
    seed: int,
) -> BenchSettings:
    settings = BenchSettings(
        sizes=tuple(sorted({check_whole(n, "sizes") for n in sizes})),
        budgets=tuple(sorted({check_whole(b, "budgets") for b in budgets})),
        dimensions=check_whole(dimensions, "dimensions"),
        classes=check_whole(classes, "classes", minimum=2),
        limit=check_number(limit, "limit", above=0.0),
        memory=None if memory is None else check_whole(memory, "memory"),
        seed=check_whole(seed, "seed", minimum=0),
    )
    if min(settings.budgets, default=0) > max(settings.sizes, default=0):
        raise InputError(
            "a budget that fits into a pool",
            f"budgets from {min(budgets)}, sizes up to {max(sizes)}",
            "lower a budget or raise a size",
        )
    return settings


def _measured(
    contenders: Sequence[Contender], settings: BenchSettings, bar: Progress
) -> Iterator[StrategyMeasurement]:
    """Measure every contender at every size, smallest first."""
    sizes = [(n, b) for n in settings.sizes for b in settings.budgets if b <= n]
    task = bar.add_task("", total=len(sizes) * len(contenders))
    rows: list[StrategyMeasurement] = []
    with tempfile.TemporaryDirectory(prefix="sabal-bench-") as scratch:
        inputs, made_for = Path(scratch) / "inputs.npz", 0
        for n, b in sizes:
            if n != made_for:
                bar.update(task, description=f"making inputs, n={n}")
                write_inputs(
                    inputs,
                    n,
                    dimensions=settings.dimensions,
                    classes=settings.classes,
                    seed=settings.seed,
                )
                made_for = n
            for contender in contenders:
                bar.update(task, description=f"n={n} b={b} {contender.tool} {contender.method}")
                outcome = beaten_before(rows, contender.tool, contender.method, n, b)
                if outcome is None:
                    outcome = _outcome(contender, inputs, n, b, settings)
                rows.append(contender.row(n, b, outcome))
                yield rows[-1]
                bar.advance(task)


def document(
    rows: Sequence[StrategyMeasurement], settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return rows, machine and settings as one JSON object."""
    return {
        "machine": machine_facts(),
        "settings": dict(settings or {}),
        "rows": [row.as_dict() for row in rows],
    }


def _outcome(
    contender: Contender, inputs: Path, n: int, b: int, settings: BenchSettings
) -> JobOutcome:
    if contender.python is None:
        return JobOutcome(NOT_INSTALLED, f"not installed: {contender.reason}")
    job = Job(
        python=contender.python,
        script=contender.script,
        method=contender.method,
        inputs=inputs,
        items=n,
        budget=b,
        seed=settings.seed,
        python_path=contender.python_path,
    )
    return run_job(job, limit=settings.limit, memory=settings.memory)


def _contenders(
    jobs: Sequence[str], rivals: Sequence[Peer], envs: Path, bar: Progress
) -> list[Contender]:
    """Return the methods for each job, Sabal's first; missing environments are created."""
    pythons: dict[str, Path] = {}
    reasons: dict[str, str] = {}
    for peer in rivals:
        if not any(job in peer.jobs for job in jobs):
            continue
        task = bar.add_task(f"installing {peer.name}", total=None)
        try:
            pythons[peer.name] = interpreter(peer, envs)
        except NotInstalled as error:
            reasons[peer.name] = str(error)
        bar.remove_task(task)
    # The running Sabal is the one that is measured.
    here = import_path()
    found = []
    for job in jobs:
        found.append(Contender(job, OURS, job, OURS_SCRIPT, Path(sys.executable), here))
        for peer in rivals:
            for method in peer.jobs.get(job, ()):
                python, reason = pythons.get(peer.name), reasons.get(peer.name, "")
                found.append(Contender(job, peer.name, method, peer.script, python, "", reason))
    return found
