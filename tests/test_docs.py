"""What the documentation shows is run, and what it promises is there."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from types import ModuleType

import pytest
from test_house import ROOMS
from typer.testing import CliRunner

from doc_blocks import (
    PAGES,
    PROGRAMS,
    ROOT,
    TARGETS,
    blocks_of,
    check_command,
    commands_of,
    prose_of,
)
from sabal.cli import app
from sabal.errors import SabalError
from sabal.strategies import option_names, strategies

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def takes_from_sabal(node):
    return isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "sabal"


@each_page
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    """Python, and fenced commands, in one folder; what has an excuse is parsed only."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    # A module that can be found: dataclasses look up where they are defined.
    module = ModuleType("a_page")
    monkeypatch.setitem(sys.modules, "a_page", module)
    for block in blocks_of(page):
        where = f"{page.name}, line {block.line}"
        if block.language == "python":
            # Blank lines in front: a traceback then has the line of the page.
            tree = ast.parse("\n" * (block.line - 1) + block.text)
            if block.excuse:
                # What it takes from this package is there in any case.
                tree.body = [node for node in tree.body if takes_from_sabal(node)]
            exec(compile(tree, str(page), "exec"), vars(module))  # noqa: S102
        elif block.language == "bash" and not block.excuse:
            for words in block.commands():
                assert words[0] == "sabal", where
                result = CliRunner().invoke(app, words[1:])
                assert result.exit_code == 0, f"{where}: {result.output} {result.exception!r}"


@each_page
def test_commands_can_be_typed_as_they_are(page):
    for block in blocks_of(page):
        if block.language in ("", "bash"):
            for words in block.commands():
                check_command(words)
        else:
            assert block.language in ("python", "text", "console", "json"), block


@pytest.mark.parametrize(
    "command",
    [
        "sabal chose pool.npz --budget 5",
        "sabal select pool.npz",
        "sabal select pool.npz --bugdet 5",
        "sabal select pool.npz --budget five",
        "sabal select pool.npz --budget 5 --strategy nothing",
        "sabal select pool.npz --budget 5 --option alhpa=2",
        "sabal simulate digits --strategies sabal,nothing",
        "make nothing",
        'pip install ".[nothing]"',
        "python examples/nothing.py",
        "python -m research nothing",
        "python -m research reproduce",
        "python -m research study --corrections",
        "python -m research bench strategies --strategies sabal,nothing",
        "python -m nothing",
        "sabal bench",
        "rm -rf pool",
    ],
)
def test_a_command_that_cannot_be_typed_is_found(command):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        check_command(shlex.split(command))
    # The parser's own errors, whichever package it lives in, carry a message.
    known = isinstance(caught.value, AssertionError | SabalError)
    assert known or hasattr(caught.value, "format_message")


@each_page
def test_commands_in_a_sentence_exist(page):
    prose = prose_of(page)
    for program in PROGRAMS:
        for name in re.findall(rf"`{program} ([a-z]+)[^`]*`", prose):
            assert name in commands_of(program)
    for target in re.findall(r"`make ([\w-]+)`", prose):
        assert target in TARGETS


@each_page
def test_files_in_a_sentence_exist(page):
    for path in re.findall(
        r"\b(?:tests|scripts|examples|research|src)/[\w/*.-]*\w", prose_of(page)
    ):
        assert list(ROOT.glob(path)), path
    for path in re.findall(r"`(sabal/[\w/]+(?:\.py)?)/?`", prose_of(page)):
        assert (ROOT / "src" / path).exists(), path


@each_page
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose_of(page)):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_page_of_strategies_is_complete():
    """Every strategy with what it needs and costs, as the registry has it, and every option."""
    page = (ROOT / "docs" / "strategies.md").read_text()
    table = page[: page.index("## Options")]
    rows = {row.split("`")[1]: row for row in table.splitlines() if row.startswith("| `")}
    for name, strategy in strategies().items():
        assert strategy.cost in rows[name]
        for need in strategy.needs:
            assert need.replace("|", " or ") in rows[name]
        for option in option_names(strategy):
            assert f"`{option}`" in page, f"{option} of {name}"


def test_the_table_of_rooms_is_complete():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    listed = [name.rstrip("/") for row in rows for name in re.findall(r"`([^`]+)`", row)]
    rooms = {path.name for path in (ROOT / "src" / "sabal").iterdir()}
    assert set(listed) == rooms - {"py.typed", "__pycache__"}
    order = [name.removesuffix(".py") for name in listed if not name.startswith("__")]
    assert order == sorted(order, key=ROOMS.index)


def test_the_first_screen_of_the_readme_shows_what_it_is():
    """Two sentences, two commands, two pictures, and about ten lines of Python."""
    first_screen = (ROOT / "README.md").read_text().partition("\n## ")[0]
    head = "\n".join(first_screen.splitlines()[:12])
    assert "make demo" in head
    assert "make test" in head
    assert len(re.findall(r"!\[.+\]\(docs/images/.+\.png\)", first_screen)) == 2
    code = re.findall(r"```python\n(.*?)```", first_screen, flags=re.DOTALL)
    assert len(code) == 1
    assert len(code[0].splitlines()) <= 12
