"""Labels in and out: CSV, JSONL, Parquet and Label Studio's JSON."""
