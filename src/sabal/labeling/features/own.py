"""Features that the user brought along in the column `features` of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sabal.core.checks import check_features
from sabal.errors import FileError
from sabal.labeling.sources.table import read_features
from sabal.labeling.store import Item


class OwnFeatures:
    """Reads them once; the table must still be the one that the project was made of."""

    def __init__(self, path: Path, items: int) -> None:
        self.rows_ND: np.ndarray = check_features(read_features(path))
        if len(self.rows_ND) != items:
            raise FileError(
                f"{items} rows in {path}, as there were at first",
                str(len(self.rows_ND)),
                "restore the file, or make a new project",
            )

    def rows(self, items: Sequence[Item]) -> np.ndarray:
        """The rows of these items."""
        return self.rows_ND[[item.id for item in items]]
