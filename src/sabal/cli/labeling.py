"""Commands of the labelling app: `sabal init`, `label`, `add`, `import`, `export` and `predict`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabal.cli.parse import parse_options, parse_out
from sabal.cli.root import app
from sabal.core.checks import check_choice
from sabal.errors import InputError, counted

if TYPE_CHECKING:
    from sabal.labeling.project import Project
    from sabal.labeling.store.records import ImportReport, Status

SHOWN_IDS = 5
STEPS = {
    "features": "computing features",
    "train": "trained",
    "choose": "chose the next batch",
    "predict": "predicted the labels of all batches",
    "assess": "estimated what more labels would bring",
}
"""How the steps of the engine are reported."""

ProjectFolder = Annotated[Path, typer.Argument(help="The folder of the project.")]


@app.command()
def init(
    project: Annotated[Path, typer.Argument(help="The folder to make; it holds everything.")],
    data: Annotated[
        Path,
        typer.Option(
            help="What to label: a folder of images, a .csv or .jsonl file of texts, or a .parquet "
            "file with a column `features`."
        ),
    ],
    classes: Annotated[
        str | None, typer.Option(help="The names of the classes, with commas between.")
    ] = None,
    one_class: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="NAME", help="One class, commas and all. Repeatable."),
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(help="The column that holds the text [text].")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="The column that names the items [id, or the row].")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of the project [that of the folder].")] = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", "-s", help="Out of `sabal strategies` [sabal].")
    ] = None,
    first: Annotated[
        str | None, typer.Option(help="How the first batch is chosen: random or typiclust.")
    ] = None,
    initial: Annotated[int | None, typer.Option(help="Items in the first batch [20].")] = None,
    batch: Annotated[int | None, typer.Option(help="Items in every later one [20].")] = None,
    budget: Annotated[int | None, typer.Option(help="Labels in all [500].")] = None,
    check_share: Annotated[
        float | None,
        typer.Option(help="Random items beside a batch, to measure with: a share of it [0.1]."),
    ] = None,
    choose_at: Annotated[
        float | None,
        typer.Option(help="The share of a batch after which the next one is chosen [0.8]."),
    ] = None,
    overlap: Annotated[int | None, typer.Option(help="People who answer an item [1].")] = None,
    backbone: Annotated[
        str | None, typer.Option(help="What makes features of images or texts [auto].")
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(help="What learns from the features: linear, or lenet for pixels [auto]."),
    ] = None,
    database_url: Annotated[
        str | None, typer.Option(help="PostgreSQL for a team [SQLite in the folder].")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides every random draw [0].")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the strategy, as name=value.")
    ] = None,
) -> None:
    """Begin to label: make the folder of a project.

    The other settings are in the sabal.toml of that folder.

    Example: `sabal init pets --data photos/ --classes cat,dog,other`
    """
    from sabal.labeling.features.describe import learns_with
    from sabal.labeling.project import Project

    given: dict[str, Any] = {
        "strategy": strategy,
        "first": first,
        "initial": initial,
        "batch": batch,
        "budget": budget,
        "check_share": check_share,
        "choose_at": choose_at,
        "overlap": overlap,
        "backbone": backbone,
        "head": head,
        "database_url": database_url,
        "seed": seed,
        "options": parse_options(option or []) or None,
    }
    made = Project.create(
        project,
        data=data,
        classes=_classes(classes, one_class or []),
        text_column=text_column,
        id_column=id_column,
        name=name,
        **{setting: value for setting, value in given.items() if value is not None},
    )
    with made:
        items = counted(made.store.status().items, "item")
        print(f"{items} to choose from; settings in {project}/sabal.toml")
        print(learns_with(made))
        print(f"Go on with: sabal label {project}")


@app.command()
def label(
    project: ProjectFolder,
    port: Annotated[
        int | None, typer.Option(help="Where to listen [8760, or a free one].", min=0, max=65_535)
    ] = None,
    host: Annotated[
        str, typer.Option(help="0.0.0.0 lets other machines in, with a token.")
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    token: Annotated[
        str | None,
        typer.Option(envvar="SABAL_TOKEN", help="What others must show [made up when needed]."),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(
            envvar="SABAL_PUBLIC_URL",
            help="Where a web server in front publishes it, as https://label.example.org.",
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="A web server in front, whose X-Forwarded-For is believed. Repeatable.",
        ),
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Make the folder first: handwritten digits.")
    ] = False,
) -> None:
    """Label in the browser: the batch that was chosen, then the next one.

    A worker trains and chooses beside it. Whatever was answered is stored at once; the same command
    goes on where it stopped.

    Example: `sabal label pets --port 8760 --no-browser`
    """
    from sabal.labeling.features.describe import learns_with
    from sabal.labeling.project import Project
    from sabal.labeling.web import serve

    if example and not (project / "sabal.toml").exists():
        from sabal.labeling.example import make_example

        opened = make_example(project)
    else:
        opened = Project.open(project)
    with opened:
        missing = opened.missing_images()
        if missing:
            shown = ", ".join(map(repr, missing[:SHOWN_IDS]))
            more = ", ..." if len(missing) > SHOWN_IDS else ""
            say(f"{counted(len(missing), 'image')} not there any more: {shown}{more}")
        say(learns_with(opened))
        serve(
            opened,
            host=host,
            port=port,
            browser=browser,
            token=token,
            proxies=proxy or (),
            public_url=public_url,
            announce=_announce,
        )
        print("Stopped. Every answer is stored.")


@app.command()
def add(
    project: ProjectFolder,
    data: Annotated[
        Path, typer.Argument(help="A folder of images, or a .csv, .jsonl or .parquet file.")
    ],
    text_column: Annotated[
        str | None, typer.Option(help="The column that holds the text [as in the project].")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="The column that names the items [as in the project].")
    ] = None,
) -> None:
    """Add items to the pool, also while the app runs.

    Features are computed for the new items only. Items that are there already are left out, so a
    file or folder that has grown can be added again.

    Example: `sabal add pets more-photos/`
    """
    from sabal.labeling.adding import add_data
    from sabal.labeling.project import Project

    with Project.open(project) as opened:
        report = add_data(opened, data, text_column=text_column, id_column=id_column)
    already = f"; {report.already:,} there already" if report.already else ""
    print(f"{counted(report.added, 'item')} added{already}")


@app.command("import")
def import_labels(
    project: ProjectFolder,
    file: Annotated[Path, typer.Argument(help="Labels in one of the formats of `sabal export`.")],
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="csv, jsonl, parquet, label-studio, cvat or fiftyone [by its ending].",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Add labels that were given elsewhere; a file with an invalid row adds nothing.

    A file has at least the columns `id` and `label`; Label Studio's is its JSON export. Importing a
    file again adds nothing.

    Example: `sabal import pets labelled.json`
    """
    from sabal.labeling.exchange.importing import import_file
    from sabal.labeling.project import Project

    with Project.open(project) as opened:
        imported = import_file(opened.store, file, format)
    if as_json:
        print(json.dumps(asdict(imported)))
    else:
        print(_report(imported))
    if imported.unknown:
        shown = ", ".join(map(repr, imported.unknown[:SHOWN_IDS]))
        more = ", ..." if len(imported.unknown) > SHOWN_IDS else ""
        say(f"{counted(len(imported.unknown), 'id')} not in this project: {shown}{more}")


