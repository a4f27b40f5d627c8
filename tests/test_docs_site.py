"""The reference is made from the code, and the site from the pages: whole, and from disk."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

import sabal
from doc_blocks import PAGES, ROOT

sys.path.insert(0, str(ROOT / "scripts" / "docs"))

import api_reference
import cli_reference
import rooms_picture

FRONT_DOORS = {
    "sabal": ("select", "select_pool", "query"),
    "sabal.pools.ray": ("select_on_ray", "score_with_ray"),
}
"""Where users come in: every parameter is explained."""

LOADED = r"<(?:script|img|iframe|source)[^>]+src=[\"']?(?:https?:)?//|<link[^>]+rel=[\"']?(?:stylesheet|preconnect|icon)[^>]*href=[\"']?(?:https?:)?//|@import"  # noqa: E501
"""What a browser would fetch from elsewhere."""


@pytest.mark.parametrize("module", api_reference.MODULES)
def test_every_public_name_says_what_it_is(module):
    assert not api_reference.undescribed(module)


def test_the_reference_has_every_public_name_and_command():
    page = api_reference.page()
    for name in sabal.__all__:
        assert f"{{ #sabal.{name} }}" in page
    page = cli_reference.page()
    for path, command in cli_reference.commands():
        assert f"## {path}\n" in page
        for parameter in command.params:
            assert all(name in page or name.upper() in page for name in parameter.opts)


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in FRONT_DOORS.items() for name in names]
)
def test_front_doors_explain_every_parameter(module, name):
    function = api_reference.public_names(module)[name]
    said = api_reference.own_doc(function)
    unexplained = [each for each in api_reference.parameters(function) if each not in said]
    assert not unexplained


def test_every_command_and_option_has_a_word_of_help():
    assert not cli_reference.undescribed()


def test_every_command_is_shown_on_a_page_that_somebody_wrote():
    pages = "\n".join(page.read_text() for page in PAGES)
    for path, _ in cli_reference.commands():
        assert path in pages


def test_what_is_not_described_is_found(monkeypatch):
    def bare(x):
        return x

    monkeypatch.setattr(sabal, "bare", bare, raising=False)
    monkeypatch.setattr(sabal, "__all__", [*sabal.__all__, "bare"])
    assert api_reference.undescribed("sabal") == ["sabal.bare"]


def test_the_picture_of_the_rooms_is_up_to_date():
    assert rooms_picture.PICTURE.read_text() == rooms_picture.picture(), "run `make docs`"
    drawn = re.findall(r">([a-z]+)</text>", rooms_picture.picture())
    assert set(rooms_picture.rooms()) <= set(drawn)


@pytest.mark.skipif(find_spec("mkdocs") is None, reason='needs pip install -e ".[docs]"')
def test_the_site_is_built_without_a_broken_link_and_loads_nothing_from_elsewhere(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", tmp_path]
    built = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert built.returncode == 0, built.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert tmp_path / "reference" / "cli.html" in pages
    assert len(pages) >= len(PAGES)
    for page in pages:
        assert not re.search(LOADED, page.read_text()), page
