"""Row queries over whole streams, against DuckDB, and over Spark streams, against Spark itself."""

from muntin_bench.operators.benchmark import run

__all__ = ["run"]
