"""The command line: parse, call, print."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import sabal
from sabal.api import choose
from sabal.errors import InputError, SabalError, SabalWarning
from sabal.selection import check_destination

app = typer.Typer(
    name="sabal",
    help="Sabal chooses what to label next.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
bench_app = typer.Typer(
    help="Measure how fast Sabal is, and how much memory it takes.", no_args_is_help=True
)
app.add_typer(bench_app, name="bench")


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    try:
        result = app(standalone_mode=False)
    except SabalError as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", code=130)
    except Exception as error:
        # Usage errors of the parser, whichever package it lives in, carry their own message.
        if not hasattr(error, "format_message"):
            raise
        if not error.format_message():
            sys.exit(2)  # `sabal` alone: its help has been printed
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "sabal"
        _fail(f"{error.format_message().rstrip('.')}; try `{command} --help`")
    else:
        sys.exit(result if isinstance(result, int) else 0)


def _fail(message: str, code: int = 2) -> None:
    print(f"sabal: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def _version(asked: bool) -> None:
    if asked:
        print(f"sabal {sabal.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Sabal chooses what to label next: batch active learning by sparse approximation."""


@app.command()
def select(
    pool: Annotated[
        Path, typer.Argument(help=".npz, .parquet (file or folder) or a folder of .npy.")
    ],
    budget: Annotated[int, typer.Option("--budget", "-b", help="How many items to choose.")],
    strategy: Annotated[
        str, typer.Option("--strategy", "-s", help="A name out of `sabal strategies`.")
    ] = "sabal",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write to .csv, .jsonl or .parquet.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides every random draw.")] = 0,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the strategy, as name=value.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the batch and its evidence as JSON.")
    ] = False,
) -> None:
    """Choose the next batch to label from a pool file.

    The pool has an array or column `features` and one of `logits`, `probs` or `log_probs`; `id` and
    `label_probs` if you have them.

    Example: `sabal select pool.npz --budget 100 --out batch.csv`
    """
    from sabal.pools import NAMES, read_pool
    from sabal.show import print_selection

    options = _parse_options(option or [])
    if out is not None:
        check_destination(out)
    with warnings.catch_warnings():
        # Warnings are part of the evidence and printed with it.
        warnings.simplefilter("ignore", SabalWarning)
        contents = read_pool(pool)
        selection = choose(contents.outputs.check(), budget, strategy, seed, options)
    if out is not None:
        selection.save(out)
    if as_json:
        print(json.dumps({"items": selection.rows(), "evidence": selection.evidence}))
    else:
        print_selection(selection, out)
        if contents.ignored:
            print(f"Not used: {', '.join(contents.ignored)} (a pool has {', '.join(NAMES)})")


