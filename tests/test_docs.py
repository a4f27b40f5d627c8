"""What the documentation shows is run, and what it promises is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sabal.strategies import option_names, strategies

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)  # noqa: S102


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
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


def test_the_first_screen_of_the_readme_has_the_two_commands():
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:20])
    assert "make demo" in first_screen
    assert "make test" in first_screen


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run_and_leave_the_pictures_they_name(example, tmp_path):
    answer = subprocess.run(
        [sys.executable, example], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout
    for picture in re.findall(r"picture is at (.+\.png)", answer.stdout):
        assert Path(picture).stat().st_size > 50_000
