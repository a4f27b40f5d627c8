"""A folder of images, with all folders in it; an image's id is its path below the folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sabal.errors import FileError
from sabal.labeling.sources.source import Source, source_of

ENDINGS = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})


def read_images(folder: Path) -> Source:
    """Every image below `folder` by name; hidden files and folders are left out."""
    names = sorted(_names(folder))
    if not names:
        raise FileError(
            f"images ({', '.join(sorted(ENDINGS))}) in {folder}", "none", "check the folder"
        )
    return source_of(folder, "image", ((name, name) for name in names))


def _names(folder: Path) -> Iterator[str]:
    # Linked folders are not entered: they may lead anywhere, and back.
    for place, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = Path(place).relative_to(folder)
        for name in files:
            if not name.startswith(".") and Path(name).suffix.lower() in ENDINGS:
                yield (below / name).as_posix()


def _refuse(error: OSError) -> None:
    raise FileError("a folder that can be read", str(error), "check its permissions")
