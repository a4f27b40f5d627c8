"""An example to try the app on: scikit-learn's handwritten digits, as images."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sabal.core.extras import import_optional
from sabal.core.files import make_folder, write_whole
from sabal.labeling.creation import SETTINGS
from sabal.labeling.project import Project

SCALE = 8  # the factor by which the digits of 8 x 8 pixels are enlarged


def make_example(folder: str | Path) -> Project:
    """Create a project of 1,797 digits with their pixels as features, or open it if it exists."""
    place = Path(folder)
    if (place / SETTINGS).is_file():
        return Project.open(place)
    table = _write_digits(place / "digits")
    return Project.create(
        place,
        data=table,
        classes=[str(digit) for digit in range(10)],
        name="digits",
        budget=200,
        show_guess=True,
    )


def _write_digits(folder: Path) -> Path:
    pa = import_optional("pyarrow", "app", "to write the example")
    pq = import_optional("pyarrow.parquet", "app", "to write the example")
    from PIL import Image
    from sklearn.datasets import load_digits

    make_folder(folder)
    digits = load_digits()
    names = [f"digit-{row:04d}" for row in range(len(digits.images))]
    for name, image in zip(names, digits.images, strict=True):
        grey = np.round(image * (255 / 16)).astype(np.uint8)
        large = Image.fromarray(np.kron(grey, np.ones((SCALE, SCALE), dtype=np.uint8)))
        large.save(folder / f"{name}.png")
    table = pa.table(
        {"id": names, "image": [f"{name}.png" for name in names], "features": digits.data.tolist()}
    )
    return write_whole(folder / "digits.parquet", lambda target: pq.write_table(table, target))
