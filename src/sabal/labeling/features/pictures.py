"""Images as they are read for features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sabal.errors import FileError

LARGEST_PIXELS = 50_000_000
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
"""Only these, whatever a file calls itself: others are rare, and some of them start programs."""


def open_picture(path: Path) -> Any:
    """The image at `path` in RGB, turned the right way up."""
    from PIL import Image, ImageOps

    bombs = Image.DecompressionBombError, Image.DecompressionBombWarning
    try:
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > LARGEST_PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels")
            return ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, SyntaxError, *bombs) as error:
        raise FileError(
            f"a readable image of at most {LARGEST_PIXELS // 1_000_000} megapixels at {path}",
            str(error),
            "repair or replace it",
        ) from None
