"""What depends on where the project is published: its addresses, and the links of its README.

A package index shows the README away from the repository, where relative links lead nowhere. They
are made absolute if the address of the repository is known: from SABAL_REPOSITORY, or from GitHub
in its workflows.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def repository() -> str | None:
    """Return the address of the repository; None if it is not known."""
    address = os.environ.get("SABAL_REPOSITORY", "")
    host, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    if not address and host and name:
        address = f"{host}/{name}"
    return address.rstrip("/") or None


def with_absolute_links(text: str, address: str, revision: str) -> str:
    """Return Markdown whose relative links and images lead to the repository."""

    def absolute(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        view = "raw" if image else "blob"
        return f"{image}[{words}]({address}/{view}/{revision}/{target})"

    return LINK.sub(absolute, text)


def urls(address: str, revision: str) -> dict[str, str]:
    """Return the addresses that a package index shows."""
    return {
        "Source": address,
        "Documentation": f"{address}/blob/{revision}/docs/start.md",
        "Changelog": f"{address}/blob/{revision}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


class PublishedMetadata(MetadataHookInterface):
    """Fills in `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Change the metadata of the project in place."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        address = repository()
        metadata["urls"] = {}
        if address is not None:
            revision = os.environ.get("GITHUB_SHA", f"v{metadata['version']}")
            text = with_absolute_links(text, address, revision)
            metadata["urls"] = urls(address, revision)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
