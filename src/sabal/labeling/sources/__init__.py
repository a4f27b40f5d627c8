"""Where items come from: a folder of images, a file of texts, or a table with features."""

from sabal.labeling.sources.reading import Source, read_source

__all__ = ["Source", "read_source"]
