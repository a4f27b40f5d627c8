"""`sabal simulate` and `sabal report`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from sabal.cli.parse import parse_engine, parse_names, parse_options
from sabal.cli.root import app, only_answers_on_stdout, resumable
from sabal.errors import SabalWarning


@app.command()
def simulate(
    dataset: Annotated[
        str,
        typer.Argument(
            help="digits, mnist, fashion-mnist, cifar10, cifar100 or svhn; or your own: npz:FILE "
            "(x_train, y_train, x_test, y_test, or x and y), a folder with a sub-folder of images "
            "for every class, or a .csv file with the columns text and label."
        ),
    ],
    strategies: Annotated[
        str, typer.Option(help="Names out of `sabal strategies`, with commas between.")
    ] = "sabal,badge,margin,random",
    seeds: Annotated[int, typer.Option(help="How many times each, with paired draws.")] = 5,
    initial: Annotated[
        int, typer.Option("--init", "--initial", help="Labels before the first choice.")
    ] = 20,
    batch: Annotated[int, typer.Option(help="Labels a round.")] = 20,
    rounds: Annotated[int, typer.Option(help="Rounds after the first labels.")] = 8,
    model: Annotated[
        str,
        typer.Option(
            help="What is trained in every round: logistic, forest, or a network (with PyTorch): "
            "mlp, mlp-variational, lenet5, vgg16, resnet18, resnet18-variational."
        ),
    ] = "logistic",
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the network or its training, for instance epochs=50 or width=0.5. "
            "Repeatable.",
        ),
    ] = None,
    validation: Annotated[
        int, typer.Option(help="Training items to hold out for the temperature of networks.")
    ] = 0,
    pool: Annotated[
        int | None, typer.Option(help="Choose among this many training items only [all].")
    ] = None,
    first: Annotated[
        str, typer.Option(help="How the first labels are chosen: random or typiclust.")
    ] = "random",
    weighted: Annotated[bool, typer.Option(help="Train with the weights of a batch.")] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Runs side by side [1; with ray, one for every CPU].")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="local, or ray to spread the runs over a cluster.")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster [a Ray on this machine].")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where NAME.npz files of the data sets are.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The run folder [runs/DATASET].")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Play a whole experiment with hidden labels, and say whether and how active learning helps.

    It ends with the strategy to use on these data, from five seeds on.

    The same command on the same folder goes on where it stopped, and repeats nothing.

    Example: `sabal simulate digits --strategies sabal,margin,random --seeds 3 --out runs/digits`
    """
    from sabal.simulate.experiment import Experiment
    from sabal.simulate.runner import rounds_done
    from sabal.simulate.simulation import simulate as run
    from sabal.simulate.terminal_report import print_results, progress

    experiment = Experiment(
        dataset=dataset,
        strategies=parse_names(strategies, "--strategies"),
        seeds=seeds,
        initial=initial,
        batch=batch,
        rounds=rounds,
        model=model,
        first=first,
        weighted=weighted,
        data_dir=None if data_dir is None else str(data_dir),
        recipe=parse_options(changes or [], "--set", "epochs=50"),
        validation=validation,
        pool=pool,
    )
    parse_engine(engine, address=address)
    folder = out or Path("runs") / dataset.replace(":", "-").replace("/", "-")
    already_done = rounds_done(experiment, folder)
    with resumable("the same command goes on"), warnings.catch_warnings():
        warnings.simplefilter("ignore", SabalWarning)
        with progress(experiment, already_done) as on_round, only_answers_on_stdout(engine):
            points = run(
                experiment, folder, jobs=jobs, on_round=on_round, engine=engine, address=address
            )
    print_results(points, folder, as_json=as_json)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run folder of `sabal simulate`.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Print the results of a run folder, and write its picture and page again.

    Example: `sabal report runs/digits`
    """
    from sabal.simulate.simulation import read_config, read_points, write_pages
    from sabal.simulate.terminal_report import print_results

    points = read_points(run)
    write_pages(points, read_config(run), run)
    print_results(points, run, as_json=as_json)
