"""The images of a project, re-encoded to be safe and small."""

from __future__ import annotations

import io
from pathlib import Path

import anyio
from fastapi import APIRouter
from PIL import Image, ImageOps
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response

from sabal.errors import FileError, UnknownNameError
from sabal.labeling.features.image_features import IMAGE_FORMATS, MAX_PIXELS
from sabal.labeling.project import Project
from sabal.labeling.web.error_responses import error_response

MAX_SIDE = 1024
LARGE_SIDE = 3072  # of an image that a person enlarges
BOMBS = Image.DecompressionBombError, Image.DecompressionBombWarning
MAX_CONCURRENT = 2  # images that are decoded at a time: a large one needs hundreds of megabytes
SMALL_SIDE = 256  # images up to this size are encoded without loss as PNG, larger ones as JPEG


class KeyConvertor(Convertor[str]):
    """The id of an item in an address: any text, with slashes and line breaks."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        """Return the id."""
        return value

    def to_string(self, value: str) -> str:
        """Return the part of the address."""
        return value


register_url_convertor("item_key", KeyConvertor())


def media_routes(project: Project) -> APIRouter:
    """Return the route `/media/{key}`: the image of an item."""
    routes = APIRouter()
    limiter = anyio.CapacityLimiter(MAX_CONCURRENT)

    @routes.get("/media/{key:item_key}", include_in_schema=False)
    async def media(key: str, large: bool = False) -> Response:
        """Return the image of an item, re-encoded: metadata and other content is dropped."""
        side = LARGE_SIDE if large else MAX_SIDE
        return await anyio.to_thread.run_sync(answer, key, side, limiter=limiter)

    def answer(key: str, side: int) -> Response:
        if "\0" in key:
            raise UnknownNameError("the id of an item", repr(key), "check the id")
        item = project.store.item(key)
        if item.kind != "image":
            raise UnknownNameError("an item with an image", key, "read its `content` instead")
        try:
            data, kind = reencoded(project.data_file(item.content), side)
        except FileError as error:
            return error_response(404, error.expected, error.got, error.fix)
        return Response(data, media_type=kind, headers={"cache-control": "private, max-age=3600"})

    return routes


def reencoded(path: Path, side: int = MAX_SIDE) -> tuple[bytes, str]:
    """Return an image as PNG or JPEG of at most `side` pixels a side, with its media type."""
    try:
        with Image.open(path, formats=IMAGE_FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise FileError(
                    f"an image of at most {MAX_PIXELS} pixels",
                    f"{path.name} with {image.width} x {image.height}",
                    "make it smaller",
                )
            image.draft("RGB", (side, side))
            # First: everything after it needs a copy, and a large image may have 200 megabytes.
            image.thumbnail((side, side))
            return _encoded(ImageOps.exif_transpose(image))
    except (OSError, SyntaxError, ValueError, *BOMBS) as error:
        # Pillow raises any of these for a file that is damaged or not an image. The response
        # must not reveal where the file is on this machine.
        message = str(error).replace(str(path), path.name)
        raise FileError(
            f"an image in {path.name}", message, "replace the file, or skip the item"
        ) from None


def _encoded(image: Image.Image) -> tuple[bytes, str]:
    out = io.BytesIO()
    transparent = image.has_transparency_data
    as_png = transparent or max(image.size) <= SMALL_SIDE
    plain = image.convert("RGBA" if transparent else "RGB")
    plain.info = {}  # comments and other metadata, which the encoders would write
    if as_png:
        plain.save(out, "PNG")
        return out.getvalue(), "image/png"
    plain.save(out, "JPEG", quality=88)
    return out.getvalue(), "image/jpeg"
