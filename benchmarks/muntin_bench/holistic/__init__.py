"""Distinct values, percentiles and the most frequent values over many windows, beside peers."""

from muntin_bench.holistic.benchmark import run

__all__ = ["run"]
