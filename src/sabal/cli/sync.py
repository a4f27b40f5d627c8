"""`sabal sync`: the loop with annotators who work in a running Label Studio."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from sabal.cli.labeling import STEPS, ProjectFolder, say
from sabal.cli.root import app
from sabal.errors import InputError, counted

if TYPE_CHECKING:
    from sabal.labeling.label_studio_sync import SyncReport
    from sabal.labeling.store.records import Status


@app.command()
def sync(
    project: ProjectFolder,
    label_studio: Annotated[
        str,
        typer.Option(
            "--label-studio", metavar="URL", help="Where Label Studio runs, or a page of a project."
        ),
    ],
    number: Annotated[
        int | None,
        typer.Option(
            "--project",
            metavar="ID",
            min=1,
            help="The number of its project [in the address of the page].",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="LABEL_STUDIO_API_KEY", help="An access token of Label Studio, of either kind."
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Do what is due now, and end; for cron.")
    ] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How often to look for answers.")
    ] = 5.0,
    media_url: Annotated[
        str | None,
        typer.Option(help="Where Label Studio finds images: what comes before their paths."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --once, print what was done as JSON.")
    ] = False,
) -> None:
    """Keep a project of a running Label Studio fed, and train on its annotations.

    Pushes the batch as tasks with predictions, reads annotations as they come, trains, and pushes
    the next batch. It may be stopped and started at any time: no task is pushed twice, and no
    annotation is lost or counted twice.

    Example: `sabal sync pets --label-studio http://localhost:8080 --project 1`
    """
    from sabal.labeling.exchange.label_studio import LOCAL_FILES
    from sabal.labeling.exchange.label_studio_server import LabelStudioServer, server_and_project
    from sabal.labeling.label_studio_sync import LabelStudioSync
    from sabal.labeling.project import Project

    if as_json and not once:
        raise InputError("--once with --json", "--json alone", "add --once")
    server = LabelStudioServer(*server_and_project(label_studio, number), token or "")
    where = LOCAL_FILES if media_url is None else media_url
    with Project.open(project) as opened:
        syncing = LabelStudioSync(opened, server, media_url=where, report=say)
        if not once:
            print(f"Feeding {server.place}; stop with Ctrl+C", flush=True)
            syncing.run_forever(every, lambda done: _print_pass(done, opened.store.status()))
        done = syncing.run_until_nothing_is_due()
        if as_json:
            print(json.dumps({**asdict(done), "open": opened.store.status().remaining}))
        else:
            print(_described(done))
        _report_rest(done, opened.store.status())


def _print_pass(done: SyncReport, status: Status) -> None:
    if done.did_something:
        print(f"{_described(done)}; {status.remaining} open", flush=True)
        _report_rest(done, status)


def _described(done: SyncReport) -> str:
    parts = [f"{counted(done.labels, 'label')} and {counted(done.skips, 'skip')} read"]
    parts += [STEPS[step] for step in done.steps]
    return "; ".join([*parts, f"{counted(done.pushed, 'task')} pushed"])


def _report_rest(done: SyncReport, status: Status) -> None:
    """Say why tasks were not pushed, or that there will be no more."""
    if done.delayed:
        say(
            f"{counted(done.delayed, 'task')} may be on the way from another process, or from one "
            "that was killed; they are pushed in two minutes unless they arrive"
        )
    elif status.finished:
        say(f"nothing more to label: {status.ended}")
