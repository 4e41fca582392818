"""The media types of uploads and artifacts."""

CSV = "text/csv"
GZIP = "application/gzip"
PARQUET = "application/vnd.apache.parquet"