@app.command()
def export(
    project: ProjectFolder,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="csv, jsonl, parquet, label-studio, cvat or fiftyone [by the ending, or csv].",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write [-: standard output].")
    ] = None,
    batch: Annotated[
        bool,
        typer.Option("--batch", help="What waits for a label instead; choose it first if due."),
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(help="Write Label Studio's interface, or CVAT's labels, there, too."),
    ] = None,
    media_url: Annotated[
        str | None,
        typer.Option(help="Where Label Studio finds images: what comes before their paths."),
    ] = None,
) -> None:
    """Write the current labels, a row each, or with `--batch` the items to label.

    To label in Label Studio or a spreadsheet: export a batch, label it there, import it, and export
    the next one.

    Example: `sabal export pets --format csv --out labels.csv`
    """
    from sabal.core.files import is_standard_output, write_bytes_whole, write_text_whole
    from sabal.labeling.exchange.exporting import IMAGE_WRITERS, export_file, export_images
    from sabal.labeling.exchange.formats import format_to_write
    from sabal.labeling.exchange.image_tools import cvat_labels
    from sabal.labeling.exchange.label_studio import LOCAL_FILES, label_config
    from sabal.labeling.project import Project

    target = parse_out(out)
    chosen = format or format_to_write(target)
    if out is None and chosen == "parquet":
        raise InputError("--out FILE with parquet", "none", "name a file")
    where = LOCAL_FILES if media_url is None else media_url
    # A batch may have to be chosen first; for labels, read permission is enough.
    with Project.open(project, to_read=not batch) as opened:
        if batch:
            _choose_if_due(opened)
        if chosen in IMAGE_WRITERS:
            write_bytes_whole(target, export_images(opened, chosen, batch=batch))
        else:
            export_file(opened.store, target, chosen, batch=batch, media_url=where)
        if not is_standard_output(target):
            print(f"Written to {target}")
        if batch:
            _report_open_items(opened.store.status())
    if config is not None:
        classes, kind = opened.classes, opened.settings.kind
        text = cvat_labels(classes) if chosen == "cvat" else label_config(classes, kind)
        write_text_whole(config, text)


