"""Many queries at once on Spark, bounded and streaming."""

from muntin_bench.spark.benchmark import run

__all__ = ["run"]
