"""The recipes in deploy/: they name commands and options that exist, and fit together."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from doc_blocks import check_command

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_the_service_starts_a_command_that_exists():
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(DEPLOY / "sabal.service")
    words = shlex.split(parser["Service"]["ExecStart"])
    check_command(["sabal", *words[1:]])
    project = words[words.index("label") + 1]
    assert project.startswith(parser["Service"]["ReadWritePaths"])


def test_the_image_starts_a_command_that_exists():
    text = (DEPLOY / "Dockerfile").read_text()
    entry, words = (
        json.loads(re.search(rf"^{name} (\[.*\])", text, re.MULTILINE)[1])
        for name in ("ENTRYPOINT", "CMD")
    )
    check_command([*entry, *words])
    copied = re.search(r"^COPY (.*) \./$", text, re.MULTILINE)[1].split()
    for name in copied:
        assert (DEPLOY.parent / name).is_file(), name
    # What the package is built from is there.
    built = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    assert {"pyproject.toml", "README.md", "LICENSE"} <= set(copied)
    assert ("hatch_build.py" in copied) == ("custom" in built["tool"]["hatch"]["metadata"]["hooks"])
    extras = re.search(r'"\.\[(.*)\]"', text)[1].split(",")
    assert set(extras) <= set(built["project"]["optional-dependencies"])


def test_the_image_owns_the_folder_of_its_projects():
    text = (DEPLOY / "Dockerfile").read_text()
    user = re.search(r"^USER (.*)", text, re.MULTILINE)[1]
    assert f"install --directory --owner={user} --group={user} /projects" in text


def test_the_services_fit_together(compose):
    services = compose["services"]
    assert set(services) == {"db", "app", "web"}
    assert "ports" not in services["app"], "only the web server is published"
    assert "SABAL_PUBLIC_URL" in services["app"]["environment"]
    port = services["web"]["environment"]["SABAL_APP"]
    assert port == "app:8760"
    command = shlex.split(services["app"]["command"])
    check_command(["sabal", *command])
    network = compose["networks"]["default"]["ipam"]["config"][0]["subnet"]
    assert command[command.index("--proxy") + 1] == network
    for service in services.values():
        for volume in service.get("volumes", []):
            name = volume.split(":")[0]
            assert name.startswith("./") or name in compose["volumes"], name


def test_the_commands_in_the_comments_exist():
    text = (DEPLOY / "compose.yaml").read_text()
    commands = re.findall(r"run --rm app ((?:.*\\\n)*.*)", text)
    assert len(commands) == 2
    for command in commands:
        check_command(["sabal", *shlex.split(re.sub(r"\\\n#", " ", command))])
