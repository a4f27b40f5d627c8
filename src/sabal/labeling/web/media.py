"""The images of a project, made safe and small."""

from __future__ import annotations

import io
from pathlib import Path

import anyio
from fastapi import APIRouter
from PIL import Image, ImageOps
from starlette.responses import Response

from sabal.errors import FileError, UnknownNameError
from sabal.labeling.features.pictures import FORMATS
from sabal.labeling.project import Project
from sabal.labeling.web.problems import problem

LARGEST_SIDE = 1024
MOST_PIXELS = 50_000_000
BOMBS = Image.DecompressionBombError, Image.DecompressionBombWarning
AT_ONCE = 2
"""Images that are drawn at one time: a large one takes hundreds of megabytes."""
SMALL_SIDE = 256
"""Up to this size an image stays exact (PNG); photographs above it become JPEG."""


def media_routes(project: Project) -> APIRouter:
    """`/media/{key}`: the image of an item."""
    routes = APIRouter()
    limiter = anyio.CapacityLimiter(AT_ONCE)

    @routes.get("/media/{key:path}", include_in_schema=False)
    async def media(key: str) -> Response:
        """The image of an item, drawn anew: what a file hides beside its pixels stays there."""
        return await anyio.to_thread.run_sync(answer, key, limiter=limiter)

    def answer(key: str) -> Response:
        if "\0" in key:
            raise UnknownNameError("the id of an item", repr(key), "check the id")
        item = project.store.item(key)
        if item.kind != "image":
            raise UnknownNameError("an item with an image", key, "read its `content` instead")
        try:
            data, kind = redrawn(project.data_file(item.content))
        except FileError as error:
            return problem(404, error.expected, error.got, error.fix)
        return Response(data, media_type=kind, headers={"cache-control": "private, max-age=3600"})

    return routes


def redrawn(path: Path) -> tuple[bytes, str]:
    """An image file as PNG or JPEG of at most 1,024 pixels a side, with its media type."""
    try:
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise FileError(
                    f"an image of at most {MOST_PIXELS} pixels",
                    f"{path.name} with {image.width} x {image.height}",
                    "make it smaller",
                )
            image.draft("RGB", (LARGEST_SIDE, LARGEST_SIDE))
            upright = ImageOps.exif_transpose(image)
            upright.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
            return _encoded(upright)
    except (OSError, SyntaxError, ValueError, *BOMBS) as error:
        # Pillow's readers raise any of these for a file that is damaged or no image at all. Where
        # the file is on this machine is nobody's business.
        said = str(error).replace(str(path), path.name)
        raise FileError(
            f"an image in {path.name}", said, "replace the file, or skip the item"
        ) from None


def _encoded(image: Image.Image) -> tuple[bytes, str]:
    out = io.BytesIO()
    transparent = image.has_transparency_data
    if transparent or max(image.size) <= SMALL_SIDE:
        image.convert("RGBA" if transparent else "RGB").save(out, "PNG")
        return out.getvalue(), "image/png"
    image.convert("RGB").save(out, "JPEG", quality=88)
    return out.getvalue(), "image/jpeg"