@app.command()
def predict(
    project: ProjectFolder,
    data: Annotated[
        Path, typer.Argument(help="A folder of images, or a .csv, .jsonl or .parquet file.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write [-: standard output].")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option("--format", "-f", help="csv, jsonl or parquet [by the ending, or csv]."),
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(help="The column that holds the text [as in the project].")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="The column that names the items [as in the project].")
    ] = None,
) -> None:
    """Predict the classes of other data with the latest model of a project.

    A row has the id of an item, the predicted label, its probability and that of every class.

    Example: `sabal predict pets new-photos/ --out predictions.csv`
    """
    from sabal.core.files import is_standard_output, write_bytes_whole
    from sabal.labeling.exchange.exporting import WRITERS
    from sabal.labeling.exchange.formats import format_to_write
    from sabal.labeling.predicting import predict as predictions_for
    from sabal.labeling.predicting import prediction_columns
    from sabal.labeling.project import Project

    target = parse_out(out)
    chosen = check_choice(format or format_to_write(target), "format", tuple(WRITERS))
    with Project.open(project, to_read=True) as opened:
        rows = predictions_for(opened, data, text_column=text_column, id_column=id_column)
        written = WRITERS[chosen](rows, prediction_columns(opened))
    write_bytes_whole(target, written)
    unread = sum("label" not in row for row in rows)
    if unread:
        say(f"{counted(unread, 'item')} could not be read, and left without a label")
    if not is_standard_output(target):
        print(f"Written to {target}: {counted(len(rows), 'item')}")


def _classes(with_commas: str | None, one_by_one: list[str]) -> tuple[str, ...]:
    # Not cleaned: an empty or repeated name is a mistake that the settings refuse.
    named = () if with_commas is None else [name.strip() for name in with_commas.split(",")]
    return (*named, *one_by_one)


def _choose_if_due(project: Project) -> None:
    """Do what the worker of the app would do now: compute features, train and choose."""
    from sabal.labeling.engine import Engine

    engine, reported = Engine(project), ""
    while (done := engine.step()) is not None:
        # Features come in many steps.
        if done != reported:
            say(STEPS[done])
        reported = done


def _report_open_items(status: Status) -> None:
    """Report that items wait for another annotator, or why an exported batch is empty."""
    if status.waits_for:
        say(status.waits_for)
    elif not status.remaining:
        say(f"nothing waits for a label{f': {status.ended}' if status.ended else ''}")


def _report(imported: ImportReport) -> str:
    parts = [f"{counted(imported.labels, 'label')} and {counted(imported.skips, 'skip')} added"]
    if imported.already:
        parts.append(f"{imported.already:,} there already")
    if imported.waiting:
        parts.append(f"{imported.waiting:,} without an answer yet")
    return "; ".join(parts)


def _announce(line: str) -> None:
    # Flushed also into a pipe: the caller waits for the address.
    print(line, flush=True)


def say(line: str) -> None:
    """Report something on standard error, in one line."""
    print(f"sabal: {' '.join(line.split())}", file=sys.stderr)
