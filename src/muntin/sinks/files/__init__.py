"""Results in folders of Parquet files, each row exactly once."""
