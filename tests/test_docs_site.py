"""The reference is made from the code, and the site from the pages: whole, and from disk."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

import sabal
from doc_blocks import PAGES, ROOT
from sabal.pools.ray import score_with_ray

sys.path.insert(0, str(ROOT / "scripts" / "docs"))

import cli_reference
import rooms_picture

REFERENCE = ROOT / "docs" / "reference" / "api.md"
MODULES = ("sabal", "sabal.models", "sabal.integrations", "sabal.loop", "sabal.pools.ray")
ALIASES = {"sabal.Outputs": "sabal.ArrayPool"}
FIRST = ["sabal.select", "sabal.query", "sabal.select_pool", "sabal.Selection"]
needs_mkdocs = pytest.mark.skipif(
    find_spec("mkdocstrings") is None, reason='needs pip install -e ".[docs]"'
)

LOADED = r"<(?:script|img|iframe|source)[^>]+src=[\"']?(?:https?:)?//|<link[^>]+rel=[\"']?(?:stylesheet|preconnect|icon)[^>]*href=[\"']?(?:https?:)?//|@import"  # noqa: E501
"""What a browser would fetch from elsewhere."""


def referenced():
    """The names that the page of the Python reference asks mkdocstrings for."""
    return re.findall(r"^::: (\S+)$", REFERENCE.read_text(), flags=re.MULTILINE)


def public_names(module):
    return [f"{module}.{name}" for name in importlib.import_module(module).__all__]


@pytest.mark.parametrize("module", MODULES)
def test_the_reference_has_every_public_name(module):
    shown, page = referenced(), REFERENCE.read_text()
    for name in public_names(module):
        if name in ALIASES:
            assert f"`{name}`" in page
            assert ALIASES[name] in shown
        else:
            assert name in shown


def test_the_reference_is_ordered_by_use_and_has_nothing_twice():
    shown = referenced()
    assert shown[: len(FIRST)] == FIRST
    assert len(set(shown)) == len(shown)


@pytest.mark.parametrize("name", referenced())
def test_everything_in_the_reference_exists_and_is_documented(name):
    module, _, last = name.rpartition(".")
    thing = getattr(importlib.import_module(module), last)
    doc = inspect.cleandoc(thing.__doc__ or "")
    assert doc
    assert not doc.startswith(f"{last}("), "a docstring that a dataclass made"


def test_the_reference_has_every_command():
    page = cli_reference.page()
    for path, command in cli_reference.commands():
        assert f"## {path}\n" in page
        for parameter in command.params:
            assert all(name in page or name.upper() in page for name in parameter.opts)


@pytest.mark.parametrize(
    "function",
    [sabal.select, sabal.query, sabal.select_pool, score_with_ray],
    ids=lambda function: function.__name__,
)
def test_front_doors_explain_every_parameter(function):
    """Under `Parameters`, in lines of their own."""
    explained = re.findall(r"^([\w*, ]+?)(?: : .+)?$", inspect.cleandoc(function.__doc__), re.M)
    names = {name.strip(" *") for line in explained for name in line.split(",")}
    assert set(inspect.signature(function).parameters) <= names


def test_every_command_and_option_has_a_word_of_help():
    assert not cli_reference.undescribed()


def test_every_command_is_shown_on_a_page_that_somebody_wrote():
    pages = "\n".join(page.read_text() for page in PAGES)
    for path, _ in cli_reference.commands():
        assert path in pages


def test_the_picture_of_the_rooms_is_up_to_date():
    assert rooms_picture.PICTURE.read_text() == rooms_picture.picture(), "run `make docs`"
    drawn = re.findall(r">([a-z]+)</text>", rooms_picture.picture())
    assert set(rooms_picture.rooms()) <= set(drawn)


@needs_mkdocs
def test_the_site_is_built_without_a_broken_link_and_loads_nothing_from_elsewhere(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    command += ["--site-dir", str(tmp_path)]
    built = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert built.returncode == 0, built.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert tmp_path / "reference" / "cli.html" in pages
    reference = (tmp_path / "reference" / "api.html").read_text()
    assert all(f'id="{name}"' in reference for name in referenced())
    assert len(pages) >= len(PAGES)
    for page in pages:
        assert not re.search(LOADED, page.read_text()), page
