"""`sabal people`, `sabal classes` and `sabal guidelines`: what the lead of a project does."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sabal.cli.labeling import ProjectFolder, say
from sabal.cli.root import app
from sabal.core.checks import check_choice
from sabal.errors import FileError, InputError

if TYPE_CHECKING:
    from sabal.labeling.project import Project

BASE_URL = "http://127.0.0.1:8760"  # where the app is unless it was told otherwise


@app.command()
def people(
    project: ProjectFolder,
    action: Annotated[str, typer.Argument(help="list, add, renew or remove.")] = "list",
    name: Annotated[str | None, typer.Argument(help="The person's name.")] = None,
    role: Annotated[
        str | None, typer.Option(help="lead, annotator or reader [annotator, or as before].")
    ] = None,
    public_url: Annotated[
        str, typer.Option(envvar="SABAL_PUBLIC_URL", help="Where people find the app.")
    ] = BASE_URL,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Give people personal links, with which they label under their own names.

    A lead may do everything; an annotator labels; a reader sees the dashboard and exports. The link
    is shown once: `renew` makes another one, and `remove` takes it away. Answers always stay.

    Example: `sabal people pets add Ann --role lead`
    """
    from sabal.labeling.project import Project

    check_choice(action, "action", ("list", "add", "renew", "remove"))
    if (name is None) != (action == "list"):
        got = "none" if name is None else repr(name)
        raise InputError(f"a name with {action!r}, or none with 'list'", got, "see --help")
    with Project.open(project) as opened:
        if name is None:
            _list_people(opened, as_json)
        elif action == "remove":
            opened.store.remove_person(name)
            print(f"{name} has no link any more; the answers stay")
        else:
            _print_link(opened, name, action, role, public_url, as_json)


def _list_people(project: Project, as_json: bool) -> None:
    found = project.store.people()
    if as_json:
        print(json.dumps([asdict(person) for person in found]))
        return
    for person in found:
        print(f"{person.role:<9}  {person.name}")
    if not found:
        print("Nobody has a personal link: whoever reaches the app labels under any name")


def _print_link(
    project: Project, name: str, action: str, role: str | None, public_url: str, as_json: bool
) -> None:
    store = project.store
    token = (
        store.renew_person(name, role)
        if action == "renew"
        else store.add_person(name, role or "annotator")
    )
    link = f"{public_url.rstrip('/')}/login?token={token}"
    if as_json:
        print(json.dumps({"name": name.strip(), "token": token, "link": link}))
        return
    print(f"The link of {name.strip()}, which is not shown again: {link}")
    if not any(person.role == "lead" for person in store.people()):
        say(f"nobody leads the project yet: sabal people {project.folder} add NAME --role lead")


@app.command()
def classes(
    project: ProjectFolder,
    action: Annotated[str, typer.Argument(help="list, add, rename or merge.")] = "list",
    name: Annotated[str | None, typer.Argument(help="The class.")] = None,
    target: Annotated[
        str | None, typer.Argument(help="Its new name, or the class to merge it into.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the classes as JSON.")] = False,
) -> None:
    """List or change the classes, also while the app runs.

    No label is lost: those of a renamed or merged class count under the other name, and the answers
    themselves stay as they were given.

    Example: `sabal classes pets rename cat feline`
    """
    from sabal.labeling.project import Project

    check_choice(action, "action", ("list", "add", "rename", "merge"))
    names = [given for given in (name, target) if given is not None]
    wanted = {"list": 0, "add": 1}.get(action, 2)
    if len(names) != wanted:
        raise InputError(f"{wanted} names with {action!r}", str(len(names)), "see --help")
    with Project.open(project, to_read=action == "list") as opened:
        if name is not None:
            opened.change_classes(action, name, target)
        balance = opened.store.class_balance()
    if as_json:
        print(json.dumps(balance, ensure_ascii=False))
        return
    for each, count in balance.items():
        print(f"{count:>7}  {each}")


@app.command()
def guidelines(
    project: ProjectFolder,
    file: Annotated[
        Path | None, typer.Argument(help="Markdown to show from now on; - for standard input.")
    ] = None,
    class_name: Annotated[
        str | None, typer.Option("--class", metavar="NAME", help="Of one class [of the project].")
    ] = None,
) -> None:
    """Print the guidelines for annotators, or replace them by a file.

    Example: `sabal guidelines pets cats.md --class cat`
    """
    from sabal.labeling.project import Project

    with Project.open(project, to_read=file is None) as opened:
        if file is not None:
            opened.store.set_guideline(_text(file), class_name)
            return
        found = opened.store.guidelines()
    if class_name is not None:
        check_choice(class_name, "class", tuple(found.classes))
        print(found.classes[class_name].rstrip())
        return
    print(found.project.rstrip())
    for name, text in found.classes.items():
        if text:
            print(f"\n## {name}\n\n{text.rstrip()}")


def _text(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"a text in UTF-8 at {file}", str(error), "check the file") from None
