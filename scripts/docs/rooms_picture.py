"""Draw the rooms of the package in the order of their imports: docs/images/rooms.svg.

`make docs` runs it before it builds the site.
"""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "images" / "rooms.svg"

BANDS = {
    "errors": "foundations",
    "predictions": "what a model says, and pools",
    "sparse": "what is chosen",
    "models": "training, asking, and again",
    "simulate": "what people run",
}
"""The first room of each band, and what the band is about."""

PIPELINE = ("pools", "predictions", "sparse", "strategies", "selection", "loop", "learners")
"""The rooms that a selection goes through, in order; then again from the pool."""

NOTES = (
    "arrows: imports point up only; numbers: the way of a selection, from pool to training",
    "outside the package: research, which may import all of it",
)

LEFT, TOP, BAND, GAP = 252, 14, 54, 14
LETTER, PADDING, BETWEEN, BOX = 7.6, 20, 8, 28


def rooms() -> list[str]:
    """Return the rooms in the order that the tests enforce."""
    tree = ast.parse((ROOT / "tests" / "test_house.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "ROOMS":
            return [name for name in ast.literal_eval(node.value) if not name.startswith("__")]
    raise LookupError("no list ROOMS in tests/test_house.py")


def banded() -> list[tuple[str, list[str]]]:
    """Return (title, rooms) of each band, from the foundations up to the commands."""
    bands: list[tuple[str, list[str]]] = []
    for room in rooms():
        if room in BANDS:
            bands.append((BANDS[room], []))
        bands[-1][1].append(room)
    return bands


def picture() -> str:
    """Return the picture as SVG."""
    bands, shapes, right = banded(), [], 0.0
    for row, (about, inside) in enumerate(bands):
        top = TOP + row * (BAND + GAP)
        middle = top + BAND / 2
        shapes.append(_text(LEFT - 34, middle + 4, about, "end", "#555"))
        if row:
            shapes.append(
                f'<path d="M{LEFT - 16} {middle}V{middle - BAND - GAP + 12}" stroke="#888" '
                'fill="none" marker-end="url(#up)"/>'
            )
        x = float(LEFT)
        for room in inside:
            width = LETTER * len(room) + PADDING
            shapes += _box(room, x, middle, width)
            x += width + BETWEEN
        right = max(right, x)
    height = TOP + len(bands) * (BAND + GAP) + 42
    for line, note in enumerate(NOTES):
        shapes.append(_text(24, height - 32 + 18 * line, note, "start", "#555"))
    width = round(right + 12)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" '
        'aria-label="The rooms of the package, each below those that it may import" '
        'font-family="system-ui, sans-serif" font-size="13">\n'
        '<defs><marker id="up" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs>\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _box(room: str, x: float, middle: float, width: float) -> list[str]:
    step = PIPELINE.index(room) + 1 if room in PIPELINE else 0
    fill, stroke = ("#e6f2ec", "#1b7a4b") if step else ("#f4f4f4", "#bbb")
    shapes = [
        f'<rect x="{x:.1f}" y="{middle - BOX / 2:.1f}" width="{width:.1f}" height="{BOX}" rx="5" '
        f'fill="{fill}" stroke="{stroke}"/>',
        _text(x + width / 2, middle + 4.5, room, "middle", "#111"),
    ]
    if step:
        shapes += [
            f'<circle cx="{x:.1f}" cy="{middle - BOX / 2:.1f}" r="8.5" fill="{stroke}"/>',
            _text(x, middle - BOX / 2 + 4, str(step), "middle", "#fff"),
        ]
    return shapes


def _text(x: float, y: float, text: str, anchor: str, fill: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture())
    print(f"Written to {PICTURE}")
