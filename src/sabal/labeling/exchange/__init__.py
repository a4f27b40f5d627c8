"""Labels in and out: CSV, JSONL, Parquet and Label Studio's JSON.

`export_bytes` returns the current labels, a row each, or the open items to label elsewhere;
`import_file` reads such a file, or one that another tool wrote.
"""

from sabal.labeling.exchange.exporting import export_bytes, export_file
from sabal.labeling.exchange.formats import FORMATS, MEDIA_TYPES, format_of, format_to_write
from sabal.labeling.exchange.importing import import_file
from sabal.labeling.exchange.label_studio import label_config

__all__ = [
    "FORMATS",
    "MEDIA_TYPES",
    "export_bytes",
    "export_file",
    "format_of",
    "format_to_write",
    "import_file",
    "label_config",
]
