"""Labels in and out: CSV, JSONL, Parquet and Label Studio's JSON.

`export_bytes` gives the labels that stand, a row each, or what waits for an answer, to be labelled
elsewhere; `import_file` takes such a file, or one that was made elsewhere.
"""

from sabal.labeling.exchange.exporting import export_bytes, export_file
from sabal.labeling.exchange.formats import FORMATS, MEDIA_TYPES, format_of, format_to_write
from sabal.labeling.exchange.importing import Imported, import_file
from sabal.labeling.exchange.label_studio import label_config

__all__ = [
    "FORMATS",
    "MEDIA_TYPES",
    "Imported",
    "export_bytes",
    "export_file",
    "format_of",
    "format_to_write",
    "import_file",
    "label_config",
]
