"""Joins of whole streams by their windows, against the same joins by DuckDB."""

from muntin_bench.operators.benchmark import run

__all__ = ["run"]
