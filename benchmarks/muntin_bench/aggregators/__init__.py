"""The techniques of final aggregation side by side."""

from muntin_bench.aggregators.benchmark import run

__all__ = ["run"]
