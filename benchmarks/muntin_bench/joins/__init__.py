"""Aggregates over joins of two streams, beside engines that make the pairs."""

from muntin_bench.joins.benchmark import run

__all__ = ["run"]