@app.command()
def strategies(
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """List the strategies: what each needs, where it comes from and what it costs.

    Example: `sabal strategies --json`
    """
    from sabal.show import print_strategies, strategy_rows

    if as_json:
        print(json.dumps(strategy_rows()))
    else:
        print_strategies()


@app.command()
def simulate(
    dataset: Annotated[
        str,
        typer.Argument(help="digits, mnist, fashion-mnist, cifar10, cifar100, svhn, npz:FILE, ..."),
    ],
    strategies: Annotated[
        str, typer.Option(help="Names out of `sabal strategies`, with commas between.")
    ] = "sabal,badge,margin,random",
    seeds: Annotated[int, typer.Option(help="How many times each, with paired draws.")] = 5,
    initial: Annotated[int, typer.Option("--init", help="Labels before the first choice.")] = 20,
    batch: Annotated[int, typer.Option(help="Labels a round.")] = 20,
    rounds: Annotated[int, typer.Option(help="Rounds after the first labels.")] = 8,
    model: Annotated[
        str, typer.Option(help="What is trained in every round: logistic or forest.")
    ] = "logistic",
    first: Annotated[
        str, typer.Option(help="How the first labels are chosen: random or typiclust.")
    ] = "random",
    weighted: Annotated[bool, typer.Option(help="Train with the weights of a batch.")] = False,
    jobs: Annotated[int, typer.Option(help="Runs side by side.")] = 1,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where NAME.npz files of the data sets are.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The run folder [runs/DATASET].")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Play a whole experiment with hidden labels, and say whether active learning helps.

    The same command on the same folder goes on where it stopped, and repeats nothing.

    Example: `sabal simulate digits --strategies sabal,margin,random --seeds 3 --out runs/digits`
    """
    from sabal.experiments.runner import Experiment
    from sabal.experiments.show import print_results, progress
    from sabal.experiments.simulate import simulate as run

    experiment = Experiment(
        dataset=dataset,
        strategies=tuple(dict.fromkeys(strategies.split(","))),
        seeds=seeds,
        initial=initial,
        batch=batch,
        rounds=rounds,
        model=model,
        first=first,
        weighted=weighted,
        data_dir=None if data_dir is None else str(data_dir),
    )
    folder = out or Path("runs") / dataset.replace(":", "-").replace("/", "-")
    with warnings.catch_warnings(), progress(experiment) as on_round:
        warnings.simplefilter("ignore", SabalWarning)
        points = run(experiment, folder, jobs=jobs, on_round=on_round)
    print_results(points, folder, as_json=as_json)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run folder of `sabal simulate`.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Print the results of a run folder, and write its picture and page again.

    Example: `sabal report runs/digits`
    """
    from sabal.experiments.show import print_results
    from sabal.experiments.simulate import read_config, read_points, write_pages

    points = read_points(run)
    write_pages(points, read_config(run), run)
    print_results(points, run, as_json=as_json)


@bench_app.command("strategies")
def bench_strategies(
    sizes: Annotated[str, typer.Option(help="Pool sizes.")] = "10000,50000,200000",
    budgets: Annotated[str, typer.Option(help="Batch sizes.")] = "100,1000,3000",
    dimensions: Annotated[int, typer.Option(help="Width of the features.")] = 512,
    classes: Annotated[int, typer.Option(help="Number of classes.")] = 10,
    strategies: Annotated[
        str | None, typer.Option(help="Names out of `sabal strategies`; all if left out.")
    ] = None,
    peers: Annotated[
        str | None, typer.Option(help="Other libraries to measure, or `none`; all if left out.")
    ] = None,
    limit: Annotated[float, typer.Option(help="Seconds after which a selection is killed.")] = 600,
    envs: Annotated[
        Path | None, typer.Option(help="Where to install other libraries [~/.cache/sabal/bench].")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")] = Path(
        "bench"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Time and peak memory of every strategy, beside the same job in other libraries.

    One selection after another, each in a process of its own. Other libraries are installed into
    environments of their own on first use.

    Example: `sabal bench strategies --sizes 10000 --budgets 100 --peers none`
    """
    from sabal.bench import document, results_table, run_strategies
    from sabal.show import print_table

    rows = run_strategies(
        sizes=_numbers(sizes, "--sizes"),
        budgets=_numbers(budgets, "--budgets"),
        dimensions=dimensions,
        classes=classes,
        strategies=None if strategies is None else strategies.split(","),
        peers=[] if peers == "none" else None if peers is None else peers.split(","),
        limit=limit,
        envs=envs,
        out=out,
    )
    if as_json:
        print(json.dumps(document(rows)))
    else:
        print_table(results_table(rows))
        print(f"Results and picture in {out}")


def _numbers(text: str, name: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"{name} as whole numbers with commas between",
            repr(text),
            "write for instance 100,1000",
        ) from None


def _parse_options(texts: list[str]) -> dict[str, Any]:
    pairs = [_parse_option(text) for text in texts]
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise InputError("every --option once", f"`{name}` twice", "leave one of them out")
    return dict(pairs)


def _parse_option(text: str) -> tuple[str, Any]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise InputError("--option as name=value", repr(text), "write for instance alpha=2.0")
    try:
        return name.replace("-", "_"), json.loads(value)
    except json.JSONDecodeError:
        # Words need no quotes: uncertainty=entropy.
        return name.replace("-", "_"), value
