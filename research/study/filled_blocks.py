"""Blocks of other pages that are written from the study: between two comments with their name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from research.study.findings import Findings
from research.study.scope_lines import advice_lines, summary_lines
from sabal.core.files import write_text_whole
from sabal.errors import FileError


def blocks_of(findings: Findings) -> dict[str, Sequence[str]]:
    """Return the blocks that are written from the findings, by name; raise if there are none."""
    if not findings.scopes:
        raise FileError(
            "runs of sabal, random and a baseline with a seed in common, to fill pages from",
            "none",
            "run them first",
        )
    return {"summary": summary_lines(findings.scopes), "advice": advice_lines(findings.scopes)}


def fill_blocks(
    path: Path, blocks: Mapping[str, Sequence[str]], source: str = "study"
) -> list[str]:
    """Write the lines of every block that a page has; return the names of these blocks.

    A block begins with `<!-- SOURCE: NAME -->` and ends with `<!-- end of SOURCE: NAME -->`.
    """
    if not path.is_file():
        raise FileError("a page to fill", f"no file at {path}", "check the path")
    text = path.read_text(encoding="utf-8")
    filled = []
    for name, lines in blocks.items():
        parts = re.split(f"(<!-- {source}: {name} -->|<!-- end of {source}: {name} -->)", text)
        if len(parts) == 5:
            parts[2] = "\n" + "\n".join(lines).strip("\n") + "\n"
            text = "".join(parts)
            filled.append(name)
    if not filled:
        names = ", ".join(blocks)
        raise FileError(f"a block in {path}, out of {names}", "none", "add its two comments")
    write_text_whole(path, text)
    return filled
