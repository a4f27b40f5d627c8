"""Hooks of MkDocs: add pages to the site that are not in `docs`.

The reference of the command line comes from the code, and the pages at the root of the repository
are part of the site, too. The reference of the Python interface is made by mkdocstrings.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import relpath
from typing import Any

import cli_reference
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]

AT_THE_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
}
"""Pages outside `docs`, and what they are called in the site."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made to those that were written."""
    files.append(File.generated(config, "reference/cli.md", content=cli_reference.page()))
    for name, path in AT_THE_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        if path == "examples.md":
            text = with_examples(text)
        files.append(File.generated(config, path, content=text))
    return files


def with_examples(text: str) -> str:
    """Return the page of the examples, with their source."""
    parts = [re.sub(r"\]\((\w+)\.py\)", r"](#\1)", text)]
    for path in sorted((ROOT / "examples").glob("*.py")):
        code = path.read_text(encoding="utf-8")
        parts.append(f"## {path.name} {{ #{path.stem} }}\n\n```python\n{code}```")
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to pages at the root lead to where the site has them."""
    here = page.file.src_uri.rpartition("/")[0]

    def moved(link: re.Match[str]) -> str:
        return f"]({relpath(AT_THE_ROOT[link[1]], here or '.')}"

    names = "|".join(sorted(AT_THE_ROOT, reverse=True))
    return re.sub(rf"\]\((?:\.\./)*({names})", moved, markdown)
