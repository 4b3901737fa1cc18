"""Distinct values, percentiles and the most frequent values over many windows, beside DuckDB."""

from muntin_bench.holistic.benchmark import run

__all__ = ["run"]
