"""Where items come from: a folder of images, a file of texts, or a table with features."""

from sabal.labeling.sources.item_source import ItemSource
from sabal.labeling.sources.readers import read_source

__all__ = ["ItemSource", "read_source"]
